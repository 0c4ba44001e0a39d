"""Prompts of the Transformer: enumerated states for training, sampled contexts for evaluation."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from ictd.checks import DISCOUNT, checked, either, own, reals, rows, whole, wholes

ENUMERATED = 0  # In place of a context length, for enumerated prompts.
CONTEXT_LENGTH = either(whole(1), wholes("...", 1))


@checked(transition=rows("..., n, n"), reward=reals("..., n"), discount=DISCOUNT)
def enumerated_context(transition: np.ndarray, reward: np.ndarray, discount: float) -> np.ndarray:
    """Context (..., 2n+1, n) of eq. (Z0 redef): all states, expected next features, rewards.

    Parameters
    ----------
    transition : (..., n, n) array
    reward : (..., n) array
    discount : float, gamma
    """
    features = np.broadcast_to(np.eye(reward.shape[-1]), transition.shape)
    return np.concatenate([features, discount * np.swapaxes(transition, -1, -2), reward[..., None, :]], axis=-2)


@checked(reward=reals("..., n"), paths=wholes("..., m+1", 0, "n-1"), discount=DISCOUNT)
def sampled_context(paths: np.ndarray, reward: np.ndarray, discount: float) -> np.ndarray:
    """Context (..., 2n+1, m) of the prompt Z_0, eq. (Z0 def original).

    It is C(i, m) of section "In-Context Policy Evaluation Verification".

    Parameters
    ----------
    paths : (..., m+1) int array
        States S_0, ..., S_m.
    reward : (..., n) array
        r(s), so that R_{t+1} = r(S_t).
    discount : float, gamma
    """
    features = np.swapaxes(np.eye(reward.shape[-1])[paths], -1, -2)
    rewards = np.take_along_axis(reward, paths[..., :-1], axis=-1)
    return np.concatenate([features[..., :-1], discount * features[..., 1:], rewards[..., None, :]], axis=-2)


@checked(states=whole(1))
def query_columns(states: int) -> np.ndarray:
    """Columns [phi(s); 0; 0] of all query states, (2n+1, n)."""
    return np.eye(2 * states + 1, states)


@checked(context=reals("..., 2n+1, m"))
def prompts_of(context: np.ndarray) -> np.ndarray:
    """The n prompts (..., n, 2n+1, m+1) of a context (..., 2n+1, m); entry [..., s, :, :] has s as its query."""
    states = (context.shape[-2] - 1) // 2
    queries = query_columns(states).T[:, :, None]
    repeated = np.repeat(context[..., None, :, :], states, axis=-3)
    return np.concatenate([repeated, np.broadcast_to(queries, (*repeated.shape[:-1], 1))], axis=-1)


@checked(context=reals("..., 2n+1, m"))
def joint_prompt(context: np.ndarray) -> np.ndarray:
    """One prompt (..., 2n+1, m+n) with all n query states behind a context (..., 2n+1, m)."""
    queries = query_columns((context.shape[-2] - 1) // 2)
    return np.concatenate([context, np.broadcast_to(queries, (*context.shape[:-2], *queries.shape))], axis=-1)


@dataclass(frozen=True)
class Context:
    """All that batch TD, LSTD and Gram matrices take from contexts of m steps phi_t, R_{t+1}, phi_{t+1}: the averages

        C = (1/m) sum_t phi_t phi_t',    D = (1/m) sum_t phi_t phi_{t+1}',    b = (1/m) sum_t R_{t+1} phi_t.

    Parameters
    ----------
    length : int, m, or an array (...) of them
    visits : (..., n) array, the diagonal of C
    successors : (..., n, n) array, D
    rewards : (..., n) array, b
    """

    length: int | np.ndarray
    visits: np.ndarray
    successors: np.ndarray
    rewards: np.ndarray

    def __post_init__(self):
        own(self, visits=rows("..., n"), successors=reals("..., n, n"), rewards=reals("..., n"), length=CONTEXT_LENGTH)

    @classmethod
    @checked(reward=reals("..., n"), paths=wholes("..., m+1", 0, "n-1"))
    def of_paths(cls, paths: np.ndarray, reward: np.ndarray) -> Self:
        """Averages over the contexts that trajectories S_0, ..., S_m give.

        The paths are (..., m+1) ints, the states, and the rewards r(s) are (..., n).
        """
        features = np.eye(reward.shape[-1])[paths]
        now, following = features[..., :-1, :], features[..., 1:, :]
        length = now.shape[-2]
        visits = now.mean(axis=-2)
        successors = np.swapaxes(now, -1, -2) @ following / length
        return cls(length, visits, successors, visits * reward)

    @classmethod
    @checked(transition=rows("..., n, n"), reward=reals("..., n"))
    def enumerated(cls, transition: np.ndarray, reward: np.ndarray) -> Self:
        """What an enumerated prompt, eq. (Z0 redef), has in place of averages: each state once, and p for D.

        Transitions are (..., n, n) and rewards (..., n).
        """
        states = reward.shape[-1]
        return cls(states, np.full_like(reward, 1 / states), transition / states, reward / states)
