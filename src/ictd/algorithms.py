"""Algorithms of pretraining: what an update takes from the batch S_0, R_1, ..., S_b of a task.

An update moves the parameters along (1/b) sum_s e_s grad TF_L(s), where s runs over the states.  If each visit has a
target, e_s is the sum of target - TF_L(s) over the visits to s among S_0, ..., S_{b-1}.  An algorithm here has targets
that are linear in the estimates V (n,) of all states, so

    e = sums + bootstrap V - visits * V,

and it is a function that returns these three arrays.  Multi-task TD (Algorithm 1) has the targets R_{t+1} + gamma
V(S_{t+1}), so sums = visits * r, and bootstrap is gamma times the number of each transition.  Multi-task MC
(Algorithm 2) has returns for targets, and no bootstrap.

The targets have no gradient.  A gradient of the form sum_s e_s grad TF_L(s) with another e, such as that of residual
gradient (Baird, ICML 1995), is written in the same way, because e is still linear in V.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ictd.checks import abbreviated, refuse_other
from ictd.mrp import TaskArrays, Tasks, value_function

if TYPE_CHECKING:  # Snakemake's own process, which has no numba, imports this module.
    from ictd.sampling import BatchStatistics

# Steps of "three_step_td", and lambda of "td_lambda".
STEPS, LAMBDA = 3, 0.8
# What an algorithm that gets None has to say.
NEEDS = "register it with returns=True if it reads batches.return_sums, and with paths=True if it reads batches.paths"


@dataclass(frozen=True)
class Targets(TaskArrays):
    """What an update takes from the batch of each of N tasks: e = sums + bootstrap V - visits * V.

    Parameters
    ----------
    visits : (N, n) array, whose sum is the divisor b of a task
    sums : (N, n) array
    bootstrap : (N, n, n) array
    """

    visits: np.ndarray
    sums: np.ndarray
    bootstrap: np.ndarray

    def errors(self, estimate: np.ndarray) -> np.ndarray:
        """The weights e (..., n) of the states, divided by b, for estimates V (..., n)."""
        sums = self.sums + np.matvec(self.bootstrap, estimate)
        return (sums - self.visits * estimate) / self.visits.sum(axis=-1, keepdims=True)


@dataclass(frozen=True)
class Algorithm:
    """A registered algorithm.

    Parameters
    ----------
    name, label : str, in settings and in figures
    arrays : function, as ``register_algorithm`` takes it
    returns, paths : bool, what its batches need besides visits and transitions
    """

    name: str
    label: str
    arrays: Callable
    returns: bool
    paths: bool

    def targets(self, tasks: Tasks, batches: "BatchStatistics", discount: float) -> Targets:
        """Make the targets of N tasks.  ValueError if the function fails, or returns anything else."""
        for name, needed in (("return_sums", self.returns), ("paths", self.paths)):
            if needed and getattr(batches, name) is None:
                raise ValueError(
                    f"{self.name} needs batches.{name}, which are None; tasks with a behaviour have no paths."
                )
        # Counts are small unsigned integers, in which a function's differences and products would wrap around.
        counts = {name: getattr(batches, name).astype(np.float64) for name in ("visits", "transitions")}
        returns = batches.return_sums if self.returns else None
        paths = batches.paths if self.paths else None
        given = batches.unchecked(**counts, return_sums=returns, paths=paths)
        try:
            with np.errstate(over="ignore"):  # The engines notice numbers that are not finite.
                made = self.arrays(tasks, given, discount)
        except (AttributeError, TypeError) as error:
            raise ValueError(f"{self.name} fails: {error}; write f(tasks, batches, discount), and {NEEDS}.") from error
        shapes = {"visits": batches.visits.shape, "sums": batches.visits.shape, "bootstrap": batches.transitions.shape}
        if not isinstance(made, tuple) or len(made) != len(shapes):
            raise ValueError(f"{self.name} returns {abbreviated(made)}; return (visits, sums, bootstrap).")
        arrays = {}
        for (name, shape), value in zip(shapes.items(), made, strict=True):
            array = np.zeros(shape) if value is None and name == "bootstrap" else np.asarray(value)
            if array.shape != shape or array.dtype.kind not in "iuf":
                raise ValueError(
                    f"{self.name} returns {name} of shape {array.shape} and type {array.dtype}; return real numbers of"
                    f" shape {shape}{f', and {NEEDS}' if value is None else ''}."
                )
            if np.isnan(array).any():
                raise ValueError(f"{self.name} returns {name} with NaN; return real numbers.")
            arrays[name] = np.ascontiguousarray(array, np.float64)
        return Targets(**arrays)


ALGORITHMS: dict[str, Algorithm] = {}


def register_algorithm(
    name: str, label: str | None = None, returns: bool = False, paths: bool = False
) -> Callable[[Callable], Callable]:
    """Make a decorator that adds an algorithm of pretraining to those that are known by name.

    Parameters
    ----------
    name : str
        Lower-case letters, digits and underscores.
    label : str, optional
        The name in figures and tables, by default ``name``.
    returns : bool
        Whether the function reads ``batches.return_sums``, which take longer to draw than all else.
    paths : bool
        Whether the function reads ``batches.paths``.

    Returns
    -------
    decorator of a function
        The function ``f(tasks, batches, discount)`` gets ``Tasks`` and ``BatchStatistics`` of N tasks, whose counts are
        floats, and whose returns or paths are None if they were not asked for.  It returns
        visits (N, n), sums (N, n) and bootstrap (N, n, n), or None in place of a bootstrap of zeros.  An update moves
        along (1/b) sum_s e_s grad TF_L(s), where e = sums + bootstrap V - visits * V for estimates V, and b is the sum
        of visits.

    Raises
    ------
    ValueError
        If the name has other characters, or another function has it.

    Examples
    --------
    >>> import ictd
    >>> @ictd.register_algorithm("half_td", "TD with half the discount")
    ... def half_td(tasks, batches, discount):
    ...     return batches.visits, batches.visits * tasks.reward, discount / 2 * batches.transitions
    >>> tasks = ictd.TaskDistribution("boyan", states=3)
    >>> ictd.pretrain(tasks, depth=2, discount=0.9, target="half_td", updates=10, progress=False).depth
    2
    """
    if not isinstance(name, str) or not re.fullmatch("[a-z][a-z0-9_]*", name):
        raise ValueError(f"name is {abbreviated(name)}; give lower-case letters, digits and underscores, such as 'td'.")

    def register(function: Callable) -> Callable:
        known = ALGORITHMS[name].arrays if name in ALGORITHMS else function
        refuse_other("an algorithm", name, known, function)
        ALGORITHMS[name] = Algorithm(name, label or name, function, returns, paths)
        return function

    return register


@register_algorithm("td", "TD")
def td(tasks, batches, discount):
    """Algorithm 1: the targets are R_{t+1} + gamma V(S_{t+1})."""
    return batches.visits, batches.visits * tasks.reward, discount * batches.transitions


@register_algorithm("mc", "MC", returns=True)
def mc(tasks, batches, discount):
    """Algorithm 2: the targets are truncated returns."""
    return batches.visits, batches.return_sums, None


@register_algorithm("values", "true values")
def values(tasks, batches, discount):
    """The targets are the true values, (I - gamma p)^{-1} r."""
    value = value_function(tasks.transition, tasks.reward, discount, tasks.episodic)
    return batches.visits, batches.visits * value, None


@register_algorithm("three_step_td", f"{STEPS}-step TD", paths=True)
def three_step_td(tasks, batches, discount):
    """The targets are R_{t+1} + gamma R_{t+2} + gamma^2 R_{t+3} + gamma^3 V(S_{t+3}), with fewer steps at the end."""
    states = batches.paths
    length = states.shape[1] - 1
    rewards = np.take_along_axis(tasks.reward, states[:, :-1], axis=1)
    sums, bootstrap = np.zeros(batches.visits.shape), np.zeros(batches.transitions.shape)
    every = np.arange(len(tasks))
    for t in range(length):
        end = min(t + STEPS, length)
        powers = discount ** np.arange(end - t)
        sums[every, states[:, t]] += rewards[:, t:end] @ powers
        bootstrap[every, states[:, t], states[:, end]] += discount ** (end - t)
    return batches.visits, sums, bootstrap


@register_algorithm("td_lambda", f"TD({LAMBDA})", paths=True)
def td_lambda(tasks, batches, discount):
    """The targets are lambda-returns: R_{t+1} + gamma ((1 - lambda) V(S_{t+1}) + lambda G_{t+1}), with G_b = V(S_b).

    Sutton and Barto (2018, section 12.1).
    """
    states = batches.paths
    sums, bootstrap = np.zeros(batches.visits.shape), np.zeros(batches.transitions.shape)
    every = np.arange(len(tasks))
    # G_t is reward (N,) + weights (N, n) V.
    reward, weights = np.zeros(len(tasks)), np.eye(tasks.states)[states[:, -1]]
    for t in reversed(range(states.shape[1] - 1)):
        here, following = states[:, t], states[:, t + 1]
        weights = LAMBDA * weights
        weights[every, following] += 1 - LAMBDA
        weights *= discount
        reward = tasks.reward[every, here] + discount * LAMBDA * reward
        sums[every, here] += reward
        bootstrap[every, here] += weights
    return batches.visits, sums, bootstrap
