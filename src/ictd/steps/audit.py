"""Train the first tasks of a run again with the other engine, and compare the weights."""

from pathlib import Path

import numpy as np

from ictd.grid import Cell
from ictd.pretraining import ENGINES, Divergence, pretrain_history
from ictd.runs import stored_runs
from ictd.steps import run
from ictd.storage import load_arrays, save_json

SMALLEST = np.finfo(np.float64).tiny


def main(
    algo: str,
    env: str,
    states: int,
    depth: int,
    discount: float,
    learning_rate: float,
    initial_gain: float,
    attention_scale: str,
    engine: str,
    audit_tasks: int,
    tolerance: float,
    tasks: Path,
    unrolls: Path,
    trained: Path,
    output: Path,
) -> None:
    """Write the largest difference of the weights at each snapshot of the first seed within the first tasks.

    The difference is that of an entry of u or A over the largest entry of both.

    Raises
    ------
    ValueError
        Naming the cell, if the difference is above the tolerance.
    """
    seed, task_set, batches, start = next(stored_runs(env, states, initial_gain, tasks, unrolls))
    tasks_seen, u, A = (array[0] for array in load_arrays(trained, "tasks_seen", "u", "A"))
    compared = tasks_seen <= audit_tasks
    last = tasks_seen[compared][-1]
    other = next(name for name in ENGINES if name != engine)
    try:
        history = pretrain_history(
            task_set[:last], batches[:last], algo, depth, discount, learning_rate, start.u, start.A, other,
            tasks_seen[compared], scaled=attention_scale == "context_length",
        )  # fmt: skip
    except Divergence as divergence:
        history = divergence.history
    kept = np.concatenate([u[compared], A[compared].reshape(-1, 4 * states**2)], axis=1)
    again = np.concatenate([history.weights.u, history.weights.A.reshape(-1, 4 * states**2)], axis=1)
    # A run that diverges is compared up to there, and has to diverge with both engines.
    finite = np.isfinite(again).all(axis=1)
    last = int(np.max(tasks_seen[compared][finite], initial=0))
    same = (np.isfinite(kept).all(axis=1) == finite).all()
    largest = np.max(np.abs(again[finite]), initial=SMALLEST)
    difference = float(np.max(np.abs(kept - again)[finite], initial=0) / largest) if same else np.inf
    cell = Cell(algo, env, states, depth)
    if not difference <= tolerance:
        raise ValueError(
            f"{cell}, seed {seed}: after {last} tasks the engines' weights differ by {difference:.2g} of the"
            f" largest, more than audit.tolerance, {tolerance:g}; do not use this run before you know why."
        )
    save_json(output, {**cell._asdict(), "seed": seed, "tasks": last, "difference": difference})


if __name__ == "__main__":
    run(main)
