"""What pretraining on sampled contexts comes to, as claims of our own with verdicts computed from tables.

Seeds are the unit: an interval is the 95% bootstrap interval of a mean over seeds.  MSVE is the mean over unseen tasks,
which all methods share; ratios are compared as logarithms.
"""

import itertools
from collections.abc import Iterator
from functools import partial

import numpy as np
import pandas as pd

from ictd.claims import HALF, TENTH, Claim, claim_of_trials

SECTION = "Prompts as an agent sees them"
SETTING = ["env", "states", "depth", "discount"]
PLACE = ["on_env", "on_discount"]
_of_trials = partial(claim_of_trials, SECTION)


def last_within(table: pd.DataFrame, tasks: float = np.inf) -> pd.DataFrame:
    """Rows at each cell's last snapshot within a number of tasks."""
    within = table[table["tasks_seen"] <= tasks]
    return within[within["tasks_seen"] == within.groupby(["algo", *SETTING])["tasks_seen"].transform("max")]


def last_values(values: pd.DataFrame, tasks: int) -> pd.DataFrame:
    """Of runs on sampled contexts the rows at the last snapshot within a number of tasks."""
    return last_within(values[values["prompts"] == "contexts"], tasks)


def paper_values(values: pd.DataFrame) -> pd.DataFrame:
    """Of the paper's runs, on enumerated prompts, the rows at the end of pretraining."""
    return last_within(values[values["prompts"] == "enumerated"])


def at_home(values: pd.DataFrame) -> pd.DataFrame:
    """Rows evaluated on the environment and discount of pretraining."""
    return values[(values["env"] == values["on_env"]) & (values["discount"] == values["on_discount"])]


def with_yardsticks(values: pd.DataFrame, yardsticks: pd.DataFrame) -> pd.DataFrame:
    """Values with a column for the mean MSVE of each yardstick at the same place and length."""
    wide = yardsticks.pivot(index=["env", "states", "discount", "context_length"], columns="method", values="mean")
    wide = wide.reset_index().rename(columns={"env": "on_env", "discount": "on_discount"})
    return values.merge(wide, on=["on_env", "states", "on_discount", "context_length"], how="left")


def gap_closed(rows: pd.DataFrame) -> pd.Series:
    """Share of the gap between LSTD and the Bayesian floor that is closed: 0 at LSTD's MSVE, 1 at the floor."""
    return (rows["lstd"] - rows["mean"]) / (rows["lstd"] - rows["bayes"])


def check_agents(tables: dict[str, pd.DataFrame], main: tuple, tasks: int, longest: int) -> list[Claim]:
    """All claims on pretraining on sampled contexts.

    Parameters
    ----------
    tables : values, yardsticks and shapes
    main : env, states, depth and discount of the main setting
    tasks : int, tasks of the runs in other settings, at which the main setting's are compared with them
    longest : int, the greatest length of a context in pretraining
    """
    values = last_values(tables["values"], tasks)
    home = with_yardsticks(at_home(values), tables["yardsticks"])
    of_main = home[(home[SETTING] == list(main)).all(axis=1)]
    return [
        *_yardstick_claims(home, longest),
        *_paper_claims(of_main, paper_values(at_home(tables["values"])), longest),
        *_teacher_claims(of_main, longest),
        *_length_claims(of_main, longest),
        *_transfer_claims(with_yardsticks(values, tables["yardsticks"])),
        *_shape_claims(last_within(tables["shapes"], tasks)),
    ]


