"""The setting of Wang et al., "Transformers Learn Temporal Difference Methods for In-Context Reinforcement Learning".

A task is one of Boyan's chains with n states, and with a random feature vector of d entries for each state.
Pretraining sees a task in several batches.  A batch is one trajectory, and each of its b TD errors has a prompt of its
own: the context slides along the trajectory with the query.  This module has that setting as the
public code of the article (arXiv 2405.13861) has it, with enumerated prompts as another choice.

That code's metrics compare the Transformer with batch TD of as many steps, whose step size is trained alongside.  For
linear attention an estimate is linear in the query's features, TF_L(phi) = w' phi, so that two of the metrics, the
similarity of sensitivities and that of implicit weights, are the same number: the cosine of the two weight vectors w.
"""

from dataclasses import dataclass

import numpy as np

from ictd.anatomy import cosine
from ictd.kernels import kernel
from ictd.mrp import Tasks, msve, value_function
from ictd.prompt import enumerated_columns, sampled_columns

# Bounds of the uniform distributions that probabilities are drawn from.
LOWEST, HIGHEST = 0.01, 0.99


def draw_tasks(
    size: int, states: int, dimension: int, one_hot: bool, rng: np.random.Generator
) -> tuple[Tasks, np.ndarray]:
    """Draw Boyan's chains with random features, or with one-hot features.

    Transition probabilities are those of ``ictd.mrp.boyan``, but from [0.01, 0.99].  Rewards and random features are
    uniform in [-1, 1].

    Parameters
    ----------
    size : int, number of tasks N
    states, dimension : int, n and d
    one_hot : bool
        Whether features are one-hot, which takes d = n.
    rng : numpy.random.Generator

    Returns
    -------
    tasks : Tasks with features (N, n, d)
    start : (N, n) array
        Random distributions of the first state of a trajectory, in place of the stationary ones.
    """
    transition = np.zeros((size, states, states))
    inner = np.arange(states - 2)
    share = rng.uniform(LOWEST, HIGHEST, (size, states - 2))
    transition[:, inner, inner + 1] = share
    transition[:, inner, inner + 2] = 1 - share
    transition[:, states - 2, states - 1] = 1
    transition[:, states - 1] = rng.uniform(LOWEST, HIGHEST, (size, states))
    transition[:, states - 1] /= transition[:, states - 1].sum(axis=-1, keepdims=True)
    start = rng.uniform(LOWEST, HIGHEST, (size, states))
    start /= start.sum(axis=-1, keepdims=True)
    reward = rng.uniform(-1, 1, (size, states))
    features = np.eye(states) if one_hot else rng.uniform(-1, 1, (size, states, dimension))
    return Tasks(transition, reward, features=features), start


@kernel
def follow(transition, start, uniforms, paths):
    """Fill paths (N, B, T) by inversion of uniform numbers (N, B, T) from [0, 1)."""
    states = start.shape[1]
    for i, k in np.ndindex(paths.shape[:2]):
        for t in range(paths.shape[2]):
            row = start[i] if t == 0 else transition[i, paths[i, k, t - 1]]
            left = uniforms[i, k, t] - row[0]
            state = 0
            while left >= 0.0 and state < states - 1:
                state += 1
                left -= row[state]
            # Rounding can leave the last state without probability.
            while row[state] == 0.0:
                state -= 1
            paths[i, k, t] = state


def draw_paths(tasks: Tasks, start: np.ndarray, batches: int, steps: int, rng: np.random.Generator) -> np.ndarray:
    """Draw trajectories S_0, ..., S_T of each task, (N, B, T+1) with B batches and T steps, from ``start`` (N, n)."""
    shape = len(tasks), batches, steps + 1
    paths = np.empty(shape, np.int64)
    follow(tasks.transition, start, rng.random(shape), paths)
    return paths


@dataclass(frozen=True)
class Batches:
    """Batches of N updates, as ``predecessor_engine.Engine.train`` takes them.

    Parameters
    ----------
    columns : (N, m, 2d+1) or (N, m+b, 2d+1) array
    queries : (N, b+1, d) array
    rewards : (N, b) array, of the first b queries
    """

    columns: np.ndarray
    queries: np.ndarray
    rewards: np.ndarray


