"""Prompts of the Transformer: the columns that it reads.

A context of m steps is a matrix of columns [phi_t; gamma phi_{t+1}; R_{t+1}] with features phi_t = phi(S_t) in R^d (eq.
(Z0 def original)).  An enumerated context has one column [phi(s); gamma E[phi(s') | s]; r(s)] for each state s (eq. (Z0
redef)).  A grouped context has one such column for each visited state, with means over the steps from the state.  A
prompt is a context followed by a query column [phi(s); 0; 0].

The paper has one-hot features of n states, so that d = n.  They are the default here.  Other features are given as a
matrix (n, d) or (..., n, d) with phi(s) in row s.  Leading axes "..." stand for several contexts.
"""

from typing import Annotated

import numpy as np

from ictd.checks import ArrayLike, Discount, Features, Flag, array, integers, probabilities, refuse, validate

ENUMERATED = 0  # Stands for the enumerated context in a list of context lengths.
# Types of arguments that several functions have.
Columns = Annotated[ArrayLike, array("..., 2d+1, m")]
Queries = Annotated[ArrayLike, array("*, k, d")]
Shares = Annotated[ArrayLike, probabilities("*, n")]


@validate
def enumerated_columns(
    transition: Annotated[ArrayLike, probabilities("..., n, n", may_end=True)],
    reward: Annotated[ArrayLike, array("..., n")],
    discount: Discount,
    features: Features | None = None,
    weights: Shares | None = None,
    episodic: Flag = False,
) -> np.ndarray:
    """Columns of the enumerated context, eq. (Z0 redef): each state with its expected next features and its reward.

    Parameters
    ----------
    transition : (..., n, n) array, row-stochastic
    reward : (..., n) array
    discount : float, gamma
    features : (n, d) or (..., n, d) array, phi(s) in row s; one-hot by default
    weights : (n,) or (..., n) array, which sum to one; 1/n by default
        Weights w of the columns in averages over the context, such as the distribution of the states under a behaviour
        policy.  The column of state s is multiplied by sqrt(n w(s)), so that a mean over the columns has these weights.
    episodic : bool
        Whether rows of ``transition`` may sum to less than one.  The rest is the probability that the episode ends, in
        which the next features are 0.

    Returns
    -------
    columns : (..., 2d+1, n) array

    Raises
    ------
    ValueError
        If shapes do not match, a row is not a distribution, a number is not finite, or the discount is out of range.

    Examples
    --------
    >>> import ictd
    >>> ictd.enumerated_columns([[0.9, 0.1], [0.2, 0.8]], [1.0, 0.0], discount=0.5)
    array([[1.  , 0.  ],
           [0.  , 1.  ],
           [0.45, 0.1 ],
           [0.05, 0.4 ],
           [1.  , 0.  ]])
    """
    features = state_features(reward.shape[-1], features)
    return columns_of(features, discount * (transition @ features), reward, weights)


@validate
def sampled_columns(
    paths: Annotated[ArrayLike, integers("..., m+1")],
    reward: Annotated[ArrayLike, array("..., n")],
    discount: Discount,
    features: Features | None = None,
) -> np.ndarray:
    """Columns of the contexts of trajectories, C(i, m) of section "In-Context Policy Evaluation Verification".

    Raises a ValueError as ``enumerated_columns``, and if a state is not from 0 to n-1.

    Parameters
    ----------
    paths : (..., m+1) int array, S_0, ..., S_m
    reward : (..., n) array, r(s), so that R_{t+1} = r(S_t)
    discount, features : as for ``enumerated_columns``

    Returns
    -------
    columns : (..., 2d+1, m) array, eq. (Z0 def original)
    """
    n = checked_states("paths", paths, reward.shape[-1], features)
    visited = features_of(paths, features, n)  # (..., m+1, d)
    rewards = np.take_along_axis(reward, paths[..., :-1], axis=-1)
    return columns_of(visited[..., :-1, :], discount * visited[..., 1:, :], rewards)


