"""The study's claims on pretraining with sampled contexts, with verdicts computed from tables.

Intervals are 95% bootstrap intervals of means over trials, if tasks are not named.  MSVE is averaged over unseen tasks,
which all methods share.  Comparisons with baselines are made for means and for medians over tasks, because the errors
on some tasks are many times those on others.  Ratios are compared as logarithms.
"""

import itertools
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from ictd.prompt import ENUMERATED
from ictd.report.claim import Claim, Statements, save_claims
from ictd.report.tables import load_tables
from studies.sampled_prompts.grid import SETTING, Setting
from studies.sampled_prompts.selection import (
    evaluated_as_trained,
    latest,
    ratio_to_baseline,
    rows_of_setting,
    sampled_updates,
    with_baselines,
)

STATISTICS = ("mean", "median")  # Over tasks.
# Baselines by the claims that the Transformer beats them.
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
    tables : "values", "over_tasks", "baselines", "tuned", "weights" and "attention"
    main : the main Setting
    tasks : int
        Number of tasks of runs in other settings.  Runs in the main setting are compared with them after that number.
    longest : int, greatest length of a context in pretraining
    """
    values = with_baselines(sampled_updates(latest(tables["values"], tasks)), tables["baselines"])
    as_trained = evaluated_as_trained(values)
    main_baselines = rows_of_setting(tables["baselines"], main, "depth")
    main_values = rows_of_setting(evaluated_as_trained(tables["values"]), main)
    within = main_values[main_values["context_length"] <= longest]
    all_targets = latest(within, tasks)
    at_the_end = sampled_updates(latest(within))
    weights = sampled_updates(tables["weights"])
    over_tasks = evaluated_as_trained(tables["over_tasks"])
    return [
        *_baseline_claims(statements, as_trained, longest),
        *_baseline_claims_over_tasks(statements, sampled_updates(over_tasks), longest),
        *_paper_claims(statements, within),
        *_depth_claims(statements, rows_of_setting(as_trained, main, "depth"), longest),
        *_task_claims(statements, sampled_updates(all_targets), at_the_end),
        *_target_claims(statements, all_targets, at_the_end),
        *_target_claims_over_tasks(statements, rows_of_setting(over_tasks, main), longest),
        *_length_claims(statements, rows_of_setting(as_trained, main), longest),
        *_transfer_claims(statements, values),
        *_structure_claims(statements, latest(weights, tasks)),
        *_step_size_claims(
            statements, latest(rows_of_setting(weights, main)), rows_of_setting(tables["tuned"], main, "depth"), longest
        ),
        *_attention_claims(statements, tables["attention"], main_baselines, longest),
        *_softmax_claims(statements, tables["attention"]),
    ]


def _baseline_claims(statements: Statements, as_trained: pd.DataFrame, longest: int) -> Iterator[Claim]:
    within = as_trained[as_trained["context_length"] <= longest]
    for (*setting, length), trials in within.groupby(["algo", *SETTING, "context_length"], sort=False):
        name = (*setting, f"{length} steps")
        for (claim, baseline), statistic in itertools.product(BEATEN.items(), STATISTICS):
            ratio = np.log10(ratio_to_baseline(trials, baseline, statistic))
            yield from statements.of_trials(claim, name, ratio, over=statistic)
        if trials["bayes_mean"].notna().all():
            ratio = np.log10(ratio_to_baseline(trials, "bayes"))
            yield from statements.of_trials("above_bayes_error", name, ratio)


def _baseline_claims_over_tasks(statements: Statements, over_tasks: pd.DataFrame, longest: int) -> Iterator[Claim]:
    within = over_tasks[over_tasks["context_length"] <= longest]
    for claim, baseline in BEATEN.items():
        for row in within[within["baseline"] == baseline].itertuples():
            setting = (row.algo, row.env, row.states, row.depth, row.discount, f"{row.context_length} steps")
            yield statements.claim(f"{claim}_over_tasks", setting, row.high)


def log_ratio(runs: pd.DataFrame, others: pd.DataFrame) -> pd.Series:
    """log10 of the ratio of the MSVE to that of other runs, by seed, for the seeds that both have."""
    first, second = runs.set_index("seed")["mean"].align(others.set_index("seed")["mean"], join="inner")
    return np.log10(first / second)


def _paper_claims(statements: Statements, within: pd.DataFrame) -> Iterator[Claim]:
    """Compare with the paper's runs, at the last snapshot after at most as many tasks."""
    paper = latest(within, prompts="enumerated")
    values = latest(within, paper["tasks_seen"].max())
    for (algo, length), paper_trials in paper.groupby(["algo", "context_length"], sort=False):
        trials = values[(values["algo"] == algo) & (values["context_length"] == length)]
        yield from statements.of_trials("beats_enumerated", (algo, f"{length} steps"), log_ratio(trials, paper_trials))


def _depth_claims(statements: Statements, by_depth: pd.DataFrame, longest: int) -> Iterator[Claim]:
    within = by_depth[by_depth["context_length"] <= longest]
    for (algo, length), trials in within.groupby(["algo", "context_length"], sort=False):
        for (_, shallower), (depth, deeper) in itertools.pairwise(trials.groupby("depth")):
            name = (algo, f"{depth} layers", f"{length} steps")
            yield from statements.of_trials("deeper_is_better", name, log_ratio(deeper, shallower))


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


