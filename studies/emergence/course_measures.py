"""Measure the weights on the way of long pretraining."""

from pathlib import Path

import numpy as np
import pandas as pd

from ictd.anatomy import decomposition_measures
from ictd.evaluation import draw_unseen_tasks, weights_msve
from ictd.prompt import ENUMERATED
from ictd.storage import load_arrays
from ictd.tables import save_table
from ictd.transformer import Weights, estimates


def main(
    algo: str,
    env: str,
    states: int,
    depth: int,
    discount: float,
    scaled_attention: bool,
    evaluation_env: str,
    env_options: dict,
    tasks: int,
    context_lengths: list[int],
    runs: list[Path],
    output: Path,
) -> None:
    """Write a row a run and snapshot: its shares, its MSVE and its Bellman error on unseen tasks."""
    longest, scaled = max(context_lengths), scaled_attention
    data = draw_unseen_tasks(0, states, tasks, longest, discount, evaluation_env, "ablation", **env_options)
    gram, frames = data.gram(ENUMERATED), []
    for path in runs:
        seen, u, A = load_arrays(path, "tasks_seen", "u", "A")
        weights = Weights(u, A)
        with np.errstate(over="ignore", invalid="ignore"):
            found = weights_msve(weights, data, context_lengths, depth, scaled).mean(axis=-1)
            TF = estimates(weights, gram, depth, scaled)
            bellman = data.tasks.reward + discount * np.matvec(data.tasks.transition, TF) - TF
        columns = {"tasks_seen": seen, **decomposition_measures(weights, discount, scaled)}
        columns["bellman"] = np.sqrt((data.tasks.stationary * bellman**2).sum(axis=-1).mean(axis=-1))
        columns[f"msve_{ENUMERATED}"] = data.error(TF).mean(axis=-1)
        columns |= {f"msve_{length}": found[:, i] for i, length in enumerate(context_lengths)}
        frames.append(pd.DataFrame({"algo": algo, "env": env, "seed": int(path.stem), **columns}))
    save_table(output, pd.concat(frames, ignore_index=True))
