"""Prompts of the Transformer: the columns that it reads, and the matrix G of a context that its output depends on.

A context of m steps is a matrix of columns [phi_t; gamma phi_{t+1}; R_{t+1}] with features phi_t = phi(S_t) in R^d (eq.
(Z0 def original)).  An enumerated context has one column [phi(s); gamma E[phi(s') | s]; r(s)] for each state s (eq. (Z0
redef)).  A grouped context has one such column for each visited state, with means over the steps from the state.  A
prompt is a context followed by a query column [phi(s); 0; 0].

The paper has one-hot features of n states, so that d = n.  They are the default here.  Other features are given as a
matrix (n, d) or (..., n, d) with phi(s) in row s.  Leading axes "..." stand for several contexts.
"""

from dataclasses import dataclass
from typing import Annotated, Self

import numpy as np

from ictd.checks import (
    ROW_SUM_TOLERANCE,
    ArrayLike,
    Count,
    Discount,
    Features,
    array,
    either,
    integer,
    integers,
    probabilities,
    refuse,
    row_sums,
    validate,
    validate_fields,
    validated,
)

ENUMERATED = 0  # Stands for the enumerated context in a list of context lengths.
# Types of arguments that several functions have.
Columns = Annotated[ArrayLike, array("..., 2d+1, m")]
Queries = Annotated[ArrayLike, array("*, k, d")]
Shares = Annotated[ArrayLike, probabilities("*, n")]


