"""Make the tables of errors and weights, with one row for each observation.

Each table is a list of parts with the same columns, as ``ictd.storage.save_tables`` takes them.
"""

from functools import partial
from pathlib import Path

import numpy as np

from ictd.baselines import BASELINES
from ictd.mrp import sample_tasks, truncation_bias, value_function
from ictd.pipeline.grid import CELL, Cell, parse_name
from ictd.rng import generator
from ictd.statistics import bootstrap, interval_ends
from ictd.storage import load_named, long_table, save_tables
from ictd.transformer import Weights
from ictd.weight_measures import (
    agreement_measures,
    identifiable_measures,
    pattern_measures,
    pattern_shares,
    project_identifiable,
    representative_shares,
    squared_norm,
)

# Tasks on which the truncation bias of Monte Carlo returns is measured.
BIAS_TASKS = 1000
# Measures that compare TD with MC, and the names of two of them for runs without a common seed.
AGREEMENT = ("correlation", "residual_correlation", "distance")
APART = {"apart": "correlation", "residual_apart": "residual_correlation"}
# Arrays of the files that the tables are made of.
EVALUATION_ARRAYS = ("seeds", "context_lengths", "msve", "enumerated_msve")
BASELINE_ARRAYS = ("seeds", "context_lengths", "step_sizes", "tuning_msve", *BASELINES)
WEIGHT_ARRAYS = ("seeds", "u", "A", "history_u", "history_A", "tasks_seen", "online_msve", "diverged_at")


def main(
    weights: list[Path],
    evaluations: list[Path],
    baselines: list[Path],
    discount: float,
    rollout_steps: int,
    env_options: dict,
    output: Path,
) -> None:
    """Write all result tables as CSV; claims, pages and figures are made of them.

    The functions below describe the tables of their names.
    """
    runs = {Cell.parse(path.stem): load_named(path, *WEIGHT_ARRAYS) for path in weights}
    evaluated = {Cell.parse(path.stem): load_named(path, *EVALUATION_ARRAYS) for path in evaluations}
    by_size = {parse_name(path.stem): load_named(path, *BASELINE_ARRAYS) for path in baselines}
    settings = sorted({(cell.env, cell.states) for cell in runs})
    tables = {
        "msve": msve_table(evaluated),
        "baselines": baselines_table(by_size),
        "step_sizes": step_sizes_table(by_size),
        "weights": weights_table(runs, evaluated, discount),
        "mean_weights": mean_weights_table(runs, discount),
        "mean_entries": mean_entries_table(runs),
        "agreement": agreement_table(runs, discount),
        "learning": learning_table(runs, discount),
        "truncation": truncation_table(settings, discount, rollout_steps, env_options),
    }
    save_tables(output, tables)


def msve_table(evaluations: dict[Cell, dict]) -> list[dict]:
    """Tabulate the MSVE of each run at each context length, the mean and the median over unseen tasks.

    Parameters
    ----------
    evaluations : dict
        For each cell ``seeds`` (S,), ``context_lengths`` (M,) and ``msve`` (S, M, k).
    """
    return [_mean_msve(result, "msve", **cell._asdict()) for cell, result in evaluations.items()]


def baselines_table(baselines: dict[tuple[int, int], dict]) -> list[dict]:
    """Tabulate the MSVE of each of BASELINES, like ``msve_table``.

    Parameters
    ----------
    baselines : dict
        For each (states, depth) ``seeds`` (S,), ``context_lengths`` (M,), and (S, M, k) for each method.
    """
    return [
        _mean_msve(result, method, method=method, states=states, depth=depth)
        for (states, depth), result in baselines.items()
        for method in BASELINES
    ]


def _mean_msve(result: dict, name: str, **names) -> dict:
    """A row for each seed and context length: mean and median over tasks of the array ``name`` (S, M, k)."""
    axes = {"seed": result["seeds"], "context_length": result["context_lengths"]}
    columns = {"msve": result[name].mean(axis=-1), "median": np.median(result[name], axis=-1)}
    return long_table(axes, columns, **names)


def step_sizes_table(baselines: dict[tuple[int, int], dict]) -> list[dict]:
    """Tabulate the MSVE of theta^TD with each step size, the mean over tuning tasks and context lengths.

    The baseline ``theta_td`` has the best step size of each context length.

    Parameters
    ----------
    baselines : dict
        For each (states, depth) ``step_sizes`` (K,), and ``tuning_msve`` (T, 1 + lengths, K), of which ``theta_td`` has
        the first entry, and enumerated contexts have the first row.
    """
    return [
        long_table(
            {"step_size": result["step_sizes"]},
            {"msve": result["tuning_msve"][0, 1:].mean(axis=0)},
            states=states,
            depth=depth,
        )
        for (states, depth), result in baselines.items()
    ]


def weights_table(runs: dict[Cell, dict], evaluations: dict[Cell, dict], discount: float) -> list[dict]:
    """Tabulate ``identifiable_measures`` of each run, its MSVE on enumerated prompts, and the task where it diverged.

    Parameters
    ----------
    runs : dict
        For each cell ``seeds`` (S,), ``u`` (S, 2n), ``A`` (S, 2n, 2n) and ``diverged_at`` (S,), which is 0 for a run
        that did not diverge.
    evaluations : dict
        For each cell ``enumerated_msve`` (S, k).
    discount : float, gamma
    """
    parts = []
    for cell, result in runs.items():
        columns = {"diverged_at": result["diverged_at"]}
        columns |= identifiable_measures(Weights(result["u"], result["A"]), discount)
        columns["enumerated_msve"] = evaluations[cell]["enumerated_msve"].mean(axis=-1)
        parts.append(long_table({"seed": result["seeds"]}, columns, **cell._asdict()))
    return parts