def columns_of(
    phi: np.ndarray, phi_next: np.ndarray, rewards: np.ndarray, weights: np.ndarray | None = None
) -> np.ndarray:
    """Columns [phi; phi_next; R] (..., 2d+1, m), multiplied by sqrt(m w_t), of features (..., m, d) of m steps."""
    columns = _joined(phi.mT, phi_next.mT, rewards[..., None, :], axis=-2)
    return columns if weights is None else columns * np.sqrt(rewards.shape[-1] * weights)[..., None, :]


def _joined(*matrices: np.ndarray, axis: int) -> np.ndarray:
    """Concatenate matrices along axis -2 or -1 to a contiguous array; their leading axes broadcast."""
    lead = np.broadcast_shapes(*(matrix.shape[:-2] for matrix in matrices))
    parts = [np.broadcast_to(matrix, lead + matrix.shape[-2:]) for matrix in matrices]
    return np.ascontiguousarray(np.concatenate(parts, axis=axis))


def state_features(n: int | None, features: np.ndarray | None) -> np.ndarray:
    """Features (n, d) or (..., n, d) of the states: those that are given, or one-hot features of n states."""
    n = number_of_states(n, features)
    return np.eye(n) if features is None else features


def number_of_states(n: int | None, features: np.ndarray | None) -> int:
    """Number of states, of which n or features (..., n, d) are given."""
    if features is None:
        if n is None:
            raise ValueError("n is missing; give the number of states, or features of the states.")
        return n
    if n not in (None, features.shape[-2]):
        raise ValueError(f"n is {n}, and features are those of {features.shape[-2]} states; leave out n.")
    return features.shape[-2]


def checked_states(name: str, states: np.ndarray, n: int | None, features: np.ndarray | None) -> int:
    """Number of states n, to which the entries of an argument must belong."""
    n = number_of_states(n, features)
    refuse(name, (states < 0) | (states >= n), f"is not one of {n} states, which are 0 to {n - 1}")
    return n


def features_of(states: np.ndarray, features: np.ndarray | None, n: int) -> np.ndarray:
    """Features (..., m, d) of states (..., m), from features (n, d) or (..., n, d) of n states; one-hot by default."""
    if features is None:
        return (states[..., None] == np.arange(n)).astype(float)
    if features.ndim == 2:
        return features[states]
    lead = np.broadcast_shapes(states.shape[:-1], features.shape[:-2])
    index = np.broadcast_to(states, lead + states.shape[-1:])[..., None]
    return np.take_along_axis(np.broadcast_to(features, lead + features.shape[-2:]), index, axis=-2)


def query_columns(dimension: int, queries: np.ndarray | None = None) -> np.ndarray:
    """Query columns [phi(s); 0; 0] (..., 2d+1, k) of features (..., k, d), or of all one-hot features, with k = d."""
    queries = np.eye(dimension) if queries is None else queries
    return columns_of(queries, np.zeros_like(queries), np.zeros(queries.shape[:-1]))


@validate
def prompts_of(columns: Columns, queries: Queries | None = None) -> np.ndarray:
    """Append each query state to a context: k prompts.

    Raises a ValueError if shapes do not match, or an entry is not finite.

    Parameters
    ----------
    columns : (..., 2d+1, m) array
    queries : (k, d) or (..., k, d) array, features of the query states; by default all d one-hot features

    Returns
    -------
    prompts : (..., k, 2d+1, m+1) array
        Entry [..., s, :, :] is the prompt with the query state s.
    """
    separate = query_columns(columns.shape[-2] // 2, queries).mT[..., None]  # (..., k, 2d+1, 1)
    return _joined(columns[..., None, :, :], separate, axis=-1)


@validate
def joint_prompt(columns: Columns, queries: Queries | None = None) -> np.ndarray:
    """Append all query states to a context: one prompt (..., 2d+1, m+k).

    Parameters and errors are those of ``prompts_of``.
    """
    return _joined(columns, query_columns(columns.shape[-2] // 2, queries), axis=-1)
