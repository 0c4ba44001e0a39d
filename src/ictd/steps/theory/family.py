"""Check the limits of weights: v in the family, another limit with N [I, I] added, and v plus a shift with u."""

import itertools
from pathlib import Path

import numpy as np

from ictd.mrp import sample_tasks
from ictd.pipeline.grid import log_spaced_integers, parse_name
from ictd.rng import generator
from ictd.storage import long_table, save_table
from ictd.theory.family import ALGORITHMS, MEMBERS, algorithm_weights, error_bound, largest_error, limit, random_weights
from ictd.theory.recursion import ALGOS, evolve
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
        options = env_options[env]
        of_errors, of_updates = family_tables(env, states, pretrained_tasks, update_depth, discount, options)
        error_tables += of_errors
        update_tables += of_updates
    save_table(errors, *error_tables)
    save_table(updates, *update_tables)


def family_tables(
    env: str, states: int, tasks: int, update_depth: int, discount: float, options: dict
) -> tuple[list[dict], list[dict]]:
    """Compute the tables of errors and of expected updates for one environment and number of states."""
    sampled = sample_tasks(env, states, tasks, generator(0, env, states, "theory"), **options)
    rng = generator(0, env, states, "family")
    u_rng = generator(0, env, states, "family u")
    depths = update_depths(update_depth)
    bound = error_bound(sampled, discount, update_depth)
    layers = np.arange(update_depth + 1)
    error_tables = {member: [] for member in MEMBERS}
    update_tables = {algo: [] for algo in ALGOS}
    for draw in range(DRAWS):
        names = {"env": env, "states": states, "draw": draw}
        weights = random_weights(sampled, discount, rng, u_rng)
        Z = {member: evolve(weights[member], sampled, discount, update_depth) for member in MEMBERS}
        scale = np.abs(Z["inside"].value).max()
        for member in MEMBERS:
            error = largest_error(Z[member], limit(weights[member].u, sampled, discount))
            columns = {"error": error / scale, "bound": np.full(len(layers), np.nan)}
            violations = 0
            if member == "inside":
                columns["bound"] = bound / scale
                violations = int((error > bound + ROUNDING * scale).sum())
            columns["violations"] = np.full(len(layers), violations)
            error_tables[member].append(long_table({"layer": layers}, columns, member=member, **names))
        for algo in ALGOS:
            expected = Z["inside"].expected_errors(algo)
            looped = (looped_updates(Z["inside"], expected[:, depth], depth) for depth in depths)
            norms = {"norm": np.array([np.abs(update).sum() for update in looped])}
            update_tables[algo].append(long_table({"layer": depths}, norms, algo=algo, **names))
    error_tables |= {name: [] for name in ALGORITHMS}
    for name, weights in algorithm_weights(sampled, discount).items():
        Z = evolve(weights, sampled, discount, update_depth)
        error = largest_error(Z, Z.value) / np.abs(Z.value).max()
        columns = {"error": error, "bound": np.full(len(layers), np.nan), "violations": np.zeros(len(layers), int)}
        names = {"member": name, "env": env, "states": states, "draw": 0}
        error_tables[name].append(long_table({"layer": layers}, columns, **names))
    of_errors = list(itertools.chain.from_iterable(error_tables.values()))
    of_updates = [table for algo in ALGOS for table in update_tables[algo]]
    return of_errors, of_updates


def update_depths(depth: int) -> np.ndarray:
    """Depths (K,) up to ``depth`` for which expected updates are computed."""
    return log_spaced_integers(depth, DEPTHS)
