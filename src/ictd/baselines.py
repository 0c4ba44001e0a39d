"""Policy evaluation from a context without a Transformer: batch TD, LSTD and certainty equivalence.

With the averages C, D and b of a context (``ictd.prompt.Context``), batch TD iterates

    w_{l+1} = w_l + alpha (b + gamma D w_l - C w_l),

and LSTD solves (C - gamma D) w = b.
"""

import numpy as np

from ictd.checks import DISCOUNT, POSITIVE, array, either, instance, integer, number, validate
from ictd.prompt import Context


@validate(context=instance(Context), discount=DISCOUNT, step_size=either(number(), array("K")), depth=integer(1))
def batch_td(
    context: Context, discount: float, step_size: float | np.ndarray, depth: int, start: np.ndarray | None = None
) -> np.ndarray:
    """Estimate values by batch TD.

    An update is the one that a layer of theta^TD makes, eq. (tf sampled TD update) with the sum read as a mean.

    Parameters
    ----------
    context : Context of (..., n)
    discount : float, gamma
    step_size : float, alpha, or a (K,) array of them
    depth : int, number of updates L
    start : array of the shape of the estimates, w_0; zero by default

    Returns
    -------
    estimates : (..., n) array, or (..., n, K) for K step sizes

    Raises
    ------
    ValueError
        If the discount or the depth is out of range, or a step size is not finite.
    """
    step_sizes = np.atleast_1d(step_size)
    b = context.b[..., None]
    w = np.zeros((*context.b.shape, len(step_sizes)))
    if start is not None:
        w += np.reshape(start, w.shape)
    # Without new arrays in each update, which take longer than the sums.
    change, decay = np.empty_like(w), np.empty_like(w)
    for _ in range(depth):
        np.matmul(context.D, w, out=change)
        change *= discount
        change += b
        change -= np.matmul(context.C, w, out=decay)
        change *= step_sizes
        w += change
    return w if np.ndim(step_size) else w[..., 0]


@validate(context=instance(Context), discount=DISCOUNT, ridge=POSITIVE)
def lstd(context: Context, discount: float, ridge: float) -> np.ndarray:
    """Estimate values by least-squares TD, (m C - gamma m D + ridge I)^{-1} m b.

    Source: Bradtke and Barto, Machine Learning 22, 1996.

    Parameters
    ----------
    context : Context of (..., n), of m steps
    discount : float, gamma
    ridge : float, positive, because a context may lack states

    Returns
    -------
    estimates : (..., n) array

    Raises
    ------
    ValueError
        If the discount is out of range, or the ridge is not positive.
    """
    identity = np.eye(context.dimension)
    ridge_share = ridge / np.asarray(context.length)[..., None, None]
    matrix = context.C + ridge_share * identity - discount * context.D
    return np.linalg.solve(matrix, context.b[..., None])[..., 0]


def certainty_equivalence(
    context: Context, discount: float, pseudo_counts: np.ndarray | None = None, reward: float = 0.0
) -> np.ndarray:
    """Compute the values of the maximum likelihood model of a context, with pseudo-counts of transitions.

    With positive pseudo-counts this is LSTD with these steps added to the context, each with the mean reward that the
    context shows in its state.

    Parameters
    ----------
    context : Context of (..., n)
    discount : float, gamma
    pseudo_counts : (n, n) array, from state to state, optional
    reward : float
        Reward of states that no step starts from.  Without pseudo-counts from them it is also their value.

    Returns
    -------
    estimates : (..., n) array
    """
    p, r, _ = context.empirical_model(pseudo_counts)
    r = np.where(context.visits > 0, r, reward)
    return np.linalg.solve(np.eye(context.dimension) - discount * p, r[..., None])[..., 0]
