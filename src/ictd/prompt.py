"""Prompts of the Transformer: the columns that it reads, and the averages over them that its output depends on.

A context of m steps is a matrix of columns [phi_t; gamma phi_{t+1}; R_{t+1}] with one-hot features phi of n states (eq.
(Z0 def original)).  An enumerated context has one column [phi(s); gamma E[phi(s') | s]; r(s)] for each state s (eq. (Z0
redef)).  A grouped context has one such column for each visited state, with means over the steps from the state.  A
prompt is a context followed by a query column [phi(s); 0; 0].

Batch TD, LSTD and TF_L depend on a context only through the averages of ``Context``.  TF_L needs them in the form of
``Gram``: with x_t = [phi_t; gamma phi_{t+1}],

    M = (1/m) sum_t x_t x_t' = [C, gamma D; gamma D', gamma^2 E],    c = (1/m) sum_t R_{t+1} x_t = [b; gamma d].
"""

from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from ictd.checks import (
    DISCOUNT,
    array,
    either,
    integer,
    integers,
    probabilities,
    refuse,
    validate,
    validate_fields,
)

ENUMERATED = 0  # Stands for the enumerated context in a list of context lengths.


@validate(transition=probabilities("..., n, n"), reward=array("..., n"), discount=DISCOUNT)
def enumerated_columns(transition: np.ndarray, reward: np.ndarray, discount: float) -> np.ndarray:
    """Columns of the enumerated context, eq. (Z0 redef): each state with its expected next features and its reward.

    Parameters
    ----------
    transition : (..., n, n) array, row-stochastic
    reward : (..., n) array
    discount : float, gamma

    Returns
    -------
    columns : (..., 2n+1, n) array

    Raises
    ------
    ValueError
        If shapes do not match, a row is not a distribution, a reward is not finite, or the discount is out of range.

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
    features = np.broadcast_to(np.eye(reward.shape[-1]), transition.shape)
    return np.concatenate([features, discount * np.swapaxes(transition, -1, -2), reward[..., None, :]], axis=-2)


@validate(paths=integers("..., m+1"), reward=array("..., n"), discount=DISCOUNT)
def sampled_columns(paths: np.ndarray, reward: np.ndarray, discount: float) -> np.ndarray:
    """Columns of the contexts of trajectories, eq. (Z0 def original).

    They are C(i, m) of section "In-Context Policy Evaluation Verification".

    Parameters
    ----------
    paths : (..., m+1) int array
        States S_0, ..., S_m.
    reward : (..., n) array
        r(s), so that R_{t+1} = r(S_t).
    discount : float, gamma

    Returns
    -------
    columns : (..., 2n+1, m) array

    Raises
    ------
    ValueError
        If a state is not from 0 to n-1, a reward is not finite, or shapes do not match.
    """
    _check_states("paths", paths, reward.shape[-1])
    features = np.swapaxes(np.eye(reward.shape[-1])[paths], -1, -2)  # (..., n, m+1)
    rewards = np.take_along_axis(reward, paths[..., :-1], axis=-1)
    return np.concatenate([features[..., :-1], discount * features[..., 1:], rewards[..., None, :]], axis=-2)


def _check_states(name: str, states: np.ndarray, n: int) -> None:
    refuse(name, (states < 0) | (states >= n), f"is not one of {n} states, which are 0 to {n - 1}")


def query_columns(states: int) -> np.ndarray:
    """Query columns [phi(s); 0; 0] of all n states, (2n+1, n)."""
    return np.eye(2 * states + 1, states)


@validate(columns=array("..., 2n+1, m"))
def prompts_of(columns: np.ndarray) -> np.ndarray:
    """Append each query state to a context: n prompts.

    Parameters
    ----------
    columns : (..., 2n+1, m) array

    Returns
    -------
    prompts : (..., n, 2n+1, m+1) array
        Entry [..., s, :, :] is the prompt with the query state s.

    Raises
    ------
    ValueError
        If the shape is another one, or an entry is not finite.
    """
    states = (columns.shape[-2] - 1) // 2
    queries = query_columns(states).T[:, :, None]  # (n, 2n+1, 1)
    repeated = np.repeat(columns[..., None, :, :], states, axis=-3)
    return np.concatenate([repeated, np.broadcast_to(queries, (*repeated.shape[:-1], 1))], axis=-1)


@validate(columns=array("..., 2n+1, m"))
def joint_prompt(columns: np.ndarray) -> np.ndarray:
    """Append all query states to a context: one prompt.

    Parameters
    ----------
    columns : (..., 2n+1, m) array

    Returns
    -------
    prompt : (..., 2n+1, m+n) array

    Raises
    ------
    ValueError
        If the shape is another one, or an entry is not finite.
    """
    queries = query_columns((columns.shape[-2] - 1) // 2)
    return np.concatenate([columns, np.broadcast_to(queries, (*columns.shape[:-2], *queries.shape))], axis=-1)


@dataclass(frozen=True)
class Gram:
    """Averages over the columns of contexts, through which TF_L depends on them.

    ``gram[index]`` selects contexts by an index of the leading axes.

    Parameters
    ----------
    length : int, m, or an array (...) of them
    M : (..., 2n, 2n) array
    c : (..., 2n) array
    """

    length: int | np.ndarray
    M: np.ndarray
    c: np.ndarray

    def __getitem__(self, index) -> Self:
        index = index if isinstance(index, tuple) else (index,)
        length = self.length[index] if np.ndim(self.length) else self.length
        return Gram(length, self.M[*index, :, :], self.c[*index, :])

    @classmethod
    def of_columns(cls, columns: np.ndarray) -> Self:
        """Compute the averages from columns (..., 2n+1, m), by their definition."""
        X, rewards, length = columns[..., :-1, :], columns[..., -1, :], columns.shape[-1]
        return cls(length, X @ X.mT / length, np.matvec(X, rewards) / length)


@dataclass(frozen=True)
class Context:
    """Averages over the m steps of a context, which batch TD, LSTD and TF_L depend on.

        C = (1/m) sum_t phi_t phi_t',    D = (1/m) sum_t phi_t phi_{t+1}',    E = (1/m) sum_t phi_{t+1} phi_{t+1}',
        b = (1/m) sum_t R_{t+1} phi_t,    d = (1/m) sum_t R_{t+1} phi_{t+1}.

    ``from_trajectory``, ``enumerated`` and ``grouped`` compute them.  Leading axes stand for several contexts.  The arrays are
    copied.

    Parameters
    ----------
    length : int, m, or an array (...) of them
    C, D, E : (..., n, n) arrays
    b, d : (..., n) arrays

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

    def __post_init__(self):
        validate_fields(
            self,
            C=array("..., n, n"),
            D=array("..., n, n"),
            E=array("..., n, n"),
            b=array("..., n"),
            d=array("..., n"),
            length=either(integer(1), integers("...", 1)),
        )

    @property
    def states(self) -> int:
        """Number of states n."""
        return self.b.shape[-1]

    @property
    def visits(self) -> np.ndarray:
        """Share of the steps that start in each state, the diagonal of C, (..., n)."""
        return np.diagonal(self.C, axis1=-2, axis2=-1)

    def gram(self, discount: float) -> Gram:
        """The averages in the form that TF_L depends on, for a discount gamma."""
        n = self.states
        M = np.empty((*self.C.shape[:-2], 2 * n, 2 * n))
        M[..., :n, :n] = self.C
        M[..., :n, n:] = discount * self.D
        M[..., n:, :n] = discount * self.D.mT
        M[..., n:, n:] = discount**2 * self.E
        return Gram(self.length, M, np.concatenate([self.b, discount * self.d], axis=-1))

    def empirical_model(self, pseudo_counts: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Estimate transition probabilities and rewards by the means over the steps from each state.

        Parameters
        ----------
        pseudo_counts : (n, n) array, numbers of steps from state to state that are added to the context, optional
            The rewards of these steps are the mean reward that the context has in their state, or 0.

        Returns
        -------
        transition : (..., n, n) array, rows of zeros for states that no step starts from
        reward : (..., n) array, 0 for states that no step of the context starts from
        shown : (..., n) bool array, whether a step or a pseudo-count starts from a state
        """
        counts = np.asarray(self.length)[..., None, None] * self.D
        if pseudo_counts is not None:
            counts = counts + pseudo_counts
        totals = counts.sum(axis=-1)
        visited = self.visits > 0
        reward = np.where(visited, self.b / np.where(visited, self.visits, 1.0), 0.0)
        return counts / np.where(totals > 0, totals, 1.0)[..., None], reward, totals > 0

    def grouped(self, pseudo_counts: np.ndarray | None = None) -> Self:
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

        Examples
        --------
        >>> import ictd
        >>> context = ictd.Context.from_trajectory(states=[0, 1, 1, 0, 1], rewards=[1.0, -1.0, -1.0, 1.0], n=2)
        >>> context.grouped().D
        array([[0.  , 0.5 ],
               [0.25, 0.25]])
        """
        n = self.states
        p, r, shown = self.empirical_model(pseudo_counts)
        return type(self)(n, diagonal(shown / n), p / n, p.mT @ p / n, r / n, np.vecmat(r, p) / n)

    @classmethod
    @validate(states=integers("..., m+1"), rewards=array("..., m"), n=integer(1))
    def from_trajectory(cls, states: np.ndarray, rewards: np.ndarray, n: int) -> Self:
        """Average over the steps of trajectories (section "In-Context Policy Evaluation Verification").

        Parameters
        ----------
        states : (..., m+1) int array, S_0, ..., S_m
        rewards : (..., m) array, R_1, ..., R_m, which need not be functions of the state
        n : int, number of states

        Raises
        ------
        ValueError
            If a state is not from 0 to n-1, or the numbers of states and rewards do not match.
        """
        _check_states("states", states, n)
        features = np.eye(n)[states]  # (..., m+1, n)
        now, following = features[..., :-1, :], features[..., 1:, :]
        m = now.shape[-2]
        D = np.swapaxes(now, -1, -2) @ following / m
        b, d = np.vecmat(rewards, now) / m, np.vecmat(rewards, following) / m
        return cls(m, diagonal(now.mean(axis=-2)), D, diagonal(D.sum(axis=-2)), b, d)

    @classmethod
    @validate(paths=integers("..., m+1"), reward=array("..., n"))
    def of_paths(cls, paths: np.ndarray, reward: np.ndarray) -> Self:
        """Average over the steps of trajectories whose rewards are r(s), with fewer rounding errors.

        Parameters
        ----------
        paths : (..., m+1) int array, S_0, ..., S_m
        reward : (..., n) array, r(s)

        Raises
        ------
        ValueError
            If a state is not from 0 to n-1, or shapes do not match.
        """
        _check_states("paths", paths, reward.shape[-1])
        context = cls.from_trajectory(paths, np.take_along_axis(reward, paths[..., :-1], axis=-1), reward.shape[-1])
        return replace(context, b=context.visits * reward, d=np.vecmat(reward, context.D))

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
        return cls(length, diagonal(visits), D, E, visits * reward, np.vecmat(reward, D))

    @classmethod
    @validate(transition=probabilities("..., n, n"), reward=array("..., n"))
    def enumerated(cls, transition: np.ndarray, reward: np.ndarray) -> Self:
        """Average over the columns of the enumerated context, eq. (Z0 redef).

        Parameters
        ----------
        transition : (..., n, n) array, row-stochastic
        reward : (..., n) array

        Raises
        ------
        ValueError
            If a row is not a distribution, or shapes do not match.
        """
        n = reward.shape[-1]
        C = diagonal(np.full_like(reward, 1 / n))
        return cls(n, C, transition / n, transition.mT @ transition / n, reward / n, np.vecmat(reward, transition) / n)


def diagonal(entries: np.ndarray) -> np.ndarray:
    """Diagonal matrices (..., n, n) with the entries (..., n)."""
    return np.eye(entries.shape[-1]) * entries[..., None]
