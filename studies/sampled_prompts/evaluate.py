"""Evaluate pretrained runs on sampled contexts of one environment and discount."""

from pathlib import Path

import numpy as np

from ictd.evaluation import draw_unseen_tasks, weights_msve
from ictd.storage import join_arrays, save_arrays
from ictd.transformer import Weights


def main(
    on_env: str,
    states: int,
    depth: int,
    on_discount: float,
    scaled_attention: bool,
    every_snapshot: bool,
    tasks: int,
    test_tasks: int,
    context_lengths: list[int],
    env_options: dict,
    runs: list[Path],
    output: Path,
) -> None:
    """Write the mean and the median over tasks of the MSVE, for each seed, snapshot and context length.

    Without ``every_snapshot``, only the snapshots after ``tasks`` tasks and at the end are evaluated.
    ``msve_by_task`` (lengths, tasks) is the MSVE on each task at the last snapshot, averaged over seeds.
    """
    seeds, tasks_seen, u, A = join_arrays(runs, "seeds", "tasks_seen", "history_u", "history_A")
    tasks_seen = tasks_seen[: u.shape[1]]
    if not every_snapshot:
        kept = (tasks_seen == tasks) | (tasks_seen == tasks_seen[-1])
        tasks_seen, u, A = tasks_seen[kept], u[:, kept], A[:, kept]
    data = draw_unseen_tasks(0, states, test_tasks, max(context_lengths), on_discount, on_env, "beyond", **env_options)
    weights = Weights(u, A)  # Leading axes: seeds, snapshots.
    with np.errstate(over="ignore", invalid="ignore"):
        msve = weights_msve(weights, data, context_lengths, depth, scaled_attention)
    save_arrays(
        output, seeds=seeds, tasks_seen=tasks_seen, context_lengths=np.array(context_lengths),
        mean=msve.mean(axis=-1), median=np.median(msve, axis=-1), msve_by_task=msve[:, -1].mean(axis=0),
    )  # fmt: skip
