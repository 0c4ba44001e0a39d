"""Trajectories of Markov reward processes, and the statistics of the batches that Algorithms 1 and 2 train on.

An update of Algorithm 1 or 2 depends on its batch S_0, R_1, ..., S_b only through counts and sums for each state, the
``BatchStatistics``.  ``unroll`` draws trajectories and keeps these statistics.  ``ictd.jumps`` has the kernels.
"""

from dataclasses import dataclass

import numpy as np

from ictd.checks import DISCOUNT, GENERATOR, array, instance, integer, integers, refuse, row_sums, validate
from ictd.jumps import fill_paths, jumps_space, random_bits, steps_space, stream_of, unroll_tasks
from ictd.mrp import TaskArrays, Tasks


@dataclass(frozen=True)
class BatchStatistics(TaskArrays):
    """What the updates of Algorithms 1 and 2 need of each task's batch S_0, R_1, ..., S_b.

    The arrays of a single task may be given without the axis N.  The arrays are copied.  ``batches[a:b]`` selects
    tasks.

    Parameters
    ----------
    visits : (N, n) int array
        Number of visits to each state among S_0, ..., S_{b-1}.
    transitions : (N, n, n) int array
        Number of occurrences of each pair (S_t, S_{t+1}), t = 0, ..., b-1.
    return_sums : (N, n) array
        Sum of the truncated returns from each state, one independent return for each visit.

    Raises
    ------
    ValueError
        If shapes do not match, counts do not add up, or a return is not finite.
    """

    visits: np.ndarray
    transitions: np.ndarray
    return_sums: np.ndarray

    def __post_init__(self):
        self._validate(visits=integers("..., n", 0), transitions=integers("..., n, n", 0), return_sums=array("..., n"))
        unequal = (row_sums(self.transitions.astype(np.int64)) != self.visits).any(axis=1)
        refuse("transitions", unequal, "has counts that do not add up to visits")
        refuse("visits", self.visits.sum(axis=1) == 0, "has no visits")


@validate(tasks=instance(Tasks), batch_size=integer(1), discount=DISCOUNT, rollout_steps=integer(1), rng=GENERATOR)
def unroll(
    tasks: Tasks, batch_size: int, discount: float, rollout_steps: int, rng: np.random.Generator
) -> BatchStatistics:
    """Unroll each task as Algorithms 1 and 2 do, and keep the statistics of its batch.

    A trajectory S_0, ..., S_b starts from the stationary distribution.  For each of S_0, ..., S_{b-1}, an independent
    trajectory of tau rewards from that state gives a truncated return (Algorithm 2).  If the tasks have a behaviour,
    S_0, ..., S_{b-1} are a trajectory of its chain, and the next state of each is drawn from the task's own chain.

    Parameters
    ----------
    tasks : Tasks, N of them with n states, n at most 256
    batch_size : int, b
    discount : float, gamma
    rollout_steps : int, tau
    rng : numpy.random.Generator

    Returns
    -------
    BatchStatistics of N tasks

    Raises
    ------
    ValueError
        If a number is out of range.
    """
    _check_states(tasks.states)
    shape = tasks.reward.shape
    count = np.uint8 if batch_size < 2**8 else np.uint32
    visits = np.zeros(shape, count)
    transitions = np.zeros(tasks.transition.shape, count)
    return_sums = np.zeros(shape)
    behaviour = None if tasks.behaviour is None else (tasks.behaviour, tasks.visited)
    unroll_tasks(
        tasks.transition, tasks.stationary, tasks.reward, behaviour, discount, rollout_steps, stream_of(rng),
        steps_space(tasks.states), jumps_space(tasks.states), np.empty((3, batch_size + 1), np.uint64),
        np.empty(batch_size + 1), visits, transitions, return_sums,
    )  # fmt: skip
    return BatchStatistics(visits, transitions, return_sums)


@validate(tasks=instance(Tasks), steps=integer(0), rng=GENERATOR)
def sample_paths(tasks: Tasks, steps: int, rng: np.random.Generator) -> np.ndarray:
    """Draw one trajectory S_0, ..., S_m of each task from its stationary distribution.

    The trajectory is that of the task's own chain, also if the task has a behaviour (see ``sample_steps``).

    Parameters
    ----------
    tasks : Tasks, N of them with n states, n at most 256
    steps : int, number of transitions m
    rng : numpy.random.Generator

    Returns
    -------
    paths : (N, m+1) int array

    Raises
    ------
    ValueError
        If a number is out of range.
    """
    return _paths(tasks.transition, tasks.stationary, steps + 1, rng)


@validate(tasks=instance(Tasks), steps=integer(1), rng=GENERATOR)
def sample_steps(tasks: Tasks, steps: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Draw m steps of each task, as a context shows them.

    On-policy they are the steps of one trajectory of ``sample_paths``.  If the tasks have a behaviour, the states S_t
    are a trajectory of its chain, and the next state of each is drawn from the task's own chain.

    Parameters
    ----------
    tasks : Tasks, N of them with n states, n at most 256
    steps : int, m
    rng : numpy.random.Generator

    Returns
    -------
    states : (N, m) int array
    next_states : (N, m) int array

    Raises
    ------
    ValueError
        If a number is out of range.
    """
    if tasks.behaviour is None:
        paths = sample_paths(tasks, steps, rng)
        return paths[:, :-1], paths[:, 1:]
    states = _paths(tasks.behaviour, tasks.visited, steps, rng)
    return states, _paths(tasks.transition, tasks.stationary, steps, rng, states)


def _paths(
    transition: np.ndarray, initial: np.ndarray, size: int, rng: np.random.Generator, starts: np.ndarray | None = None
) -> np.ndarray:
    """Draw trajectories (N, size) of chains, or the next state of each of ``starts`` (N, size)."""
    _check_states(initial.shape[1])
    paths = np.empty((len(initial), size), np.int64)
    bits = random_bits(rng, len(initial), size)
    fill_paths(transition, initial, bits, steps_space(initial.shape[1]), starts, paths)
    return paths


def transition_counts(states: np.ndarray, next_states: np.ndarray, lengths: np.ndarray, n: int) -> np.ndarray:
    """Count the transitions among the first of m steps, which need not form a trajectory.

    Parameters
    ----------
    states, next_states : (N, m) int arrays, the states before and after each step
    lengths : (N,) int array, numbers of steps that count, at most m
    n : int, number of states

    Returns
    -------
    counts : (N, n, n) int array
    """
    within = np.arange(states.shape[1]) < lengths[:, None]
    task = np.arange(len(states))[:, None]
    index = (task * n + states) * n + next_states
    return np.bincount(index[within], minlength=len(states) * n**2).reshape(-1, n, n)


def _check_states(states: int) -> None:
    if states > 256:
        raise ValueError(f"tasks have {states} states; trajectories can be sampled for at most 256.")
