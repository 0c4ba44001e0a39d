"""Trajectories of Markov reward processes, and the batches and returns that Algorithms 1 and 2 train on.

A state is drawn by one number u of ``rng.random``, uniform in [0, 1): it is the first state whose cumulative
probability exceeds u.  Trajectories take their numbers task by task and step by step.

An update of Algorithm 1 or 2 depends on its batch S_0, R_1, ..., S_b only through counts and sums for each state, the
``BatchStatistics``, which ``unroll`` draws.
"""

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from ictd.checks import ArrayLike, Count, Discount, array, integer, integers, refuse, row_sums, validate, validated
from ictd.jumps import fill_returns
from ictd.kernels import kernel
from ictd.mrp import TaskArrays, Tasks, end_probabilities


@dataclass(frozen=True)
@validated
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
    return_sums : (N, n) array, optional
        Sum of the truncated returns from each state, one independent return for each visit.
    paths : (N, b+1) int array, optional
        The states S_0, ..., S_b.

    Raises
    ------
    ValueError
        If shapes do not match, counts do not add up, or a return is not finite.
    """

    visits: Annotated[ArrayLike, integers("..., n", 0)]
    transitions: Annotated[ArrayLike, integers("..., n, n", 0)]
    return_sums: Annotated[ArrayLike, array("..., n")] | None = None
    paths: Annotated[ArrayLike, integers("..., b+1", 0)] | None = None

    def __post_init__(self):
        self._validate()
        unequal = (row_sums(self.transitions.astype(np.int64)) != self.visits).any(axis=1)
        refuse("transitions", unequal, "has counts that do not add up to visits")
        refuse("visits", self.visits.sum(axis=1) == 0, "has no visits")
        if self.paths is not None:
            refuse("paths", self.paths >= self.visits.shape[1], f"is no state below {self.visits.shape[1]}")
            batch_size = self.paths.shape[1] - 1
            refuse("paths", self.visits.sum(axis=1) != batch_size, "has another number of steps than visits")


@validate
def unroll(
    tasks: Tasks, batch_size: Count, discount: Discount, rollout_steps: Count, rng: np.random.Generator
) -> BatchStatistics:
    """Unroll each task as Algorithms 1 and 2 do, and keep the statistics of its batch.

    A trajectory S_0, ..., S_b starts from the stationary distribution.  For each of S_0, ..., S_{b-1}, an independent
    trajectory of tau rewards from that state gives a truncated return (Algorithm 2).  If the tasks have a behaviour,
    S_0, ..., S_{b-1} are a trajectory of its chain, and the next state of each is drawn from the task's own chain.

    Steps and returns have streams of their own, the two that ``rng`` spawns.  So the steps do not depend on
    ``rollout_steps``, and a task's batch does not depend on the tasks after it.

    Parameters
    ----------
    tasks : Tasks, N of them with n states
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
        If a number is out of range, or tasks have episodes.
    """
    _refuse_episodes(tasks, "pretraining takes tasks that never end")
    for_steps, for_returns = rng.spawn(2)
    transitions, paths = sample_transitions(tasks, batch_size, for_steps)
    visits = visits_of(transitions)
    returns = sample_returns(tasks, visits, discount, rollout_steps, for_returns)
    return BatchStatistics(visits, transitions, returns, paths)


def sample_transitions(tasks: Tasks, batch_size: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray | None]:
    """Count the transitions (N, n, n) of b steps of each task, which ``sample_steps`` draws.

    The paths (N, b+1) come with them, or None if the tasks have a behaviour, whose steps form no trajectory.
    """
    states, next_states = sample_steps(tasks, batch_size, rng)
    counts = transition_counts(states, next_states, np.full(len(tasks), batch_size), tasks.states)
    paths = None if tasks.behaviour is not None else np.concatenate([states, next_states[:, -1:]], axis=1)
    return counts.astype(np.min_scalar_type(batch_size)), paths


def visits_of(transitions: np.ndarray) -> np.ndarray:
    """Number of visits (N, n) to each state before a transition (N, n, n)."""
    return transitions.sum(axis=-1, dtype=transitions.dtype)


def sample_returns(
    tasks: Tasks, visits: np.ndarray, discount: float, rollout_steps: int, rng: np.random.Generator
) -> np.ndarray:
    """Draw truncated returns r(s_0) + gamma r(s_1) + ... + gamma^{tau-1} r(s_{tau-1}), and sum those from each state.

    Each return has a trajectory s_0, ..., s_{tau-1} of its own, of which ``ictd.jumps`` draws several steps at once.

    Parameters
    ----------
    tasks : Tasks, N of them with n states
    visits : (N, n) int array, number of returns from each state
    discount : float, gamma
    rollout_steps : int, tau
    rng : numpy.random.Generator
        Each task takes three 64-bit numbers, the seed of its returns.

    Returns
    -------
    return_sums : (N, n) array
    """
    seeds = rng.integers(0, 2**64 - 1, (len(tasks), 3), dtype=np.uint64, endpoint=True)
    return_sums = np.empty(tasks.reward.shape)
    visits = visits.astype(np.int64)
    fill_returns(tasks.transition, tasks.reward, visits, discount, rollout_steps, seeds, return_sums)
    return return_sums


@validate
def sample_paths(tasks: Tasks, steps: Annotated[int, integer(0)], rng: np.random.Generator) -> np.ndarray:
    """Draw one trajectory S_0, ..., S_m of each task from its stationary distribution.

    The trajectory is that of the task's own chain, also if the task has a behaviour (see ``sample_steps``).

    Parameters
    ----------
    tasks : Tasks, N of them with n states
    steps : int, number of transitions m
    rng : numpy.random.Generator
        Each task takes m+1 numbers of ``rng.random``, one for each state.

    Returns
    -------
    paths : (N, m+1) int array

    Raises
    ------
    ValueError
        If a number is out of range, or tasks have episodes.
    """
    _refuse_episodes(tasks, "sample_steps says where each episode ends")
    return _trajectories(_cumulative(tasks.transition), tasks.stationary, rng.random((len(tasks), steps + 1)))


@validate
def sample_steps(tasks: Tasks, steps: Count, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Draw m steps of each task, as a context shows them.

    On-policy they are the steps of one trajectory of ``sample_paths``.  If the tasks have a behaviour, the states S_t
    are a trajectory of its chain, and the next state of each is drawn from the task's own chain.

    If the tasks have episodes, the end of an episode is the next state n.  The state after it, of the next step, is the
    start of another episode.  The first state is drawn from the stationary distribution, so it is seldom a start.

    Parameters
    ----------
    tasks : Tasks, N of them with n states
    steps : int, m
    rng : numpy.random.Generator
        With a behaviour, each task takes m numbers of ``rng.random`` for the states S_t, then m for the next states.

    Returns
    -------
    states : (N, m) int array
    next_states : (N, m) int array, n at the end of an episode

    Raises
    ------
    ValueError
        If a number is out of range.
    """
    if tasks.behaviour is None and not tasks.episodic:
        paths = sample_paths(tasks, steps, rng)
        return paths[:, :-1], paths[:, 1:]
    if tasks.behaviour is None:
        return _episodes(tasks, rng.random((len(tasks), steps + 1)))
    uniforms = rng.random((len(tasks), 2, steps))
    states = _trajectories(_cumulative(tasks.behaviour), tasks.visited, uniforms[:, 0])
    next_states = np.empty_like(states)
    onwards = np.concatenate([tasks.transition, end_probabilities(tasks.transition)[:, :, None]], axis=2)
    fill_next_states(_cumulative(onwards), states, uniforms[:, 1], next_states)
    return states, next_states