def _yardstick_claims(home: pd.DataFrame, longest: int) -> Iterator[Claim]:
    for (algo, *setting, length), rows in home.groupby(["algo", *SETTING, "context_length"], sort=False):
        if length > longest:
            continue
        name = (algo, *setting, f"{length} steps")
        yield from _of_trials(
            "beats_lstd", name, "The Transformer beats LSTD with its best ridge on contexts as long as those"
            " it was pretrained on.", "the log10 ratio of their MSVEs", np.log10(rows["mean"] / rows["lstd"]), "<", 0.0,
        )  # fmt: skip
        yield from _of_trials(
            "beats_batch_td", name, "It beats batch TD with the best step size and number of updates.",
            "the log10 ratio of their MSVEs", np.log10(rows["mean"] / rows["batch_td"]), "<", 0.0,
        )  # fmt: skip
        if rows["bayes"].notna().all():
            yield from _of_trials(
                "above_the_floor", name, "It does not get below the Bayesian floor.",
                "the log10 ratio of its MSVE to the floor", np.log10(rows["mean"] / rows["bayes"]), ">", 0.0,
            )  # fmt: skip
            yield from _of_trials(
                "closes_half", name, "It closes more than half of the gap between LSTD and the Bayesian floor.",
                "the share of the gap", gap_closed(rows), ">", HALF,
            )  # fmt: skip


def _paper_claims(of_main: pd.DataFrame, paper: pd.DataFrame, longest: int) -> Iterator[Claim]:
    for (algo, length), rows in of_main.groupby(["algo", "context_length"], sort=False):
        beside = paper[(paper["algo"] == algo) & (paper["context_length"] == length)]
        if length <= longest and len(beside):
            pair = rows.set_index("seed")["mean"] / beside.set_index("seed")["mean"]
            yield from _of_trials(
                "beats_enumerated", (algo, f"{length} steps"), "It beats the Transformer that was pretrained on"
                " enumerated prompts.", "the log10 ratio of their MSVEs", np.log10(pair.dropna()), "<", 0.0,
            )  # fmt: skip


def _teacher_claims(of_main: pd.DataFrame, longest: int) -> Iterator[Claim]:
    for length, rows in of_main[of_main["context_length"] <= longest].groupby("context_length", sort=False):
        by_algo = rows.pivot(index="seed", columns="algo", values="mean")
        if {"td", "mc"} <= set(by_algo):
            yield from _of_trials(
                "mc_teaches_better", (f"{length} steps",), "Multi-task MC is the better teacher.",
                "the log10 ratio of the MSVEs by MC and TD", np.log10(by_algo["mc"] / by_algo["td"]), "<", 0.0,
            )  # fmt: skip


def _length_claims(of_main: pd.DataFrame, longest: int) -> Iterator[Claim]:
    beyond = sorted(length for length in of_main["context_length"].unique() if length >= longest)
    for algo, rows in of_main.groupby("algo", sort=False):
        table = np.log10(rows.pivot(index="seed", columns="context_length", values="mean"))
        for before, length in itertools.pairwise(beyond):
            yield from _of_trials(
                "still_falls", (algo, f"{length} steps"), "Past the lengths of pretraining its MSVE goes on"
                " falling.", "the log10 ratio of its MSVEs at this length and the one before",
                table[length] - table[before], "<", 0.0,
            )  # fmt: skip


def _transfer_claims(values: pd.DataFrame) -> Iterator[Claim]:
    away = values[(values["env"] != values["on_env"]) | (values["discount"] != values["on_discount"])]
    for (algo, *names), rows in away.groupby(["algo", *SETTING, *PLACE], sort=False):
        *setting, on_env, on_discount = names
        shortest = rows[rows["context_length"] == rows["context_length"].min()]
        yield from _of_trials(
            "transfers", (algo, *setting, "on", on_env, on_discount), "It beats LSTD on the shortest contexts of"
            " another environment or discount too.", "the log10 ratio of their MSVEs",
            np.log10(shortest["mean"] / shortest["lstd"]), "<", 0.0,
        )  # fmt: skip


def _shape_claims(last: pd.DataFrame) -> Iterator[Claim]:
    for (algo, *setting), rows in last.groupby(["algo", *SETTING], sort=False):
        yield from _of_trials(
            "structure", (algo, *setting), "A is close to $[G; H] [-I, I]$: columns form the TD error.",
            "the share of what is outside", rows["outside"], "<", TENTH,
        )  # fmt: skip
