"""What pretraining on sampled contexts comes to, as claims of our own with verdicts computed from tables.

Seeds are the unit, unless tasks are named: an interval is the 95% bootstrap interval of a mean over seeds.  MSVE is the
mean over unseen tasks, which all methods share; beside LSTD it is the median too, as some tasks have errors many times
those of others.  Ratios are compared as logarithms.
"""

import itertools
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from ictd.prompt import ENUMERATED
from ictd.report.claim import Claim, Statements, save_claims
from ictd.tables import load_tables
from studies.sampled_prompts.grid import SETTING, Setting
from studies.sampled_prompts.selection import (
    at_home,
    latest,
    of_setting,
    over_baseline,
    sampled_updates,
    with_baselines,
)

OVER = ("mean", "median")
BEATS = {"beats_lstd": "lstd", "beats_uniform": "ce_uniform", "beats_best": "best"}


def main(statements: Path, tables: list[Path], setting: dict, tasks: int, lengths: list[int], output: Path) -> None:
    """Write one entry a claim, with id, section, setting, statement, statistic, value, relation, threshold and
    verdict."""
    found = check_sampled_prompts(Statements(statements), load_tables(tables), Setting(**setting), tasks, max(lengths))
    save_claims(output, found)


def check_sampled_prompts(
    of: Statements, tables: dict[str, pd.DataFrame], main: Setting, tasks: int, longest: int
) -> list[Claim]:
    """All claims on pretraining on sampled contexts, as claims.toml states them.

    ``tables`` are values, over_tasks, baselines, chosen, shapes and attention; ``main`` is the main setting.  The runs
    in other settings have ``tasks`` tasks, at which the main setting's are compared with them.  ``longest`` is the
    greatest length of a context in pretraining.
    """
    values = with_baselines(sampled_updates(latest(tables["values"], tasks)), tables["baselines"])
    home, place = at_home(values), of_setting(tables["baselines"], main, "depth")
    of_main = of_setting(at_home(tables["values"]), main)
    within = of_main[of_main["context_length"] <= longest]
    every_teacher, in_the_end = latest(within, tasks), sampled_updates(latest(within))
    shapes = sampled_updates(tables["shapes"])
    in_main = latest(of_setting(shapes, main))
    return [
        *_baseline_claims(of, home, longest),
        *_claims_over_tasks(of, sampled_updates(at_home(tables["over_tasks"])), longest),
        *_paper_claims(of, within),
        *_depth_claims(of, of_setting(home, main, "depth"), longest),
        *_task_claims(of, sampled_updates(every_teacher), in_the_end),
        *_teacher_claims(of, every_teacher, in_the_end),
        *_teacher_claims_over_tasks(of, of_setting(at_home(tables["over_tasks"]), main), longest),
        *_length_claims(of, of_setting(home, main), longest),
        *_transfer_claims(of, values),
        *_shape_claims(of, latest(shapes, tasks)),
        *_step_claims(of, in_main, of_setting(tables["chosen"], main, "depth"), longest),
        *_attention_claims(of, tables["attention"], place, longest),
    ]


def _baseline_claims(of: Statements, home: pd.DataFrame, longest: int) -> Iterator[Claim]:
    within = home[home["context_length"] <= longest]
    for (*names, length), rows in within.groupby(["algo", *SETTING, "context_length"], sort=False):
        name = (*names, f"{length} steps")
        for (claim, baseline), over in itertools.product(BEATS.items(), OVER):
            yield from of.of_trials(claim, name, np.log10(over_baseline(rows, baseline, over)), over=over)
        if rows["bayes_mean"].notna().all():
            yield from of.of_trials("above_the_floor", name, np.log10(over_baseline(rows, "bayes")))


def _claims_over_tasks(of: Statements, rows: pd.DataFrame, longest: int) -> Iterator[Claim]:
    within = rows[rows["context_length"] <= longest]
    for claim, baseline in BEATS.items():
        for row in within[within["baseline"] == baseline].itertuples():
            setting = (row.algo, row.env, row.states, row.depth, row.discount, f"{row.context_length} steps")
            yield of.claim(f"{claim}_over_tasks", setting, row.high)


def log_ratio(rows: pd.DataFrame, others: pd.DataFrame) -> pd.Series:
    """log10 of the MSVE over that of other runs, by seed; none for seeds that one side lacks."""
    first, second = rows.set_index("seed")["mean"].align(others.set_index("seed")["mean"], join="inner")
    return np.log10(first / second)


def _paper_claims(of: Statements, within: pd.DataFrame) -> Iterator[Claim]:
    """Beside the paper's runs, after no more tasks than these have seen."""
    paper = latest(within, prompts="enumerated")
    values = latest(within, paper["tasks_seen"].max())
    for (algo, length), beside in paper.groupby(["algo", "context_length"], sort=False):
        rows = values[(values["algo"] == algo) & (values["context_length"] == length)]
        yield from of.of_trials("beats_enumerated", (algo, f"{length} steps"), log_ratio(rows, beside))


def _depth_claims(of: Statements, by_depth: pd.DataFrame, longest: int) -> Iterator[Claim]:
    within = by_depth[by_depth["context_length"] <= longest]
    for (algo, length), rows in within.groupby(["algo", "context_length"], sort=False):
        for (_, before), (depth, deeper) in itertools.pairwise(rows.groupby("depth")):
            name = (algo, f"{depth} layers", f"{length} steps")
            yield from of.of_trials("deeper_is_better", name, log_ratio(deeper, before))


