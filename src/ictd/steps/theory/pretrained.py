"""Compute J or J' where the paper proves nothing: at pretrained weights, and on the line from them to theta^TD."""

from pathlib import Path

import numpy as np

from ictd.anatomy import pattern_measures
from ictd.mrp import Tasks, sample_tasks
from ictd.rng import generator
from ictd.statistics import log_spaced_integers
from ictd.storage import load_arrays, long_table, save_table
from ictd.theory.recursion import evolve
from ictd.theory.updates import GROUPS, estimate_norm, layer_updates, norm_of_mean
from ictd.transformer import Weights, theta_td

# Positions on the line from the pretrained weights, 0, to theta^TD with their step size, 1.
POSITIONS = (0.0, 0.25, 0.5, 1.0)
# Number of log-spaced depths to which pretrained layers are repeated.  J changes by orders of magnitude there, so a few
# tasks are enough.
DEPTHS = 6
FEW_TASKS = 3 * GROUPS


def main(
    algos: list[str],
    env: str,
    states: int,
    depth: int,
    pretrained_tasks: int,
    update_depth: int,
    discount: float,
    scaled_attention: bool,
    env_options: dict,
    weights: list[Path],
    line: list[Path],
    repeated: list[Path],
) -> None:
    """Write J for multi-task TD, or J' for multi-task MC, in Theta^looped and in Theta, for the cells of one setting.

    ``weights``, ``line`` and ``repeated`` have a file for each algorithm, in the order of ``algos``.  ``line`` has the
    norms on the line to theta^TD, and ``repeated`` those with pretrained layers repeated to other depths.  Norms of
    runs that diverged are NaN.
    """
    sampled = sample_tasks(env, states, pretrained_tasks, generator(0, env, states, "theory"), **env_options)
    scale = 1 / states if scaled_attention else 1.0
    depths = repeated_depths(depth, update_depth)
    for algo, weights_file, line_file, repeated_file in zip(algos, weights, line, repeated, strict=True):
        cell = {"algo": algo, "env": env, "states": states, "depth": depth}
        runs = load_arrays(weights_file, "seeds", "u", "A")
        line_tables, repeated_tables = norm_tables(runs, sampled, discount, scale, depths, cell)
        save_table(line_file, *line_tables)
        save_table(repeated_file, *repeated_tables)


def norm_tables(
    runs: tuple[np.ndarray, ...], sampled: Tasks, discount: float, scale: float, depths: np.ndarray, cell: dict
) -> tuple[list[dict], list[dict]]:
    """Compute the norms on the line to theta^TD, and with pretrained layers repeated, of the runs of one cell.

    Parameters
    ----------
    runs : seeds (S,), u (S, 2n) and A (S, 2n, 2n)
    sampled : Tasks
    discount : float, gamma
    scale : float, the factor of A
    depths : (K,) int array, of ``repeated_depths``
    cell : dict of algo, env, states and depth

    Returns
    -------
    line_tables, repeated_tables : lists of tables, for each run and position, and for each run and depth
    """
    algo, states, depth = cell["algo"], cell["states"], cell["depth"]
    pattern = theta_td(states).A
    seeds, u, A = runs
    # Coefficient of theta^TD in A, whether attention is scaled or not.
    coefficients = pattern_measures(Weights(u, A))["alpha"] * states

    def group_updates(u: np.ndarray, A: np.ndarray, layers: int, tasks: Tasks) -> dict[str, np.ndarray]:
        return updates_by_space(algo, Weights(u, A), layers, tasks, discount, scale)

    line_tables, repeated_tables = [], []
    with np.errstate(over="ignore", invalid="ignore"):
        at_theta_td = group_updates(np.zeros(2 * states), pattern / scale, depth, sampled)["looped"]
        for seed, u_seed, A_seed, coefficient in zip(seeds.tolist(), u, A, coefficients, strict=True):
            for position in POSITIONS:
                u_here = (1 - position) * u_seed
                A_here = (1 - position) * A_seed + position * coefficient * pattern
                columns = {}
                for space, updates in group_updates(u_here, A_here, depth, sampled).items():
                    columns |= {f"{space}_{name}": [value] for name, value in vars(estimate_norm(updates)).items()}
                columns["theta_td"] = [norm_of_mean(at_theta_td)]
                line_tables.append(long_table({"position": [position]}, columns, **cell, seed=seed))
            for layers in depths.tolist():
                updates = group_updates(u_seed, A_seed, layers, sampled[:FEW_TASKS])
                norms = {f"{space}_norm": [norm_of_mean(update)] for space, update in updates.items()}
                repeated_tables.append(long_table({"layer": [layers]}, norms, **cell, seed=seed))
    return line_tables, repeated_tables


def repeated_depths(depth: int, update_depth: int) -> np.ndarray:
    """Depths (K,) to which ``depth`` pretrained layers are repeated, which include ``depth``."""
    return np.unique([depth, *log_spaced_integers(update_depth, DEPTHS)])


def updates_by_space(
    algo: str, weights: Weights, depth: int, tasks: Tasks, discount: float, scale: float
) -> dict[str, np.ndarray]:
    """Compute mean updates over groups of tasks.

    Parameters
    ----------
    algo : str, "td" or "mc"
    weights : Weights as they are trained
    depth : int, number of layers L
    tasks : Tasks
    discount : float, gamma
    scale : float
        The factor of A: 1/n where attention is divided by n, else 1.

    Returns
    -------
    dict of arrays
        looped : (GROUPS, 2n + 4n^2), updates in Theta^looped
        separate : (GROUPS, L (2n + 4n^2)), updates in Theta
    """
    Z = evolve(Weights(weights.u, scale * weights.A), tasks, discount, depth)
    updates = layer_updates(Z, Z.expected_errors(algo)[:, -1], depth, scale)
    return {"looped": updates.sum(axis=1), "separate": updates.reshape(GROUPS, -1)}
