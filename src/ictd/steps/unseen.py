"""Evaluate Transformers and baselines on additional unseen tasks, which decide the claims on the MSVE.

The errors are heavy-tailed: on short contexts, a few tasks have errors that are hundreds of times larger than the
others.  So the mean over the paper's 10 tasks for each trial has a large standard error.
"""

from pathlib import Path

import numpy as np

from ictd.baselines import BASELINES, Given, best_factors
from ictd.engine import compiled_estimates
from ictd.evaluation import UnseenTasks, baseline_msve, draw_unseen_tasks, joined, layer_measures
from ictd.pipeline.grid import Cell, parse_name
from ictd.prompt import ENUMERATED
from ictd.statistics import standard_error
from ictd.storage import load_arrays, long_table, save_tables
from ictd.transformer import Weights

# Share of the tasks that count as the worst.
WORST = 0.01


def main(
    discount: float,
    scaled_attention: bool,
    evaluation_env: str,
    env_options: dict,
    claim_tasks: int,
    context_lengths: list[int],
    lstd_ridge: float,
    weights: list[Path],
    baselines: list[Path],
    output: Path,
) -> None:
    """Write the tables ``unseen_msve``, ``unseen_baselines``, ``over_tasks`` and ``layers`` as CSV, into a folder.

    The files of ``weights`` are named after cells.  The files of ``baselines``, which have the factors of the
    baselines, are named "states-depth".  The first two tables have a row for each trial and context length, with the
    mean and the median over ``claim_tasks`` tasks.  The table ``over_tasks`` has a row for each context length (0 for
    enumerated prompts), without trials that diverged.  The table ``layers`` has the ``layer_measures`` of each trial.
    """
    cells = {}
    for path in weights:
        cell = Cell.parse(path.stem)
        cells.setdefault(cell.states, {})[cell] = path
    tuned = {parse_name(path.stem): load_arrays(path, "step_sizes", "tuning_msve") for path in baselines}
    factors = {place: best_factors(*arrays) for place, arrays in tuned.items()}
    lengths = [ENUMERATED, *context_lengths]
    options = env_options[evaluation_env]
    tables = {"unseen_msve": [], "unseen_baselines": [], "over_tasks": [], "layers": []}
    for states, paths in cells.items():
        (seeds,) = load_arrays(next(iter(paths.values())), "seeds")
        parts = [
            draw_unseen_tasks(
                int(seed), states, claim_tasks, max(lengths), discount, evaluation_env, stream="claims", **options
            )
            for seed in seeds
        ]
        data = joined(parts)
        shape = (len(seeds), claim_tasks)
        models = {cell: Weights(*load_arrays(path, "u", "A")) for cell, path in paths.items()}
        for cell, one in models.items():
            trials = [layer_measures(one[i], part, cell.depth, scaled_attention) for i, part in enumerate(parts)]
            measured = {name: np.array([trial[name] for trial in trials]) for name in trials[0]}
            tables["layers"].append(long_table({"seed": seeds}, measured, **cell._asdict()))
        by_length = []
        for i, length in enumerate(lengths):
            settings = [
                Given(discount, depth, lstd_ridge, scaled_attention, best[i], run=run_compiled)
                for (n, depth), best in factors.items()
                if n == states
            ]
            by_length.append(errors_at(data, length, models, settings))
        for name in by_length[0]:
            msve = np.stack([errors[name].reshape(shape) for errors in by_length], axis=1)  # (S, lengths, k)
            means = {"msve": msve[:, 1:].mean(axis=-1), "median": np.median(msve[:, 1:], axis=-1)}
            axes = {"seed": seeds, "context_length": context_lengths}
            if isinstance(name, Cell):
                tables["unseen_msve"].append(long_table(axes, means, **name._asdict()))
                method = {"method": name.algo, "env": name.env, "states": states, "depth": name.depth}
            else:
                method = {"method": name[0], "env": "any", "states": states, "depth": name[1]}
                of_baseline = {key: method[key] for key in ("method", "states", "depth")}
                tables["unseen_baselines"].append(long_table(axes, means, **of_baseline))
            finite = msve[np.isfinite(msve).all(axis=(1, 2))]
            tables["over_tasks"].append(long_table({"context_length": lengths}, over_tasks(finite), **method))
    save_tables(output, tables)


def run_compiled(weights: Weights, G: np.ndarray, depth: int) -> np.ndarray:
    """Estimates (k, n) of one Transformer on k contexts, as ``ictd.transformer.estimates``."""
    return compiled_estimates(weights[None], G, depth)


def errors_at(
    data: UnseenTasks, length: int, models: dict[Cell, Weights], settings: list[Given]
) -> dict[Cell | tuple[str, int], np.ndarray]:
    """Compute the MSVE of all methods at one context length.

    Parameters
    ----------
    data : UnseenTasks, S k tasks, ordered by seed
    length : int, m, or ENUMERATED
    models : dict of Weights, u (S, 2n) and A (S, 2n, 2n), by cell
    settings : list of Given, one for each number of layers

    Returns
    -------
    dict of (S k,) arrays
        By cell, and by the name of a baseline with the number of layers, such as ("theta_td", 30), or with 0 if the
        baseline has no layers.
    """
    context = data.context(length)
    G = context.gram_matrix(data.discount, settings[0].scaled)
    errors = {}
    for cell, weights in models.items():
        errors[cell] = data.error(compiled_estimates(weights, G, cell.depth))
    for name in BASELINES:
        for given in settings:
            place = name, given.depth if BASELINES[name].layered else 0
            if place not in errors:
                errors[place] = baseline_msve([name], data, [context], given)[name][0]
    return errors


def over_tasks(msve: np.ndarray) -> dict[str, np.ndarray]:
    """Summarise errors (S, lengths, k) of k tasks in each of S trials.

    Returns
    -------
    dict of (lengths,) arrays, NaN without trials
        mean : over all tasks
        standard_error : of the mean, over trials
        median : over all tasks
        worst_share : share of the worst hundredth of the tasks in the sum of the errors
    """
    trials, lengths, _ = msve.shape
    if not trials:
        return dict.fromkeys(("mean", "standard_error", "median", "worst_share"), np.full(lengths, np.nan))
    errors = np.sort(np.moveaxis(msve, 1, 0).reshape(lengths, -1), axis=-1)
    worst = max(1, round(WORST * errors.shape[-1]))
    return {
        "mean": errors.mean(axis=-1),
        "standard_error": standard_error(msve.mean(axis=-1)),
        "median": np.median(errors, axis=-1),
        "worst_share": errors[:, -worst:].sum(axis=-1) / errors.sum(axis=-1),
    }
