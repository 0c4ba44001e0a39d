"""Check the statements on the embeddings at theta^TD: Theorem 1 and Lemmas 1, 2 and 4."""

from pathlib import Path

import numpy as np

from ictd.storage import long_table, save_table
from ictd.theory.inequalities import OF_VALUES, summarise
from ictd.theory.recursion import evolve, theory_tasks
from ictd.transformer import theta_td

# Number of tasks whose embeddings are in memory at once.
AT_ONCE = 50


def main(env: str, states: list[int], tasks: int, depth: int, discount: float, env_options: dict, output: Path) -> None:
    """Write both sides of each statement at each layer, summarised over tasks, for each number of states."""
    tables = []
    for n in states:
        sampled = theory_tasks(env, n, tasks, env_options)
        inequalities = {statement.__name__: [] for statement in OF_VALUES}
        for first in range(0, tasks, AT_ONCE):
            Z = evolve(theta_td(n), sampled[first : first + AT_ONCE], discount, depth)
            for statement in OF_VALUES:
                inequalities[statement.__name__].append(statement(Z))
        for name, parts in inequalities.items():
            layers = {"layer": np.arange(depth + 1)}
            tables.append(long_table(layers, summarise(parts), statement=name, env=env, states=n))
    save_table(output, *tables)
