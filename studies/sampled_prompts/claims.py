"""The study's claims on pretraining with sampled contexts, with verdicts computed from tables.

Comparisons of two methods use 95% bootstrap intervals over tasks, which all methods share.  Claims on numbers of tasks,
transfer, weights and attention use 95% bootstrap intervals over trials.
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from ictd.prompt import ENUMERATED
from ictd.report.claim import Claim, Statements, save_claims
from ictd.report.tables import load_tables
from ictd.statistics import Estimate
from studies.sampled_prompts.grid import SETTING, Setting
from studies.sampled_prompts.selection import (
    evaluated_as_trained,
    latest,
    ratio_to_baseline,
    rows_of_setting,
    sampled_updates,
    with_baselines,
)

# Baselines, by the claim that the Transformer beats the baseline.
BEATEN = {"beats_lstd": "lstd", "beats_uniform": "ce_uniform", "beats_best": "best"}


def main(statements: Path, tables: list[Path], setting: dict, tasks: int, lengths: list[int], output: Path) -> None:
    """Write each claim with its value and its verdict, as JSON."""
    claims = check_sampled_prompts(Statements(statements), load_tables(tables), Setting(**setting), tasks, max(lengths))
    save_claims(output, claims)


def check_sampled_prompts(
    statements: Statements, tables: dict[str, pd.DataFrame], main: Setting, tasks: int, longest: int
) -> list[Claim]:
    """Decide all claims on pretraining with sampled contexts.

    Parameters
    ----------
    statements : Statements of claims.toml
    tables : "formats", "values", "over_tasks", "baselines", "weights" and "attention"
    main : the main Setting
    tasks : int
        Number of tasks of runs in other settings.  Runs in the main setting are compared with them after this number of
        tasks.
    longest : int, greatest length of a context in pretraining
    """
    values = with_baselines(sampled_updates(latest(tables["values"], tasks)), tables["baselines"])
    main_baselines = rows_of_setting(tables["baselines"], main, "depth")
    main_values = sampled_updates(rows_of_setting(evaluated_as_trained(tables["values"]), main))
    within = main_values[main_values["context_length"] <= longest]
    weights = sampled_updates(tables["weights"])
    over_tasks = evaluated_as_trained(tables["over_tasks"])
    over_tasks = over_tasks[over_tasks["context_length"] <= longest]
    return [
        *_format_claims(statements, tables["formats"]),
        *_baseline_claims(statements, sampled_updates(over_tasks)),
        *_task_claims(statements, latest(within, tasks), latest(within)),
        *_target_claims(statements, rows_of_setting(over_tasks, main)),
        *_transfer_claims(statements, values),
        *_structure_claims(statements, latest(weights, tasks)),
        *_attention_claims(statements, tables["attention"], main_baselines, longest),
    ]


def _format_claims(statements: Statements, formats: pd.DataFrame) -> Iterator[Claim]:
    longest = formats["context_length"].max()
    for row in formats.itertuples():
        steps = f"{row.context_length} steps"
        ratio = Estimate(row.mean / row.lstd, row.low, row.high)
        if row.prompts == "paper" and row.shown != "pseudo":
            shown = "a column for each step" if row.shown == "step" else "grouped"
            yield statements.claim("below_lstd", (row.algo, row.env, row.states, row.depth, shown, steps), ratio)
        if row.prompts == "paper" and row.shown == "grouped" and row.context_length == longest:
            yield statements.claim("visits", (row.algo, row.env, row.states, row.depth, steps), ratio)
        if row.prompts == "contexts" and row.shown == "step":
            ratio = Estimate(row.enumerated_ratio, row.enumerated_low, row.enumerated_high)
            yield statements.claim("training_pays", (row.algo, steps), ratio)


def _baseline_claims(statements: Statements, over_tasks: pd.DataFrame) -> Iterator[Claim]:
    for claim, baseline in BEATEN.items():
        for row in over_tasks[over_tasks["baseline"] == baseline].itertuples():
            setting = (row.algo, row.env, row.states, row.depth, row.discount, f"{row.context_length} steps")
            yield statements.claim(claim, setting, Estimate(row.value, row.low, row.high))


def log_ratio(runs: pd.DataFrame, others: pd.DataFrame) -> pd.Series:
    """log10 of the ratio of the MSVE between two groups of runs, for each seed that both groups have."""
    first, second = runs.set_index("seed")["mean"].align(others.set_index("seed")["mean"], join="inner")
    return np.log10(first / second)


def _task_claims(statements: Statements, earlier: pd.DataFrame, at_the_end: pd.DataFrame) -> Iterator[Claim]:
    ends = dict(iter(at_the_end.groupby(["algo", "context_length"])))
    for (algo, length), trials in earlier.groupby(["algo", "context_length"], sort=False):
        end = ends[algo, length]
        if end["tasks_seen"].iloc[0] > trials["tasks_seen"].iloc[0]:
            name = (algo, _number_of_tasks(end), f"{length} steps")
            ratio = log_ratio(end, trials)
            yield from statements.of_trials("more_tasks_help", name, ratio, tasks=_number_of_tasks(trials))


def _number_of_tasks(trials: pd.DataFrame) -> str:
    return f"{trials['tasks_seen'].iloc[0]} tasks"


def _target_claims(statements: Statements, over_tasks: pd.DataFrame) -> Iterator[Claim]:
    for row in over_tasks[over_tasks["baseline"] == "td"].itertuples():
        updates = "expected updates" if row.algo.startswith("expected_") else f"{row.tasks_seen} tasks"
        ratio = Estimate(row.value, row.low, row.high)
        yield statements.claim("mc_beats_td", (updates, f"{row.context_length} steps"), ratio)


def _transfer_claims(statements: Statements, values: pd.DataFrame) -> Iterator[Claim]:
    elsewhere = values[(values["env"] != values["on_env"]) | (values["discount"] != values["on_discount"])]
    for (*setting, env, discount), trials in elsewhere.groupby(["algo", *SETTING, "on_env", "on_discount"], sort=False):
        shortest = trials[trials["context_length"] == trials["context_length"].min()]
        ratio = np.log10(ratio_to_baseline(shortest, "ce_uniform"))
        yield from statements.of_trials("transfers", (*setting, "on", env, discount), ratio)


def _structure_claims(statements: Statements, weights: pd.DataFrame) -> Iterator[Claim]:
    # With one layer, the right half of A has no effect.
    for setting, trials in weights[weights["depth"] > 1].groupby(["algo", *SETTING], sort=False):
        yield from statements.of_trials("structure", setting, trials["outside"])
        yield from statements.of_trials("structure_shortest", setting, trials["outside_shortest"])
        # For two states, G has two entries off the diagonal, which are too few for a correlation.
        if trials["states"].iloc[0] > 2:
            least = np.minimum(trials["predecessors"], trials["predecessors"] - trials["successors"])
            yield from statements.of_trials("traces", setting, least)


def _attention_claims(
    statements: Statements, attention: pd.DataFrame, main_baselines: pd.DataFrame, longest: int
) -> Iterator[Claim]:
    """Decide claims on kinds of attention, evaluated on the prompts of their pretraining."""
    zero = main_baselines.loc[main_baselines["method"] == "zero", "mean"].iloc[0]
    runs = attention.groupby(["attention", "prompts", "algo", "context_length"], sort=False)
    for (kind, prompts, algo, length), trials in runs:
        if length <= longest and (length == ENUMERATED) == (prompts == "enumerated"):
            name = (kind, algo, "enumerated prompts" if length == ENUMERATED else f"{length} steps")
            yield from statements.of_trials("emerges", name, trials["mean"] / zero)