def _episodes(tasks: Tasks, uniforms: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """States and next states (N, m) of episodes one after the other, by numbers (N, m+1) in [0, 1).

    They are a trajectory of states below 2n, in which n + s stands for s as the first state of an episode.
    """
    n, ends = tasks.states, end_probabilities(tasks.transition)
    onwards = np.concatenate([tasks.transition, ends[:, :, None] * tasks.start[:, None]], axis=2)
    paths = _trajectories(_cumulative(onwards, onwards), tasks.stationary, uniforms)
    return paths[:, :-1] % n, np.minimum(paths[:, 1:], n)


def _refuse_episodes(tasks: Tasks, reason: str) -> None:
    if tasks.episodic:
        raise ValueError(f"tasks has episodes; {reason}.")


def _trajectories(cumulative: np.ndarray, initial: np.ndarray, uniforms: np.ndarray) -> np.ndarray:
    """Trajectories (N, T) of chains by their cumulative rows, initial distributions and numbers (N, T) in [0, 1)."""
    paths = np.empty(uniforms.shape, np.int64)
    fill_trajectories(cumulative, _cumulative(initial), uniforms, paths)
    return paths


def _cumulative(probabilities: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
    """Cumulative sums along rows, divided by the last one, so that the last state with a chance has exactly 1."""
    sums = probabilities.cumsum(axis=-1, out=out)
    sums /= sums[..., -1:].copy()
    return sums


@kernel
def fill_trajectories(cumulative, initial, uniforms, paths):
    """Fill trajectories (N, T): the first state is drawn from ``initial`` (N, n), the others from rows of (N, n, k).

    States from n to k - 1 have the rows of states below n.
    """
    tasks, steps = uniforms.shape
    n = cumulative.shape[1]
    for i in range(tasks):
        state = drawn(initial[i], uniforms[i, 0])
        paths[i, 0] = state
        for t in range(1, steps):
            state = drawn(cumulative[i, state % n], uniforms[i, t])
            paths[i, t] = state


@kernel
def fill_next_states(cumulative, states, uniforms, next_states):
    """Fill the next state of each of ``states`` (N, T)."""
    tasks, steps = uniforms.shape
    for i in range(tasks):
        for t in range(steps):
            next_states[i, t] = drawn(cumulative[i, states[i, t]], uniforms[i, t])


@kernel
def drawn(cumulative, u):
    """The first state whose cumulative probability exceeds u, by counting those whose does not, without a branch."""
    state = 0
    for j in range(len(cumulative)):
        state += cumulative[j] <= u
    return state


def transition_counts(states: np.ndarray, next_states: np.ndarray, lengths: np.ndarray, n: int) -> np.ndarray:
    """Count the transitions among the first of m steps, which need not form a trajectory.

    Parameters
    ----------
    states, next_states : (N, m) int arrays, the states before and after each step, and n for the end of an episode
    lengths : (N,) int array, numbers of steps that count, at most m
    n : int, number of states

    Returns
    -------
    counts : (N, n, n) int array, or (N, n, n+1) with the counts of ends if there are any
    """
    counts = np.zeros((len(states), n, n + (next_states == n).any()), np.int64)
    count_transitions(states, next_states, lengths, counts)
    return counts


@kernel
def count_transitions(states, next_states, lengths, counts):
    """Add the transitions of ``transition_counts`` to ``counts`` (N, n, n)."""
    for i in range(len(states)):
        for t in range(lengths[i]):
            counts[i, states[i, t], next_states[i, t]] += 1
