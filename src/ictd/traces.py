"""TD(lambda) and LSTD(lambda): algorithms with eligibility traces, for episodes of any lengths.

The steps of all episodes are given one after the other.  Step t leads from S_t to S_{t+1} with the reward R_{t+1} and
the discount gamma_{t+1}, which is 0 if the step ends its episode.  Its TD error and its trace are ::

    delta_t = R_{t+1} + gamma_{t+1} w phi_{t+1} - w phi_t,    z_t = gamma_t lambda z_{t-1} + phi_t,

so a trace decays by the discount of the step before (Sutton and Barto, Reinforcement Learning, 2018, section 12.8).
After a time limit, z_t = phi_t starts anew, but the value of the last next state counts.
"""

from collections.abc import Iterator
from typing import Annotated, NamedTuple

import numpy as np

from ictd.baselines import NEARLY_SINGULAR, solved, warn_of_divergence
from ictd.checks import (
    LARGEST_DISCOUNT,
    ROW_SUM_TOLERANCE,
    ArrayLike,
    Count,
    Features,
    Positive,
    UpToOne,
    array,
    either,
    integers,
    number,
    refuse,
    validate,
)
from ictd.context import Context, NextStates, Terminals, continuation, without_ends
from ictd.prompt import checked_states, features_of, state_features

# Steps whose features are in memory at once.
BLOCK = 256
# Types of the arguments of both algorithms.
States = Annotated[ArrayLike, integers("..., k!")]
Rewards = Annotated[ArrayLike, array("..., m")]
StepDiscounts = Annotated[float | ArrayLike, either(number(0, 1, "from 0 to 1"), array("..., m", least=0, most=1))]


@validate
def td_lambda(
    states: States,
    rewards: Rewards,
    discount: StepDiscounts,
    decay: UpToOne,
    step_size: Annotated[float, number()],
    n: Count | None = None,
    features: Features | None = None,
    next_states: NextStates | None = None,
    terminals: Terminals | None = None,
    truncations: Terminals | None = None,
) -> np.ndarray:
    """Estimate values by online TD(lambda) with accumulating traces, in one pass through all steps.

    Source: Sutton, Machine Learning 3, 1988.

    Parameters
    ----------
    states : (..., m+1) int array, S_0, ..., S_m, or (..., m) int array if ``next_states`` are given
    rewards : (..., m) array, R_1, ..., R_m
    discount : float, gamma, or (..., m) array, gamma_{t+1} of each step, from 0 to 1
    decay : float, lambda, from 0 to 1
    step_size : float, alpha
    n : int, number of states
        May be left out if features are given.
    features : (n, d) or (..., n, d) array, phi(s) in row s; one-hot by default
    next_states : (..., m) int array, S_{t+1} of each step, which differs from the next entry of ``states`` only at the
        end of an episode; optional
    terminals : (..., m) bool array, whether step t ends its episode, Gymnasium's ``terminated``
        The next state of such a step is ignored, and may be missing (NaN).
    truncations : (..., m) bool array, whether step t is the last before a time limit, Gymnasium's ``truncated``
        The value of its next state counts, so ``next_states`` must be given unless it is the last step, and the trace
        starts anew.

    Returns
    -------
    estimates : (..., d) array

    Raises
    ------
    ValueError
        If a state is not from 0 to n-1, shapes do not match, a number is out of range, or a next state differs from the
        next entry of ``states`` although no episode ends.

    Warns
    -----
    RuntimeWarning
        If the updates diverge: estimates are not finite, or larger than values can be.
        ``with np.errstate(over="ignore")`` turns the warning off.

    Examples
    --------
    >>> import ictd
    >>> ictd.td_lambda([0, 1, 1, 0], [1.0, -1.0, -1.0], discount=0.9, decay=0.8, step_size=0.5, n=2)
    array([ 0.0430592, -0.82164  ])
    """
    steps = _steps(states, rewards, discount, decay, n, features, next_states, terminals, truncations)
    w = trace = np.zeros(n if features is None else features.shape[-1])
    with np.errstate(over="ignore", invalid="ignore"):
        for phi, phi_next, _, _, reward, gamma, decays in steps.in_order():
            error = reward + np.vecdot(w, gamma[..., None] * phi_next - phi)
            trace = decays[..., None] * trace + phi
            w = w + step_size * error[..., None] * trace
    warn_of_divergence("td_lambda", steps.too_large(w))
    return w