@validate
def enumerated_columns(
    transition: Annotated[ArrayLike, probabilities("..., n, n")],
    reward: Annotated[ArrayLike, array("..., n")],
    discount: Discount,
    features: Features | None = None,
    weights: Shares | None = None,
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
    return _columns(features, discount * (transition @ features), reward, weights)


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
    visited = visited_features("paths", paths, reward.shape[-1], features)  # (..., m+1, d)
    rewards = np.take_along_axis(reward, paths[..., :-1], axis=-1)
    return _columns(visited[..., :-1, :], discount * visited[..., 1:, :], rewards)


def _columns(
    phi: np.ndarray, phi_next: np.ndarray, rewards: np.ndarray, weights: np.ndarray | None = None
) -> np.ndarray:
    """Columns [phi; phi_next; R] (..., 2d+1, m), multiplied by sqrt(m w_t), of features (..., m, d) of m steps."""
    columns = _joined(phi.mT, phi_next.mT, rewards[..., None, :], axis=-2)
    return columns if weights is None else columns * np.sqrt(rewards.shape[-1] * weights)[..., None, :]


def _joined(*matrices: np.ndarray, axis: int) -> np.ndarray:
    """Concatenate matrices along axis -2 or -1 to a contiguous array; their leading axes broadcast."""
    lead = np.broadcast_shapes(*(matrix.shape[:-2] for matrix in matrices))
    shape = [*lead, *matrices[0].shape[-2:]]
    shape[axis] = sum(matrix.shape[axis] for matrix in matrices)
    parts = [np.broadcast_to(matrix, lead + matrix.shape[-2:]) for matrix in matrices]
    return np.concatenate(parts, axis=axis, out=np.empty(shape))


def state_features(n: int | None, features: np.ndarray | None) -> np.ndarray:
    """Features (n, d) or (..., n, d) of the states: those that are given, or one-hot features of n states."""
    if features is None:
        if n is None:
            raise ValueError("n is missing; give the number of states, or features of the states.")
        return np.eye(n)
    if n not in (None, features.shape[-2]):
        raise ValueError(f"n is {n}, and features are those of {features.shape[-2]} states; leave out n.")
    return features


def features_of(states: np.ndarray, features: np.ndarray) -> np.ndarray:
    """Features (..., m, d) of states (..., m), from features (n, d) or (..., n, d) of all states."""
    if features.ndim == 2:
        return features[states]
    lead = np.broadcast_shapes(states.shape[:-1], features.shape[:-2])
    index = np.broadcast_to(states, lead + states.shape[-1:])[..., None]
    return np.take_along_axis(np.broadcast_to(features, lead + features.shape[-2:]), index, axis=-2)


def visited_features(name: str, states: np.ndarray, n: int | None, features: np.ndarray | None) -> np.ndarray:
    """Features (..., m, d) of an argument ``states`` (..., m), whose entries must be from 0 to n-1."""
    features = state_features(n, features)
    n = features.shape[-2]
    refuse(name, (states < 0) | (states >= n), f"is not one of {n} states, which are 0 to {n - 1}")
    return features_of(states, features)


def query_columns(dimension: int, queries: np.ndarray | None = None) -> np.ndarray:
    """Query columns [phi(s); 0; 0] (..., 2d+1, k) of features (..., k, d), or of all one-hot features, with k = d."""
    queries = np.eye(dimension) if queries is None else queries
    return _columns(queries, np.zeros_like(queries), np.zeros(queries.shape[:-1]))


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


@dataclass(frozen=True)
@validated
class Context:
    """A context of m steps, through the matrix G of inner products of its columns z_t = [phi_t; phi_{t+1}; R_{t+1}].

    Attention, batch TD and LSTD depend on nothing else.  The blocks of G = (1/m) sum_t z_t z_t' are

        C = (1/m) sum_t phi_t phi_t',    D = (1/m) sum_t phi_t phi_{t+1}',    E = (1/m) sum_t phi_{t+1} phi_{t+1}',
        b = (1/m) sum_t R_{t+1} phi_t,    d = (1/m) sum_t R_{t+1} phi_{t+1},    reward_square = (1/m) sum_t R_{t+1}^2.

    Parameters
    ----------
    length : int, m, or an array (...) of them
    G : (..., 2d+1, 2d+1) array, which is copied

    Raises
    ------
    ValueError
        If G is not symmetric.  As in all functions that make contexts: if shapes do not match, a number is not finite,
        a state is not from 0 to n-1, or a row is not a distribution.

    Examples
    --------
    >>> import ictd
    >>> context = ictd.Context.from_trajectory(states=[0, 1, 1, 0], rewards=[1.0, -1.0, -1.0], n=2)
    >>> context.D.round(2)
    array([[0.  , 0.33],
           [0.33, 0.33]])
    >>> ictd.lstd(context, discount=0.9, ridge=0.01).round(2)
    array([-2.22, -3.6 ])
    """

    length: Annotated[int | ArrayLike, either(integer(1), integers("...", 1))]
    G: Annotated[ArrayLike, array("..., 2d+1, 2d+1")]

    def __post_init__(self):
        validate_fields(self)
        if not np.array_equal(self.G, self.G.mT):
            limit = ROW_SUM_TOLERANCE * np.abs(self.G).max(initial=0.0)  # Larger differences are no rounding.
            refuse("G", np.abs(self.G - self.G.mT) > limit, "differs in the transpose; give a symmetric matrix")

    def __repr__(self) -> str:
        lead = f"{' x '.join(map(str, self.b.shape[:-1]))} prompts, " if self.b.ndim > 1 else ""
        shortest, longest = np.min(self.length), np.max(self.length)
        steps = f"{longest}" if shortest == longest else f"{shortest} to {longest}"
        return f"<Context of {lead}{steps} steps, {self.dimension} features>"

    @property
    def dimension(self) -> int:
        """Number of features d; with one-hot features it is the number of states n."""
        return self.G.shape[-1] // 2

    C = property(lambda self: self.G[..., : self.dimension, : self.dimension])
    D = property(lambda self: self.G[..., : self.dimension, self.dimension : -1])
    E = property(lambda self: self.G[..., self.dimension : -1, self.dimension : -1])
    b = property(lambda self: self.G[..., -1, : self.dimension])
    d = property(lambda self: self.G[..., -1, self.dimension : -1])
    reward_square = property(lambda self: self.G[..., -1, -1])

    @property
    def visits(self) -> np.ndarray:
        """Share of the steps that start in each state, the diagonal of C, (..., n), for one-hot features."""
        return np.diagonal(self.C, axis1=-2, axis2=-1)

    @property
    def one_hot(self) -> bool:
        """Whether the features can be one-hot.

        C is then diagonal, with shares of the steps that sum to one, or that are 1/m or 0 in a grouped context.  D has
        the shares of the transitions, and no more of them start from a state than steps.
        """
        visits = self.visits
        counts = np.asarray(self.length)[..., None] * visits
        grouped = (np.abs(counts - (counts > 0.5)) <= ROW_SUM_TOLERANCE).all(axis=-1)
        shares = (np.abs(row_sums(visits) - 1) <= ROW_SUM_TOLERANCE) | grouped
        transitions = (self.D >= 0).all() and (row_sums(self.D) <= visits + ROW_SUM_TOLERANCE).all()
        return bool((self.C == diagonal(visits)).all() and shares.all() and transitions)

    def gram_matrix(self, discount: float, scaled: bool = True) -> np.ndarray:
        """G (..., 2d+1, 2d+1) for the columns of prompts, [phi_t; gamma phi_{t+1}; R_{t+1}], with a discount gamma.

        Linear attention with any P and Q depends on the context through this matrix.  If attention is not divided by
        the context length (``scaled`` is False), it is the sum of z z' over the columns in place of their mean.
        """
        factors = np.ones(self.G.shape[-1])
        factors[self.dimension : -1] = discount
        G = self.G * np.outer(factors, factors)
        return G if scaled else G * np.asarray(self.length)[..., None, None]

    @validate
    def with_features(self, features: Features) -> Self:
        """Replace one-hot features by other features (n, d) or (..., n, d) of the states, phi(s) in row s."""
        n, d = features.shape[-2:]
        if n != self.dimension:
            raise ValueError(f"features are those of {n} states, and the context has {self.dimension} states.")
        # One-hot columns times B' are columns of features.
        B = np.zeros((*features.shape[:-2], 2 * n + 1, 2 * d + 1))
        B[..., :n, :d] = B[..., n:-1, d:-1] = features
        B[..., -1, -1] = 1
        return self._made(self.length, B.mT @ self.G @ B)

    def empirical_model(self, pseudo_counts: ArrayLike | None = None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Estimate transition probabilities and rewards by the means over the steps from each state.

        Raises a ValueError if the features are not one-hot: such a context does not tell states apart.

        Parameters
        ----------
        pseudo_counts : (n, n) array, numbers of steps from state to state that are added to the context, optional
            The rewards of these steps are the mean reward that the context has in their state, or 0.

        Returns
        -------
        transition : (..., n, n) array
            Rows of zeros for states that no step starts from.  A row sums to less than one by the share of the steps
            that end an episode (``from_features``).
        reward : (..., n) array, 0 for states that no step of the context starts from
        known : (..., n) bool array, whether a step or a pseudo-count starts from a state
        """
        if not self.one_hot:
            raise ValueError(
                "the features of the context are not one-hot; make the context without features, and call"
                " with_features afterwards."
            )
        counts = np.asarray(self.length)[..., None, None] * self.D
        if pseudo_counts is not None:
            counts = counts + pseudo_counts
        # The difference is rounding unless steps end an episode, with next features of zeros.
        ended = self.visits - self.D.sum(axis=-1)
        totals = counts.sum(axis=-1) + np.asarray(self.length)[..., None] * ended * (ended > ROW_SUM_TOLERANCE)
        visited = self.visits > 0
        reward = np.where(visited, self.b / np.where(visited, self.visits, 1.0), 0.0)
        return counts / np.where(totals > 0, totals, 1.0)[..., None], reward, totals > 0

    def grouped(self, pseudo_counts: ArrayLike | None = None) -> Self:
        """Average over *grouped* columns: one for each state, in place of one for each step.

        The column of a state s is [phi(s); sum_s' p(s' | s) phi(s'); r(s)] with the means p and r over the steps from s
        (``empirical_model``, which takes ``pseudo_counts``), as in an enumerated context.  States that no step starts
        from have a column of zeros, because the attention of pretraining on enumerated contexts is divided by n.  With
        pseudo-counts of 1/n, one pseudo-step from each state leads to every state equally often.

        Examples
        --------
        >>> import ictd
        >>> context = ictd.Context.from_trajectory(states=[0, 1, 1, 0, 1], rewards=[1.0, -1.0, -1.0, 1.0], n=2)
        >>> context.grouped().D
        array([[0.  , 0.5 ],
               [0.25, 0.25]])
        """
        p, r, known = self.empirical_model(pseudo_counts)
        return self._of(diagonal(known), p, r)

    @classmethod
    def _of(cls, *parts: np.ndarray | None) -> Self:
        """The context with the ``_columns`` of features, next features, rewards and weights."""
        columns = _columns(*parts)
        return cls._made(columns.shape[-1], columns @ columns.mT / columns.shape[-1])

    @classmethod
    def _made(cls, length: int | np.ndarray, G: np.ndarray) -> Self:
        """The context with a new matrix G, which is not copied."""
        refuse("G", ~np.isfinite(G), "is not finite")
        context = object.__new__(cls)
        vars(context).update(length=length, G=G)
        return context

    @classmethod
    @validate
    def from_trajectory(
        cls,
        states: Annotated[ArrayLike, integers("..., m+1")],
        rewards: Annotated[ArrayLike, array("..., m")],
        n: Count | None = None,
        features: Features | None = None,
    ) -> Self:
        """Average over the steps of trajectories (section "In-Context Policy Evaluation Verification").

        Parameters
        ----------
        states : (..., m+1) int array, S_0, ..., S_m, from 0 to n-1
        rewards : (..., m) array, R_1, ..., R_m, which need not be functions of the state
        n : int, number of states, which may be left out if features are given
        features : (n, d) or (..., n, d) array, phi(s) in row s; one-hot by default

        Examples
        --------
        >>> import ictd
        >>> features = [[1.0, 0.0], [0.5, 0.5], [0.0, 1.0]]
        >>> context = ictd.Context.from_trajectory([0, 1, 2, 0], rewards=[1.0, -1.0, 0.0], features=features)
        >>> context.C.round(3)
        array([[0.417, 0.083],
               [0.083, 0.417]])
        """
        phi = visited_features("states", states, n, features)
        return cls._of(phi[..., :-1, :], phi[..., 1:, :], rewards)

    @classmethod
    @validate
    def from_transitions(
        cls,
        states: Annotated[ArrayLike, integers("..., m")],
        rewards: Annotated[ArrayLike, array("..., m")],
        next_states: Annotated[ArrayLike, integers("..., m")],
        n: Count | None = None,
        features: Features | None = None,
    ) -> Self:
        """Average over steps that need not form one trajectory, such as off-policy data or several episodes.

        Parameters
        ----------
        states, next_states : (..., m) int arrays, S_t and S_{t+1}
        rewards : (..., m) array, R_{t+1}
        n, features : as for ``from_trajectory``
        """
        phi = visited_features("states", states, n, features)
        return cls._of(phi, visited_features("next_states", next_states, n, features), rewards)

    @classmethod
    @validate
    def from_features(
        cls,
        phi: Annotated[ArrayLike, array("..., m, d")],
        phi_next: Annotated[ArrayLike, array("..., m, d")],
        rewards: Annotated[ArrayLike, array("..., m")],
    ) -> Self:
        """Average over steps that are given by features, for data without numbered states.

        Parameters
        ----------
        phi : (..., m, d) array, phi_t
        phi_next : (..., m, d) array, phi_{t+1}; rows of zeros end an episode
        rewards : (..., m) array, R_{t+1}
        """
        return cls._of(phi, phi_next, rewards)

    @classmethod
    @validate
    def enumerated(
        cls,
        transition: Annotated[ArrayLike, probabilities("..., n, n")],
        reward: Annotated[ArrayLike, array("..., n")],
        features: Features | None = None,
        weights: Shares | None = None,
    ) -> Self:
        """Average over the columns of the enumerated context, eq. (Z0 redef), with the length n.

        Parameters are those of ``enumerated_columns``.
        """
        features = state_features(reward.shape[-1], features)
        return cls._of(features, transition @ features, reward, weights)

    @classmethod
    def of_shares(cls, length: int | np.ndarray, D: np.ndarray, reward: np.ndarray) -> Self:
        """Average over one-hot steps, from the shares D (..., n, n) of the transitions and the rewards r(s) (..., n).

        This is faster than sums over the steps, and takes memory that does not grow with their number m.
        """
        n, visits = reward.shape[-1], row_sums(D)
        G = np.zeros((*D.shape[:-2], 2 * n + 1, 2 * n + 1))
        on_diagonal = np.einsum("...ii->...i", G)
        on_diagonal[..., :n], on_diagonal[..., n:-1] = visits, row_sums(D.mT)
        on_diagonal[..., -1] = np.vecdot(visits, reward**2)
        G[..., :n, n:-1], G[..., n:-1, :n] = D, D.mT
        G[..., -1, :n], G[..., -1, n:-1] = visits * reward, np.vecmat(reward, D)
        G[..., :-1, -1] = G[..., -1, :-1]
        return cls._made(length, G)


def diagonal(entries: np.ndarray) -> np.ndarray:
    """Diagonal matrices (..., n, n) with the entries (..., n)."""
    return np.eye(entries.shape[-1]) * entries[..., None]
