"""Prompts of the Transformer: the columns that it reads, and the averages over them that its output depends on.

A context of m steps is a matrix of columns [phi_t; gamma phi_{t+1}; R_{t+1}] with features phi_t = phi(S_t) in R^d (eq.
(Z0 def original)).  An enumerated context has one column [phi(s); gamma E[phi(s') | s]; r(s)] for each state s (eq. (Z0
redef)).  A grouped context has one such column for each visited state, with means over the steps from the state.  A
prompt is a context followed by a query column [phi(s); 0; 0].

The paper has one-hot features of n states, so that d = n.  They are the default here.  Other features are given as a
matrix Phi (n, d) with phi(s) in row s.

Batch TD, LSTD and TF_L depend on a context only through the averages of ``Context``.  TF_L needs them in the form of
``Gram``: with x_t = [phi_t; gamma phi_{t+1}],

    M = (1/m) sum_t x_t x_t' = [C, gamma D; gamma D', gamma^2 E],    c = (1/m) sum_t R_{t+1} x_t = [b; gamma d].

If b, C, D, E and d are the averages of one-hot features, those of other features are Phi' b, Phi' C Phi, and so on.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np

from ictd.checks import (
    DISCOUNT,
    ROW_SUM_TOLERANCE,
    ArrayLike,
    array,
    either,
    integer,
    integers,
    optional,
    probabilities,
    refuse,
    row_sums,
    validate,
    validate_fields,
)

ENUMERATED = 0  # Stands for the enumerated context in a list of context lengths.


@validate(
    transition=probabilities("..., n, n"),
    reward=array("..., n"),
    discount=DISCOUNT,
    features=optional(array("*, n, d")),
    weights=optional(probabilities("*, n")),
)
def enumerated_columns(
    transition: ArrayLike,
    reward: ArrayLike,
    discount: float,
    features: ArrayLike | None = None,
    weights: ArrayLike | None = None,
) -> np.ndarray:
    """Columns of the enumerated context, eq. (Z0 redef): each state with its expected next features and its reward.

    Parameters
    ----------
    transition : (..., n, n) array, row-stochastic
    reward : (..., n) array
    discount : float, gamma
    features : (n, d) or (..., n, d) array, optional
        Features phi(s) of the states; one-hot by default.
    weights : (n,) or (..., n) array, optional
        Weights w of the columns in averages over the context, which sum to one; 1/n by default.  The column of state s
        is multiplied by sqrt(n w(s)), so that averages over n columns have these weights.

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
    n = reward.shape[-1]
    now = np.broadcast_to(np.eye(n), transition.shape)
    following = discount * transition.mT
    if features is not None:
        now = np.broadcast_to(features.mT, (*reward.shape[:-1], *features.mT.shape[-2:]))
        following = discount * (transition @ features).mT
    columns = np.concatenate([now, following, reward[..., None, :]], axis=-2)
    return columns if weights is None else columns * np.sqrt(n * weights)[..., None, :]


@validate(paths=integers("..., m+1"), reward=array("..., n"), discount=DISCOUNT, features=optional(array("*, n, d")))
def sampled_columns(
    paths: ArrayLike, reward: ArrayLike, discount: float, features: ArrayLike | None = None
) -> np.ndarray:
    """Columns of the contexts of trajectories, eq. (Z0 def original).

    They are C(i, m) of section "In-Context Policy Evaluation Verification".

    Parameters
    ----------
    paths : (..., m+1) int array
        States S_0, ..., S_m.
    reward : (..., n) array
        r(s), so that R_{t+1} = r(S_t).
    discount : float, gamma
    features : (n, d) or (..., n, d) array, optional
        Features phi(s) of the states; one-hot by default.

    Returns
    -------
    columns : (..., 2d+1, m) array

    Raises
    ------
    ValueError
        If a state is not from 0 to n-1, a reward is not finite, or shapes do not match.
    """
    _check_states("paths", paths, reward.shape[-1])
    visited = features_of(paths, state_features(reward.shape[-1], features)).mT  # (..., d, m+1)
    rewards = np.take_along_axis(reward, paths[..., :-1], axis=-1)
    return np.concatenate([visited[..., :-1], discount * visited[..., 1:], rewards[..., None, :]], axis=-2)


