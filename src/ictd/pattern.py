"""What the pretrained weights look like beside theta^TD (section "Weight Convergence")."""

import numpy as np

from ictd.statistics import correlation
from ictd.weights import Weights, theta_td

BLOCKS = ("A11", "A12", "A21", "A22")
PATTERN = ("pattern", *(f"pattern_{block}" for block in BLOCKS))


def energy(matrices: np.ndarray) -> np.ndarray:
    """Sum of squares over the last two axes."""
    return (matrices**2).sum(axis=(-2, -1))


def cosine(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Cosine of the angle between matrices, the last two axes."""
    return (first * second).sum(axis=(-2, -1)) / np.sqrt(energy(first) * energy(second))


def theta_coefficient(A: np.ndarray) -> np.ndarray:
    """Coefficient (...) of theta^TD in A (..., 2n, 2n), by projection."""
    pattern = theta_td(A.shape[-1] // 2).A
    return (A * pattern).sum(axis=(-2, -1)) / (pattern**2).sum()


def remainder(A: np.ndarray) -> np.ndarray:
    """What is left of A (..., 2n, 2n) without its projection on theta^TD: what the paper calls noise."""
    return A - theta_coefficient(A)[..., None, None] * theta_td(A.shape[-1] // 2).A


def pattern_measures(weights: Weights) -> dict[str, np.ndarray]:
    """Measures of weights with any leading axes, each an array of these axes.

    Returns
    -------
    dict with
        cosine, cosine_top : cosine of A, and of its top half, to those of theta^TD
        cosine_A11, cosine_A12 : cosine of these blocks to -I and I
        alpha : step size, the coefficient of theta^TD in A over n, for attention divided by n
        diagonal_signs : share of the diagonal entries of A11 and A12 that have theta^TD's sign
        energy_A11, ..., energy_A22 : share of each block in the sum of squares of A
        largest_u : greatest absolute entry of u, whose row of P ends with 1
    """
    A, n = weights.A, weights.states
    pattern = theta_td(n).A
    halves = (slice(None, n), slice(n, None))
    blocks = dict(zip(BLOCKS, (A[..., rows, columns] for rows in halves for columns in halves), strict=True))
    diagonals = (np.diagonal(block, axis1=-2, axis2=-1) for block in (-blocks["A11"], blocks["A12"]))
    diagonal = np.concatenate([*diagonals], axis=-1)
    of_block = {name: energy(block) for name, block in blocks.items()}
    return {
        "cosine": cosine(A, pattern),
        "cosine_top": cosine(A[..., :n, :], pattern[:n]),
        "cosine_A11": cosine(blocks["A11"], -np.eye(n)),
        "cosine_A12": cosine(blocks["A12"], np.eye(n)),
        "alpha": diagonal.mean(axis=-1) / n,
        "diagonal_signs": np.where(np.isnan(diagonal), np.nan, diagonal > 0).mean(axis=-1),
        **{f"energy_{name}": value / sum(of_block.values()) for name, value in of_block.items()},
        "largest_u": np.abs(weights.u).max(axis=-1),
    }


def pattern_shares(A: np.ndarray) -> dict[str, np.ndarray]:
    """What decides whether A has the pattern of theta^TD, each an array of A's leading axes.

    Returns
    -------
    dict with
        pattern : squared cosine to theta^TD, zero if the cosine is negative
        pattern_A11, pattern_A12 : the same of these blocks to -I and I
        pattern_A21, pattern_A22 : sum of squares of these blocks over that of A11 and A12
    """
    of = pattern_measures(Weights(np.zeros(A.shape[:-1]), A))
    top = of["energy_A11"] + of["energy_A12"]
    return {
        "pattern": np.maximum(0, of["cosine"]) ** 2,
        "pattern_A11": np.maximum(0, of["cosine_A11"]) ** 2,
        "pattern_A12": np.maximum(0, of["cosine_A12"]) ** 2,
        "pattern_A21": of["energy_A21"] / top,
        "pattern_A22": of["energy_A22"] / top,
    }


def agreement_measures(td: np.ndarray, mc: np.ndarray) -> dict[str, np.ndarray]:
    """How alike A (..., 2n, 2n) of multi-task TD and of multi-task MC are, each an array of their leading axes.

    Returns
    -------
    dict with
        correlation : Pearson's, of their entries
        remainder_correlation : of what is left of them without theta^TD, "their noise patterns"
        distance : norm of their difference over the mean of their norms
    """
    pairs = {"correlation": (td, mc), "remainder_correlation": (remainder(td), remainder(mc))}
    flat = (*td.shape[:-2], -1)
    norm = lambda A: np.sqrt(energy(A))  # noqa: E731
    return {
        **{name: correlation(one.reshape(flat), other.reshape(flat)) for name, (one, other) in pairs.items()},
        "distance": 2 * norm(td - mc) / (norm(td) + norm(mc)),
    }
