"""Weights that depend on a few numbers: projections of other weights on them, and the best of these weights.

With u = 0, these directions treat all states equally:

    alpha, beta:  G = I, 11'    in A = [G; 0] [-I, I],
    H:            H = I         in A = [0; H] [-I, I],
    a, b:         N = [I; 0], [11'; 0]           in A = N [I, I].

alpha alone is theta^TD times a step size.  With alpha and beta a layer is an update of *deflated TD*,

    w <- w + (alpha I + beta 11') (mean TD error of each state).

Constants are the slow mode of TD: P 1 = 1, so TD shrinks a constant error by the factor 1 - alpha (1 - gamma) per
update.  The term beta 11' takes larger steps only along constants.  Numerical linear algebra calls this deflation.

We do not use H = 11', because it changes outputs in the same way as G = gamma 11': a' x = 0 for a = [-gamma 1; 1] and
every column x of a context (``ictd.weight_measures``).  Numbers and shares are those of ``shortest_identifiable``
matrices, so they are the same for all weights with the same outputs.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ictd.kernels import size
from ictd.transformer import Weights, estimates, preconditioned_td
from ictd.weight_measures import preconditioner, shortest_identifiable, squared_norm
from studies.emergence.numbers_engine import repeat_updates

# The directions of each set of numbers, by the count of its numbers.
SETS = {
    1: ("alpha",),
    2: ("alpha", "beta"),
    3: ("alpha", "beta", "H"),
    4: ("alpha", "beta", "a", "b"),
}
# The sets whose directions are in the family A = K [-I, I].
IN_FAMILY = (1, 2, 3)
# Number of steps of ``least_squares``, first damping, and relative decrease of the error in a step at which it ends.
STEPS, DAMPING, DECREASE = 100, 1e-3, 1e-6
# Damping at which ``least_squares`` gives up.
LARGEST_DAMPING = 1e12


class BestNumbers(NamedTuple):
    """Numbers (K,) and their mean MSVE, which is infinite if it is not finite at the start of the search."""

    numbers: np.ndarray
    msve: float


def directions(states: int) -> dict[str, np.ndarray]:
    """The directions (2n, 2n) of A by their names."""
    identity, ones, none = np.eye(states), np.ones((states, states)), np.zeros((states, states))
    difference, total = np.array([[-1, 1]]), np.array([[1, 1]])
    return {
        "alpha": np.kron(difference, np.vstack([identity, none])),
        "beta": np.kron(difference, np.vstack([ones, none])),
        "H": np.kron(difference, np.vstack([none, identity])),
        "a": np.kron(total, np.vstack([identity, none])),
        "b": np.kron(total, np.vstack([ones, none])),
    }


def basis(count: int, states: int) -> np.ndarray:
    """The directions (K, 2n, 2n) of the set with ``count`` numbers."""
    named = directions(states)
    return np.stack([named[name] for name in SETS[count]])


def weights_at(numbers: np.ndarray, bases: np.ndarray) -> Weights:
    """Weights with u = 0 and A = sum_k theta_k B_k, for numbers theta (..., K) and bases B (K, 2n, 2n)."""
    A = np.tensordot(numbers, bases, axes=1)
    return Weights(np.zeros(A.shape[:-1]), A)


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


def number_measures(weights: Weights, discount: float, scaled: bool) -> dict[str, np.ndarray]:
    """The two numbers of weights (...), and their share of the family part.

    Returns
    -------
    dict of (...) arrays
        identity, ones : alpha and beta, divided by n if attention is divided by the context length
        two : share of alpha I + beta 11' in G in the squared norm of the family part
    """
    n = weights.dimension
    bases = basis(2, n)
    family = preconditioned_td(preconditioner(weights.A))
    numbers = nearest_numbers(family, bases, discount) / (n if scaled else 1)
    return {"identity": numbers[..., 0], "ones": numbers[..., 1], "two": share(family, bases, discount)}


def rank_one_part(G: np.ndarray, iterations: int = 200) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Fit alpha I and a matrix of rank one to G (n, n): alpha, and the left and right singular vectors of G - alpha I.

    The algorithm alternates between the best alpha for a given matrix of rank one, and the best matrix of rank one for
    a given alpha.  Both steps lower the sum of squares of the residual.

    Returns
    -------
    alpha : float
    left, right : (n, n) arrays, singular vectors of G - alpha I in their columns, the leading first
    """
    n = len(G)
    alpha = np.trace(G) / n
    for _ in range(iterations):
        left, size, right = np.linalg.svd(G - alpha * np.eye(n))
        alpha = np.trace(G - size[0] * np.outer(left[:, 0], right[0])) / n
    return alpha, left, right.T


