"""Weights with few numbers: A = B x I, with a 2 x 2 matrix B, for features without a preferred direction.

If the distribution of the features does not change under rotations R of R^d, neither does the expected loss when A is
replaced by (I x R) A (I x R)' and u by u (I x R)'.  From A = 0 and u = 0 the expected gradient then stays among the
weights that no rotation changes: u = 0, and A with four blocks that are multiples of I.  A stationary point of the loss
among these weights is a stationary point among all weights.

With B = [-alpha, alpha; -alpha eta, alpha eta] a layer makes the update

    w <- w + alpha (1/m) sum_t delta_t (phi_t + eta gamma phi_{t+1}),

where an enumerated prompt has gamma sum_s' p(s' | s) phi(s') for gamma phi_{t+1}.  TD has eta = 0, and the residual
gradient algorithm (Baird, ICML 1995) has eta = -1.
"""

from collections.abc import Sequence

import numpy as np

from ictd.transformer import Weights
from studies.features.tasks import HeldOut

# Directions of B in each family of weights; the first number is alpha, and the second alpha eta.
STEP, SECOND = np.array([[-1.0, 1.0], [0.0, 0.0]]), np.array([[0.0, 0.0], [-1.0, 1.0]])
FAMILIES = {
    "theta_td": STEP[None],
    "residual_gradient": (STEP - SECOND)[None],
    "two_numbers": np.stack([STEP, SECOND]),
    "four_numbers": np.stack([STEP, SECOND, np.abs(STEP), np.abs(SECOND)]),
}
# The descent: its first damping, the factors of the damping, the number of steps, and the relative change that ends it.
DAMPING, LOWER, HIGHER, LARGEST_DAMPING, MOST_STEPS, TOLERANCE = 1e-3, 0.3, 10.0, 1e8, 60, 1e-7
# The search for the fixed point of TD: the number of steps, the share of a step that is taken because whole steps
# oscillate, the longest step, and the relative step that ends it.
FIXED_POINT_STEPS, SHARE, LONGEST, FIXED_POINT_TOLERANCE = 200, 0.3, 0.2, 1e-5


def weights_of(B: np.ndarray, dimension: int) -> Weights:
    """Weights with u = 0 and A = B x I (2d, 2d), for B (2, 2)."""
    return Weights(np.zeros(2 * dimension), np.kron(B, np.eye(dimension)))


def block_numbers(A: np.ndarray) -> np.ndarray:
    """B (..., 2, 2) of the matrix B x I nearest to A (..., 2d, 2d)."""
    d = A.shape[-1] // 2
    return A.reshape(*A.shape[:-2], 2, d, 2, d).trace(axis1=-3, axis2=-1) / d


def values_and_derivatives(
    numbers: np.ndarray, directions: np.ndarray, G: np.ndarray, queries: np.ndarray, depth: int
) -> tuple[np.ndarray, np.ndarray]:
    """TF_L at the query states for B = sum_k numbers_k directions_k, and its derivatives by the numbers.

    Parameters
    ----------
    numbers : (K,) array
    directions : (K, 2, 2) array, or (K, 3, 3) for prompts with three blocks of features
    G : (N, 2d+1, 2d+1) array, or (N, 3d+1, 3d+1), of N contexts
    queries : (N, n, d) array, features of the query states
    depth : int, L

    Returns
    -------
    values : (N, n) array
    derivatives : (K, N, n) array
    """
    d, M, c = queries.shape[-1], G[..., :-1, :-1], G[..., -1, :-1]
    B = np.tensordot(numbers, directions, axes=1)
    A, dA = np.kron(B, np.eye(d)), np.kron(directions, np.eye(d))
    AM, dAM = A @ M, dA[:, None] @ M
    k, dk = c, np.zeros((len(directions), *c.shape))
    total, dtotal = np.zeros_like(k), np.zeros_like(dk)
    for _ in range(depth):
        total, dtotal = total + k, dtotal + dk
        k, dk = k + np.vecmat(k, AM), dk + np.vecmat(dk, AM) + np.vecmat(k, dAM)
    w = -np.vecmat(total, A[:, :d])
    dw = -np.vecmat(dtotal, A[:, :d]) - np.vecmat(total, dA[:, None, :, :d])
    return np.matvec(queries, w), np.matvec(queries, dw)


