"""Prompts of the Transformer: enumerated states for training, sampled contexts for evaluation."""

from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from ictd.checks import (
    DISCOUNT,
    ROW_SUM_TOLERANCE,
    array,
    either,
    integer,
    integers,
    optional,
    probabilities,
    refuse,
    validate,
    validate_fields,
)

ENUMERATED = 0  # In place of a context length, for enumerated prompts.


@validate(transition=probabilities("..., n, n"), reward=array("..., n"), discount=DISCOUNT)
def enumerated_context(transition: np.ndarray, reward: np.ndarray, discount: float) -> np.ndarray:
    """Context (..., 2n+1, n) of eq. (Z0 redef): all states, expected next features, rewards.

    ValueError for transitions that are not row-stochastic, rewards that are not finite, a discount out of range, or
    shapes that do not fit.

    Parameters
    ----------
    transition : (..., n, n) array
    reward : (..., n) array
    discount : float, gamma
    """
    features = np.broadcast_to(np.eye(reward.shape[-1]), transition.shape)
    return np.concatenate([features, discount * np.swapaxes(transition, -1, -2), reward[..., None, :]], axis=-2)


@validate(paths=integers("..., m+1"), reward=array("..., n"), discount=DISCOUNT)
def sampled_context(paths: np.ndarray, reward: np.ndarray, discount: float) -> np.ndarray:
    """Context (..., 2n+1, m) of the prompt Z_0, eq. (Z0 def original).

    It is C(i, m) of section "In-Context Policy Evaluation Verification".  ValueError for states that are not from 0 to
    n-1, rewards that are not finite, a discount out of range, or leading axes that differ.

    Parameters
    ----------
    paths : (..., m+1) int array
        States S_0, ..., S_m.
    reward : (..., n) array
        r(s), so that R_{t+1} = r(S_t).
    discount : float, gamma
    """
    _check_states("paths", paths, reward.shape[-1])
    features = np.swapaxes(np.eye(reward.shape[-1])[paths], -1, -2)
    rewards = np.take_along_axis(reward, paths[..., :-1], axis=-1)
    return np.concatenate([features[..., :-1], discount * features[..., 1:], rewards[..., None, :]], axis=-2)


def _check_states(name: str, states: np.ndarray, n: int) -> None:
    refuse(name, (states < 0) | (states >= n), f"is not one of {n} states, which are 0 to {n - 1}")


def query_columns(states: int) -> np.ndarray:
    """Columns [phi(s); 0; 0] of all query states, (2n+1, n)."""
    return np.eye(2 * states + 1, states)


@validate(context=array("..., 2n+1, m"))
def prompts_of(context: np.ndarray) -> np.ndarray:
    """The n prompts (..., n, 2n+1, m+1) of a context (..., 2n+1, m); entry [..., s, :, :] has s as its query.

    ValueError for a context of another shape, or with entries that are not finite.
    """
    states = (context.shape[-2] - 1) // 2
    queries = query_columns(states).T[:, :, None]
    repeated = np.repeat(context[..., None, :, :], states, axis=-3)
    return np.concatenate([repeated, np.broadcast_to(queries, (*repeated.shape[:-1], 1))], axis=-1)