def sampled_batches(tasks: Tasks, paths: np.ndarray, length: int, discount: float) -> Batches:
    """Make batches of prompts whose context slides along a trajectory.

    Parameters
    ----------
    tasks : Tasks, N of them
    paths : (N, B, m+b+2) int array, trajectories of ``draw_paths``
        The columns of query t are steps t to t + m - 1, and its state is S_{t+m+1}.  The public code skips S_{t+m}.
    length : int, number m of columns of a context
    discount : float, gamma

    Returns
    -------
    Batches of N B updates, those of one task one after the other
    """
    columns = sampled_rows(tasks, paths[:, :, :-1], discount)
    return _batches(columns, tasks, paths[:, :, length + 1 :])


def enumerated_batches(tasks: Tasks, paths: np.ndarray, discount: float) -> Batches:
    """Make batches with the enumerated context of a task, a column for each state, from paths (N, B, b+1)."""
    columns = enumerated_rows(tasks, discount)[:, None]
    return _batches(np.repeat(columns, paths.shape[1], axis=1), tasks, paths)


def _batches(columns: np.ndarray, tasks: Tasks, states: np.ndarray) -> Batches:
    """Batches of columns (N, B, ., 2d+1), for queries of states (N, B, b+1)."""
    task = np.arange(len(tasks))[:, None, None]
    queries, rewards = tasks.features[task, states], tasks.reward[task, states[..., :-1]]
    return Batches(*(array.reshape(-1, *array.shape[2:]) for array in (columns, queries, rewards)))


def sampled_rows(tasks: Tasks, paths: np.ndarray, discount: float) -> np.ndarray:
    """Columns [phi(S_t); gamma phi(S_{t+1}); r(S_t)] of paths (N, B, T+1), as rows (N, B, T, 2d+1)."""
    rewards = np.broadcast_to(tasks.reward[:, None], (*paths.shape[:2], tasks.states))
    return np.ascontiguousarray(sampled_columns(paths, rewards, discount, tasks.features[:, None]).mT)


def enumerated_rows(tasks: Tasks, discount: float) -> np.ndarray:
    """Columns [phi(s); gamma E[phi(s') | s]; r(s)] of all states, as rows (N, n, 2d+1)."""
    return np.ascontiguousarray(enumerated_columns(tasks.transition, tasks.reward, discount, tasks.features).mT)


def initial_matrices(dimension: int, layers: int, gain: float, rng: np.random.Generator) -> np.ndarray:
    """Draw P and Q, (2, K, D, D) with D = 2d + 1, from a Xavier normal distribution."""
    height = 2 * dimension + 1
    return gain / np.sqrt(height) * rng.standard_normal((2, layers, height, height))


def td_matrices(dimension: int, step_size: float = 1.0) -> np.ndarray:
    """P and Q of batch TD, (2, D, D): P has only the step size, in its last entry, and Q only the block [-I, I]."""
    P, Q = np.zeros((2, 2 * dimension + 1, 2 * dimension + 1))
    P[-1, -1] = step_size
    identity = np.arange(dimension)
    Q[identity, identity] = -1
    Q[identity, identity + dimension] = 1
    return np.stack([P, Q])


def aligned(matrices: np.ndarray) -> np.ndarray:
    """P and Q (..., 2, K, D, D) with the sign that makes the corner of each P positive; (-P, -Q) is the same layer."""
    return matrices * np.sign(matrices[..., :1, :, -1:, -1:])


def metrics(weights: np.ndarray, td_weights: np.ndarray, tasks: Tasks) -> dict[str, np.ndarray]:
    """The public code's metrics for linear attention.

    Parameters
    ----------
    weights, td_weights : (N, d) arrays, implicit weights of the Transformer and of batch TD for the same contexts
    tasks : Tasks, N of them

    Returns
    -------
    dict of (N,) arrays
        value_difference : mean square of the difference of the estimates under the stationary distribution
        similarity : cosine of the weights, the similarity of sensitivities and of implicit weights
    """
    estimates, td_estimates = (np.matvec(tasks.features, w) for w in (weights, td_weights))
    return {
        "value_difference": msve(tasks.stationary, td_estimates, estimates),
        "similarity": cosine(weights[:, None], td_weights[:, None]),
    }


def value_error(weights: np.ndarray, tasks: Tasks, discount: float) -> np.ndarray:
    """MSVE (N,) of implicit weights (N, d)."""
    value = value_function(tasks.transition, tasks.reward, discount)
    return msve(tasks.stationary, value, np.matvec(tasks.features, weights))