def _check_states(name: str, states: np.ndarray, n: int) -> None:
    refuse(name, (states < 0) | (states >= n), f"is not one of {n} states, which are 0 to {n - 1}")


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
    return np.take_along_axis(features, states[..., None], axis=-2)


def query_columns(dimension: int, queries: np.ndarray | None = None) -> np.ndarray:
    """Query columns [phi(s); 0; 0] (..., 2d+1, k) of features (..., k, d), or of all one-hot features, with k = d."""
    if queries is None:
        return np.eye(2 * dimension + 1, dimension)
    padding = [(0, 0)] * (queries.ndim - 2) + [(0, dimension + 1), (0, 0)]
    return np.pad(queries.mT, padding)


@validate(columns=array("..., 2d+1, m"), queries=optional(array("*, k, d")))
def prompts_of(columns: ArrayLike, queries: ArrayLike | None = None) -> np.ndarray:
    """Append each query state to a context: k prompts.

    Parameters
    ----------
    columns : (..., 2d+1, m) array
    queries : (k, d) or (..., k, d) array, optional
        Features of the query states; by default all d one-hot features.

    Returns
    -------
    prompts : (..., k, 2d+1, m+1) array
        Entry [..., s, :, :] is the prompt with the query state s.

    Raises
    ------
    ValueError
        If shapes do not match, or an entry is not finite.
    """
    separate = query_columns((columns.shape[-2] - 1) // 2, queries).mT[..., None]  # (..., k, 2d+1, 1)
    repeated = np.repeat(columns[..., None, :, :], separate.shape[-3], axis=-3)
    return np.concatenate([repeated, np.broadcast_to(separate, (*repeated.shape[:-1], 1))], axis=-1)


@validate(columns=array("..., 2d+1, m"), queries=optional(array("*, k, d")))
def joint_prompt(columns: ArrayLike, queries: ArrayLike | None = None) -> np.ndarray:
    """Append all query states to a context: one prompt.

    Parameters
    ----------
    columns : (..., 2d+1, m) array
    queries : (k, d) or (..., k, d) array, optional
        Features of the query states; by default all d one-hot features.

    Returns
    -------
    prompt : (..., 2d+1, m+k) array

    Raises
    ------
    ValueError
        If shapes do not match, or an entry is not finite.
    """
    appended = query_columns((columns.shape[-2] - 1) // 2, queries)
    return np.concatenate([columns, np.broadcast_to(appended, (*columns.shape[:-2], *appended.shape[-2:]))], axis=-1)


@dataclass(frozen=True)
class Gram:
    """Averages over the columns of contexts, through which TF_L depends on them.

    ``gram[index]`` selects contexts by an index of the leading axes.

    Parameters
    ----------
    length : int, m, or an array (...) of them
    M : (..., 2d, 2d) array
    c : (..., 2d) array
    queries : (n, d) or (..., n, d) array, optional
        Features of the states that training queries; one-hot by default.
    """

    length: int | np.ndarray
    M: np.ndarray
    c: np.ndarray
    queries: np.ndarray | None = None

    def __getitem__(self, index) -> Self:
        index = index if isinstance(index, tuple) else (index,)
        length = self.length[index] if np.ndim(self.length) else self.length
        queries = self.queries
        if queries is not None and queries.ndim > 2:
            queries = queries[*index, :, :]
        return Gram(length, self.M[*index, :, :], self.c[*index, :], queries)

    @classmethod
    def of_columns(cls, columns: np.ndarray) -> Self:
        """Compute the averages from columns (..., 2d+1, m), by their definition."""
        X, rewards, length = columns[..., :-1, :], columns[..., -1, :], columns.shape[-1]
        return cls(length, X @ X.mT / length, np.matvec(X, rewards) / length)


@dataclass(frozen=True)
class Context:
    """Averages over the m steps of a context, which batch TD, LSTD and TF_L depend on.

        C = (1/m) sum_t phi_t phi_t',    D = (1/m) sum_t phi_t phi_{t+1}',    E = (1/m) sum_t phi_{t+1} phi_{t+1}',
        b = (1/m) sum_t R_{t+1} phi_t,    d = (1/m) sum_t R_{t+1} phi_{t+1},    reward_square = (1/m) sum_t R_{t+1}^2.

    ``from_trajectory``, ``from_transitions``, ``from_features``, ``enumerated`` and ``grouped`` compute them.  Leading
    axes stand for several contexts.  The arrays are copied.

    Parameters
    ----------
    length : int, m, or an array (...) of them
    C, D, E : (..., d, d) arrays
        With one-hot features d is the number of states n.
    b, d : (..., d) arrays
    reward_square : (...) array

    Raises
    ------
    ValueError
        If shapes do not match, or an entry is not finite.

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

    length: int | np.ndarray
    C: np.ndarray
    D: np.ndarray
    E: np.ndarray
    b: np.ndarray
    d: np.ndarray
    reward_square: np.ndarray

    def __post_init__(self):
        validate_fields(
            self,
            C=array("..., d, d"),
            D=array("..., d, d"),
            E=array("..., d, d"),
            b=array("..., d"),
            d=array("..., d"),
            reward_square=array("..."),
            length=either(integer(1), integers("...", 1)),
        )

    def __repr__(self) -> str:
        lead = f"{' x '.join(map(str, self.b.shape[:-1]))} prompts, " if self.b.ndim > 1 else ""
        shortest, longest = np.min(self.length), np.max(self.length)
        steps = f"{longest}" if shortest == longest else f"{shortest} to {longest}"
        return f"<Context of {lead}{steps} steps, {self.dimension} features>"

    @property
    def dimension(self) -> int:
        """Number of features d; with one-hot features it is the number of states n."""
        return self.b.shape[-1]

    @property
    def visits(self) -> np.ndarray:
        """Share of the steps that start in each state, the diagonal of C, (..., n), for one-hot features."""
        return np.diagonal(self.C, axis1=-2, axis2=-1)

    @property
    def one_hot(self) -> bool:
        """Whether the averages can be those of one-hot features.

        For one-hot features C is diagonal, with shares of the steps that sum to one, or that are 1/m or 0 in a grouped
        context.  D has the shares of the transitions, and no more of them start from a state than steps.
        """
        visits = self.visits
        counts = np.asarray(self.length)[..., None] * visits
        grouped = (np.abs(counts - (counts > 0.5)) <= ROW_SUM_TOLERANCE).all(axis=-1)
        shares = (np.abs(row_sums(visits) - 1) <= ROW_SUM_TOLERANCE) | grouped
        transitions = (self.D >= 0).all() and (row_sums(self.D) <= visits + ROW_SUM_TOLERANCE).all()
        return bool((self.C == diagonal(visits)).all() and shares.all() and transitions)

    def gram(self, discount: float, out: np.ndarray | None = None, queries: np.ndarray | None = None) -> Gram:
        """The averages in the form that TF_L depends on, for a discount gamma.

        Pass ``out`` (..., 2d, 2d) to reuse memory: it becomes M.  ``queries`` are the features of the states that
        training queries, if they are not one-hot.
        """
        d = self.dimension
        M = np.empty((*self.C.shape[:-2], 2 * d, 2 * d)) if out is None else out
        M[..., :d, :d] = self.C
        M[..., :d, d:] = discount * self.D
        M[..., d:, :d] = discount * self.D.mT
        M[..., d:, d:] = discount**2 * self.E
        return Gram(self.length, M, np.concatenate([self.b, discount * self.d], axis=-1), queries)

    def gram_matrix(self, discount: float) -> np.ndarray:
        """Mean of z z' over whole columns z = [phi_t; gamma phi_{t+1}; R_{t+1}], for a discount gamma.

        Linear attention with any P and Q depends on the context through this matrix (``ictd.attention``).

        Returns
        -------
        G : (..., 2d+1, 2d+1) array
            [M, c; c', reward_square] with M and c of ``gram``.
        """
        gram = self.gram(discount)
        upper = np.concatenate([gram.M, gram.c[..., None]], axis=-1)
        bottom = np.concatenate([gram.c, self.reward_square[..., None]], axis=-1)
        return np.concatenate([upper, bottom[..., None, :]], axis=-2)

    @validate(features=array("*, n, d"))
    def with_features(self, features: ArrayLike) -> Self:
        """Replace one-hot features by other features of the states.

        Parameters
        ----------
        features : (n, d) or (..., n, d) array, phi(s) in row s

        Returns
        -------
        Context of (..., d)

        Raises
        ------
        ValueError
            If an entry of the features is not finite, or their number of states is another one.
        """
        n = features.shape[-2]
        if n != self.dimension:
            raise ValueError(f"features are those of {n} states, and the context has {self.dimension} states.")
        C, D, E = (features.mT @ average @ features for average in (self.C, self.D, self.E))
        b, d = np.vecmat(self.b, features), np.vecmat(self.d, features)
        return type(self)(self.length, C, D, E, b, d, self.reward_square)

    def empirical_model(self, pseudo_counts: ArrayLike | None = None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Estimate transition probabilities and rewards by the means over the steps from each state.

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
        shown : (..., n) bool array, whether a step or a pseudo-count starts from a state

        Raises
        ------
        ValueError
            If the features are not one-hot: such a context does not tell states apart.
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

        The column of a state s is [phi(s); gamma sum_s' p(s' | s) phi(s'); r(s)] with the means p and r over the steps
        from s, as in an enumerated context (eq. (Z0 redef)).  States that no step starts from have no column.
        Averages are sums over columns divided by n, also if columns are missing, because the attention of pretraining
        on enumerated contexts is divided by n.

        Parameters
        ----------
        pseudo_counts : (n, n) array, as in ``empirical_model``, optional
            With 1/n in each entry, one pseudo-step from each state leads to every state equally often.

        Returns
        -------
        Context of the same leading axes, with the length n

        Raises
        ------
        ValueError
            If the features are not one-hot.

        Examples
        --------
        >>> import ictd
        >>> context = ictd.Context.from_trajectory(states=[0, 1, 1, 0, 1], rewards=[1.0, -1.0, -1.0, 1.0], n=2)
        >>> context.grouped().D
        array([[0.  , 0.5 ],
               [0.25, 0.25]])
        """
        n = self.dimension
        p, r, shown = self.empirical_model(pseudo_counts)
        square = (r**2).sum(axis=-1) / n
        return type(self)(n, diagonal(shown / n), p / n, p.mT @ p / n, r / n, np.vecmat(r, p) / n, square)

    @classmethod
    @validate(
        states=integers("..., m+1"),
        rewards=array("..., m"),
        n=optional(integer(1)),
        features=optional(array("*, n, d")),
    )
    def from_trajectory(
        cls, states: ArrayLike, rewards: ArrayLike, n: int | None = None, features: ArrayLike | None = None
    ) -> Self:
        """Average over the steps of trajectories (section "In-Context Policy Evaluation Verification").

        Parameters
        ----------
        states : (..., m+1) int array, S_0, ..., S_m
        rewards : (..., m) array, R_1, ..., R_m, which need not be functions of the state
        n : int, number of states
            May be left out if features are given.
        features : (n, d) or (..., n, d) array, phi(s) in row s; one-hot by default

        Returns
        -------
        Context of (..., d)

        Raises
        ------
        ValueError
            If a state is not from 0 to n-1, or the numbers of states and rewards do not match.

        Examples
        --------
        >>> import ictd
        >>> features = [[1.0, 0.0], [0.5, 0.5], [0.0, 1.0]]
        >>> context = ictd.Context.from_trajectory([0, 1, 2, 0], rewards=[1.0, -1.0, 0.0], features=features)
        >>> context.C.round(3)
        array([[0.417, 0.083],
               [0.083, 0.417]])
        """
        n = state_features(n, features).shape[-2]
        _check_states("states", states, n)
        context = cls._of_states(states[..., :-1], rewards, states[..., 1:], n)
        return context if features is None else context.with_features(features)

    @classmethod
    @validate(
        states=integers("..., m"),
        rewards=array("..., m"),
        next_states=integers("..., m"),
        n=optional(integer(1)),
        features=optional(array("*, n, d")),
    )
    def from_transitions(
        cls,
        states: ArrayLike,
        rewards: ArrayLike,
        next_states: ArrayLike,
        n: int | None = None,
        features: ArrayLike | None = None,
    ) -> Self:
        """Average over steps that need not form one trajectory, such as off-policy data or several episodes.

        Parameters
        ----------
        states : (..., m) int array, S_t
        rewards : (..., m) array, R_{t+1}
        next_states : (..., m) int array, S_{t+1}
        n : int, number of states
            May be left out if features are given.
        features : (n, d) or (..., n, d) array, phi(s) in row s; one-hot by default

        Returns
        -------
        Context of (..., d)

        Raises
        ------
        ValueError
            If a state is not from 0 to n-1, or shapes do not match.
        """
        n = state_features(n, features).shape[-2]
        _check_states("states", states, n)
        _check_states("next_states", next_states, n)
        context = cls._of_states(states, rewards, next_states, n)
        return context if features is None else context.with_features(features)

    @classmethod
    def _of_states(cls, states: np.ndarray, rewards: np.ndarray, next_states: np.ndarray, n: int) -> Self:
        """Average over steps with one-hot features; the arguments are those of ``from_transitions``, validated."""
        one_hot = np.eye(n)
        now, following = one_hot[states], one_hot[next_states]  # (..., m, n)
        m = now.shape[-2]
        D = now.mT @ following / m
        b, d = np.vecmat(rewards, now) / m, np.vecmat(rewards, following) / m
        square = (rewards**2).mean(axis=-1)
        return cls(m, diagonal(now.mean(axis=-2)), D, diagonal(D.sum(axis=-2)), b, d, square)

    @classmethod
    @validate(phi=array("..., m, d"), phi_next=array("..., m, d"), rewards=array("..., m"))
    def from_features(cls, phi: ArrayLike, phi_next: ArrayLike, rewards: ArrayLike) -> Self:
        """Average over steps that are given by features, for data without numbered states.

        Parameters
        ----------
        phi : (..., m, d) array, phi_t
        phi_next : (..., m, d) array, phi_{t+1}; rows of zeros end an episode
        rewards : (..., m) array, R_{t+1}

        Returns
        -------
        Context of (..., d)

        Raises
        ------
        ValueError
            If shapes do not match, or a number is not finite.
        """
        m = phi.shape[-2]
        C, D, E = phi.mT @ phi / m, phi.mT @ phi_next / m, phi_next.mT @ phi_next / m
        b, d = np.vecmat(rewards, phi) / m, np.vecmat(rewards, phi_next) / m
        return cls(m, C, D, E, b, d, (rewards**2).mean(axis=-1))

    @classmethod
    def of_shares(
        cls, length: int | np.ndarray, D: np.ndarray, reward: np.ndarray, E: np.ndarray | None = None
    ) -> Self:
        """Compute the averages from the shares of the transitions among the steps.

        Parameters
        ----------
        length : int, m, or an array (...) of them
        D : (..., n, n) array, shares that sum to one
        reward : (..., n) array, r(s)
        E : (..., n, n) array, optional
            By default that of one-hot next features, with the column sums of D on its diagonal.
        """
        visits = D.sum(axis=-1)
        E = diagonal(D.sum(axis=-2)) if E is None else E
        square = (visits * reward**2).sum(axis=-1)
        return cls(length, diagonal(visits), D, E, visits * reward, np.vecmat(reward, D), square)

    @classmethod
    @validate(
        transition=probabilities("..., n, n"),
        reward=array("..., n"),
        features=optional(array("*, n, d")),
        weights=optional(probabilities("*, n")),
    )
    def enumerated(
        cls,
        transition: ArrayLike,
        reward: ArrayLike,
        features: ArrayLike | None = None,
        weights: ArrayLike | None = None,
    ) -> Self:
        """Average over the columns of the enumerated context, eq. (Z0 redef).

        Parameters
        ----------
        transition : (..., n, n) array, row-stochastic
        reward : (..., n) array
        features : (n, d) or (..., n, d) array, phi(s) in row s; one-hot by default
        weights : (n,) or (..., n) array, optional
            Weights of the columns, which sum to one, such as the distribution of the states under a behaviour policy;
            1/n by default.

        Returns
        -------
        Context of (..., d), with the length n

        Raises
        ------
        ValueError
            If a row is not a distribution, or shapes do not match.
        """
        n = reward.shape[-1]
        if weights is None:
            C = diagonal(np.full_like(reward, 1 / n))
            D, E = transition / n, transition.mT @ transition / n
            b, d, square = reward / n, np.vecmat(reward, transition) / n, (reward**2).mean(axis=-1)
        else:
            weights = np.broadcast_to(weights, reward.shape)
            C, D, b = diagonal(weights), weights[..., None] * transition, weights * reward
            E, d, square = transition.mT @ D, np.vecmat(reward, D), (weights * reward**2).sum(axis=-1)
        context = cls(n, C, D, E, b, d, square)
        return context if features is None else context.with_features(features)


def diagonal(entries: np.ndarray) -> np.ndarray:
    """Diagonal matrices (..., n, n) with the entries (..., n)."""
    return np.eye(entries.shape[-1]) * entries[..., None]
