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
