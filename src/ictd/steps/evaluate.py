"""Evaluate a cell's pretrained Transformers on unseen tasks, and gather its runs in one file."""

from pathlib import Path

import numpy as np

from ictd.evaluation import weights_msve
from ictd.pipeline.storage import join_arrays, save_arrays
from ictd.prompts import ENUMERATED
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
    names = ("seeds", "tasks_seen", "u", "A", "online_msve", "diverged_at")
    seeds, tasks_seen, u, A, online_msve, diverged_at = join_arrays(runs, *names)
    longest, lengths, scaled = max(context_lengths), [ENUMERATED, *context_lengths], attention_scale == "context_length"
    msve = np.empty((len(seeds), len(lengths), tasks))
    for i, seed in enumerate(seeds):
        data = draw_unseen_tasks(int(seed), states, tasks, longest, discount, evaluation_env, **env_options)
        msve[i] = weights_msve(Weights(u[i, -1], A[i, -1]), data, lengths, depth, scaled)
    history = {"tasks_seen": tasks_seen[0], "history_u": u, "history_A": A, "online_msve": online_msve}
    save_arrays(weights, seeds=seeds, u=u[:, -1], A=A[:, -1], diverged_at=diverged_at, **history)
    save_arrays(
        evaluation, seeds=seeds, context_lengths=np.array(context_lengths), msve=msve[:, 1:],
        enumerated_msve=msve[:, 0], diverged_at=diverged_at,
    )  # fmt: skip