def mean_weights_table(runs: dict[Cell, dict], discount: float) -> list[dict]:
    """Tabulate ``identifiable_measures`` of each cell's mean weights over seeds; NaN if one of its runs diverged.

    ``NAME_low`` and ``NAME_high`` are the ends of 95% BCa intervals, over seeds, of each of ``pattern_shares`` and
    ``representative_shares``.
    """
    rows = []
    for cell, result in runs.items():
        weights = Weights(result["u"], result["A"])
        mean = Weights(weights.u.mean(axis=0), weights.A.mean(axis=0))
        ends = interval_ends(pattern_shares, project_identifiable(weights, discount).A)
        ends |= interval_ends(partial(representative_shares, discount=discount), weights.A)
        rows.append(long_table({}, {**cell._asdict(), **identifiable_measures(mean, discount), **ends}))
    return rows


def mean_entries_table(runs: dict[Cell, dict]) -> list[dict]:
    """Tabulate each entry of u and A at each snapshot, the mean over the runs that did not diverge.

    Rows and columns count from 1; u is one row.  A cell whose runs all diverged has empty means.

    Parameters
    ----------
    runs : dict
        For each cell ``tasks_seen`` (K,), ``history_u`` (S, K, 2n), ``history_A`` (S, K, 2n, 2n) and ``diverged_at``
        (S,).
    """
    parts = []
    for cell, result in runs.items():
        kept = result["diverged_at"] == 0
        matrices = {"u": result["history_u"][kept][:, :, None], "A": result["history_A"][kept]}
        for name, history in matrices.items():
            with np.errstate(invalid="ignore"):  # 0 / 0 without a run.
                mean = history.sum(axis=0) / kept.sum()
            _, rows, columns = mean.shape
            axes = {"tasks_seen": result["tasks_seen"], "row": range(1, rows + 1), "column": range(1, columns + 1)}
            parts.append(long_table(axes, {"mean": mean}, **cell._asdict(), matrix=name))
    return parts


def agreement_table(runs: dict[Cell, dict], discount: float) -> list[dict]:
    """Tabulate the agreement of TD and MC for each (env, states, depth) where both were trained.

    Both means over seeds of A are projected.  ``correlation_low`` and the like are ends of 95% BCa intervals over
    seeds, with the same resamples for both, because runs with the same seed share tasks, batches and initial values.
    ``apart`` and ``residual_apart`` are correlations of means that share no seed: of TD over its even seeds, and of MC
    over its odd seeds, as many of each.
    """
    rows = []
    for cell, result in runs.items():
        twin = cell._replace(algo="mc")
        if cell.algo != "td" or twin not in runs:
            continue
        td, mc = (
            project_identifiable(Weights(arrays["u"], arrays["A"]), discount).A for arrays in (result, runs[twin])
        )
        measures = agreement_measures(td.mean(axis=0), mc.mean(axis=0))
        half = len(mc) // 2
        apart = _apart_measures(td[::2][:half], mc[1::2])
        rows.append({**cell._asdict(), **measures, **interval_ends(agreement_measures, td, mc), **apart})
    names = [name for measure in AGREEMENT for name in (f"{measure}_low", f"{measure}_high")]
    names += [name for measure in APART for name in (measure, f"{measure}_low", f"{measure}_high")]
    columns = [*CELL[1:], *AGREEMENT, *names]
    # Without a row there are columns.
    parts = [long_table({}, {name: row.get(name, np.nan) for name in columns}) for row in rows]
    return parts or [{name: [] for name in columns}]


def _apart_measures(td: np.ndarray, mc: np.ndarray) -> dict[str, float]:
    """The measures of APART of the means of A over runs without a common seed, with their intervals."""
    if not len(mc):
        return {}
    resampled = bootstrap(agreement_measures, td, mc)
    measures = {}
    for new, name in APART.items():
        measures[new], measures[f"{new}_low"], measures[f"{new}_high"] = resampled[name].estimate()
    return measures


def learning_table(runs: dict[Cell, dict], discount: float) -> list[dict]:
    """Tabulate the course of pretraining, a row for each run and snapshot.

    ``cosine`` and ``alpha`` are measures of the projected A.  ``to_go`` is the norm of the change of A from the
    snapshot to the end, over the norm of A at the end.  ``online_msve`` is the mean MSVE on the tasks since the last
    snapshot, on each just before its update.
    """
    parts = []
    for cell, result in runs.items():
        history = project_identifiable(Weights(result["history_u"], result["history_A"]), discount)
        measures = pattern_measures(history)
        last = history.A[:, -1:]
        axes = {"seed": result["seeds"], "tasks_seen": result["tasks_seen"]}
        columns = {
            "cosine": measures["cosine"],
            "alpha": measures["alpha"],
            "to_go": np.sqrt(squared_norm(last - history.A) / squared_norm(last)),
            "online_msve": result["online_msve"],
        }
        parts.append(long_table(axes, columns, **cell._asdict()))
    return parts


def truncation_table(
    settings: list[tuple[str, int]], discount: float, rollout_steps: int, env_options: dict
) -> list[dict]:
    """Tabulate for each (env, states) the largest exact bias of a truncated return, and the root mean square of v."""
    rows = []
    for env, states in settings:
        rng = generator(0, env, states, "truncation")
        tasks = sample_tasks(env, states, BIAS_TASKS, rng, **env_options[env])
        value = value_function(tasks.transition, tasks.reward, discount)
        bias = np.abs(truncation_bias(tasks.transition, value, discount, rollout_steps)).max()
        measured = {"largest_bias": bias, "typical_value": np.sqrt((value**2).mean())}
        rows.append(long_table({}, measured, env=env, states=states))
    return rows
