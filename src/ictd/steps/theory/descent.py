"""Check the statements on the gradients at theta^TD (Lemma 3), and how J and J' change with the depth.

J and J' are computed in Theta^looped ("looped"), as in Theorem 2 and Corollary 1, and in Theta, where each layer has
its own parameters ("separate").
"""

from pathlib import Path

import numpy as np

from ictd.mrp import Tasks
from ictd.pipeline.grid import log_spaced_integers
from ictd.storage import long_table, save_table, stacked
from ictd.theory.inequalities import (
    OF_GRADIENTS,
    corollary_1,
    sharper_corollary_1,
    sharper_theorem_2,
    summarise,
    theorem_2,
)
from ictd.theory.recursion import Embeddings, evolve, theory_tasks
from ictd.theory.updates import GROUPS, GradientSweep, estimate_norm, layer_updates, sweep_gradients
from ictd.transformer import theta_td

# Number of log-spaced depths for which the update in Theta is computed.
SEPARATE = 24
# Largest number of tasks times n^4 in one sweep, so that arrays have a few megabytes.
AT_ONCE = 700_000
# The paper's bound on J or J', and our sharper bound.
BOUNDS = {"td": (theorem_2, sharper_theorem_2), "mc": (corollary_1, sharper_corollary_1)}


def main(
    env: str,
    states: int,
    tasks: int,
    update_depth: int,
    discount: float,
    env_options: dict,
    statements: Path,
    neu: Path,
) -> None:
    """Write both sides of each statement, summarised over tasks, and J and J' at each depth with their bounds."""
    sampled = theory_tasks(env, states, tasks, env_options)
    setting = {"env": env, "states": states}
    sweeps = sweep_in_parts(sampled, discount, update_depth)
    save_table(statements, *statement_tables(sweeps, setting))
    Z = evolve(theta_td(states), sampled, discount, update_depth)
    save_table(neu, *neu_tables(Z, [sweep for _, sweep in sweeps], setting))


def sweep_in_parts(tasks: Tasks, discount: float, depth: int) -> list[tuple[Embeddings, GradientSweep]]:
    """Sweep through the gradients of several groups of tasks at once, as many as fit into memory."""
    group_size = len(tasks) // GROUPS
    possible = [number for number in range(1, GROUPS + 1) if GROUPS % number == 0]
    fitting = [number for number in possible if number * group_size * tasks.states**4 <= AT_ONCE]
    groups = max(fitting, default=1)
    sweeps = []
    for first in range(0, len(tasks), groups * group_size):
        part = tasks[first : first + groups * group_size]
        Z = evolve(theta_td(tasks.states), part, discount, depth)
        sweeps.append((Z, sweep_gradients(Z, groups)))
    return sweeps


def statement_tables(sweeps: list[tuple[Embeddings, GradientSweep]], setting: dict) -> list[dict[str, list]]:
    """Both sides of each statement on gradients, a table for each statement."""
    layers = {"layer": sweeps[0][1].layers}
    tables = []
    for statement in OF_GRADIENTS:
        summary = summarise([statement(Z, sweep) for Z, sweep in sweeps])
        tables.append(long_table(layers, summary, statement=statement.__name__, **setting))
    return tables


def neu_tables(Z: Embeddings, sweeps: list[GradientSweep], setting: dict) -> list[dict[str, list]]:
    """J and J' with their bounds, a table for Theta^looped and one for Theta."""
    tables = []
    for algo, (paper_bound, sharper_bound) in BOUNDS.items():
        bound, sharper = paper_bound(Z), sharper_bound(Z)
        looped = estimate_norm(np.concatenate([sweep.updates[algo] for sweep in sweeps]))
        errors = Z.theta_td_errors(algo)
        depths = log_spaced_integers(Z.depth, SEPARATE)
        separate = []
        for depth in depths:
            updates = layer_updates(Z, errors[:, depth], depth)
            separate.append(estimate_norm(updates.reshape(GROUPS, -1)))
        by_space = {
            "looped": (np.arange(Z.depth + 1), looped),
            "separate": (depths, stacked(separate, len(separate))),
        }
        for space, (layers, estimate) in by_space.items():
            columns = estimate | {"bound": bound[layers], "sharper": sharper[layers]}
            tables.append(long_table({"layer": layers}, columns, algo=algo, space=space, **setting))
    return tables
