"""Check the statements on the values of theta^TD: Theorem 1 and Lemmas 1, 2 and 4."""

from pathlib import Path

import numpy as np

from ictd.mrp import sample_tasks
from ictd.rng import generator
from ictd.storage import save_arrays
from ictd.theory.embeddings import embeddings
from ictd.theory.statements import OF_VALUES, summarise
from ictd.transformer import theta_td

# Tasks whose embeddings are in memory together.
AT_ONCE = 50


def main(env: str, states: list[int], tasks: int, depth: int, discount: float, env_options: dict, output: Path) -> None:
    """Write both sides of each statement at each layer, summarised over tasks, for each number of states."""
    columns = {}
    for n in states:
        sampled = sample_tasks(env, n, tasks, generator(0, env, n, "theory"), **env_options)
        checked = []
        for first in range(0, tasks, AT_ONCE):
            rows = embeddings(theta_td(n), sampled[first : first + AT_ONCE], discount, depth)
            checked.append([statement(rows) for statement in OF_VALUES])
        for parts in zip(*checked, strict=True):
            for name, column in summarise(parts).items():
                columns.setdefault(name, []).append(column)
    shape = (len(states), len(OF_VALUES), depth + 1)
    save_arrays(
        output, states=np.array(states), statements=np.array([statement.__name__ for statement in OF_VALUES]),
        **{name: np.reshape(column, shape) for name, column in columns.items()},
    )  # fmt: skip
