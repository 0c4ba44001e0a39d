"""In-context policy evaluation without a Transformer: batch TD and least-squares TD."""

import numpy as np

from ictd.prompts import Context


def batch_td(context: Context, discount: float, step_size: float | np.ndarray, depth: int) -> np.ndarray:
    """Value estimates of batch TD from w_0 = 0, (..., n), or (..., n, K) for K step sizes.

    An update, w_{l+1} = w_l + step_size (b + gamma D w_l - C w_l), is the one that a layer of theta^TD makes, eq. (tf
    sampled TD update) with the sum read as a mean.

    Parameters
    ----------
    context : Context of (..., n)
    discount : float, gamma
    step_size : float, or a (K,) array of them
    depth : int, number of updates L
    """
    step_sizes = np.atleast_1d(step_size)
    visits, rewards = context.visits[..., None], context.rewards[..., None]
    w = np.zeros((*context.rewards.shape, len(step_sizes)))
    for _ in range(depth):
        w = w + step_sizes * (rewards + discount * (context.successors @ w) - visits * w)
    return w if np.ndim(step_size) else w[..., 0]


def lstd(context: Context, discount: float, ridge: float) -> np.ndarray:
    """Least-squares TD (Bradtke and Barto, Machine Learning 22, 1996): (m C - gamma m D + ridge I)^{-1} m b.

    These are (..., n) value estimates; ValueError if the ridge is not positive.

    Parameters
    ----------
    context : Context of (..., n)
    discount : float, gamma
    ridge : float, positive, added to the diagonal of the matrix summed over the context
    """
    if not ridge > 0:
        raise ValueError(f"ridge is {ridge}; states that a context lacks need a positive one.")
    identity = np.eye(context.visits.shape[-1])
    matrix = identity * (context.visits + ridge / context.length)[..., None] - discount * context.successors
    return np.linalg.solve(matrix, context.rewards[..., None])[..., 0]
