"""Compare float64 with decimal arithmetic: both sides of Lemmas 1 and 4 for deep Transformers, and expected updates."""

from decimal import Decimal
from pathlib import Path

import numpy as np

from ictd.mrp import Tasks
from ictd.pipeline.grid import parse_name
from ictd.storage import long_table, save_table
from ictd.theory.decimals import enough_digits, exact_theta_td
from ictd.theory.recursion import evolve, theory_tasks
from ictd.theory.updates import looped_updates, sweep_gradients
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
            tasks = theory_tasks(env, n, TASKS, env_options)
            for i in range(TASKS):
                names = {"env": env, "states": n, "task": i}
                if n in states:
                    tables += lemma_tables(tasks[i : i + 1], discount, depth, names)
                if n in update_states:
                    tables += update_tables(tasks[i : i + 1], discount, update_depth, names)
    save_table(output, *tables)


def lemma_tables(task: Tasks, discount: float, depth: int, names: dict) -> list[dict[str, list]]:
    """Both sides of Lemmas 1 and 4 for one task, a table for each lemma."""
    layers = np.arange(0, depth + 1, EVERY)
    unknown = np.full(len(layers), np.nan)
    tables = []
    with enough_digits(discount, depth):
        Z = exact_theta_td(task, discount, depth)
        powers = np.cumprod([Decimal(1), *[Z.discount] * depth])
        for quantity, errors, scale in (("lemma_1", Z.td_errors, Z.tasks.reward), ("lemma_4", Z.mc_errors, Z.value)):
            left = np.abs(errors).max(axis=-1)[0, layers]
            right = (np.abs(scale).max() * powers)[layers]
            # Both sides are zero if the discount is zero.
            ratio = left / np.where(right == 0, 1, right)
            sides = {"exact": left, "bound": right, "ratio": ratio}
            columns = {name: side.astype(np.float64) for name, side in sides.items()} | {"difference": unknown}
            tables.append(long_table({"layer": layers}, columns, quantity=quantity, **names))
    return tables


def update_tables(task: Tasks, discount: float, depth: int, names: dict) -> list[dict[str, list]]:
    """Norms of the exact expected updates of one task at theta_L^TD, a table with one row for J and one for J'."""
    sweep = sweep_gradients(evolve(theta_td(task.states), task, discount, depth))
    tables = []
    with enough_digits(discount, depth):
        Z = exact_theta_td(task, discount, depth)
        for algo, quantity in (("td", "theorem_2"), ("mc", "corollary_1")):
            exact = looped_updates(Z, Z.expected_errors(algo)[:, -1], depth).astype(np.float64)
            norm = np.abs(exact).sum()
            distance = np.abs(exact - sweep.updates[algo][0, -1]).sum()
            difference = distance / norm if norm else distance
            columns = {"exact": [norm], "bound": [np.nan], "ratio": [np.nan], "difference": [difference]}
            tables.append(long_table({"layer": [depth]}, columns, quantity=quantity, **names))
    return tables
