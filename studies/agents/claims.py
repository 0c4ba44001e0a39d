"""What pretraining on sampled contexts comes to, as claims of our own with verdicts computed from tables.

Seeds are the unit, unless tasks are named: an interval is the 95% bootstrap interval of a mean over seeds.  MSVE is the
mean over unseen tasks, which all methods share; beside LSTD it is the median too, as some tasks have errors many times
those of others.  Ratios are compared as logarithms.
"""

import itertools
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

from ictd.pipeline.table_files import load_tables
from ictd.report.claim import HALF, ROUNDING, TENTH, Claim, claim_of_trials, named_claim, save_claims
from ictd.unseen_tasks import ENUMERATED
from studies.agents.grid import Setting
from studies.agents.selection import (
    SETTING,
    at_home,
    gap_closed,
    has_gap,
    last_values,
    last_within,
    of_setting,
    with_baselines,
    with_sampled_updates,
)

HEADING = "Prompts as an agent sees them"
# LSTD's columns, by what is taken over tasks.
LSTD = {"mean": "lstd", "median": "lstd_median"}
_of_trials = partial(claim_of_trials, HEADING)


def main(tables: list[Path], setting: dict, tasks: int, lengths: list[int], output: Path) -> None:
    """Write the claims with their verdicts."""
    save_claims(output, check_agents(load_tables(tables), Setting(**setting), tasks, max(lengths)))


def check_agents(tables: dict[str, pd.DataFrame], main: Setting, tasks: int, longest: int) -> list[Claim]:
    """All claims on pretraining on sampled contexts.

    Parameters
    ----------
    tables : values, over_tasks, baselines, chosen, shapes and attention
    main : the main setting
    tasks : int, tasks of the runs in other settings, at which the main setting's are compared with them
    longest : int, the greatest length of a context in pretraining
    """
    values = with_baselines(with_sampled_updates(last_values(tables["values"], tasks)), tables["baselines"])
    home, place = at_home(values), of_setting(tables["baselines"], main, "depth")
    of_main = of_setting(at_home(tables["values"]), main)
    within = of_main[of_main["context_length"] <= longest]
    every_teacher, in_the_end = last_values(within, tasks), with_sampled_updates(last_values(within))
    shapes = with_sampled_updates(tables["shapes"])
    in_main = last_within(of_setting(shapes, main))
    return [
        *_baseline_claims(home, longest),
        *_claims_over_tasks(with_sampled_updates(at_home(tables["over_tasks"])), longest),
        *_paper_claims(within),
        *_depth_claims(of_setting(home, main, "depth"), longest),
        *_task_claims(with_sampled_updates(every_teacher), in_the_end),
        *_teacher_claims(every_teacher, in_the_end),
        *_length_claims(of_setting(home, main), longest),
        *_transfer_claims(values),
        *_shape_claims(last_within(shapes, tasks)),
        *_step_claims(in_main, of_setting(tables["chosen"], main, "depth"), longest),
        *_attention_claims(tables["attention"], place, longest),
    ]


