"""Evaluate the pretrained Transformers of all cells on unseen tasks."""

from functools import cache
from pathlib import Path

import numpy as np

from ictd.evaluation import UnseenTasks, draw_unseen_tasks, weights_msve
from ictd.pipeline.grid import Cell
from ictd.prompt import ENUMERATED
from ictd.storage import load_arrays, save_arrays
from ictd.transformer import Weights


def main(
    discount: float,
    scaled_attention: bool,
    evaluation_env: str,
    env_options: dict,
    tasks: int,
    context_lengths: list[int],
    weights: list[Path],
    evaluations: list[Path],
) -> None:
    """Write the MSVE of each cell for each seed, context length and task.

    The files of ``weights`` and ``evaluations``, in the same order, are named after the cells.  Cells with the same
    number of states are evaluated on the same tasks.
    """
    lengths = [ENUMERATED, *context_lengths]

    @cache
    def unseen(seed: int, states: int) -> UnseenTasks:
        options = env_options[evaluation_env]
        return draw_unseen_tasks(seed, states, tasks, max(lengths), discount, evaluation_env, **options)

    for path, output in zip(weights, evaluations, strict=True):
        cell = Cell.parse(path.stem)
        seeds, u, A, diverged_at = load_arrays(path, "seeds", "u", "A", "diverged_at")
        msve = np.stack(
            [
                weights_msve(one, unseen(seed, cell.states), lengths, cell.depth, scaled_attention)
                for seed, one in zip(seeds.tolist(), map(Weights, u, A), strict=True)
            ]
        )
        save_arrays(
            output,
            seeds=seeds,
            context_lengths=np.array(context_lengths),
            msve=msve[:, 1:],
            enumerated_msve=msve[:, 0],
            diverged_at=diverged_at,
        )
