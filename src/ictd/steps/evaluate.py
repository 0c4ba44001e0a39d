"""Evaluate a cell's pretrained Transformers on unseen tasks, and gather its runs in one file."""

from pathlib import Path

import numpy as np
import torch

from ictd.evaluation import enumerated_msve, transformer_msve
from ictd.pipeline.storage import join_arrays, save_arrays
from ictd.transformer import LinearTransformer
from ictd.unseen_tasks import draw_unseen_tasks
from ictd.weights import Weights

SECTION = "evaluation"


def main(
    states: int,
    depth: int,
    discount: float,
    attention_scale: str,
    evaluation_env: str,
    env_options: dict,
    tasks: int,
    context_lengths: list[int],
    runs: list[Path],
    weights: Path,
    evaluation: Path,
) -> None:
    """Write all runs' weights, and the MSVE for each seed, context length and task."""
    torch.set_num_threads(1)
    names = ("seeds", "tasks_seen", "u", "A", "online_msve", "diverged_at")
    seeds, tasks_seen, u, A, online_msve, diverged_at = join_arrays(runs, *names)
    longest, sampled, enumerated = max(context_lengths), [], []
    for i, seed in enumerate(seeds):
        data = draw_unseen_tasks(int(seed), states, tasks, longest, discount, evaluation_env, **env_options)
        model = LinearTransformer(Weights(u[i, -1], A[i, -1]), depth, attention_scale == "context_length")
        sampled.append(transformer_msve(model, data, context_lengths))
        enumerated.append(enumerated_msve(model, data))
    history = {"tasks_seen": tasks_seen[0], "history_u": u, "history_A": A, "online_msve": online_msve}
    save_arrays(weights, seeds=seeds, u=u[:, -1], A=A[:, -1], diverged_at=diverged_at, **history)
    save_arrays(
        evaluation, seeds=seeds, context_lengths=np.array(context_lengths), msve=np.stack(sampled),
        enumerated_msve=np.stack(enumerated), diverged_at=diverged_at,
    )  # fmt: skip
