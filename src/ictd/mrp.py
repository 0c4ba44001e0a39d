"""Markov reward processes: their stationary distribution, value function and value error.

A task is an MRP ``(p, r)``.  Row ``s`` of ``transition`` is ``p(. | s)``; ``reward[s]`` is ``r(s)``.  Every function
takes any number of leading axes, so a whole task set is handled at once (section "Policy Evaluation").
"""

from dataclasses import dataclass

import numpy as np

from ictd.checks import DISCOUNT, checked, one_or_more, optional, own, part, reals, refuse, rows, whole


@dataclass(frozen=True)
class Tasks:
    """A set of N Markov reward processes with n states.  One may be given without the axis N, and is a set of one.

    The arrays are copied; ``tasks[a:b]`` is a view of some.  A ValueError names what has a wrong shape, is not finite,
    not a probability, does not sum to one, is a chain that is not irreducible, or a distribution that is not
    stationary.

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
        stationary = optional(one_or_more(rows, "N, n"))
        transition, reward = one_or_more(rows, "N, n, n"), one_or_more(reals, "N, n")
        known = own(self, transition=transition, reward=reward, stationary=stationary)
        whole(2)("the number of states", self.states, known)
        if self.stationary is None:
            vars(self)["stationary"] = stationary_distribution(self.transition)
        moved = np.einsum("is,isj->ij", self.stationary, self.transition)
        off = (np.abs(moved - self.stationary) > known["rounding"]).any(axis=1)
        refuse("stationary", off, "is not stationary: its transitions change it")

    @property
    def states(self) -> int:
        """Number of states n."""
        return self.transition.shape[1]

    def __len__(self) -> int:
        return len(self.transition)

    def __getitem__(self, tasks: slice) -> "Tasks":
        return part(self, tasks)


@checked(transition=rows("..., n, n"))
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


@checked(transition=rows("*, n, n"), reward=reals("*, n"), discount=DISCOUNT)
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


@checked(stationary=rows("*, n"), value=reals("*, n", False), estimate=reals("*, n", False))
def msve(stationary: np.ndarray, value: np.ndarray, estimate: np.ndarray) -> np.ndarray:
    """Mean square value error (...), sum_s mu(s) (v(s) - v'(s))^2 (section "Policy Evaluation").

    The three (..., n) arrays broadcast against each other; values that are not finite give errors that are not.
    """
    return (stationary * (value - estimate) ** 2).sum(axis=-1)


@checked(transition=rows("*, n, n"), value=reals("*, n"), discount=DISCOUNT, steps=whole(0))
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
