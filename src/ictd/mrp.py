"""Markov reward processes: their stationary distribution, value function and value error.

A task is an MRP ``(p, r)``.  Row ``s`` of ``transition`` is ``p(. | s)``; ``reward[s]`` is ``r(s)``.  Every function
takes any number of leading axes, so a whole task set is handled at once (section "Policy Evaluation").
"""

from dataclasses import dataclass

import numpy as np

# Largest deviation of a row sum from one that is put down to rounding.
ROW_SUM_TOLERANCE = 1e-9


@dataclass(frozen=True)
class Tasks:
    """A set of N Markov reward processes with n states.

    A ValueError names the task that has a wrong shape, a value that is not finite, a negative probability, a row that
    does not sum to one, a chain that is not irreducible, or a distribution that is not stationary.

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
        transition = np.ascontiguousarray(self.transition, dtype=np.float64)
        reward = np.ascontiguousarray(self.reward, dtype=np.float64)
        if transition.ndim != 3 or transition.shape[1] != transition.shape[2] or transition.shape[1] < 2:
            raise ValueError(f"transition has shape {transition.shape}; give (N, n, n) with n of at least 2.")
        if reward.shape != transition.shape[:2]:
            raise ValueError(f"reward has shape {reward.shape}; these transitions need {transition.shape[:2]}.")
        _check_rows(transition, "transition")
        refuse(~np.isfinite(reward).all(axis=-1), "a value that is not finite", "reward of ")
        if self.stationary is None:
            stationary = stationary_distribution(transition)
        else:
            stationary = np.ascontiguousarray(self.stationary, dtype=np.float64)
            if stationary.shape != reward.shape:
                raise ValueError(f"stationary has shape {stationary.shape}; these transitions need {reward.shape}.")
            _check_rows(stationary, "stationary")
            moved = np.einsum("is,isj->ij", stationary, transition)
            off = np.abs(moved - stationary).max(axis=1) > ROW_SUM_TOLERANCE
            refuse(off, "a distribution that its transitions change", "stationary of ")
        vars(self).update(transition=transition, reward=reward, stationary=stationary)

    @property
    def states(self) -> int:
        """Number of states n."""
        return self.transition.shape[1]

    def __len__(self) -> int:
        return len(self.transition)

    def __getitem__(self, tasks: slice) -> "Tasks":
        return unchecked(Tasks, **{name: array[tasks] for name, array in vars(self).items()})


def unchecked(kind: type, **fields):
    """A dataclass object made without its checks, from fields that have passed them before."""
    made = object.__new__(kind)
    vars(made).update(fields)
    return made


def refuse(bad: np.ndarray, what: str, of: str = "") -> None:
    """Raise a ValueError that names the first task that ``bad`` (N,) marks, and the array of tasks if it is given."""
    if bad.any():
        raise ValueError(f"{of}task {int(np.argmax(bad))} has {what}.")


def _check_rows(rows: np.ndarray, name: str) -> None:
    """Refuse rows (N, ..., n) that are not probability distributions."""
    axes = tuple(range(1, rows.ndim))
    refuse(~np.isfinite(rows).all(axis=axes), "a value that is not finite", f"{name} of ")
    refuse((rows < 0).any(axis=axes), "a negative probability", f"{name} of ")
    off = np.abs(rows.sum(axis=-1) - 1) > ROW_SUM_TOLERANCE
    refuse(off.reshape(len(rows), -1).any(axis=-1), "a row that does not sum to one", f"{name} of ")


def stationary_distribution(transition: np.ndarray) -> np.ndarray:
    """Stationary distribution mu (..., n), with mu p = mu, of irreducible chains with transitions (..., n, n).

    The Grassmann-Taksar-Heyman elimination adds, multiplies and divides non-negative numbers only, so each entry has
    full relative precision (Grassmann, Taksar and Heyman, Operations Research 33(5), 1985).  Transitions are
    row-stochastic; ValueError with its index if a chain is reducible.
    """
    work = np.array(transition, dtype=np.float64)
    if work.ndim < 2 or work.shape[-1] != work.shape[-2]:
        raise ValueError(f"transition has shape {work.shape}; give (..., n, n).")
    states = work.shape[-1]
    with np.errstate(divide="ignore", invalid="ignore"):
        for k in range(states - 1, 0, -1):
            leaving = work[..., k, :k].sum(axis=-1)
            work[..., :k, k] /= leaving[..., None]
            work[..., :k, :k] += work[..., :k, k, None] * work[..., k, None, :k]
        stationary = np.zeros(work.shape[:-1])
        stationary[..., 0] = 1
        for k in range(1, states):
            stationary[..., k] = (stationary[..., :k] * work[..., :k, k]).sum(axis=-1)
        stationary /= stationary.sum(axis=-1, keepdims=True)
    reducible = ~(stationary > 0).all(axis=-1)
    if reducible.any():
        where = f" of task {int(np.argmax(reducible.ravel()))}" if reducible.ndim else ""
        raise ValueError(f"transition{where} is reducible: some state cannot be reached from every other.")
    return stationary


def value_function(transition: np.ndarray, reward: np.ndarray, discount: float) -> np.ndarray:
    """True values v = (I - gamma p)^{-1} r, (..., n) (appendix, proof of Theorem 1); ValueError for another discount.

    Parameters
    ----------
    transition : (..., n, n) array
    reward : (..., n) array
    discount : float, gamma in [0, 1)
    """
    check_discount(discount)
    identity = np.eye(np.shape(transition)[-1])
    return np.linalg.solve(identity - discount * np.asarray(transition), np.asarray(reward)[..., None])[..., 0]


def msve(stationary: np.ndarray, value: np.ndarray, estimate: np.ndarray) -> np.ndarray:
    """Mean square value error (...), sum_s mu(s) (v(s) - v'(s))^2 (section "Policy Evaluation").

    The three (..., n) arrays broadcast against each other.
    """
    return (stationary * (value - estimate) ** 2).sum(axis=-1)


def check_discount(discount: float) -> None:
    """Refuse a discount outside [0, 1)."""
    if not 0 <= discount < 1:
        raise ValueError(f"discount is {discount}; give a number from 0 up to, but not including, 1.")


def truncation_bias(transition: np.ndarray, value: np.ndarray, discount: float, steps: int) -> np.ndarray:
    """Expected error (..., n) of a return cut after ``steps`` rewards, E[G~(s)] - v(s) = -gamma^steps (p^steps v)(s).

    Parameters
    ----------
    transition : (..., n, n) array
    value : (..., n) array, v
    discount : float, gamma
    steps : int, tau in Algorithm 2
    """
    left = np.linalg.matrix_power(transition, steps) @ value[..., None]
    return -(discount**steps) * left[..., 0]