@validate
def lstd_lambda(
    states: States,
    rewards: Rewards,
    discount: StepDiscounts,
    decay: UpToOne,
    ridge: Positive,
    n: Count | None = None,
    features: Features | None = None,
    next_states: NextStates | None = None,
    terminals: Terminals | None = None,
    truncations: Terminals | None = None,
) -> np.ndarray:
    """Estimate values by LSTD(lambda), the solution w of sum_t z_t delta_t = ridge w with accumulating traces z_t.

    Source: Boyan, Machine Learning 49, 2002.  With lambda = 0 it is ``lstd`` of the context of these steps.

    Parameters
    ----------
    ridge : float, positive, because steps may lack states
    states, rewards, discount, decay, n, features, next_states, terminals, truncations : as for ``td_lambda``

    Returns
    -------
    estimates : (..., d) array

    Raises
    ------
    ValueError
        As ``td_lambda``, or if the ridge is not positive, or discounts are 1 in states from which no end is reached
        (with features: in all states), or as ``lstd`` if the matrix is singular.

    Warns
    -----
    RuntimeWarning
        As ``lstd``.

    Examples
    --------
    >>> import ictd
    >>> ictd.lstd_lambda([0, 1, 1, 0], [1.0, -1.0, -1.0], discount=0.9, decay=0.8, ridge=0.01, n=2).round(2)
    array([-2.48, -3.59])
    """
    steps = _steps(states, rewards, discount, decay, n, features, next_states, terminals, truncations)
    if (steps.discounts > LARGEST_DISCOUNT).any():
        given = steps.states, rewards, steps.next_states, steps.n, features, steps.discounts
        Context._of_steps(*given).refuse_endless(1.0)
    features = state_features(steps.n, features)
    lead = np.broadcast_shapes(rewards.shape[:-1], features.shape[:-2])
    contexts = np.indices(lead, sparse=True)
    # In sum_t z_t (phi_t - gamma_{t+1} phi_{t+1})', both parts are sum_s y(s) phi(s)' with sums y(s) of traces.
    now, following = np.zeros((2, *lead, *features.shape[-2:]))
    vector, trace = 0.0, 0.0
    for phi, _, state, next_state, reward, gamma, decays in steps.in_order():
        trace = decays[..., None] * trace + phi
        now[*contexts, state] += trace
        following[*contexts, next_state] += gamma[..., None] * trace
        vector = vector + reward[..., None] * trace
    first, second, ridges = now.mT @ features, following.mT @ features, ridge * np.eye(features.shape[-1])
    w = solved(first - second + ridges, np.abs(first) + np.abs(second) + ridges, vector)
    warn_of_divergence("lstd_lambda", steps.too_large(w) & (steps.features is not None), *NEARLY_SINGULAR)
    return w


class _Steps(NamedTuple):
    """Steps (..., m) of episodes, with the discount of each step, which is 0 at an end, and of the trace before it."""

    states: np.ndarray
    next_states: np.ndarray
    rewards: np.ndarray
    discounts: np.ndarray
    decays: np.ndarray
    features: np.ndarray | None
    n: int

    def too_large(self, w: np.ndarray) -> np.ndarray:
        """Whether weights w (..., d) give values that are larger than rewards and discounts allow, (...)."""
        length, largest = self.rewards.shape[-1], self.discounts.max(axis=-1)
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            values = w if self.features is None else np.matvec(self.features, w)
            squares = (features_of(self.states, values[..., None], self.n) ** 2).sum(axis=(-1, -2))
            horizon = np.where(largest < 1, 1 / (1 - largest), length)
            most = length * (self.rewards**2).sum(axis=-1) * horizon**2
        return ~((squares <= most * (1 + ROW_SUM_TOLERANCE)) & np.isfinite(squares))

    def in_order(self) -> Iterator[tuple[np.ndarray, ...]]:
        """Yield phi_t, phi_{t+1} (..., d) and the first five fields (...) of step t, step by step."""
        for first in range(0, self.rewards.shape[-1], BLOCK):
            parts = [field[..., first : first + BLOCK] for field in self[:5]]
            phi = (np.moveaxis(features_of(part, self.features, self.n), -2, 0) for part in parts[:2])
            yield from zip(*phi, *(np.moveaxis(part, -1, 0) for part in parts), strict=True)


def _steps(
    states: np.ndarray,
    rewards: np.ndarray,
    discount: float | np.ndarray,
    decay: float,
    n: int | None,
    features: np.ndarray | None,
    next_states: np.ndarray | None,
    terminals: np.ndarray | None,
    truncations: np.ndarray | None,
) -> _Steps:
    """Check the arguments of ``td_lambda`` against each other."""
    ended = np.zeros(rewards.shape, bool) if terminals is None else terminals
    cut = ended if truncations is None else ended | truncations
    if next_states is None and (cut & ~ended)[..., :-1].any():
        raise ValueError("next_states are missing; with truncations, give the next state of each step.")
    expected = (*rewards.shape[:-1], rewards.shape[-1] + (next_states is None))
    if states.shape != expected:
        reason = "" if next_states is None else " with next_states"
        raise ValueError(f"states has shape {states.shape}; give {expected}{reason}.")
    if next_states is None:
        states, next_states = states[..., :-1], states[..., 1:]
    n = checked_states("states", states, n, features)
    next_states = without_ends(next_states, terminals, n)
    jumps = (next_states[..., :-1] != states[..., 1:]) & ~cut[..., :-1]
    if jumps.any() and features is not None:
        # Two states may be the same observation, with the same features.
        after, before = (features_of(part, features, n) for part in (next_states[..., :-1], states[..., 1:]))
        jumps = jumps & (after != before).any(axis=-1)
    refuse(
        "next_states",
        jumps,
        "is not the next entry of states along the last axis; mark ends in terminals or truncations",
    )
    discounts = continuation(rewards, terminals, discount)
    decays = np.zeros(rewards.shape)
    decays[..., 1:] = decay * discounts[..., :-1] * ~cut[..., :-1]
    return _Steps(states, next_states, rewards, discounts, decays, features, n)
