"""Train the first tasks of each cell again with the other engine, and compare the weights."""

from copy import deepcopy
from functools import cache
from pathlib import Path

import numpy as np

from ictd.pipeline.grid import Cell
from ictd.pipeline.storage import load_arrays, save_json
from ictd.pipeline.training_data import stored_runs
from ictd.pretraining import ENGINES, Divergence, pretrain_history

SECTION = "audit"
SMALLEST = np.finfo(np.float64).tiny


def main(
    discount: float,
    learning_rate: float,
    initial_gain: float,
    attention_scale: str,
    engine: str,
    tasks: int,
    tolerance: float,
    task_sets: list[Path],
    unrolls: list[Path],
    trained: list[Path],
    output: Path,
) -> None:
    """Write for each cell the largest difference of the weights at the snapshots within the first tasks.

    Cells are those that the folders of ``trained`` are named after, in whose order ``task_sets`` and ``unrolls`` are.
    The difference is that of an entry of u or A over the largest entry of both, for the first seed.  ValueError names
    the cells whose difference is above the tolerance.
    """
    other = next(name for name in ENGINES if name != engine)
    rows, faults = [], []
    for *material, path in zip(task_sets, unrolls, trained, strict=True):
        cell = Cell.parse(path.parent.name)
        seed, task_set, batches, start = first_tasks(cell.env, cell.states, initial_gain, tasks, *material)
        tasks_seen, u, A = (array[0] for array in load_arrays(path, "tasks_seen", "u", "A"))
        seen = tasks_seen[tasks_seen <= tasks]
        try:
            history = pretrain_history(
                task_set[: seen[-1]], batches[: seen[-1]], cell.algo, cell.depth, discount, learning_rate,
                start.u, start.A, other, seen, scaled=attention_scale == "context_length",
            )  # fmt: skip
        except Divergence as divergence:
            history = divergence.history
        kept, again = flat(u[: len(seen)], A[: len(seen)]), flat(history.weights.u, history.weights.A)
        last, difference = largest_difference(seen, kept, again)
        rows.append({**cell._asdict(), "seed": seed, "tasks": last, "difference": difference})
        if not difference <= tolerance:
            faults.append(f"{cell}, seed {seed}, after {last} tasks by {difference:.2g} of the largest")
    if faults:
        raise ValueError(
            f"The engines' weights differ by more than audit.tolerance, {tolerance:g}: {'; '.join(faults)}; do not use"
            " these runs before you know why."
        )
    save_json(output, rows)


@cache
def first_tasks(env: str, states: int, initial_gain: float, size: int, tasks: Path, unrolls: Path) -> tuple:
    """As ``stored_runs``, the first run that two files hold the material of, with its first tasks only."""
    seed, task_set, batches, start = next(stored_runs(env, states, initial_gain, tasks, unrolls))
    # Copies, so that the rest can go.
    return seed, deepcopy(task_set[:size]), deepcopy(batches[:size]), start


def flat(u: np.ndarray, A: np.ndarray) -> np.ndarray:
    """The parameters u (S, 2n) and A (S, 2n, 2n) at S snapshots as rows, (S, 2n + 4n^2)."""
    return np.concatenate([u, A.reshape(len(A), -1)], axis=1)


def largest_difference(tasks_seen: np.ndarray, kept: np.ndarray, again: np.ndarray) -> tuple[int, float]:
    """Number of tasks up to which two courses of the parameters are compared, and their largest relative difference.

    A run that diverges is compared up to there, and has to diverge with both engines.  ``tasks_seen`` is (S,), the
    courses are rows of parameters at S snapshots.
    """
    finite = np.isfinite(again).all(axis=1)
    same = (np.isfinite(kept).all(axis=1) == finite).all()
    largest = np.max(np.abs(again[finite]), initial=SMALLEST)
    difference = float(np.max(np.abs(kept - again)[finite], initial=0) / largest) if same else np.inf
    return int(np.max(tasks_seen[finite], initial=0)), difference