def _target_claims(statements: Statements, all_targets: pd.DataFrame, at_the_end: pd.DataFrame) -> Iterator[Claim]:
    tables = [all_targets]
    if at_the_end["tasks_seen"].max() > all_targets["tasks_seen"].max():
        tables.append(at_the_end)
    for table, length in itertools.product(tables, all_targets["context_length"].unique()):
        runs = dict(iter(table[table["context_length"] == length].groupby("algo")))
        steps = f"{length} steps"
        if {"td", "mc"} <= set(runs):
            ratio = log_ratio(runs["mc"], runs["td"])
            yield from statements.of_trials("mc_beats_td", (_number_of_tasks(runs["td"]), steps), ratio)
        if {"expected_td", "expected_mc"} <= set(runs):
            ratio = log_ratio(runs["expected_mc"], runs["expected_td"])
            yield from statements.of_trials("expected_mc_beats_expected_td", (steps,), ratio)
        for algo in ("td", "mc"):
            if {algo, f"expected_{algo}"} <= set(runs):
                ratio = log_ratio(runs[algo], runs[f"expected_{algo}"])
                yield from statements.of_trials("noise_costs", (algo, steps), ratio)


def _target_claims_over_tasks(statements: Statements, over_tasks: pd.DataFrame, longest: int) -> Iterator[Claim]:
    compared = over_tasks[(over_tasks["baseline"] == "td") & (over_tasks["context_length"] <= longest)]
    for row in compared.itertuples():
        updates = "expected updates" if row.algo.startswith("expected_") else f"{row.tasks_seen} tasks"
        setting = (updates, f"{row.context_length} steps")
        yield statements.claim("mc_beats_td_over_tasks", setting, row.high)


def _length_claims(statements: Statements, main_values: pd.DataFrame, longest: int) -> Iterator[Claim]:
    lengths = sorted(length for length in main_values["context_length"].unique() if length >= longest)
    for algo, trials in main_values.groupby("algo", sort=False):
        msve = np.log10(trials.pivot(index="seed", columns="context_length", values="mean"))
        for shorter, length in itertools.pairwise(lengths):
            yield from statements.of_trials("still_falls", (algo, f"{length} steps"), msve[length] - msve[shorter])


def _transfer_claims(statements: Statements, values: pd.DataFrame) -> Iterator[Claim]:
    elsewhere = values[(values["env"] != values["on_env"]) | (values["discount"] != values["on_discount"])]
    for (*setting, env, discount), trials in elsewhere.groupby(["algo", *SETTING, "on_env", "on_discount"], sort=False):
        shortest = trials[trials["context_length"] == trials["context_length"].min()]
        for statistic in STATISTICS:
            ratio = np.log10(ratio_to_baseline(shortest, "ce_uniform", statistic))
            yield from statements.of_trials("transfers", (*setting, "on", env, discount), ratio, over=statistic)


def _structure_claims(statements: Statements, weights: pd.DataFrame) -> Iterator[Claim]:
    # With one layer, the right half of A has no effect.
    for setting, trials in weights[weights["depth"] > 1].groupby(["algo", *SETTING], sort=False):
        yield from statements.of_trials("structure", setting, trials["outside"])
        # G has two entries off the diagonal for two states, too few for a correlation.
        if trials["states"].iloc[0] > 2:
            least = np.minimum(trials["predecessors"], trials["predecessors"] - trials["successors"])
            yield from statements.of_trials("traces", setting, least)


def _step_size_claims(
    statements: Statements, weights: pd.DataFrame, tuned: pd.DataFrame, longest: int
) -> Iterator[Claim]:
    for algo, trials in weights.groupby("algo", sort=False):
        for best in tuned[tuned["context_length"] <= longest].itertuples():
            ratios = best.states * trials["alpha"].where(trials["alpha"] > 0) / best.theta_td_step
            name = (algo, f"{best.context_length} steps")
            yield from statements.of_trials("step_is_near", name, np.maximum(ratios, 1 / ratios))


def _attention_claims(
    statements: Statements, attention: pd.DataFrame, main_baselines: pd.DataFrame, longest: int
) -> Iterator[Claim]:
    """Compare kinds of attention on the prompts that they were pretrained on; the first kind is linear."""
    linear = attention["attention"].iloc[0]
    baselines = main_baselines.pivot(index="context_length", columns="method", values="mean")
    runs = dict(iter(attention.groupby(["attention", "prompts", "algo", "context_length"], sort=False)))
    for (kind, prompts, algo, length), trials in runs.items():
        if length > longest or (length == ENUMERATED) != (prompts == "enumerated"):
            continue
        name = (kind, algo, "enumerated prompts" if length == ENUMERATED else f"{length} steps")
        yield from statements.of_trials("emerges", name, trials["mean"] / baselines["zero"].iloc[0])
        if kind != linear and prompts == "contexts":
            ratio = np.log10(trials["mean"] / baselines.loc[length, "ce_uniform"])
            yield from statements.of_trials("attention_beats_uniform", name, ratio)
        if kind != linear:
            ratio = log_ratio(trials, runs[linear, prompts, algo, length])
            yield from statements.of_trials("beats_linear", name, ratio)


def _softmax_claims(statements: Statements, attention: pd.DataFrame) -> Iterator[Claim]:
    softmax = attention.dropna(subset=["softmax_response", "least_response", "greatest_response"])
    for kind, trials in softmax.groupby("attention", sort=False):
        ratios = trials[["least_response", "greatest_response"]].to_numpy() / trials[["softmax_response"]].to_numpy()
        yield statements.claim("constant_rewards", (kind,), np.abs(ratios - 1).max())
