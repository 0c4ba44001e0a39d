"""Prompts, batches and targets of pretraining, drawn in blocks of tasks.

A block holds what ``ictd.engine.Engine.train`` takes: the rewards of N tasks, the statistics of their batches, and
their prompts.  Prompts are enumerated, as in the paper (eq. (Z0 redef)), or sampled, with a context of m steps (eq.
(Z0 def original)).  If the tasks have a behaviour, both the batches and the prompts follow it.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from ictd.checks import DISCOUNT, GENERATOR, instance, integer, validate, validate_fields
from ictd.mrp import TaskDistribution, Tasks, value_function
from ictd.prompt import Context, enumerated_columns
from ictd.rng import generator
from ictd.sampling import BatchStatistics, sample_steps, transition_counts, unroll

# Largest number of tasks that are drawn at once, and of their transition probabilities, so that memory does not grow
# with the number of tasks, and is a few hundred MB for any number of states.
BLOCK, PROBABILITIES = 10_000, 4_000_000


@dataclass(frozen=True)
class EnumeratedPrompts:
    """Prompts with one column for each state (eq. (Z0 redef)).

    Columns have equal weights; if the tasks have a behaviour, they have the weights of the states that it visits.
    """

    @validate(tasks=instance(Tasks))
    def contexts(self, tasks: Tasks, rng: np.random.Generator | None = None) -> Context:
        """Averages over the enumerated context of each of N tasks, (N, d), which need no random numbers."""
        return Context.enumerated(tasks.transition, tasks.reward, tasks.features, self._weights(tasks))

    @validate(tasks=instance(Tasks), discount=DISCOUNT)
    def columns(self, tasks: Tasks, discount: float) -> np.ndarray:
        """Columns (N, 2d+1, n) of the enumerated context of each of N tasks, for a discount gamma."""
        return enumerated_columns(tasks.transition, tasks.reward, discount, tasks.features, self._weights(tasks))

    @staticmethod
    def _weights(tasks: Tasks) -> np.ndarray | None:
        return None if tasks.behaviour is None else tasks.visited


@dataclass(frozen=True)
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

    shortest: int
    longest: int

    def __post_init__(self):
        validate_fields(self, shortest=integer(1), longest=integer(1))
        if self.shortest > self.longest:
            raise ValueError(f"shortest is {self.shortest}; give at most longest, which is {self.longest}.")

    @validate(tasks=instance(Tasks), rng=GENERATOR)
    def contexts(self, tasks: Tasks, rng: np.random.Generator) -> Context:
        """Averages over a random context of each of N tasks, (N, d)."""
        lengths = rng.integers(self.shortest, self.longest, len(tasks), endpoint=True)
        return sample_contexts(tasks, lengths, rng)


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
    states, next_states = sample_steps(tasks, int(lengths.max()), rng)
    counts = transition_counts(states, next_states, lengths, tasks.states)
    context = Context.of_shares(lengths, counts / lengths[:, None, None], tasks.reward)
    return context if tasks.features is None else context.with_features(tasks.features)


@dataclass(frozen=True)
class Block:
    """Tasks of pretraining, with their contexts and batches.

    Parameters
    ----------
    tasks : Tasks, N of them
    contexts : Context of (N, d)
    batches : BatchStatistics of N tasks
        For the target "values", true values take the place of returns.
    """

    tasks: Tasks
    contexts: Context
    batches: BatchStatistics


def training_blocks(
    distribution: TaskDistribution,
    prompts: EnumeratedPrompts | SampledPrompts,
    target: str | Callable,
    discount: float,
    updates: int,
    seed: int,
    batch_size: int,
    rollout_steps: int,
    tasks_per_update: int = 1,
) -> Iterator[Block]:
    """Draw the tasks of a pretraining run in blocks of whole updates.

    A block has at most ``BLOCK`` tasks, with ``PROBABILITIES`` transition probabilities, or else one update.

    The parameters are those of ``ictd.pretrain`` and ``ictd.pretrain_attention``.  Tasks, contexts and batches have
    random number streams of their own, so tasks and contexts do not depend on the target.
    """
    names = "tasks", "contexts", "batches"
    streams = [generator(seed, distribution.name, distribution.states, f"one call {name}") for name in names]
    most = min(BLOCK, PROBABILITIES // distribution.states**2)
    block = max(most // tasks_per_update, 1)
    for first in range(0, updates, block):
        tasks = distribution.sample(min(block, updates - first) * tasks_per_update, streams[0])
        contexts = prompts.contexts(tasks, streams[1])
        # Only Monte Carlo uses returns, whose simulation takes most of the time.
        batches = unroll(tasks, batch_size, discount, rollout_steps if target == "mc" else 1, streams[2])
        if target == "values":
            value = value_function(tasks.transition, tasks.reward, discount)
            batches = BatchStatistics(batches.visits, batches.transitions, batches.visits * value)
        yield Block(tasks, contexts, batches)