@validate(context=array("..., 2n+1, m"))
def joint_prompt(context: np.ndarray) -> np.ndarray:
    """One prompt (..., 2n+1, m+n) with all n query states behind a context (..., 2n+1, m).

    ValueError for a context of another shape, or with entries that are not finite.
    """
    queries = query_columns((context.shape[-2] - 1) // 2)
    return np.concatenate([context, np.broadcast_to(queries, (*context.shape[:-2], *queries.shape))], axis=-1)


@dataclass(frozen=True)
class Context:
    """All that batch TD, LSTD and Gram matrices take from contexts of m steps phi_t, R_{t+1}, phi_{t+1}: the averages

        C = (1/m) sum_t phi_t phi_t',    D = (1/m) sum_t phi_t phi_{t+1}',    E = (1/m) sum_t phi_{t+1} phi_{t+1}',
        b = (1/m) sum_t R_{t+1} phi_t,    d = (1/m) sum_t R_{t+1} phi_{t+1}.

    ``from_trajectory`` and ``enumerated`` make it.  The arrays are copied; ValueError for shapes that do not fit.

    Parameters
    ----------
    length : int, m, or an array (...) of them
    visits : (..., n) array, the diagonal of C, shares of steps
    successors : (..., n, n) array, D, shares of steps
    rewards : (..., n) array, b
    next_rewards : (..., n) array, d
    next_visits : (..., n, n) array, E, optional
        By default that of next features that are states, the sums over D's columns on its diagonal.
    """

    length: int | np.ndarray
    visits: np.ndarray
    successors: np.ndarray
    rewards: np.ndarray
    next_rewards: np.ndarray
    next_visits: np.ndarray | None = None

    def __post_init__(self):
        validate_fields(
            self,
            visits=probabilities("..., n"),
            successors=array("..., n, n"),
            rewards=array("..., n"),
            next_rewards=array("..., n"),
            next_visits=optional(array("..., n, n")),
            length=either(integer(1), integers("...", 1)),
        )
        off = np.abs(self.successors.sum(axis=-1) - self.visits) > ROW_SUM_TOLERANCE
        off |= (self.successors < 0).any(axis=-1)
        refuse(
            "successors", off.any(axis=-1), "do not go with visits: give shares of steps, row s summing to visits[s]"
        )
        if self.next_visits is None:
            vars(self)["next_visits"] = np.eye(self.states) * self.successors.sum(axis=-2)[..., None]

    @property
    def states(self) -> int:
        """Number of states n."""
        return self.visits.shape[-1]

    @classmethod
    @validate(states=integers("..., m+1"), rewards=array("..., m"), n=integer(1))
    def from_trajectory(cls, states: np.ndarray, rewards: np.ndarray, n: int) -> Self:
        """Averages over the contexts that trajectories give, section "In-Context Policy Evaluation Verification".

        ValueError for states that are not from 0 to n-1, or numbers of states and rewards that do not fit.

        Parameters
        ----------
        states : (..., m+1) int array, S_0, ..., S_m
        rewards : (..., m) array, R_1, ..., R_m, which may be other than r(S_0), ..., r(S_{m-1})
        n : int, number of states
        """
        _check_states("states", states, n)
        features = np.eye(n)[states]
        now, following = features[..., :-1, :], features[..., 1:, :]
        length = now.shape[-2]
        weighted = (np.vecmat(rewards, of) / length for of in (now, following))
        return cls(length, now.mean(axis=-2), np.swapaxes(now, -1, -2) @ following / length, *weighted)

    @classmethod
    @validate(paths=integers("..., m+1"), reward=array("..., n"))
    def of_paths(cls, paths: np.ndarray, reward: np.ndarray) -> Self:
        """As ``from_trajectory``, where a reward is r(s).

        The paths are (..., m+1) ints, the states, and the rewards r(s) are (..., n).
        """
        _check_states("paths", paths, reward.shape[-1])
        one = cls.from_trajectory(paths, np.take_along_axis(reward, paths[..., :-1], axis=-1), reward.shape[-1])
        # Each reward once, which rounds less than the sum over its visits.
        return replace(one, rewards=one.visits * reward, next_rewards=np.vecmat(reward, one.successors))

    @classmethod
    @validate(transition=probabilities("..., n, n"), reward=array("..., n"))
    def enumerated(cls, transition: np.ndarray, reward: np.ndarray) -> Self:
        """Averages over the columns of an enumerated prompt, eq. (Z0 redef): each state once, p' phi its next features.

        Transitions are (..., n, n) and rewards (..., n).
        """
        sums = transition, reward, np.vecmat(reward, transition), transition.mT @ transition
        states = reward.shape[-1]
        return cls(states, np.full_like(reward, 1 / states), *(each / states for each in sums))
