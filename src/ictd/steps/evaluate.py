"""Evaluate pretrained Transformers of one setting on unseen tasks, and gather the runs of each cell in one file."""

from pathlib import Path

import numpy as np

from ictd.evaluation import draw_unseen_tasks, weights_msve
from ictd.prompt import ENUMERATED
from ictd.storage import join_arrays, save_arrays
from ictd.transformer import Weights


def main(
    states: int,
    depth: int,
    discount: float,
    scaled_attention: bool,
    evaluation_env: str,
    env_options: dict,
    tasks: int,
    context_lengths: list[int],
    runs: list[Path],
    weights: list[Path],
    evaluations: list[Path],
) -> None:
    """Write all runs' weights, and the MSVE for each seed, context length and task, a file each for each cell.

    The files of ``weights`` and ``evaluations``, in the same order, and the folders of ``runs`` are named after the
    cells.
    """
    scaled = scaled_attention
    cells = [path.stem for path in weights]
    names = ("seeds", "tasks_seen", "u", "A", "online_msve", "diverged_at")
    joined = [join_arrays([path for path in runs if path.parent.name == cell], *names) for cell in cells]
    seeds = joined[0][0]
    lengths = [ENUMERATED, *context_lengths]
    last = Weights(*(np.stack([one[i][:, -1] for one in joined], axis=1) for i in (2, 3)))
    msve = np.empty((len(seeds), len(cells), len(lengths), tasks))
    for i, seed in enumerate(seeds):
        data = draw_unseen_tasks(
            int(seed), states, tasks, max(context_lengths), discount, evaluation_env, **env_options
        )
        msve[i] = weights_msve(last[i], data, lengths, depth, scaled)
    for i, (_, tasks_seen, u, A, online_msve, diverged_at) in enumerate(joined):
        save_arrays(
            weights[i],
            seeds=seeds,
            u=u[:, -1],
            A=A[:, -1],
            diverged_at=diverged_at,
            tasks_seen=tasks_seen[0],
            history_u=u,
            history_A=A,
            online_msve=online_msve,
            depth=np.array(depth),
            discount=np.array(discount),
            scaled=np.array(scaled),
        )
        save_arrays(
            evaluations[i],
            seeds=seeds,
            context_lengths=np.array(context_lengths),
            msve=msve[:, i, 1:],
            enumerated_msve=msve[:, i, 0],
            diverged_at=diverged_at,
        )
