"""The result tables: tidy data frames with one row per observation."""

from pathlib import Path

import numpy as np
import pandas as pd

from ictd.anatomy import (
    agreement_measures,
    cosine,
    pattern_measures,
    pattern_shares,
    project_identifiable,
    squared_norm,
)
from ictd.mrp import sample_tasks, truncation_bias, value_function
from ictd.pipeline.grid import CELL, Cell
from ictd.rng import generator
from ictd.statistics import bootstrap_means, interval
from ictd.storage import load_json, load_named
from ictd.tables import long_table, save_tables
from ictd.transformer import Weights, theta_td

# Tasks on which the truncation bias of Monte Carlo returns is measured.
BIAS_TASKS = 1000
# What compares TD with MC, and two of these where they have no seed in common.
AGREEMENT = ("correlation", "residual_correlation", "distance")
APART = {"apart": "correlation", "residual_apart": "residual_correlation"}
# Resamples of trials for intervals of what means over trials look like.
RESAMPLES = 2000
# Arrays of the files that tables are made of.
EVALUATION = ("seeds", "context_lengths", "msve", "enumerated_msve")
BASELINES = ("seeds", "context_lengths", "theta_td", "batch_td", "lstd", "zero")
WEIGHTS = ("seeds", "u", "A", "history_u", "history_A", "tasks_seen", "online_msve", "diverged_at")


def main(
    weights: list[Path],
    evaluations: list[Path],
    baselines: list[Path],
    audit: Path,
    discount: float,
    rollout_steps: int,
    env_options: dict,
    output: Path,
) -> None:
    """Write the tables ``msve``, ``baselines``, ``weights``, ``mean_weights``, ``agreement``, ``learning``,
    ``truncation`` and ``audit`` as CSV; the functions of their names say what is in them."""
    runs = {Cell.parse(path.stem): load_named(path, *WEIGHTS) for path in weights}
    evaluated = {Cell.parse(path.stem): load_named(path, *EVALUATION) for path in evaluations}
    beside = {tuple(map(int, path.stem.split("-"))): load_named(path, *BASELINES) for path in baselines}
    settings = sorted({(cell.env, cell.states) for cell in runs})
    made = {
        "msve": msve_table(evaluated),
        "baselines": baselines_table(beside),
        "weights": weights_table(runs, evaluated, discount),
        "mean_weights": mean_weights_table(runs, discount),
        "agreement": agreement_table(runs, discount),
        "learning": learning_table(runs, discount),
        "truncation": truncation_table(settings, discount, rollout_steps, env_options),
        "audit": pd.DataFrame(load_json(audit)),
    }
    save_tables(output, made)


def msve_table(evaluations: dict[Cell, dict]) -> pd.DataFrame:
    """MSVE of each run at each context length, the mean over the validation tasks.

    For each cell ``evaluations`` has ``seeds`` (S,), ``context_lengths`` (M,) and ``msve`` (S, M, k).
    """
    frames = [_errors(result, "msve", **cell._asdict()) for cell, result in evaluations.items()]
    return pd.concat(frames, ignore_index=True)


def baselines_table(baselines: dict[tuple[int, int], dict]) -> pd.DataFrame:
    """MSVE of theta^TD, batch TD, LSTD and zero, like ``msve_table``, for each (states, depth)."""
    frames = [
        _errors(result, method, method=method, states=states, depth=depth)
        for (states, depth), result in baselines.items()
        for method in ("theta_td", "batch_td", "lstd", "zero")
    ]
    return pd.concat(frames, ignore_index=True)


def _errors(result: dict, of: str, **names) -> pd.DataFrame:
    axes = {"seed": result["seeds"], "context_length": result["context_lengths"]}
    return long_table(axes, {"msve": result[of].mean(axis=-1)}, **names)


def seen_measures(weights: Weights, discount: float) -> dict[str, np.ndarray]:
    """``pattern_measures`` and ``pattern_shares`` of what prompts see of weights, and ``raw_cosine``, that of A as it
    is to theta^TD's."""
    shown, raw = project_identifiable(weights, discount), cosine(weights.A, theta_td(weights.states).A)
    return {**pattern_measures(shown), **pattern_shares(shown.A), "raw_cosine": raw}


def weights_table(runs: dict[Cell, dict], evaluations: dict[Cell, dict], discount: float) -> pd.DataFrame:
    """One row per run: measures of its weights beside theta^TD, its MSVE on enumerated prompts, and the task at which
    it diverged, 0 if it did not.

    For each cell ``runs`` has ``seeds`` (S,), ``u`` (S, 2n), ``A`` (S, 2n, 2n) and ``diverged_at`` (S,), and
    ``evaluations`` has ``enumerated_msve`` (S, k); ``discount`` is gamma.
    """
    frames = []
    for cell, result in runs.items():
        columns = {"diverged_at": result["diverged_at"], **seen_measures(Weights(result["u"], result["A"]), discount)}
        columns["enumerated_msve"] = evaluations[cell]["enumerated_msve"].mean(axis=-1)
        frames.append(long_table({"seed": result["seeds"]}, columns, **cell._asdict()))
    return pd.concat(frames, ignore_index=True)


