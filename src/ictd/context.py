"""The context of a prompt through the matrix G, which the outputs of linear attention, batch TD and LSTD depend on."""

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Self

import numpy as np

from ictd.checks import (
    LARGEST_DISCOUNT,
    MISSING,
    ROW_SUM_TOLERANCE,
    ArrayLike,
    Count,
    Features,
    Flag,
    UpToOne,
    array,
    either,
    flags,
    instance,
    integer,
    integers,
    probabilities,
    refuse,
    row_sums,
    validate,
    validate_fields,
    validated,
)
from ictd.elimination import never_reach
from ictd.prompt import Shares, checked_states, columns_of, features_of, state_features

# Types of arguments that several functions have.
NextStates = Annotated[ArrayLike, integers("..., m", may_miss=True)]
Terminals = Annotated[ArrayLike, flags("..., m")]
Discounts = Annotated[ArrayLike, array("..., m", least=0, most=1)]


@dataclass(frozen=True)
@validated
class Context:
    """A context of m steps, through the matrix G of inner products of its columns z_t = [phi_t; phi_{t+1}; R_{t+1}].

    Attention, batch TD and LSTD depend on nothing else.  The blocks of G = (1/m) sum_t z_t z_t' are ::

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
    # Whether (...) no step of the context ends an episode, where features hide it.
    _endless = False

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
    def ended(self) -> np.ndarray:
        """Share of the steps from each state that end an episode, (..., n), for one-hot features; discounts count."""
        ended = self.visits - self.D.sum(axis=-1)
        return ended * (ended > ROW_SUM_TOLERANCE * self.visits)  # Smaller differences are rounding.

    @property
    def one_hot(self) -> bool:
        """Whether the features can be one-hot.

        C is then diagonal, with shares of the steps that sum to one, or that are 1/m or 0 in a grouped context.  D has
        the shares of the transitions, and no more of them start from a state than steps.
        """
        visits = self.visits
        counts = np.asarray(self.length)[..., None] * visits
        grouped = ((counts == 0) | (np.abs(counts - 1) <= ROW_SUM_TOLERANCE)).all(axis=-1)
        shares = (np.abs(row_sums(visits) - 1) <= ROW_SUM_TOLERANCE) | grouped
        transitions = (self.D >= 0).all() and (row_sums(self.D) <= visits * (1 + ROW_SUM_TOLERANCE)).all()
        return bool((self.C == diagonal(visits)).all() and shares.all() and transitions)

    @validate
    def gram_matrix(self, discount: UpToOne, scaled: Flag = True) -> np.ndarray:
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
        return self._made(self.length, B.mT @ self.G @ B, ~self.ended.any(axis=-1))

    def empirical_model(self, pseudo_counts: ArrayLike | None = None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Estimate transition probabilities and rewards by the means over the steps from each state.

        Raises a ValueError if the features are not one-hot, because such a context does not tell states apart, if a
        pseudo-count is negative or not finite, or if shapes do not match.

        Parameters
        ----------
        pseudo_counts : (n, n) or (..., n, n) array, optional
            Numbers of steps from state to state that are added to the context.  The rewards of these steps are the mean
            reward that the context has in their state, or 0.

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
            sizes = {"...": self.b.shape[:-1], "n": self.dimension}
            counts = counts + array("*, n, n", least=0)("pseudo_counts", pseudo_counts, sizes)
        totals = counts.sum(axis=-1) + np.asarray(self.length)[..., None] * self.ended
        visited = self.visits > 0
        reward = np.where(visited, self.b / np.where(visited, self.visits, 1.0), 0.0)
        return counts / np.where(totals > 0, totals, 1.0)[..., None], reward, totals > 0

    def refuse_endless(self, discount: float, pseudo_counts: np.ndarray | None = None) -> None:
        """Raise a ValueError if the discount is 1 and a visited state reaches no end of an episode in the context.

        Only contexts with one-hot features tell which states reach an end.  With other features, one step must end.
        """
        if discount <= LARGEST_DISCOUNT:
            return
        remedy = "mark ends in terminals, or give a discount below 1"
        refuse("context", np.asarray(self._endless), f"has no step that ends an episode; {remedy}")
        if self.one_hot:
            p, _, _ = self.empirical_model(pseudo_counts)
            ends = p.sum(axis=-1) < 1 - ROW_SUM_TOLERANCE  # Also in states that no step starts from.
            refuse("state", never_reach(ends, p > 0), f"of the context reaches no end of an episode; {remedy}")

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
        return self._of(False, diagonal(known), p, r)

    @classmethod
    @validate
    def joined(cls, contexts: Annotated[Sequence[Self], instance(list, tuple)]) -> Self:
        """Average over the steps of all of several contexts, such as those of several episodes or agents.

        The last state of one context is not followed by the first state of the next.  Contexts with leading axes are
        joined one by one.  Raises a ValueError if leading axes or numbers of features differ.

        Examples
        --------
        >>> import ictd
        >>> episodes = [([0, 1, 1], [1.0, 0.0]), ([1, 0], [2.0])]
        >>> contexts = [ictd.Context.from_trajectory(states, rewards, n=2) for states, rewards in episodes]
        >>> ictd.Context.joined(contexts)
        <Context of 3 steps, 2 features>
        """
        integer(1)("the number of contexts", len(contexts), {})
        sizes = {}
        for i, context in enumerate(contexts):
            instance(cls, G="..., 2d+1, 2d+1")(f"contexts[{i}]", context, sizes)
        length = sum(context.length for context in contexts)
        G = sum(context.gram_matrix(1, scaled=False) for context in contexts)
        endless = np.all([context._endless for context in contexts], axis=0)
        return cls._made(length, G / np.asarray(length)[..., None, None], endless)

    @classmethod
    def _of(cls, endless: np.ndarray, *parts: np.ndarray | None) -> Self:
        """The context with the ``columns_of`` features, next features, rewards and weights."""
        columns = columns_of(*parts)
        return cls._made(columns.shape[-1], columns @ columns.mT / columns.shape[-1], endless)

    @classmethod
    def _made(cls, length: int | np.ndarray, G: np.ndarray, endless: np.ndarray | bool = False) -> Self:
        """The context with a new matrix G, which is not copied."""
        refuse("G", ~np.isfinite(G), "is not finite; divide rewards or features by a number")
        context = object.__new__(cls)
        vars(context).update(length=length, G=G)
        if np.any(endless):
            vars(context)["_endless"] = endless
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
        n = checked_states("states", states, n, features)
        return cls._of_steps(states[..., :-1], rewards, states[..., 1:], n, features, np.ones(rewards.shape))

    @classmethod
    @validate
    def from_transitions(
        cls,
        states: Annotated[ArrayLike, integers("..., m!")],
        rewards: Annotated[ArrayLike, array("..., m")],
        next_states: NextStates,
        n: Count | None = None,
        features: Features | None = None,
        terminals: Terminals | None = None,
        discounts: Discounts | None = None,
    ) -> Self:
        """Average over steps that need not form one trajectory, such as several episodes or off-policy data.

        Several contexts of one step each are refused, because such an array is the same as a column of T steps;
        ``from_trajectory`` takes them.  A warning tells if the steps of several agents have the axes (T, N), in which
        the first axis would count contexts.

        Parameters
        ----------
        states, next_states : (..., m) int arrays, S_t and S_{t+1}
        rewards : (..., m) array, R_{t+1}
        n, features : as for ``from_trajectory``
        terminals : (..., m) bool array, whether step t ends its episode, Gymnasium's ``terminated``
            The next feature of such a step is zero, and its entry of ``next_states`` is ignored and may be missing
            (NaN).  A time limit (``truncated``) ends no episode: the value of the next state counts.
        discounts : (..., m) array, gamma_{t+1} of each step, from 0 to 1
            They multiply the next features.  The discount of an algorithm multiplies them again, so it is then 1.

        Examples
        --------
        Two episodes, 0, 1, end and 1, 0, 1, end, with a reward of 1 for each step:

        >>> import ictd
        >>> context = ictd.Context.from_transitions(
        ...     states=[0, 1, 1, 0, 1], rewards=[1.0] * 5, next_states=[1, 0, 0, 1, 0], n=2, terminals=[0, 1, 0, 0, 1]
        ... )
        >>> ictd.certainty_equivalence(context, discount=1)
        array([3., 2.])
        """
        continued = continuation(rewards, terminals, discounts)
        n = checked_states("states", states, n, features)
        next_states = without_ends(next_states, terminals, n)
        _warn_of_swapped_axes(states[..., None], next_states[..., None])
        return cls._of_steps(states, rewards, next_states, n, features, continued)

    @classmethod
    @validate
    def from_features(
        cls,
        phi: Annotated[ArrayLike, array("..., m!, d")],
        phi_next: Annotated[ArrayLike, array("..., m, d", finite=False)],
        rewards: Annotated[ArrayLike, array("..., m")],
        terminals: Terminals | None = None,
        discounts: Discounts | None = None,
    ) -> Self:
        """Average over steps that are given by features, for data without numbered states.

        Parameters
        ----------
        phi : (..., m, d) array, phi_t
        phi_next : (..., m, d) array, phi_{t+1}; rows of zeros end an episode, as ``terminals`` do
        rewards : (..., m) array, R_{t+1}
        terminals, discounts : as for ``from_transitions``
        """
        continued = continuation(rewards, terminals, discounts)[..., None]
        phi_next = np.where(continued == 0, 0.0, phi_next)
        refuse("phi_next", ~np.isfinite(phi_next), "is {}, which is not finite", phi_next)
        _warn_of_swapped_axes(phi, phi_next)
        goes_on = (continued == 1) & phi_next.any(axis=-1, keepdims=True)
        return cls._of(goes_on.all(axis=(-1, -2)), phi, continued * phi_next, rewards)

    @classmethod
    def _of_steps(
        cls,
        states: np.ndarray,
        rewards: np.ndarray,
        next_states: np.ndarray,
        n: int,
        features: np.ndarray | None,
        continued: np.ndarray,
    ) -> Self:
        """Average over steps (..., m) between states, whose next features are multiplied by ``continued`` (..., m)."""
        steps = states.shape[-1]
        if features is not None and (2 * n + 1) ** 2 > (2 * features.shape[-1] + 1) * steps:
            phi_next = continued[..., None] * features_of(next_states, features, n)
            return cls._of((continued == 1).all(axis=-1), features_of(states, features, n), phi_next, rewards)
        # Counts take less memory than the columns of the steps.
        lead = states.shape[:-1]
        rows = n * np.arange(math.prod(lead)).reshape(*lead, 1)  # Of the first state of each context.

        def sums(places, weights, *shape):
            size = math.prod([*lead, *shape])
            return np.bincount(places.ravel(), weights.ravel(), size).reshape(*lead, *shape) / steps

        states, next_states = (part.astype(np.int64, copy=False) for part in (states, next_states))
        now, following = rows + states, rows + next_states
        context = cls._one_hot(
            steps,
            C=sums(now, np.ones(rewards.shape), n),
            D=sums(n * now + next_states, continued, n, n),
            E=sums(following, continued**2, n),
            b=sums(now, rewards, n),
            d=sums(following, continued * rewards, n),
            reward_square=np.vecdot(rewards, rewards) / steps,
        )
        return context if features is None else context.with_features(features)

    @classmethod
    @validate
    def enumerated(
        cls,
        transition: Annotated[ArrayLike, probabilities("..., n, n", may_end=True)],
        reward: Annotated[ArrayLike, array("..., n")],
        features: Features | None = None,
        weights: Shares | None = None,
        episodic: Flag = False,
    ) -> Self:
        """Average over the columns of the enumerated context, eq. (Z0 redef), with the length n.

        Parameters are those of ``enumerated_columns``.
        """
        sums = row_sums(transition)
        endless = False if features is None else (sums >= 1 - ROW_SUM_TOLERANCE).all(axis=-1)
        features = state_features(reward.shape[-1], features)
        return cls._of(endless, features, transition @ features, reward, weights)

    @classmethod
    def of_shares(cls, length: int | np.ndarray, D: np.ndarray, reward: np.ndarray) -> Self:
        """Average over one-hot steps, from the shares D (..., n, n) of the transitions and the rewards r(s) (..., n).

        This is faster than sums over the steps, and takes memory that does not grow with their number m.  D may have
        one more column, of the shares of the steps that end an episode.
        """
        visits, D = row_sums(D), D[..., : reward.shape[-1]]
        squares = np.vecdot(visits, reward**2)
        return cls._one_hot(length, visits, D, row_sums(D.mT), visits * reward, np.vecmat(reward, D), squares)

    @classmethod
    def _one_hot(
        cls,
        length: int | np.ndarray,
        C: np.ndarray,
        D: np.ndarray,
        E: np.ndarray,
        b: np.ndarray,
        d: np.ndarray,
        reward_square: np.ndarray,
    ) -> Self:
        """The context with one-hot features that has these averages, with the diagonals (..., n) of C and E."""
        n = b.shape[-1]
        G = np.zeros((*D.shape[:-2], 2 * n + 1, 2 * n + 1))
        on_diagonal = np.einsum("...ii->...i", G)
        on_diagonal[..., :n], on_diagonal[..., n:-1], on_diagonal[..., -1] = C, E, reward_square
        G[..., :n, n:-1], G[..., n:-1, :n] = D, D.mT
        G[..., -1, :n], G[..., -1, n:-1] = b, d
        G[..., :-1, -1] = G[..., -1, :-1]
        return cls._made(length, G)


def without_ends(next_states: np.ndarray, terminals: np.ndarray | None, n: int) -> np.ndarray:
    """Next states (..., m) of steps, with 0 at the end of an episode, where entries are ignored."""
    next_states = next_states if terminals is None else np.where(terminals, 0, next_states)
    refuse("next_states", next_states == MISSING, "is missing, but terminals do not mark the step as an end")
    checked_states("next_states", next_states, n, None)
    return next_states


def _warn_of_swapped_axes(phi: np.ndarray, phi_next: np.ndarray) -> None:
    """Warn if steps (..., m, d) follow each other along the first axis, as in a log of several agents."""
    if len(phi) < 2:
        return
    along = [(np.moveaxis(phi, axis, 0), np.moveaxis(phi_next, axis, 0)) for axis in (0, -2)]
    first, last = ((now[1:] == following[:-1]).all(axis=-1).mean() for now, following in along)
    if first > (1 + last) / 2:
        warnings.warn(
            "steps follow each other along the first axis, which counts contexts; move the axis of the steps"
            " behind it (np.moveaxis).",
            stacklevel=4,
        )


def diagonal(entries: np.ndarray) -> np.ndarray:
    """Diagonal matrices (..., n, n) with the entries (..., n)."""
    return np.eye(entries.shape[-1]) * entries[..., None]


def continuation(rewards: np.ndarray, terminals: np.ndarray | None, discounts: float | np.ndarray | None) -> np.ndarray:
    """Factors (..., m) of the next features of steps: their discounts, and 0 for steps that end an episode."""
    factors = np.full(rewards.shape, 1.0 if discounts is None else discounts)
    return factors if terminals is None else factors * ~terminals
