"""Evaluate runs on sampled contexts of one environment and discount, whatever they were pretrained on."""

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
    test_tasks: int,
    context_lengths: list[int],
    env_options: dict,
    runs: list[Path],
    output: Path,
) -> None:
    """Write the mean and median over tasks of the MSVE, for each seed, snapshot and context length.

    ``of_tasks`` (lengths, tasks) is the MSVE of each task at the last snapshot, mean over seeds.
    """
    seeds, tasks_seen, u, A = join_arrays(runs, "seeds", "tasks_seen", "history_u", "history_A")
    data = draw_unseen_tasks(0, states, test_tasks, max(context_lengths), on_discount, on_env, "beyond", **env_options)
    flat = Weights(u.reshape(-1, u.shape[-1]), A.reshape(-1, *A.shape[-2:]))
    with np.errstate(over="ignore", invalid="ignore"):
        found = weights_msve(flat, data, context_lengths, depth, scaled=scaled_attention)
    found = found.reshape(*u.shape[:2], len(context_lengths), test_tasks)
    save_arrays(
        output, seeds=seeds, tasks_seen=tasks_seen.ravel()[: u.shape[1]], context_lengths=np.array(context_lengths),
        mean=found.mean(axis=-1), median=np.median(found, axis=-1), of_tasks=found[:, -1].mean(axis=0),
    )  # fmt: skip
