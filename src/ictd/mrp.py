"""Markov reward processes: their stationary distribution, value function and value error.

A task is an MRP ``(p, r)``.  Row ``s`` of ``transition`` is ``p(. | s)``; ``reward[s]`` is ``r(s)``.  Every function
takes any number of leading axes, so a whole task set is handled at once (section "Policy Evaluation").
"""

from dataclasses import dataclass
from typing import Self

import numpy as np

from ictd.checks import (
    DISCOUNT,
    array,
    integer,
    optional,
    probabilities,
    refuse,
    row_sum_tolerance,
    shown,
    validate,
    validate_fields,
)


class TaskArrays:
    """Base of dataclasses whose fields are arrays with a leading axis of N tasks."""

    @classmethod
    def unchecked(cls, **fields: np.ndarray) -> Self:
        """An object made of these fields without validation."""
        made = object.__new__(cls)
        vars(made).update(fields)
        return made

    def __len__(self) -> int:
        return len(next(iter(vars(self).values())))

    def __getitem__(self, tasks: slice) -> Self:
        if not isinstance(tasks, slice):
            raise ValueError(f"{shown(tasks)} is no slice of tasks; write [3:4] for task 3.")
        return self.unchecked(**{name: np.ascontiguousarray(field[tasks]) for name, field in vars(self).items()})

    def _validate(self, **validators) -> None:
        """Validate arrays with leading axes "...": one axis of tasks, or none for a single task, which gets one."""
        lead = validate_fields(self, **validators)["..."]
        if len(lead) > 1 or 0 in lead:
            raise ValueError(f"the arrays have leading axes {lead}; give one axis of tasks, or none for a single task.")
        if not lead:
            vars(self).update({name: field[None] for name, field in vars(self).items() if field is not None})


@dataclass(frozen=True)
class Tasks(TaskArrays):
    """A set of N Markov reward processes with n states.

    The arrays of a single task may be given without the axis N.  The arrays are copied; ``tasks[a:b]`` is a view of
    some tasks.  ValueError for arrays whose shapes do not fit, entries that are not finite or no probabilities, rows
    that do not sum to one, a chain that is not irreducible, or a distribution that is not stationary.

    Parameters
    ----------
    transition : (N, n, n) array, row-stochastic
    reward : (N, n) array
    stationary : (N, n) array, optional
        Stationary distributions; computed from ``transition`` when not given, which needs irreducible chains.
    """

    transition: np.ndarray
    reward: np.ndarray
    stationary: np.ndarray | None = None

    def __post_init__(self):
        given = [self.transition] if self.stationary is None else [self.transition, self.stationary]
        self._validate(
            transition=probabilities("..., n, n"),
            reward=array("..., n"),
            stationary=optional(probabilities("..., n")),
        )
        integer(2)("the number of states", self.states, {})
        if self.stationary is None:
            vars(self)["stationary"] = stationary_distribution(self.transition)
        moved = np.einsum("is,isj->ij", self.stationary, self.transition)
        rounding = max(row_sum_tolerance(np.asarray(rows)) for rows in given)
        off = (np.abs(moved - self.stationary) > rounding).any(axis=1)
        refuse("stationary", off, "is not stationary: its transitions change it")

    @property
    def states(self) -> int:
        """Number of states n."""
        return self.transition.shape[1]


@validate(transition=probabilities("..., n, n"))
def stationary_distribution(transition: np.ndarray) -> np.ndarray:
    """Stationary distribution mu (..., n), with mu p = mu, of irreducible chains with transitions (..., n, n).

    The Grassmann-Taksar-Heyman elimination adds, multiplies and divides non-negative numbers only, so each entry has
    full relative precision (Grassmann, Taksar and Heyman, Operations Research 33(5), 1985).  Transitions are
    row-stochastic; ValueError with the index of a row that is not, or of a chain that is reducible.
    """
    states = transition.shape[-1]
    # Chains on the last axis, which is long.  Python's sum adds row by row, however many there are.
    work = np.array(transition.reshape(-1, states, states).transpose(1, 2, 0), order="C")
    with np.errstate(divide="ignore", invalid="ignore"):
        for k in range(states - 1, 0, -1):
            work[:k, k] /= sum(work[k, :k])
            work[:k, :k] += work[:k, k, None] * work[k, None, :k]
        mu = np.ones((states, work.shape[-1]))
        for k in range(1, states):
            mu[k] = sum(mu[:k] * work[:k, k])
        mu /= sum(mu)
    stationary = np.array(mu.T, order="C").reshape(transition.shape[:-1])
    refuse("transition", ~(stationary > 0).all(axis=-1), "is reducible: some state cannot be reached from every other")
    return stationary


@validate(transition=probabilities("*, n, n"), reward=array("*, n"), discount=DISCOUNT)
def value_function(transition: np.ndarray, reward: np.ndarray, discount: float) -> np.ndarray:
    """True values v = (I - gamma p)^{-1} r, (..., n) (appendix, proof of Theorem 1).

    Leading axes broadcast.  ValueError for rows that are no distributions, a reward that is not finite, or a discount
    out of range; above 1 - 2^-26, rounding would move values by more than a reward.

    Parameters
    ----------
    transition : (..., n, n) array, row-stochastic
    reward : (..., n) array
    discount : float, gamma
    """
    identity = np.eye(transition.shape[-1])
    return np.linalg.solve(identity - discount * transition, reward[..., None])[..., 0]


@validate(stationary=probabilities("*, n"), value=array("*, n", finite=False), estimate=array("*, n", finite=False))
def msve(stationary: np.ndarray, value: np.ndarray, estimate: np.ndarray) -> np.ndarray:
    """Mean square value error (...), sum_s mu(s) (v(s) - v'(s))^2 (section "Policy Evaluation").

    The three (..., n) arrays broadcast against each other; values that are not finite give errors that are not.
    """
    return (stationary * (value - estimate) ** 2).sum(axis=-1)


def truncation_bias(transition: np.ndarray, value: np.ndarray, discount: float, steps: int) -> np.ndarray:
    """Expected error (..., n) of a return cut after ``steps`` rewards, E[G~(s)] - v(s) = -gamma^steps (p^steps v)(s).

    Parameters
    ----------
    transition : (..., n, n) array, row-stochastic
    value : (..., n) array, v
    discount : float, gamma
    steps : int, tau in Algorithm 2
    """
    left = np.linalg.matrix_power(transition, steps) @ value[..., None]
    return -(discount**steps) * left[..., 0]