def _baseline_claims(home: pd.DataFrame, longest: int) -> Iterator[Claim]:
    for (algo, *setting, length), rows in home.groupby(["algo", *SETTING, "context_length"], sort=False):
        if length > longest:
            continue
        name = (algo, *setting, f"{length} steps")
        for over, lstd in LSTD.items():
            yield from _of_trials(
                f"beats_lstd, {over}", name, "The Transformer beats LSTD, with the ridge that is best in the mean, on"
                " contexts as long as those it was pretrained on.",
                f"the log10 ratio of their MSVEs, each the {over} over tasks",
                np.log10(rows[over] / rows[lstd]), "<", 0.0,
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
        if has_gap(rows).all():
            yield from _of_trials(
                "closes_half", name, "It closes more than half of the gap between LSTD and the Bayesian floor.",
                "the share of the gap", gap_closed(rows), ">", HALF,
            )  # fmt: skip


def _claims_over_tasks(rows: pd.DataFrame, longest: int) -> Iterator[Claim]:
    for row in rows[rows["context_length"] <= longest].itertuples():
        setting = (row.algo, row.env, row.states, row.depth, row.discount, f"{row.context_length} steps")
        yield named_claim(
            HEADING, "beats_lstd_over_tasks", setting, "In the end the Transformer beats LSTD whatever tasks might have"
            " been drawn for the comparison.", "upper end of the 95% bootstrap interval, over tasks, of its MSVE less"
            " LSTD's, means over trials", row.excess_high, "<", 0.0,
        )  # fmt: skip


def log_ratio(rows: pd.DataFrame, others: pd.DataFrame) -> pd.Series:
    """log10 of the MSVE over that of other runs, by seed; none for seeds that one side lacks."""
    first, second = rows.set_index("seed")["mean"].align(others.set_index("seed")["mean"], join="inner")
    return np.log10(first / second)


def _paper_claims(within: pd.DataFrame) -> Iterator[Claim]:
    """Beside the paper's runs, after no more tasks than these have seen."""
    paper = last_values(within, prompts="enumerated")
    values = last_values(within, paper["tasks_seen"].max())
    for (algo, length), beside in paper.groupby(["algo", "context_length"], sort=False):
        rows = values[(values["algo"] == algo) & (values["context_length"] == length)]
        yield from _of_trials(
            "beats_enumerated", (algo, f"{length} steps"), "It beats the Transformer that was pretrained on"
            " enumerated prompts.", "the log10 ratio of their MSVEs", log_ratio(rows, beside), "<", 0.0,
        )  # fmt: skip


def _depth_claims(by_depth: pd.DataFrame, longest: int) -> Iterator[Claim]:
    for (algo, length), rows in by_depth.groupby(["algo", "context_length"], sort=False):
        of_depth = dict(iter(rows.groupby("depth")))
        for before, depth in itertools.pairwise(of_depth) if length <= longest else ():
            yield from _of_trials(
                "deeper_is_better", (algo, f"{depth} layers", f"{length} steps"), "More layers give a lower"
                " MSVE.", "the log10 ratio of its MSVEs with these layers and with the next fewer",
                log_ratio(of_depth[depth], of_depth[before]), "<", 0.0,
            )  # fmt: skip


def _task_claims(trained: pd.DataFrame, in_the_end: pd.DataFrame) -> Iterator[Claim]:
    ends = dict(iter(in_the_end.groupby(["algo", "context_length"])))
    for (algo, length), rows in trained.groupby(["algo", "context_length"], sort=False):
        last = ends[algo, length]
        if last["tasks_seen"].iloc[0] > rows["tasks_seen"].iloc[0]:
            yield from _of_trials(
                "more_tasks_help", (algo, _tasks(last), f"{length} steps"), "More tasks give a lower MSVE.",
                f"the log10 ratio of its MSVEs after these and after {_tasks(rows)}", log_ratio(last, rows), "<", 0.0,
            )  # fmt: skip


def _teacher_claims(every_teacher: pd.DataFrame, in_the_end: pd.DataFrame) -> Iterator[Claim]:
    tables = [every_teacher]
    if in_the_end["tasks_seen"].max() > every_teacher["tasks_seen"].max():
        tables.append(in_the_end)
    for table, length in itertools.product(tables, every_teacher["context_length"].unique()):
        of = dict(iter(table[table["context_length"] == length].groupby("algo")))
        if {"td", "mc"} <= set(of):
            yield from _of_trials(
                "mc_teaches_better", (_tasks(of["td"]), f"{length} steps"), "Multi-task MC is the better teacher.",
                "the log10 ratio of the MSVEs by MC and TD", log_ratio(of["mc"], of["td"]), "<", 0.0,
            )  # fmt: skip
        if {"expected_td", "expected_mc"} <= set(of):
            yield from _of_trials(
                "mc_targets_are_better", (f"{length} steps",), "MC is the better teacher without noise too: true values"
                " are better targets than rewards with the student's own estimates.", "the log10 ratio of the MSVEs by"
                " expected updates of MC and TD", log_ratio(of["expected_mc"], of["expected_td"]), "<", 0.0,
            )  # fmt: skip
        for algo in ("td", "mc"):
            if {algo, f"expected_{algo}"} <= set(of):
                yield from _of_trials(
                    "noise_costs", (algo, f"{length} steps"), "Expected updates teach better than sampled ones.",
                    "the log10 ratio of the MSVEs by sampled and expected updates",
                    log_ratio(of[algo], of[f"expected_{algo}"]), ">", 0.0,
                )  # fmt: skip


def _tasks(rows: pd.DataFrame) -> str:
    return f"{rows['tasks_seen'].iloc[0]} tasks"


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
    for (algo, *names), rows in away.groupby(["algo", *SETTING, "on_env", "on_discount"], sort=False):
        *setting, on_env, on_discount = names
        shortest = rows[rows["context_length"] == rows["context_length"].min()]
        for over, lstd in LSTD.items():
            yield from _of_trials(
                f"transfers, {over}", (algo, *setting, "on", on_env, on_discount), "It beats LSTD on the shortest"
                " contexts of another environment or discount too.", f"the log10 ratio of their MSVEs, each the {over}"
                " over tasks", np.log10(shortest[over] / shortest[lstd]), "<", 0.0,
            )  # fmt: skip


def _shape_claims(last: pd.DataFrame) -> Iterator[Claim]:
    # With one layer the right half of A plays no part.
    for (algo, *setting), rows in last[last["depth"] > 1].groupby(["algo", *SETTING], sort=False):
        yield from _of_trials(
            "structure", (algo, *setting), "A is close to $[G; H] [-I, I]$: columns form the TD error.",
            "the share of what is outside", rows["outside"], "<", TENTH,
        )  # fmt: skip
        # Two states leave two entries off the diagonal, and no correlation to speak of.
        if rows["states"].iloc[0] > 2:
            yield from _of_trials(
                "traces", (algo, *setting), "G passes TD errors back to the states that lead to theirs, as eligibility"
                " traces do: more to those than to others, and than to those that theirs leads to.", "the correlation"
                " of G's entries off the diagonal with the mean p from the estimate's to the error's state, and of its"
                " excess over that with p the other way round, the lesser one",
                np.minimum(rows["predecessors"], rows["predecessors"] - rows["successors"]), ">", 0.0,
            )  # fmt: skip


def _step_claims(in_main: pd.DataFrame, chosen: pd.DataFrame, longest: int) -> Iterator[Claim]:
    for algo, rows in in_main.groupby("algo", sort=False):
        for place in chosen.itertuples():
            if place.context_length <= longest:
                ratios = place.states * rows["alpha"].where(rows["alpha"] > 0) / place.theta_td_step
                yield from _of_trials(
                    "step_is_near", (algo, f"{place.context_length} steps"), "Its one step size along theta^TD is"
                    " within a factor of two of theta^TD's best one for contexts of this length.",
                    "the ratio of the larger to the smaller", np.maximum(ratios, 1 / ratios), "<", 2.0,
                )  # fmt: skip


def _attention_claims(attention: pd.DataFrame, of_place: pd.DataFrame, longest: int) -> Iterator[Claim]:
    """On kinds of attention, each on prompts of the kind that it was pretrained on; the first of them is linear."""
    first = attention["attention"].iloc[0]
    beside = of_place.pivot(index="context_length", columns="method", values="mean")
    of = dict(iter(attention.groupby(["attention", "prompts", "algo", "context_length"], sort=False)))
    for (kind, prompts, algo, length), rows in of.items():
        if length > longest or (length == ENUMERATED) != (prompts == "enumerated"):
            continue
        name = (kind, algo, "enumerated prompts" if length == ENUMERATED else f"{length} steps")
        yield from _of_trials(
            "emerges", name, "In-context policy evaluation emerges.", "its MSVE over that of predicting zero",
            rows["mean"] / beside["zero"].iloc[0], "<", HALF,
        )  # fmt: skip
        if prompts == "contexts":
            yield from _of_trials(
                "attention_beats_lstd", name, "It beats LSTD with its best ridge.", "the log10 ratio of their MSVEs",
                np.log10(rows["mean"] / beside.loc[length, "lstd"]), "<", 0.0,
            )  # fmt: skip
        if kind != first:
            yield from _of_trials(
                "beats_linear", name, "It beats linear attention with as many parameters.",
                "the log10 ratio of their MSVEs", log_ratio(rows, of[first, prompts, algo, length]), "<", 0.0,
            )  # fmt: skip
    softmax = attention.dropna(subset=["of_one", "least_of_one", "most_of_one"])
    for kind, rows in softmax.groupby("attention", sort=False):
        ends = rows[["least_of_one", "most_of_one"]].to_numpy() / rows[["of_one"]].to_numpy()
        yield named_claim(
            HEADING, "constant_rewards", (kind,), "Whatever softmax learns, it gives rewards that are all one the same"
            " value: $1 - (1 + c)^L$, times $1 / (1 - gamma)$ where prompts show them so.",
            "largest relative deviation, over runs, tasks, prompts and states", np.abs(ends - 1).max(), "<", ROUNDING,
        )  # fmt: skip
