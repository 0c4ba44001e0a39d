"""Pretrain the runs of one cell by multi-task TD or multi-task MC (Algorithms 1 and 2)."""

import logging
from pathlib import Path

import numpy as np

from ictd.mrp import msve, value_function
from ictd.pipeline.grid import Cell, log_spaced_integers
from ictd.pretraining import Divergence, pretrain_history
from ictd.rng import generator
from ictd.steps.tasks import stored_runs, with_paths
from ictd.storage import save_arrays, stacked
from ictd.transformer import initial_weights

logger = logging.getLogger(__name__)


def main(
    algo: str,
    env: str,
    states: int,
    depth: int,
    discount: float,
    learning_rate: float,
    initial_gain: float,
    scaled_attention: bool,
    engine: str,
    snapshots: int,
    on_divergence: str,
    tasks: Path,
    returns: list[Path],
    diverged: Path,
    output: Path,
) -> None:
    """Write the weights of each seed at log-spaced numbers of tasks, and its learning curve.

    ``returns`` has one file for an algorithm that reads returns, such as MC, and none for others, such as TD.
    The learning curve is the MSVE on each task just before its update, averaged over the tasks between two snapshots.
    If a run diverges, its arrays are NaN from the task ``diverged_at`` on.  Unless
    ``on_divergence`` is "record", a ValueError names the run, and its finite snapshots go to the folder ``diverged``.
    """
    cell = Cell(algo, env, states, depth)
    runs = []
    for seed, task_set, batches in stored_runs(tasks, *returns):
        batches = with_paths(algo, env, seed, task_set, batches)
        start = initial_weights(states, initial_gain, generator(seed, env, states, "weights"))
        tasks_seen = log_spaced_integers(len(task_set), snapshots)
        finite_snapshots = diverged / f"{cell}-seed-{seed}.npz"
        finite_snapshots.unlink(missing_ok=True)
        diverged_at = 0
        try:
            history = pretrain_history(
                task_set, batches, algo, depth, discount, learning_rate, start, engine, tasks_seen,
                scaled=scaled_attention,
            )  # fmt: skip
            logger.info("%s, seed %d pretrained", cell, seed)
        except Divergence as divergence:
            history, diverged_at = divergence.history, divergence.task
            if on_divergence == "fail":
                finite = np.isfinite(history.weights.A).all(axis=(1, 2))
                weights = history.weights[finite]
                save_arrays(finite_snapshots, tasks_seen=tasks_seen[finite], u=weights.u, A=weights.A)
                raise ValueError(
                    f"{cell}, seed {seed}: {divergence}; its finite snapshots are in {finite_snapshots}."
                    " Choose another learning rate, or set on_divergence to record."
                ) from None
            logger.warning("%s, seed %d: %s", cell, seed, divergence)
        value = value_function(task_set.transition, task_set.reward, discount)
        error = msve(task_set.stationary, value, history.estimates)
        curve = np.array([between.mean() for between in np.split(error, tasks_seen[:-1])])
        runs.append(
            {
                "seeds": np.int64(seed),
                "tasks_seen": tasks_seen,
                "u": history.weights.u,
                "A": history.weights.A,
                "online_msve": curve,
                "diverged_at": np.int64(diverged_at),
            }
        )
    save_arrays(output, **stacked(runs, len(runs)))