def _task_claims(of: Statements, trained: pd.DataFrame, in_the_end: pd.DataFrame) -> Iterator[Claim]:
    ends = dict(iter(in_the_end.groupby(["algo", "context_length"])))
    for (algo, length), rows in trained.groupby(["algo", "context_length"], sort=False):
        last = ends[algo, length]
        if last["tasks_seen"].iloc[0] > rows["tasks_seen"].iloc[0]:
            name = (algo, _tasks(last), f"{length} steps")
            yield from of.of_trials("more_tasks_help", name, log_ratio(last, rows), tasks=_tasks(rows))


def _tasks(rows: pd.DataFrame) -> str:
    return f"{rows['tasks_seen'].iloc[0]} tasks"


def _teacher_claims(of: Statements, every_teacher: pd.DataFrame, in_the_end: pd.DataFrame) -> Iterator[Claim]:
    tables = [every_teacher]
    if in_the_end["tasks_seen"].max() > every_teacher["tasks_seen"].max():
        tables.append(in_the_end)
    for table, length in itertools.product(tables, every_teacher["context_length"].unique()):
        by, steps = dict(iter(table[table["context_length"] == length].groupby("algo"))), f"{length} steps"
        if {"td", "mc"} <= set(by):
            yield from of.of_trials("mc_teaches_better", (_tasks(by["td"]), steps), log_ratio(by["mc"], by["td"]))
        if {"expected_td", "expected_mc"} <= set(by):
            ratio = log_ratio(by["expected_mc"], by["expected_td"])
            yield from of.of_trials("mc_targets_are_better", (steps,), ratio)
        for algo in ("td", "mc"):
            if {algo, f"expected_{algo}"} <= set(by):
                yield from of.of_trials("noise_costs", (algo, steps), log_ratio(by[algo], by[f"expected_{algo}"]))


def _teacher_claims_over_tasks(of: Statements, rows: pd.DataFrame, longest: int) -> Iterator[Claim]:
    for row in rows[(rows["baseline"] == "td") & (rows["context_length"] <= longest)].itertuples():
        teacher = "expected updates" if row.algo.startswith("expected_") else f"{row.tasks_seen} tasks"
        setting = (teacher, f"{row.context_length} steps")
        yield of.claim("mc_teaches_better_over_tasks", setting, row.high)


def _length_claims(of: Statements, of_main: pd.DataFrame, longest: int) -> Iterator[Claim]:
    beyond = sorted(length for length in of_main["context_length"].unique() if length >= longest)
    for algo, rows in of_main.groupby("algo", sort=False):
        table = np.log10(rows.pivot(index="seed", columns="context_length", values="mean"))
        for before, length in itertools.pairwise(beyond):
            yield from of.of_trials("still_falls", (algo, f"{length} steps"), table[length] - table[before])


def _transfer_claims(of: Statements, values: pd.DataFrame) -> Iterator[Claim]:
    away = values[(values["env"] != values["on_env"]) | (values["discount"] != values["on_discount"])]
    for (*names, env, discount), rows in away.groupby(["algo", *SETTING, "on_env", "on_discount"], sort=False):
        shortest = rows[rows["context_length"] == rows["context_length"].min()]
        for over in OVER:
            ratio = np.log10(over_baseline(shortest, "ce_uniform", over))
            yield from of.of_trials("transfers", (*names, "on", env, discount), ratio, over=over)


def _shape_claims(of: Statements, last: pd.DataFrame) -> Iterator[Claim]:
    # With one layer the right half of A plays no part.
    for name, rows in last[last["depth"] > 1].groupby(["algo", *SETTING], sort=False):
        yield from of.of_trials("structure", name, rows["outside"])
        # Two states leave two entries off the diagonal, and no correlation to speak of.
        if rows["states"].iloc[0] > 2:
            back = np.minimum(rows["predecessors"], rows["predecessors"] - rows["successors"])
            yield from of.of_trials("traces", name, back)


def _step_claims(of: Statements, in_main: pd.DataFrame, chosen: pd.DataFrame, longest: int) -> Iterator[Claim]:
    for algo, rows in in_main.groupby("algo", sort=False):
        for place in chosen[chosen["context_length"] <= longest].itertuples():
            ratios = place.states * rows["alpha"].where(rows["alpha"] > 0) / place.theta_td_step
            name = (algo, f"{place.context_length} steps")
            yield from of.of_trials("step_is_near", name, np.maximum(ratios, 1 / ratios))


def _attention_claims(of: Statements, attention: pd.DataFrame, of_place: pd.DataFrame, longest: int) -> Iterator[Claim]:
    """On kinds of attention, each on prompts of the kind that it was pretrained on; the first of them is linear."""
    first = attention["attention"].iloc[0]
    beside = of_place.pivot(index="context_length", columns="method", values="mean")
    by = dict(iter(attention.groupby(["attention", "prompts", "algo", "context_length"], sort=False)))
    for (kind, prompts, algo, length), rows in by.items():
        if length > longest or (length == ENUMERATED) != (prompts == "enumerated"):
            continue
        name = (kind, algo, "enumerated prompts" if length == ENUMERATED else f"{length} steps")
        yield from of.of_trials("emerges", name, rows["mean"] / beside["zero"].iloc[0])
        if kind != first and prompts == "contexts":
            ratio = np.log10(rows["mean"] / beside.loc[length, "ce_uniform"])
            yield from of.of_trials("attention_beats_uniform", name, ratio)
        if kind != first:
            yield from of.of_trials("beats_linear", name, log_ratio(rows, by[first, prompts, algo, length]))
    softmax = attention.dropna(subset=["of_one", "least_of_one", "most_of_one"])
    for kind, rows in softmax.groupby("attention", sort=False):
        ends = rows[["least_of_one", "most_of_one"]].to_numpy() / rows[["of_one"]].to_numpy()
        yield of.claim("constant_rewards", (kind,), np.abs(ends - 1).max())
