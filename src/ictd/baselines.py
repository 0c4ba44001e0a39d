"""In-context policy evaluation without a Transformer: batch TD and least-squares TD."""

import numpy as np

from ictd.checks import DISCOUNT, POSITIVE, array, either, instance, integer, number, validate
from ictd.prompts import Context


@validate(context=instance(Context), discount=DISCOUNT, step_size=either(number(), array("K")), depth=integer(1))
def batch_td(context: Context, discount: float, step_size: float | np.ndarray, depth: int) -> np.ndarray:
    """Value estimates of batch TD from w_0 = 0, (..., n), or (..., n, K) for K step sizes.

    An update, w_{l+1} = w_l + step_size (b + gamma D w_l - C w_l), is the one that a layer of theta^TD makes, eq. (tf
    sampled TD update) with the sum read as a mean.  ValueError for a discount or a depth out of range, or a step size
    that is not finite.

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


@validate(context=instance(Context), discount=DISCOUNT, ridge=POSITIVE)
def lstd(context: Context, discount: float, ridge: float) -> np.ndarray:
    """Least-squares TD (Bradtke and Barto, Machine Learning 22, 1996): (m C - gamma m D + ridge I)^{-1} m b.

    These are (..., n) value estimates; ValueError if the ridge is not positive,
    as states that a context lacks need it.

    Parameters
    ----------
    context : Context of (..., n)
    discount : float, gamma
    ridge : float, positive, added to the diagonal of the matrix summed over the context
    """
    identity = np.eye(context.visits.shape[-1])
    diagonal = context.visits + ridge / np.asarray(context.length)[..., None]
    matrix = identity * diagonal[..., None] - discount * context.successors
    return np.linalg.solve(matrix, context.rewards[..., None])[..., 0]


def certainty_equivalence(
    context: Context, discount: float, pseudo_steps: np.ndarray | None = None, reward: float = 0.0
) -> np.ndarray:
    """Values (..., n) of the maximum likelihood model of a context (..., n) and of pseudo-steps.

    With as many pseudo-steps from each state as there are under some chain's stationary distribution it is LSTD with
    steps of that chain added to the context's.

    Parameters
    ----------
    context : Context of (..., n)
    discount : float, gamma
    pseudo_steps : (n, n) array, from state to state, optional
    reward : float
        Of states that were not left; without a step, or pseudo-step, of theirs it is their value.
    """
    steps = np.asarray(context.length)[..., None, None] * context.successors
    if pseudo_steps is not None:
        steps = steps + pseudo_steps
    count, left = steps.sum(axis=-1, keepdims=True), context.visits > 0
    p = steps / np.where(count > 0, count, 1.0)
    r = np.where(left, context.rewards / np.where(left, context.visits, 1.0), reward)
    return np.linalg.solve(np.eye(r.shape[-1]) - discount * p, r[..., None])[..., 0]
