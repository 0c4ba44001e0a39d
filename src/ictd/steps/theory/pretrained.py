"""Compute J or J' at pretrained weights, and on the line from them to theta^TD.  The paper has no proofs for these."""

from pathlib import Path

import numpy as np

from ictd.mrp import Tasks
from ictd.pipeline.grid import Cell, log_spaced_integers
from ictd.storage import load_arrays, long_table, save_table
from ictd.theory.recursion import evolve, theory_tasks
from ictd.theory.updates import GROUPS, layer_updates, looped_updates, norm_of_mean
from ictd.transformer import Weights, theta_td
from ictd.weight_measures import pattern_measures

# Positions on the line from the pretrained weights, 0, to theta^TD with their step size, 1.
POSITIONS = (0.0, 0.25, 0.5, 1.0)
# Number of log-spaced depths to which pretrained layers are repeated.  J changes by orders of magnitude there, so a few
# tasks are enough.
DEPTHS = 6
FEW_TASKS = 3 * GROUPS


def main(
    pretrained_tasks: int,
    update_depth: int,
    discount: float,
    scaled_attention: bool,
    env_options: dict,
    weights: list[Path],
    line: Path,
    repeated: Path,
) -> None:
    """Write J for multi-task TD, or J' for multi-task MC, in Theta^looped and in Theta, for all cells.

    The files of ``weights`` are named after the cells.  ``line`` has the norms on the line to theta^TD, and
    ``repeated`` has the norms with pretrained layers repeated to other depths.  Norms of runs that diverged are NaN.
    """
    line_tables, repeated_tables = [], []
    for file in weights:
        cell = Cell.parse(file.stem)
        sampled = theory_tasks(cell.env, cell.states, pretrained_tasks, env_options)
        scale = 1 / cell.states if scaled_attention else 1.0
        runs = load_arrays(file, "seeds", "u", "A")
        of_line, of_repeated = norm_tables(runs, sampled, discount, scale, update_depth, cell)
        line_tables += of_line
        repeated_tables += of_repeated
    save_table(line, *line_tables)
    save_table(repeated, *repeated_tables)


def norm_tables(
    runs: tuple[np.ndarray, ...], sampled: Tasks, discount: float, scale: float, update_depth: int, cell: Cell
) -> tuple[list[dict], list[dict]]:
    """Compute the norms on the line to theta^TD, and with pretrained layers repeated, of the runs of one cell.

    Parameters
    ----------
    runs : seeds (S,), u (S, 2n) and A (S, 2n, 2n)
    sampled : Tasks
    discount : float, gamma
    scale : float
        The factor of A: 1/n where attention is divided by n, else 1.
    update_depth : int, largest depth to which pretrained layers are repeated
    cell : Cell

    Returns
    -------
    line_tables, repeated_tables : lists of tables, for each run and position, and for each run and depth
    """
    algo, depth, names = cell.algo, cell.depth, cell._asdict()
    pattern = theta_td(cell.states).A
    few = sampled[:FEW_TASKS]
    # They include the depth of training.
    depths = np.unique([depth, *log_spaced_integers(update_depth, DEPTHS)])
    seeds, u, A = runs
    # The coefficient of theta^TD in A itself, even if attention is scaled.
    coefficients = pattern_measures(Weights(u, A))["alpha"] * cell.states

    line_tables, repeated_tables = [], []
    with np.errstate(over="ignore", invalid="ignore"):
        Z = evolve(theta_td(cell.states), sampled, discount, depth)
        dA = looped_updates(Z, Z.expected_errors(algo)[:, -1], depth)
        dA[2 * cell.states :] *= scale
        at_theta_td = np.abs(dA).sum()
        for seed, u_seed, A_seed, coefficient in zip(seeds.tolist(), u, A, coefficients, strict=True):
            for position in POSITIONS:
                u_here = (1 - position) * u_seed
                A_here = (1 - position) * A_seed + position * coefficient * pattern
                Z = evolve(Weights(u_here, scale * A_here), sampled, discount, depth)
                updates = layer_updates(Z, Z.expected_errors(algo)[:, -1], depth, scale)
                columns = norms_of(updates) | {"theta_td": [at_theta_td]}
                line_tables.append(long_table({"position": [position]}, columns, **names, seed=seed))
            Z = evolve(Weights(u_seed, scale * A_seed), few, discount, depths[-1])
            errors = Z.expected_errors(algo)
            for layers in depths.tolist():
                updates = layer_updates(Z, errors[:, layers], layers, scale, groups=1)
                repeated_tables.append(long_table({"layer": [layers]}, norms_of(updates), **names, seed=seed))
    return line_tables, repeated_tables


def norms_of(updates: np.ndarray) -> dict[str, list]:
    """Norms in Theta^looped and in Theta of the mean over groups of updates of ``layer_updates``."""
    spaces = {"looped": updates.sum(axis=1), "separate": updates.reshape(len(updates), -1)}
    return {f"{space}_norm": [norm_of_mean(of_space)] for space, of_space in spaces.items()}