def update_matrices(bases: np.ndarray, G: np.ndarray) -> np.ndarray:
    """Make the matrices U_k of the updates of ``numbers_engine.repeat_updates``, of A = sum_k theta_k B_k with u = 0.

    TF_L is the sum of w_l = -k_l A[:, :n] over layers l, with k_0 = c and k_{l+1} = k_l + k_l A M
    (``ictd.transformer.estimates``).  Let y_l = -(k_0 + ... + k_{l-1}) A, so that TF_L is the first half of y_L.  Then
    k_l = c - y_l M, and

        y_{l+1} = y_l + sum_k theta_k (y_l M B_k - c B_k).

    If all directions are in the family B_k = K_k [-I, I], then y_l = w_l [I, -I] for a w_l (n,), with updates

        w_{l+1} = w_l + sum_k theta_k (w_l [-I, I] M K_k + c K_k).

    Parameters
    ----------
    bases : (K, 2n, 2n) array
    G : (T, 2n+1, 2n+1) array, ``Context.gram_matrix`` of T contexts

    Returns
    -------
    matrices : (T, K, p+1, p) array
        Their last rows have the terms without y_l or w_l; p is n in the family, else 2n.
    """
    n = bases.shape[-1] // 2
    M, c = G[:, None, :-1, :-1], G[:, None, -1, :-1]
    left, right = bases[..., :n], bases[..., n:]
    if (left == -right).all():
        linear, constant = (M[..., n:, :] - M[..., :n, :]) @ right, np.vecmat(c, right)
    else:
        linear, constant = M @ bases, -np.vecmat(c, bases)
    return np.concatenate([linear, constant[..., None, :]], axis=-2)


def estimates_and_jacobian(
    numbers: np.ndarray, matrices: np.ndarray, states: int, depth: int
) -> tuple[np.ndarray, np.ndarray]:
    """TF_L (T, n) and its derivatives (K, T, n) for the numbers (K,), from the ``update_matrices`` of T contexts."""
    contexts, count, _, width = matrices.shape
    y = np.empty((1 + count, contexts, width))
    repeat_updates(size(width + 1), size(width), numbers, matrices, depth, y)
    return y[0, :, :states], y[1:, :, :states]


def mean_msve(
    numbers: np.ndarray,
    bases: np.ndarray,
    grams: Sequence[np.ndarray],
    value: np.ndarray,
    weight: np.ndarray,
    depth: int,
) -> float:
    """Mean MSVE over tasks and sets of contexts, with the arguments of ``least_squares``; infinite if not finite."""
    with np.errstate(over="ignore", invalid="ignore"):
        weights = weights_at(numbers, bases)
        estimate = np.stack([estimates(weights, gram, depth) for gram in grams])
        msve = (weight * (estimate - value) ** 2).sum(axis=-1).mean()
    return float(msve) if np.isfinite(msve) else np.inf


def least_squares(
    start: np.ndarray, bases: np.ndarray, grams: Sequence[np.ndarray], value: np.ndarray, weight: np.ndarray, depth: int
) -> BestNumbers:
    """Minimise the mean MSVE over tasks and sets of contexts by the method of Levenberg and Marquardt.

    Parameters
    ----------
    start : (K,) array, numbers at which the descent starts
    bases : (K, 2n, 2n) array
    grams : sequence of S matrices G (T, 2n+1, 2n+1) of T contexts, one context for each task
    value, weight : (T, n) arrays, v and mu of the tasks
    depth : int, L

    Returns
    -------
    BestNumbers
    """
    root = np.sqrt(weight / (len(grams) * len(weight)))
    matrices = np.concatenate([update_matrices(bases, gram) for gram in grams])

    def linearised(numbers):
        with np.errstate(over="ignore", invalid="ignore"):
            estimate, jacobian = estimates_and_jacobian(numbers, matrices, value.shape[-1], depth)
            error = (root * (estimate.reshape(-1, *value.shape) - value)).ravel()
            jacobian = root * jacobian.reshape(len(numbers), -1, *value.shape)
            return error, jacobian.reshape(len(numbers), -1), error @ error

    numbers, damping = start, DAMPING
    error, jacobian, msve = linearised(numbers)
    if not np.isfinite(msve):
        return BestNumbers(numbers, np.inf)
    for _ in range(STEPS):
        gradient, curvature = jacobian @ error, jacobian @ jacobian.T
        scale = np.diag(curvature) + np.finfo(float).tiny
        while damping < LARGEST_DAMPING:
            trial = numbers - np.linalg.solve(curvature + damping * np.diag(scale), gradient)
            trial_error, trial_jacobian, trial_msve = linearised(trial)
            if trial_msve < msve:
                break
            damping *= 4
        else:
            break
        small = msve - trial_msve < DECREASE * msve
        numbers, error, jacobian, msve = trial, trial_error, trial_jacobian, trial_msve
        damping /= 3
        if small:
            break
    return BestNumbers(numbers, float(msve))
