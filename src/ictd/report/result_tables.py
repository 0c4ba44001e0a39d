"""The result tables: tidy data frames with one row per observation."""

from pathlib import Path

import numpy as np
import pandas as pd

from ictd.environments import sample_tasks
from ictd.mrp import truncation_bias, value_function
from ictd.pattern import agreement_measures, pattern_measures
from ictd.pipeline.grid import CELL, Cell
from ictd.pipeline.storage import load_json, load_named
from ictd.pipeline.table_files import long_table, save_tables
from ictd.streams import generator
from ictd.weights import Weights

# Tasks on which the truncation bias of Monte Carlo returns is measured.
BIAS_TASKS = 1000
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
        "weights": weights_table(runs, evaluated),
        "mean_weights": mean_weights_table(runs),
        "agreement": agreement_table(runs),
        "learning": learning_table(runs),
        "truncation": truncation_table(settings, discount, rollout_steps, env_options),
        "audit": pd.DataFrame(load_json(audit)),
    }
    save_tables(output, made)


def spanned(cells: list[Cell], seeds: list[int], lengths: list[int]) -> dict[str, list[dict]]:
    """Rows of the tables that claims and pages rest on, for ``table_files.load_tables``, as a configuration spans them.

    ``cells`` are those of the grid, ``seeds`` the trials', and ``lengths`` those of contexts.
    """
    trials, settings = {"seed": seeds, "context_length": lengths}, sorted({cell[2:] for cell in cells})
    both = [cell._asdict() for cell in cells if cell.algo == "mc" and cell._replace(algo="td") in cells]
    return {
        "msve": [cell._asdict() | trials for cell in cells],
        "baselines": [
            {"method": list(BASELINES[2:]), "states": states, "depth": depth} | trials for states, depth in settings
        ],
        "weights": [cell._asdict() | {"seed": seeds} for cell in cells],
        "mean_weights": [cell._asdict() for cell in cells],
        "audit": [cell._asdict() for cell in cells],
        "agreement": [{name: cell[name] for name in CELL[1:]} for cell in both],
        "truncation": [{"env": env, "states": states} for env, states in sorted({cell[1:3] for cell in cells})],
    }


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


def weights_table(runs: dict[Cell, dict], evaluations: dict[Cell, dict]) -> pd.DataFrame:
    """One row per run: measures of its weights beside theta^TD, its MSVE on enumerated prompts, and the task at which
    it diverged, 0 if it did not.

    For each cell ``runs`` has ``seeds`` (S,), ``u`` (S, 2n), ``A`` (S, 2n, 2n) and ``diverged_at`` (S,), and
    ``evaluations`` has ``enumerated_msve`` (S, k).
    """
    frames = []
    for cell, result in runs.items():
        columns = {"diverged_at": result["diverged_at"], **pattern_measures(Weights(result["u"], result["A"]))}
        columns["enumerated_msve"] = evaluations[cell]["enumerated_msve"].mean(axis=-1)
        frames.append(long_table({"seed": result["seeds"]}, columns, **cell._asdict()))
    return pd.concat(frames, ignore_index=True)


def mean_weights_table(runs: dict[Cell, dict]) -> pd.DataFrame:
    """One row per cell: measures of the mean over seeds of its weights, NaN if one of its runs diverged."""
    rows = [
        {**cell._asdict(), **pattern_measures(Weights(result["u"].mean(axis=0), result["A"].mean(axis=0)))}
        for cell, result in runs.items()
    ]
    return pd.DataFrame(rows)


def agreement_table(runs: dict[Cell, dict]) -> pd.DataFrame:
    """One row per (env, states, depth): how alike the mean A of TD and of MC are; empty where only one was trained."""
    rows = []
    for cell, result in runs.items():
        twin = cell._replace(algo="mc")
        if cell.algo == "td" and twin in runs:
            measures = agreement_measures(result["A"].mean(axis=0), runs[twin]["A"].mean(axis=0))
            rows.append({**cell._asdict(), **measures})
    return pd.DataFrame(rows, columns=[*CELL[1:], "correlation", "remainder_correlation", "distance"])


def learning_table(runs: dict[Cell, dict]) -> pd.DataFrame:
    """One row per run and snapshot: tasks seen, cosine of A to theta^TD's, step size alpha, and MSVE on the tasks since
    the last snapshot, each just before its update."""
    frames = []
    for cell, result in runs.items():
        measures = pattern_measures(Weights(result["history_u"], result["history_A"]))
        axes = {"seed": result["seeds"], "tasks_seen": result["tasks_seen"]}
        columns = {name: measures[name] for name in ("cosine", "alpha")} | {"online_msve": result["online_msve"]}
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
