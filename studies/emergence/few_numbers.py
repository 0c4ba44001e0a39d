"""Weights that depend on a few numbers, and their shares of other weights.

With u = 0, these directions treat all states equally:

    alpha, beta:  G = I, 11'              in A = [G; 0] [-I, I],
    a, b:         N = [I; 0], [11'; 0]    in A = N [I, I],
    H, c:         the lower half of A, H = I in [0; H] [-I, I] and N = [0; I] in N [I, I].

alpha alone is theta^TD times a step size.  With alpha and beta a layer is an update of the form of *deflated TD*,

    w <- w + (alpha I + beta 11') (mean TD error of each state).

Constants are the slow mode of TD: P 1 = 1, so TD shrinks a constant error by the factor 1 - alpha (1 - gamma) per
update.  The term beta 11' takes larger steps only along constants.  Numerical linear algebra calls this deflation.

All A = B_1 (x) I + B_2 (x) 11' with B_1, B_2 (2, 2) have eight numbers.  11' in the lower half of A changes outputs in
the same way as 11' in the upper half: a' x = 0 for a = [-gamma 1; 1] and every column x of a context
(``ictd.weight_measures``).  So the set of eight numbers has six directions.  Shares are those of
``shortest_identifiable`` matrices, so they are the same for all weights with the same outputs.
"""

import numpy as np

from ictd.transformer import Weights
from ictd.weight_measures import project_identifiable, shortest_identifiable, squared_norm

# The directions of each set of numbers, by the count of its numbers.
SETS = {
    1: ("alpha",),
    2: ("alpha", "beta"),
    4: ("alpha", "beta", "a", "b"),
    8: ("alpha", "beta", "a", "b", "H", "c"),
}


def basis(count: int, states: int) -> np.ndarray:
    """The directions (K, 2n, 2n) of A of the set with ``count`` numbers."""
    identity, ones = np.eye(states), np.ones((states, states))
    blocks = {
        "alpha": ([[-1, 1], [0, 0]], identity),
        "beta": ([[-1, 1], [0, 0]], ones),
        "a": ([[1, 1], [0, 0]], identity),
        "b": ([[1, 1], [0, 0]], ones),
        "H": ([[0, 0], [-1, 1]], identity),
        "c": ([[0, 0], [1, 1]], identity),
    }
    return np.stack([np.kron(*blocks[name]) for name in SETS[count]])


def without_u(A: np.ndarray) -> Weights:
    """Weights with these A (..., 2n, 2n) and u = 0."""
    return Weights(np.zeros(A.shape[:-1]), A)


def identifiable(A: np.ndarray, discount: float) -> np.ndarray:
    """The representative of A (..., 2n, 2n) whose lower half has columns that sum to zero, as in claim "pattern"."""
    return project_identifiable(without_u(A), discount).A


def nearest_numbers(A: np.ndarray, bases: np.ndarray, discount: float) -> np.ndarray:
    """Numbers (..., K) of the combination of bases (K, 2n, 2n) that is nearest to A (..., 2n, 2n)."""
    columns = shortest_identifiable(bases, discount).reshape(len(bases), -1).T
    flat = shortest_identifiable(A, discount).reshape(*A.shape[:-2], -1)
    return flat @ np.linalg.pinv(columns).T


def nearest(A: np.ndarray, bases: np.ndarray, discount: float) -> np.ndarray:
    """The combination (..., 2n, 2n) of bases that is nearest to A."""
    return np.tensordot(nearest_numbers(A, bases, discount), shortest_identifiable(bases, discount), axes=1)


def share(A: np.ndarray, bases: np.ndarray, discount: float) -> np.ndarray:
    """Share (...) of the nearest combination of bases in the squared norm of A."""
    return squared_norm(nearest(A, bases, discount)) / squared_norm(shortest_identifiable(A, discount))