def mean_weights_table(runs: dict[Cell, dict], discount: float) -> pd.DataFrame:
    """One row per cell: measures of the mean over seeds of its weights, NaN if one of its runs diverged.

    ``NAME_low`` and ``NAME_high`` are the ends of 95% bootstrap intervals, over seeds, of what ``pattern_shares`` has.
    """
    rows = []
    for cell, result in runs.items():
        weights = Weights(result["u"], result["A"])
        means = bootstrap_means(project_identifiable(weights, discount).A, RESAMPLES)
        shares, mean = pattern_shares(means), Weights(weights.u.mean(axis=0), weights.A.mean(axis=0))
        rows.append({**cell._asdict(), **seen_measures(mean, discount), **with_ends(shares)})
    return pd.DataFrame(rows)


def with_ends(resampled: dict[str, np.ndarray]) -> dict[str, float]:
    """Ends of 95% intervals of statistics over resamples, by ``NAME_low`` and ``NAME_high``."""
    ends = {name: interval(values) for name, values in resampled.items()}
    return {f"{name}_{end}": pair[i] for name, pair in ends.items() for i, end in enumerate(("low", "high"))}


def agreement_table(runs: dict[Cell, dict], discount: float) -> pd.DataFrame:
    """One row per (env, states, depth): how alike the mean A of TD and of MC are, as prompts see them; empty where only
    one was trained.

    ``correlation_low`` and the like are ends of 95% bootstrap intervals, over seeds, which both have in common, with
    their tasks, batches and initial values.  ``apart`` and ``residual_apart`` are the correlations where they have
    nothing in common: those of the mean over TD's even seeds with that over MC's odd ones.
    """
    rows, columns = [], [*AGREEMENT, *(f"{name}_{end}" for name in AGREEMENT for end in ("low", "high"))]
    for cell, result in runs.items():
        twin = cell._replace(algo="mc")
        if cell.algo == "td" and twin in runs:
            pair = [project_identifiable(Weights(one["u"], one["A"]), discount).A for one in (result, runs[twin])]
            measures = agreement_measures(*(A.mean(axis=0) for A in pair))
            ends = with_ends(agreement_measures(*(bootstrap_means(A, RESAMPLES) for A in pair)))
            halves = [A[i::2] for i, A in enumerate(pair)]
            apart = agreement_measures(*(A.mean(axis=0) for A in halves)) if len(halves[1]) else {}
            others = {new: apart.get(name, np.nan) for new, name in APART.items()}
            rows.append({**cell._asdict(), **measures, **ends, **others})
    return pd.DataFrame(rows, columns=[*CELL[1:], *columns, *APART])


def learning_table(runs: dict[Cell, dict], discount: float) -> pd.DataFrame:
    """One row per run and snapshot: tasks seen, cosine of A, as prompts see it, to theta^TD's, step size alpha,
    ``to_go``, the norm of what A changes from there on over its norm at the end, and MSVE on the tasks since the last
    snapshot, each just before its update."""
    frames = []
    for cell, result in runs.items():
        history = project_identifiable(Weights(result["history_u"], result["history_A"]), discount)
        measures, last = pattern_measures(history), history.A[:, -1:]
        axes = {"seed": result["seeds"], "tasks_seen": result["tasks_seen"]}
        columns = {name: measures[name] for name in ("cosine", "alpha")}
        columns["to_go"] = np.sqrt(squared_norm(last - history.A) / squared_norm(last))
        columns["online_msve"] = result["online_msve"]
        frames.append(long_table(axes, columns, **cell._asdict()))
    return pd.concat(frames, ignore_index=True)


def truncation_table(
    settings: list[tuple[str, int]], discount: float, rollout_steps: int, env_options: dict[str, dict]
) -> pd.DataFrame:
    """One row per (env, states): the largest exact bias of a truncated return, and the root mean square of v."""
    rows = []
    for env, states in settings:
        rng = generator(0, env, states, "truncation")
        tasks = sample_tasks(env, states, BIAS_TASKS, rng, **env_options.get(env, {}))
        value = value_function(tasks.transition, tasks.reward, discount)
        bias = np.abs(truncation_bias(tasks.transition, value, discount, rollout_steps)).max()
        rows.append({"env": env, "states": states, "largest_bias": bias, "typical_value": np.sqrt((value**2).mean())})
    return pd.DataFrame(rows)
