"""Compare float64 with decimal arithmetic: both sides of Lemmas 1 and 4 for deep Transformers, and expected updates."""

from pathlib import Path

import numpy as np

from ictd.mrp import Tasks, sample_tasks
from ictd.pipeline.grid import parse_name
from ictd.rng import generator
from ictd.storage import long_table, save_table
from ictd.theory.decimals import exact_sides, exact_update
from ictd.theory.recursion import evolve
from ictd.theory.updates import sweep_gradients
from ictd.transformer import theta_td

TASKS = 2
# Both sides of the lemmas are computed at every tenth layer.
EVERY = 10


def main(
    states: list[int],
    settings: list[str],
    depth: int,
    update_depth: int,
    discount: float,
    env_options: dict,
    output: Path,
) -> None:
    """Write both sides of the lemmas for each number in ``states``, and a task's update norm for settings "env-states".

    ``difference`` is the relative difference of the float64 update from the exact one.
    """
    tables = []
    pairs = list(map(parse_name, settings))
    for env in sorted({env for env, _ in pairs}):
        update_states = [n for other_env, n in pairs if other_env == env]
        for n in sorted({*states, *update_states}):
            tasks = sample_tasks(env, n, TASKS, generator(0, env, n, "theory"), **env_options[env])
            for task in range(TASKS):
                names = {"env": env, "states": n, "task": task}
                if n in states:
                    tables += lemma_tables(tasks, task, discount, depth, names)
                if n in update_states:
                    tables += update_tables(tasks, task, discount, update_depth, names)
    save_table(output, *tables)


def lemma_tables(tasks: Tasks, task: int, discount: float, depth: int, names: dict) -> list[dict[str, list]]:
    """Both sides of Lemmas 1 and 4 for one task, a table for each lemma."""
    layers = list(range(0, depth + 1, EVERY))
    tables = []
    for quantity, sides in exact_sides(tasks, task, discount, layers).items():
        exact, bound, ratio = sides.T
        columns = {"exact": exact, "bound": bound, "ratio": ratio, "difference": np.full(len(layers), np.nan)}
        tables.append(long_table({"layer": layers}, columns, quantity=quantity, **names))
    return tables


def update_tables(tasks: Tasks, task: int, discount: float, depth: int, names: dict) -> list[dict[str, list]]:
    """Norms of the exact expected updates of one task at theta_L^TD, a table with one row for J and one for J'."""
    sweep = sweep_gradients(evolve(theta_td(tasks.states), tasks[task : task + 1], discount, depth))
    tables = []
    for algo, quantity in (("td", "theorem_2"), ("mc", "corollary_1")):
        exact = exact_update(tasks, task, algo, discount, depth)
        norm = np.abs(exact).sum()
        distance = np.abs(exact - sweep.updates[algo][0, -1]).sum()
        difference = distance / norm if norm else distance
        columns = {"exact": [norm], "bound": [np.nan], "ratio": [np.nan], "difference": [difference]}
        tables.append(long_table({"layer": [depth]}, columns, quantity=quantity, **names))
    return tables
