"""Weights that do not depend on the labels of states: eight numbers, and what they hold of other weights.

A permutation Pi of the labels turns a task (p, r) into (Pi p Pi', Pi r), and weights (u, A) into (u S', S A S'), with
S = I_2 (x) Pi.  Weights that no permutation changes have u = b (x) 1' and

    A = B_1 (x) I + B_2 (x) 11'

with B_1, B_2 (2 x 2): eight numbers.  docs/theory.md (section "Symmetry") proves that the mean of A over runs has this
form if the distribution of tasks does not depend on labels.  Adding a z' to A, with a = [-gamma 1; 1], changes no
output, which leaves six numbers that outputs determine.
"""

from collections.abc import Callable, Iterator
from functools import cache

import numpy as np

from ictd.engine import BETA_1, Engine
from ictd.mrp import TaskDistribution, register_environment, relabelled
from ictd.statistics import Estimate
from ictd.training_data import Block, EnumeratedPrompts, training_blocks
from ictd.transformer import preconditioned_td
from ictd.weight_measures import preconditioner, shortest_identifiable
from studies.emergence.few_numbers import identifiable, nearest, without_u


@register_environment("dense_rows")
def dense_rows(states: int, size: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Draw chains whose rows are uniform random numbers divided by their sums."""
    rows = rng.uniform(0, 1, (size, states, states))
    return rows / rows.sum(axis=-1, keepdims=True), rng.uniform(-1, 1, (size, states))


@register_environment("circle_walk")
def circle_walk(states: int, size: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Draw random walks on a ring, which step to one of the two neighbours."""
    forward, right = np.roll(np.eye(states), 1, axis=1), rng.uniform(0, 1, (size, states, 1))
    return right * forward + (1 - right) * forward.T, rng.uniform(-1, 1, (size, states))


for chains in (dense_rows, circle_walk):
    register_environment(f"relabelled_{chains.__name__}")(relabelled(chains))


def family_part(A: np.ndarray) -> np.ndarray:
    """The nearest matrix K [-I, I] to A (..., 2n, 2n)."""
    return preconditioned_td(preconditioner(A))


def jackknife(statistic: Callable[[np.ndarray], float], runs: np.ndarray) -> Estimate:
    """A statistic of runs (S, ...), with its 95% jackknife interval."""
    value = statistic(runs)
    left_out = np.array([statistic(np.delete(runs, i, axis=0)) for i in range(len(runs))])
    error = 1.96 * np.sqrt((len(runs) - 1) * left_out.var())
    return Estimate(value, value - error, value + error)


def share_of_mean(A: np.ndarray, bases: np.ndarray, discount: float) -> Estimate:
    """Share of bases in the squared norm of the expected A, from runs (S, 2n, 2n).

    Squared norms are means of inner products of different runs, so noise of single runs does not count: all halves of
    the runs are compared.  The value can be above one.
    """
    parts = np.stack([nearest(A, bases, discount), shortest_identifiable(A, discount)], axis=1)

    return jackknife(ratio_of_means, parts.reshape(len(A), 2, -1))


def ratio_of_means(runs: np.ndarray) -> float:
    """Ratio of the squared norms of two expected vectors, from inner products of different runs (S, 2, k)."""
    first, second = (runs.sum(axis=0) ** 2).sum(axis=-1) - (runs**2).sum(axis=(0, 2))
    return first / second


def circulant(states: int) -> np.ndarray:
    """Bases (4n, 2n, 2n) of matrices with circulant blocks, which no cyclic shift of the states changes."""
    shifts = [np.roll(np.eye(states), i, axis=1) for i in range(states)]
    return np.stack([np.kron(block, shift) for block in np.eye(4).reshape(4, 2, 2) for shift in shifts])


@cache
def classes(states: int) -> np.ndarray:
    """Indicators (8, 2n, 2n) of the entries that permutations exchange: diagonal or not, in each of the four blocks."""
    identity, ones = np.eye(states), np.ones((states, states))
    blocks = np.eye(4).reshape(4, 2, 2)
    return np.stack([np.kron(block, matrix) for matrix in (identity, ones - identity) for block in blocks])


def label_mean(A: np.ndarray) -> np.ndarray:
    """The mean of S A S' over all permutations: A (..., 2n, 2n) with the mean of each class of entries in its place."""
    of_class = classes(A.shape[-1] // 2).reshape(8, -1)
    sums = A.reshape(*A.shape[:-2], -1) @ of_class.T
    return (sums / of_class.sum(axis=1) @ of_class).reshape(A.shape)


def step_sizes(A: np.ndarray, discount: float) -> np.ndarray:
    """alpha and beta (..., 2) of A (..., 2n, 2n), for attention divided by n."""
    n = A.shape[-1] // 2
    A = identifiable(A, discount)
    G = preconditioner(A)[..., :n, :]
    diagonal = np.trace(G, axis1=-2, axis2=-1) / n
    others = (G.sum(axis=(-2, -1)) - n * diagonal) / (n * (n - 1))
    return np.stack([diagonal - others, others], axis=-1) / n


def constant_factor(A: np.ndarray, discount: float) -> np.ndarray:
    """The factor (...) by which a layer multiplies constants, for the mean over labels of A (..., 2n, 2n).

    If the lower halves of K and N are zero, it is 1 - s (1 - gamma) + t (1 + gamma), with s = alpha + n beta of K [-I,
    I] and t = a + n b of N [I, I], divided by n.
    """
    n = A.shape[-1] // 2
    rows = identifiable(A, discount)[..., :n, :].sum(axis=-2) / n
    return 1 + rows[..., :n].mean(axis=-1) + discount * rows[..., n:].mean(axis=-1)


class Gradient:
    """The gradient of one update, from the compiled engine.

    With a learning rate of zero, a step of Adam changes no parameter, and leaves the gradient in Adam's mean.
    """

    def __init__(self, states: int, depth: int, discount: float):
        start = without_u(np.zeros((2 * states, 2 * states)))
        self.engine = Engine(start, depth, discount, learning_rate=0.0)
        self.estimates = np.empty((1, states))

    def __call__(self, parameter: np.ndarray, task: tuple) -> np.ndarray:
        """Minus the update direction (2n + 4n^2,) at parameters u, A of this length, for one of ``tasks_of``."""
        engine = self.engine
        engine.parameter[:], engine.mean[:] = parameter, 0
        engine.train_block(task[0], None, task[1:], self.estimates)
        return engine.mean / (1 - BETA_1)


def tasks_of(
    env: str, states: int, algo: str, discount: float, tasks: int, seed: int, batch_size: int = 64
) -> Iterator[tuple]:
    """Draw the tasks of a run of ``ictd.pretrain`` one by one: transition, reward, and the arrays of their targets.

    Each array has a leading axis of one task.
    """
    chains = TaskDistribution(env, states=states)
    for block in training_blocks(chains, EnumeratedPrompts(), algo, discount, tasks, seed, batch_size, 200):
        yield from one_by_one(block.tasks.transition, block)


def one_by_one(transition: np.ndarray, block: Block) -> Iterator[tuple]:
    """The tasks of a block, one by one, with transitions (N, n, n) for their prompts."""
    arrays = transition, block.tasks.reward, *vars(block.targets).values()
    for i in range(len(transition)):
        yield tuple(array[i : i + 1] for array in arrays)
