"""Pretrain a cell's runs by multi-task TD or multi-task MC (Algorithms 1 and 2)."""

import logging
from pathlib import Path

import numpy as np

from ictd.mrp import msve, value_function
from ictd.pipeline.grid import Cell
from ictd.pipeline.storage import save_arrays
from ictd.pipeline.training_data import stored_runs
from ictd.pretraining import Divergence, pretrain_history
from ictd.snapshots import snapshot_counts

logger = logging.getLogger(__name__)


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
    snapshots: int,
    on_divergence: str,
    tasks: Path,
    unrolls: Path,
    diverged: Path,
    output: Path,
) -> None:
    """Write the weights of each seed at log-spaced task counts, and its learning curve.

    The learning curve is the MSVE on each task just before its update, averaged over the tasks between two counts.
    A run that diverges is NaN from there on, with the number of the task.  Unless ``on_divergence`` is "record", its
    snapshots go to the folder ``diverged``, and a ValueError names its cell, seed and task.
    """
    seeds, u, A, curves, diverged_at = [], [], [], [], []
    runs = stored_runs(env, states, initial_gain, tasks, unrolls)
    for seed, task_set, batches, start in runs:
        tasks_seen = snapshot_counts(len(task_set), snapshots)
        name = f"{Cell(algo, env, states, depth)}, seed {seed}"
        kept = diverged / f"{Cell(algo, env, states, depth)}-seed-{seed}.npz"
        kept.unlink(missing_ok=True)
        try:
            history = pretrain_history(
                task_set, batches, algo, depth, discount, learning_rate, start.u, start.A, engine, tasks_seen,
                scaled=attention_scale == "context_length",
            )  # fmt: skip
            diverged_at.append(0)
            logger.info("%s pretrained", name)
        except Divergence as divergence:
            if on_divergence == "fail":
                finite = np.isfinite(divergence.history.weights.A).all(axis=(1, 2))
                snapshots_kept = divergence.history.weights[finite]
                save_arrays(kept, tasks_seen=tasks_seen[finite], u=snapshots_kept.u, A=snapshots_kept.A)
                raise ValueError(
                    f"{name}: {divergence}; its finite snapshots are in {kept}. Choose another learning rate, or set"
                    " on_divergence to record."
                ) from None
            logger.warning("%s: %s", name, divergence)
            history = divergence.history
            diverged_at.append(divergence.task)
        value = value_function(task_set.transition, task_set.reward, discount)
        error = msve(task_set.stationary, value, history.estimates)
        seeds.append(seed)
        u.append(history.weights.u)
        A.append(history.weights.A)
        curves.append([part.mean() for part in np.split(error, tasks_seen[:-1])])
    tasks_seen = np.tile(tasks_seen, (len(seeds), 1))
    save_arrays(
        output, seeds=np.array(seeds), tasks_seen=tasks_seen, u=np.stack(u), A=np.stack(A),
        online_msve=np.array(curves), diverged_at=np.array(diverged_at),
    )  # fmt: skip
