"""Measure the snapshots of the weights of long runs."""

from pathlib import Path

import numpy as np
import pandas as pd

from ictd.evaluation import draw_unseen_tasks, weights_msve
from ictd.prompt import ENUMERATED
from ictd.storage import load_arrays, save_table
from ictd.transformer import estimates
from ictd.weight_measures import decomposition_measures
from studies.emergence.few_numbers import number_measures
from studies.emergence.runs import SEED, load_runs


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

    ``msve_M`` is the mean MSVE on contexts of M steps, ``msve_0`` on enumerated prompts.
    """
    longest = max(context_lengths)
    options = env_options[evaluation_env]
    data = draw_unseen_tasks(SEED, states, tasks, longest, discount, evaluation_env, "ablation", **options)
    enumerated = data.gram_matrix(ENUMERATED, scaled_attention)
    (tasks_seen,) = load_arrays(runs[0], "tasks_seen")
    seeds, snapshots = load_runs(runs)
    tables = []
    for run, seed in enumerate(seeds):
        weights = snapshots[run]
        with np.errstate(over="ignore", invalid="ignore"):
            msve = weights_msve(weights, data, context_lengths, depth, scaled_attention).mean(axis=-1)
            values = estimates(weights, enumerated, depth)  # (snapshots, tasks, n)
        columns = {"tasks_seen": tasks_seen, **decomposition_measures(weights, discount, scaled_attention)}
        columns |= number_measures(weights, discount, scaled_attention)
        columns[f"msve_{ENUMERATED}"] = data.error(values).mean(axis=-1)
        columns |= {f"msve_{length}": msve[:, i] for i, length in enumerate(context_lengths)}
        tables.append(pd.DataFrame({"algo": algo, "env": env, "seed": seed, **columns}))
    save_table(output, pd.concat(tables, ignore_index=True))
