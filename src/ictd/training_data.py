"""Prompts, batches and targets of pretraining, drawn in blocks of tasks.

A block holds what ``ictd.engine.Engine.train`` takes: the rewards of N tasks, the statistics of their batches, and
their prompts.  Prompts are enumerated, as in the paper (eq. (Z0 redef)), or sampled, with a context of m steps (eq.
(Z0 def original)).  If the tasks have a behaviour, both the batches and the prompts follow it.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Self

import numpy as np

from ictd.algorithms import ALGORITHMS, Targets
from ictd.checks import Count, Discount, abbreviated, instance, validate, validate_fields, validated
from ictd.context import Context
from ictd.mrp import TaskArrays, TaskDistribution, Tasks
from ictd.prompt import columns_of, enumerated_columns, features_of, state_features
from ictd.rng import generator
from ictd.sampling import (
    BatchStatistics,
    sample_returns,
    sample_steps,
    sample_transitions,
    transition_counts,
    visits_of,
)

# Largest number of tasks that are drawn at once, and of their transition probabilities, so that memory does not grow
# with the number of tasks, and is a few hundred MB for any number of states.  An environment draws a block at once, so
# other numbers would draw other tasks.
BLOCK, PROBABILITIES = 20_000, 4_000_000


def task_distribution(name: str, value: object, sizes: dict) -> TaskDistribution:
    """Validate a TaskDistribution; messages for other kinds of tasks say how to make one of them."""
    if isinstance(value, Tasks):
        raise ValueError(
            f"{name} is {value}; give a TaskDistribution of a function f(states, size, rng) that returns (transition,"
            " reward) of size tasks; pretrain_history takes Tasks."
        )
    if isinstance(value, str) or (callable(value) and not isinstance(value, type)):
        raise ValueError(f"{name} is {abbreviated(value)}, an environment; give TaskDistribution(env, states=5).")
    return instance(TaskDistribution)(name, value, sizes)


Distribution = Annotated[TaskDistribution, task_distribution]


@dataclass(frozen=True)
class EnumeratedPrompts:
    """Prompts with one column for each state (eq. (Z0 redef)).

    Columns have equal weights; if the tasks have a behaviour, they have the weights of the states that it visits.
    """

    @validate
    def contexts(self, tasks: Tasks, rng: np.random.Generator | None = None) -> Context:
        """Make the enumerated context of each of N tasks, which needs no random numbers."""
        weights = self._weights(tasks)
        return Context.enumerated(tasks.transition, tasks.reward, tasks.features, weights, tasks.episodic)

    @validate
    def columns(self, tasks: Tasks, discount: Discount) -> np.ndarray:
        """Columns (N, 2d+1, n) of the enumerated context of each of N tasks, for a discount gamma."""
        weights = self._weights(tasks)
        return enumerated_columns(tasks.transition, tasks.reward, discount, tasks.features, weights, tasks.episodic)

    @staticmethod
    def _weights(tasks: Tasks) -> np.ndarray | None:
        return None if tasks.behaviour is None else tasks.visited


@dataclass(frozen=True)
@validated
class SampledPrompts:
    """Prompts with a context of m steps, where m is uniform between two numbers (eq. (Z0 def original)).

    Parameters
    ----------
    shortest, longest : int
        Least and greatest number of steps m, both included.

    Raises
    ------
    ValueError
        If a number is below 1, or the shortest context is longer than the longest.
    """

    shortest: Count
    longest: Count

    def __post_init__(self):
        validate_fields(self)
        if self.shortest > self.longest:
            raise ValueError(f"shortest is {self.shortest}; give at most longest, which is {self.longest}.")

    @validate
    def contexts(self, tasks: Tasks, rng: np.random.Generator) -> Context:
        """Draw a context of each of N tasks."""
        return self.steps(tasks, rng).contexts(tasks)

    def steps(self, tasks: Tasks, rng: np.random.Generator) -> "SampledSteps":
        """Draw the steps of a context of each of N tasks."""
        return SampledSteps.drawn(tasks, rng.integers(self.shortest, self.longest, len(tasks), endpoint=True), rng)


@dataclass(frozen=True)
class SampledSteps(TaskArrays):
    """Steps of N tasks, of which the context of task i has the first ``lengths[i]``.

    Parameters
    ----------
    states, next_states : (N, m) int arrays, S_t and S_{t+1}, which is n at the end of an episode
    lengths : (N,) int array, at most m
    """

    states: np.ndarray
    next_states: np.ndarray
    lengths: np.ndarray

    @classmethod
    def drawn(cls, tasks: Tasks, lengths: np.ndarray, rng: np.random.Generator) -> Self:
        """Draw the steps of contexts of these lengths (N,), as ``sample_steps``."""
        return cls(*sample_steps(tasks, int(lengths.max()), rng), lengths)

    def contexts(self, tasks: Tasks) -> Context:
        """Make the context of each of N tasks."""
        counts = transition_counts(self.states, self.next_states, self.lengths, tasks.states)
        context = Context.of_shares(self.lengths, counts / self.lengths[:, None, None], tasks.reward)
        return context if tasks.features is None else context.with_features(tasks.features)

    def columns(self, tasks: Tasks, discount: float) -> tuple[np.ndarray, np.ndarray]:
        """Make the columns of the context of each of N tasks, in the order of the steps.

        Returns
        -------
        columns : (N, 2d+1, m) array, with the m of the longest context; zeros after the end of the others
        padding : (N, m) bool array, True after the end of a context
        """
        padding = np.arange(self.lengths.max()) >= self.lengths[:, None]
        states, next_states = (array[:, : padding.shape[1]] for array in (self.states, self.next_states))
        rewards = np.take_along_axis(tasks.reward, states, axis=1)
        # The end of an episode is the state n, with the features 0.
        following = np.minimum(next_states, tasks.states - 1)
        phi, phi_next = (features_of(array, tasks.features, tasks.states) for array in (states, following))
        goes_on = discount * (next_states < tasks.states)
        columns = columns_of(phi, goes_on[..., None] * phi_next, rewards)
        return np.where(padding[:, None], 0.0, columns), padding


def sample_contexts(tasks: Tasks, lengths: np.ndarray, rng: np.random.Generator) -> Context:
    """Draw one context of each task, each of its own length, from the stationary distribution or the behaviour.

    Parameters
    ----------
    tasks : Tasks, N of them with n states and d features
    lengths : (N,) int array, numbers of steps
    rng : numpy.random.Generator

    Returns
    -------
    Context of (N, d)
    """
    return SampledSteps.drawn(tasks, lengths, rng).contexts(tasks)


@dataclass(frozen=True)
class Block:
    """Tasks of pretraining, with their prompts and batches.

    Parameters
    ----------
    tasks : Tasks, N of them
    batches : BatchStatistics of N tasks, or None as the targets
    targets : Targets of N tasks, or None for tasks of an evaluation
    steps : SampledSteps of N contexts, or None for enumerated ones
    """

    tasks: Tasks
    batches: BatchStatistics | None
    targets: Targets | None
    steps: SampledSteps | None

    @property
    def queries(self) -> np.ndarray:
        """Features (N, n, d) of all states, the query states."""
        features = state_features(self.tasks.states, self.tasks.features)
        return np.broadcast_to(features, (len(self.tasks), *features.shape[-2:]))

    @property
    def contexts(self) -> Context:
        """The context of each task, (N, d)."""
        return EnumeratedPrompts().contexts(self.tasks) if self.steps is None else self.steps.contexts(self.tasks)

    def prompts(self, discount: float) -> np.ndarray:
        """Contexts in the form that the compiled engine takes."""
        if self.steps is None:
            return enumerated_prompts(self.tasks, discount)
        return self.contexts.gram_matrix(discount)

    def columns(self, some: slice, discount: float) -> tuple[np.ndarray, np.ndarray]:
        """Columns (K, 2d+1, m) of the contexts of some tasks, and padding (K, m), as ``SampledSteps.columns``."""
        tasks = self.tasks[some]
        if self.steps is not None:
            return self.steps[some].columns(tasks, discount)
        return EnumeratedPrompts().columns(tasks, discount), np.zeros(tasks.reward.shape, bool)


def enumerated_prompts(tasks: Tasks, discount: float, scaled: bool = True) -> np.ndarray:
    """Enumerated prompts of tasks in the form that the compiled engine takes."""
    if tasks.features is None and tasks.behaviour is None:
        return tasks.transition
    return EnumeratedPrompts().contexts(tasks).gram_matrix(discount, scaled)


def tasks_and_transitions(
    distribution: TaskDistribution, updates: int, seed: int, batch_size: int, tasks_per_update: int = 1
) -> Iterator[tuple[Tasks, np.ndarray, np.ndarray | None]]:
    """Draw the tasks of a pretraining run, with the transitions (N, n, n) and paths of their batches.

    They come in blocks of whole updates.  ``sample_transitions`` says when there are no paths.

    A block has at most ``BLOCK`` tasks, with ``PROBABILITIES`` transition probabilities, or else one update.
    """
    rng = generator(seed, distribution.name, distribution.states, "tasks")
    for_steps, _ = batch_streams(distribution.name, distribution.states, seed)
    most = min(BLOCK, PROBABILITIES // distribution.states**2)
    block = max(most // tasks_per_update, 1)
    for first in range(0, updates, block):
        tasks = distribution.sample(min(block, updates - first) * tasks_per_update, rng)
        yield tasks, *sample_transitions(tasks, batch_size, for_steps)


def batch_streams(env: str, states: int, seed: int) -> list[np.random.Generator]:
    """Streams of the steps and of the returns of a run's batches, as ``unroll`` spawns them."""
    return generator(seed, env, states, "batches").spawn(2)


