"""In-context value estimators without a Transformer: the yardsticks of the evaluation.

A context S_0, R_1, ..., S_m of one-hot states enters each of them only through its per-sample averages

    C = (1/m) sum_t phi_t phi_t',    D = (1/m) sum_t phi_t phi_{t+1}',    b = (1/m) sum_t R_{t+1} phi_t.
"""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Context:
    """Averages over contexts of m samples: ``length`` m, ``visits`` the diagonal of C (..., n), ``successors`` D
    (..., n, n), ``rewards`` b (..., n)."""

    length: int
    visits: np.ndarray
    successors: np.ndarray
    rewards: np.ndarray


def summarise(paths: np.ndarray, reward: np.ndarray) -> Context:
    """Averages over the contexts that trajectories give.

    Parameters
    ----------
    paths : (..., m+1) int array of states S_0, ..., S_m
    reward : (..., n) array, r(s)
    """
    features = np.eye(reward.shape[-1])[paths]
    now, following = features[..., :-1, :], features[..., 1:, :]
    length = now.shape[-2]
    visits = now.mean(axis=-2)
    successors = np.swapaxes(now, -1, -2) @ following / length
    return Context(length, visits, successors, visits * reward)


def enumerated(transition: np.ndarray, reward: np.ndarray) -> Context:
    """The averages that an enumerated prompt, eq. (Z0 redef), has in place of samples: each state once, and p for D.

    Parameters
    ----------
    transition : (..., n, n) array
    reward : (..., n) array
    """
    states = reward.shape[-1]
    return Context(states, np.full_like(reward, 1 / states), transition / states, reward / states)


def batch_td(context: Context, discount: float, step_size: float | np.ndarray, depth: int) -> np.ndarray:
    """Batch TD from w_0 = 0: w_{l+1} = w_l + step_size (b + gamma D w_l - C w_l), the update that a layer of theta^TD
    makes, eq. (tf sampled TD update) with the sum read as a mean.

    Parameters
    ----------
    context : Context of (..., n)
    discount : float, gamma
    step_size : float, or a (K,) array of them
    depth : int, number of updates L

    Returns
    -------
    (..., n) value estimates, or (..., n, K)
    """
    step_sizes = np.atleast_1d(step_size)
    visits, rewards = context.visits[..., None], context.rewards[..., None]
    w = np.zeros((*context.rewards.shape, len(step_sizes)))
    for _ in range(depth):
        w = w + step_sizes * (rewards + discount * (context.successors @ w) - visits * w)
    return w if np.ndim(step_size) else w[..., 0]


def td_lambda(
    paths: np.ndarray, reward: np.ndarray, discount: float, decay: np.ndarray, step_size: np.ndarray, lengths: list[int]
) -> np.ndarray:
    """Online TD(lambda) with accumulating traces (Sutton, Machine Learning 3, 1988), once through each context.

    Parameters
    ----------
    paths : (k, M+1) int array of states S_0, ..., S_M
    reward : (k, n) array, r(s)
    discount : float, gamma
    decay, step_size : (K,) arrays, pairs of lambda and a step size
    lengths : ascending list of int, numbers of steps after which the estimates are kept

    Returns
    -------
    (lengths, K, k, n) value estimates
    """
    each = np.arange(len(paths))
    w = np.zeros((len(decay), *reward.shape))
    trace, kept = np.zeros_like(w), []
    rates, forget = step_size[:, None], discount * decay[:, None, None]
    for t in range(max(lengths)):
        now, following = paths[:, t], paths[:, t + 1]
        error = reward[each, now] + discount * w[:, each, following] - w[:, each, now]
        trace *= forget
        trace[:, each, now] += 1
        w += (rates * error)[..., None] * trace
        if t + 1 in lengths:
            kept.append(w.copy())
    return np.stack(kept)


def certainty_equivalence(context: Context, discount: float) -> np.ndarray:
    """Values (..., n) of the maximum likelihood model of a context; states that it never left have value zero."""
    left = context.visits > 0
    share = np.where(left, context.visits, 1.0)
    model, reward = context.successors / share[..., None], context.rewards / share
    identity = np.eye(context.visits.shape[-1])
    return np.linalg.solve(identity - discount * model, reward[..., None])[..., 0]


def lstd(context: Context, discount: float, ridge: float) -> np.ndarray:
    """Least-squares TD (Bradtke and Barto, Machine Learning 22, 1996): (m C - gamma m D + ridge I)^{-1} m b.

    Parameters
    ----------
    context : Context of (..., n)
    discount : float, gamma
    ridge : float, positive, added to the diagonal of the matrix summed over the context

    Returns
    -------
    (..., n) value estimates
    """
    if not ridge > 0:
        raise ValueError(f"ridge is {ridge}; states that a context lacks need a positive one.")
    identity = np.eye(context.visits.shape[-1])
    matrix = identity * (context.visits + ridge / context.length)[..., None] - discount * context.successors
    return np.linalg.solve(matrix, context.rewards[..., None])[..., 0]
