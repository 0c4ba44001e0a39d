"""Measure the snapshots of the weights of long runs."""

from pathlib import Path

import numpy as np
import pandas as pd

from ictd.anatomy import decomposition_measures
from ictd.evaluation import draw_unseen_tasks, weights_msve
from ictd.prompt import ENUMERATED
from ictd.storage import load_arrays, save_table
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
    """Write a row for each run and snapshot: the measures of its weights, and its errors on unseen tasks.

    ``msve_M`` is the mean MSVE on contexts of M steps, ``msve_0`` on enumerated prompts.  ``bellman`` is the root mean
    square of the Bellman error r + gamma p TF_L - TF_L on enumerated prompts, weighted by mu.
    """
    longest = max(context_lengths)
    data = draw_unseen_tasks(0, states, tasks, longest, discount, evaluation_env, "ablation", **env_options)
    mu, p, r = data.tasks.stationary, data.tasks.transition, data.tasks.reward
    enumerated = data.gram(ENUMERATED)
    tables = []
    for path in runs:
        tasks_seen, u, A = load_arrays(path, "tasks_seen", "u", "A")
        weights = Weights(u, A)
        with np.errstate(over="ignore", invalid="ignore"):
            msve = weights_msve(weights, data, context_lengths, depth, scaled_attention).mean(axis=-1)
            values = estimates(weights, enumerated, depth, scaled_attention)  # (snapshots, tasks, n)
            bellman_error = r + discount * np.matvec(p, values) - values
        columns = {"tasks_seen": tasks_seen, **decomposition_measures(weights, discount, scaled_attention)}
        columns["bellman"] = np.sqrt((mu * bellman_error**2).sum(axis=-1).mean(axis=-1))
        columns[f"msve_{ENUMERATED}"] = data.error(values).mean(axis=-1)
        columns |= {f"msve_{length}": msve[:, i] for i, length in enumerate(context_lengths)}
        tables.append(pd.DataFrame({"algo": algo, "env": env, "seed": int(path.stem), **columns}))
    save_table(output, pd.concat(tables, ignore_index=True))
