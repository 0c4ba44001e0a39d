"""Check the limits of weights: v in the family, another limit with N [I, I] added, and v plus a shift with u."""

import itertools
from pathlib import Path

import numpy as np

from ictd.mrp import Tasks
from ictd.pipeline.grid import log_spaced_integers, parse_name
from ictd.rng import generator
from ictd.storage import long_table, save_table
from ictd.theory.family import MEMBERS, algorithm_weights, error_bound, largest_error, limit, random_weights
from ictd.theory.recursion import ALGOS, evolve, theory_tasks
from ictd.theory.updates import looped_updates

# Number of random weights, and of log-spaced depths for which their expected updates are computed.
DRAWS = 5
DEPTHS = 12
# Rounding error of ``error``, relative to the largest value.
ROUNDING = 1e-12


def main(
    settings: list[str],
    pretrained_tasks: int,
    update_depth: int,
    discount: float,
    env_options: dict,
    errors: Path,
    updates: Path,
) -> None:
    """Write the largest error of TF_l over tasks and query states with its bound, and J and J' at some depths.

    The settings are "env-states".  The error is the distance from v, or for weights with u, the distance from their
    limit.  Errors and bounds are relative to the largest value.  ``violations`` is the number of layers at which the
    error of random weights of the family exceeds the bound.  For weights of known algorithms there is one draw, and no
    bound and no updates.
    """
    error_tables, update_tables = [], []
    for setting in settings:
        env, states = parse_name(setting)
        tasks = theory_tasks(env, states, pretrained_tasks, env_options)
        of_errors, of_updates = family_tables(tasks, {"env": env, "states": states}, update_depth, discount)
        error_tables += of_errors
        update_tables += of_updates
    save_table(errors, *error_tables)
    save_table(updates, *update_tables)


def family_tables(tasks: Tasks, setting: dict, update_depth: int, discount: float) -> tuple[list[dict], list[dict]]:
    """Compute the tables of errors and of expected updates for one environment and number of states."""
    rng, u_rng = (generator(0, *setting.values(), purpose) for purpose in ("family", "family u"))
    draws = [random_weights(tasks, discount, rng, u_rng) for _ in range(DRAWS)]
    weights = {(member, i): draw[member] for member in MEMBERS for i, draw in enumerate(draws)}
    weights |= {(name, 0): known for name, known in algorithm_weights(tasks, discount).items()}
    layers = np.arange(update_depth + 1)
    of_errors, inside = [], []
    for (member, draw), used in weights.items():
        Z = evolve(used, tasks, discount, update_depth)
        scale = np.abs(Z.value).max()
        error = largest_error(Z, limit(used.u, tasks, discount))
        bound, violations = np.full(len(layers), np.nan), 0
        if member == "inside":
            inside.append(Z)
            bound = error_bound(tasks, discount, update_depth)
            violations = int((error > bound + ROUNDING * scale).sum())
        columns = {"error": error / scale, "bound": bound / scale, "violations": np.full(len(layers), violations)}
        of_errors.append(long_table({"layer": layers}, columns, member=member, **setting, draw=draw))
    depths = log_spaced_integers(update_depth, DEPTHS)
    of_updates = []
    for algo, (draw, Z) in itertools.product(ALGOS, enumerate(inside)):
        errors = Z.expected_errors(algo)
        norms = [np.abs(looped_updates(Z, errors[:, depth], depth)).sum() for depth in depths]
        of_updates.append(long_table({"layer": depths}, {"norm": np.array(norms)}, algo=algo, **setting, draw=draw))
    return of_errors, of_updates
