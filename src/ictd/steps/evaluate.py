"""Evaluate the pretrained Transformers of one setting on unseen tasks, and join the runs of each cell in one file."""

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
    """Write the weights of all runs of a cell in one file, and their MSVE for each context length and task in another.

    The cells differ only in their algorithm.  The files of ``weights`` and ``evaluations``, in the same order, and the
    folders of ``runs`` are named after the cells.
    """
    cells = [path.stem for path in weights]
    histories = [joined_runs([path for path in runs if path.parent.name == cell]) for cell in cells]
    seeds = histories[0]["seeds"]
    lengths = [ENUMERATED, *context_lengths]
    last = Weights(
        np.stack([history["u"][:, -1] for history in histories], axis=1),
        np.stack([history["A"][:, -1] for history in histories], axis=1),
    )  # (S, cells, ...)
    msve = np.empty((len(seeds), len(cells), len(lengths), tasks))
    for i, seed in enumerate(seeds):
        data = draw_unseen_tasks(
            int(seed), states, tasks, max(context_lengths), discount, evaluation_env, **env_options[evaluation_env]
        )
        msve[i] = weights_msve(last[i], data, lengths, depth, scaled_attention)
    for i, history in enumerate(histories):
        save_arrays(
            weights[i],
            seeds=seeds,
            u=history["u"][:, -1],
            A=history["A"][:, -1],
            diverged_at=history["diverged_at"],
            tasks_seen=history["tasks_seen"][0],
            history_u=history["u"],
            history_A=history["A"],
            online_msve=history["online_msve"],
            depth=np.array(depth),
            discount=np.array(discount),
            scaled=np.array(scaled_attention),
        )
        save_arrays(
            evaluations[i],
            seeds=seeds,
            context_lengths=np.array(context_lengths),
            msve=msve[:, i, 1:],
            enumerated_msve=msve[:, i, 0],
            diverged_at=history["diverged_at"],
        )


def joined_runs(paths: list[Path]) -> dict[str, np.ndarray]:
    """Arrays of the runs in several files, each joined along the axis of seeds, by name."""
    names = ("seeds", "tasks_seen", "u", "A", "online_msve", "diverged_at")
    return dict(zip(names, join_arrays(paths, *names), strict=True))