def least_squares(
    start: np.ndarray, directions: np.ndarray, data: HeldOut, G: np.ndarray, depth: int
) -> tuple[np.ndarray, float]:
    """Minimise the mean MSVE over the numbers by Levenberg and Marquardt's method.

    Parameters
    ----------
    start : (K,) array
    directions : (K, 2, 2) array
    data : HeldOut, N tasks
    G : matrices of their contexts
    depth : int, L

    Returns
    -------
    numbers : (K,) array
    msve : float
    """
    numbers, damping = np.asarray(start, dtype=float), DAMPING
    mu = data.tasks.stationary

    def measured(numbers):
        with np.errstate(over="ignore", invalid="ignore"):
            values, derivatives = values_and_derivatives(numbers, directions, G, data.tasks.features, depth)
            error = data.value - values
            return (mu * error**2).sum(axis=-1).mean(), error, derivatives

    loss, error, derivatives = measured(numbers)
    for _ in range(MOST_STEPS):
        hessian, slope = normal_equations(derivatives, mu, error)
        step = np.linalg.solve(hessian + damping * np.diag(np.diag(hessian)), slope)
        new_loss, new_error, new_derivatives = measured(numbers + step)
        if new_loss < loss:
            small = loss - new_loss < TOLERANCE * loss
            numbers, loss, error, derivatives = numbers + step, new_loss, new_error, new_derivatives
            damping *= LOWER
            if small:
                break
        else:
            damping *= HIGHER
            if damping > LARGEST_DAMPING:
                break
    return numbers, float(loss)


def best_of_starts(
    starts: Sequence[np.ndarray], directions: np.ndarray, data: HeldOut, G: np.ndarray, depth: int
) -> np.ndarray:
    """Minimise the mean MSVE by ``least_squares`` from each start (K,), and return the numbers (K,) of the best end."""
    ends = [least_squares(start, directions, data, G, depth) for start in starts]
    numbers, _ = min(ends, key=lambda end: end[1])
    return numbers


def normal_equations(derivatives: np.ndarray, mu: np.ndarray, error: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Matrix (K, K) and right side (K,) of a Gauss-Newton step, from derivatives (K, N, n) and errors (N, n)."""
    weighted = mu * derivatives
    hessian = np.tensordot(weighted, derivatives, axes=((1, 2), (1, 2)))
    return hessian / len(error), (weighted * error).sum(axis=(1, 2)) / len(error)


def fixed_point(start: np.ndarray, directions: np.ndarray, data: HeldOut, G: np.ndarray, depth: int) -> np.ndarray:
    """Numbers at which the expected update of multi-task TD is zero: sum of mu delta dTF_L over states and tasks.

    The update is a semi-gradient, so this is not a minimum.  A step solves the normal equations of Gauss and Newton
    with TD errors in place of errors.

    Returns
    -------
    numbers : (K,) array, NaN if the steps do not converge
    """
    numbers, mu = np.asarray(start, dtype=float), data.tasks.stationary
    for _ in range(FIXED_POINT_STEPS):
        values, derivatives = values_and_derivatives(numbers, directions, G, data.tasks.features, depth)
        delta = data.tasks.reward + data.discount * np.matvec(data.tasks.transition, values) - values
        hessian, slope = normal_equations(derivatives, mu, delta)
        if not np.isfinite(slope).all():
            break
        step = np.linalg.solve(hessian + DAMPING * np.diag(np.diag(hessian)), slope)
        # Long steps leave the region in which all iterations of a layer are stable.
        numbers = numbers + step * min(SHARE, LONGEST * np.abs(numbers).max() / np.abs(step).max())
        if np.abs(step).max() < FIXED_POINT_TOLERANCE * np.abs(numbers).max():
            return numbers
    return np.full_like(numbers, np.nan)