def training_blocks(
    distribution: TaskDistribution,
    prompts: EnumeratedPrompts | SampledPrompts,
    target: str,
    discount: float,
    updates: int,
    seed: int,
    batch_size: int,
    rollout_steps: int,
    tasks_per_update: int = 1,
) -> Iterator[Block]:
    """Draw the tasks, contexts and batches of a pretraining run in blocks of whole updates.

    The parameters are those of ``ictd.pretrain`` and ``ictd.pretrain_attention``.  Tasks, contexts, steps and returns
    have random number streams of their own.  Returns are drawn only for an algorithm that reads them.
    """
    for_contexts = generator(seed, distribution.name, distribution.states, "contexts")
    _, for_returns = batch_streams(distribution.name, distribution.states, seed)
    algorithm = ALGORITHMS[target]
    for tasks, transitions, paths in tasks_and_transitions(distribution, updates, seed, batch_size, tasks_per_update):
        visits, returns = visits_of(transitions), None
        if algorithm.returns:
            returns = sample_returns(tasks, visits, discount, rollout_steps, for_returns)
        batches = BatchStatistics.unchecked(visits=visits, transitions=transitions, return_sums=returns, paths=paths)
        targets = algorithm.targets(tasks, batches, discount)
        steps = prompts.steps(tasks, for_contexts) if isinstance(prompts, SampledPrompts) else None
        yield Block(tasks, batches, targets, steps)
