"""Measure pretrained weights: the coefficients of G and H, what they leave, and deflation.

A = K [-I, I] + N [I, I] with K = [G; H].  Each d x d matrix is fitted by a multiple of I and one of 11', the matrices
that no permutation of the features changes.  The multiples of I in G and H are alpha and alpha eta.
"""

from pathlib import Path

import numpy as np

from ictd.storage import load_arrays, long_table, save_table
from ictd.weight_measures import preconditioner, squared_norm
from studies.features.symmetric import block_numbers
from studies.features.tasks import SHARED, held_out


def main(name: str, setting: dict, tasks: int, weights: Path, coefficients: Path, deflation: Path) -> None:
    """Write ``coefficients``, a row for each target, seed and snapshot, and ``deflation`` after all updates."""
    tasks_seen, u, A = load_arrays(weights, "tasks_seen", "u", "A")
    seeds = np.arange(setting["seeds"])
    axes = {"target": np.array(setting["targets"]), "seed": seeds, "tasks_seen": tasks_seen}
    save_table(coefficients, long_table(axes, measures(u, A), setting=name))
    last = A[:, :, -1]
    found = {"own": np.full(last.shape[:2], np.nan), "other": np.full(last.shape[:2], np.nan)}
    if setting["features"] in SHARED and setting["dimension"] > 1:
        inverses = np.array([inverse_mean_matrix(setting, tasks, seed) for seed in seeds])
        G = preconditioner(last)[..., : setting["dimension"], :]
        found = {"own": alignment(G, inverses), "other": alignment(G, np.roll(inverses, 1, axis=0))}
    save_table(deflation, long_table({name: axes[name] for name in ("target", "seed")}, found, setting=name))


def measures(u: np.ndarray, A: np.ndarray) -> dict[str, np.ndarray]:
    """Numbers that describe weights u (..., 2d) and A (..., 2d, 2d).

    Returns
    -------
    dict of (...) arrays
        alpha : multiple of I in G
        eta : multiple of I in H over that in G
        ones : multiple of 11' in G
        four, eight : share of the squared norm of A that the multiples of I in its blocks, and those of I and 11', hold
        outside : share outside of K [-I, I]
        u : norm of u over that of its row of P, which ends with 1
    """
    d = A.shape[-1] // 2
    K = preconditioner(A)
    G_I, G_ones = permutation_fit(K[..., :d, :])
    H_I, _ = permutation_fit(K[..., d:, :])
    whole = squared_norm(A)
    by_blocks = np.moveaxis(A.reshape(*A.shape[:-2], 2, d, 2, d), -2, -3)  # (..., 2, 2, d, d)
    I_part, ones_part = permutation_fit(by_blocks)
    fitted = I_part[..., None, None] * np.eye(d) + ones_part[..., None, None]
    row = (u**2).sum(axis=-1)
    return {
        "alpha": G_I,
        "eta": H_I / G_I,
        "ones": G_ones,
        "four": d * squared_norm(block_numbers(A)) / whole,
        "eight": (fitted**2).sum(axis=(-4, -3, -2, -1)) / whole,
        "outside": 1 - 2 * squared_norm(K) / whole,
        "u": np.sqrt(row / (1 + row)),
    }


def permutation_fit(matrices: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Multiples of I and of 11' (...) in the least-squares fit to matrices (..., d, d); with d = 1 there is only I."""
    d = matrices.shape[-1]
    trace, total = matrices.trace(axis1=-2, axis2=-1), matrices.sum(axis=(-2, -1))
    if d == 1:
        return trace, np.zeros_like(trace)
    ones = (total - trace) / (d * (d - 1))
    return trace / d - ones, ones


def inverse_mean_matrix(setting: dict, tasks: int, seed: int) -> np.ndarray:
    """Inverse (d, d) of the mean over tasks of TD's matrix sum_s w_s phi_s (phi_s - gamma sum_s' p(s' | s) phi_s')'.

    Its largest directions are those of errors that TD corrects slowest.  It is the best constant preconditioner G' of
    TD, as far as tasks are like their mean.
    """
    data = held_out(setting, tasks, seed, "mean matrix")
    matrix = (data.weight[..., None] * data.phi).mT @ (data.phi - data.discount * data.phi_next)
    return np.linalg.inv(matrix.mean(axis=0))


def alignment(G: np.ndarray, inverses: np.ndarray) -> np.ndarray:
    """Cosine (...) of G' to inverses (..., d, d), both without their multiple of I."""
    rest, target = (part - part.trace(axis1=-2, axis2=-1)[..., None, None] / part.shape[-1] * np.eye(part.shape[-1])
                    for part in (G.mT, inverses))  # fmt: skip
    return (rest * target).sum(axis=(-2, -1)) / np.sqrt(squared_norm(rest) * squared_norm(target))
