"""Sampled contexts with the yardstick that they are judged by, and distributions of tasks that lean to a side."""

from dataclasses import dataclass

import numpy as np

from ictd.environments import boyan
from ictd.gram import Gram, gram_of
from ictd.mrp import Tasks, msve, value_function
from ictd.prompts import Context
from ictd.trajectories import sample_contexts
from studies.limits.engine import Prompts, columns


def draw_tasks(kind: str, states: int, size: int, rng: np.random.Generator) -> Tasks:
    """Boyan's chains: ``uniform``, with Beta(5, 1) ``steps``, a leaning ``last_row``, or ``rewards`` of mean 0.5."""
    transition, reward = boyan(states, size, rng)
    if kind == "steps":
        inner, share = np.arange(states - 2), rng.beta(5, 1, (size, states - 2))
        transition[:, inner, inner + 1], transition[:, inner, inner + 2] = share, 1 - share
    if kind == "last_row":
        last = transition[:, -1] * np.linspace(1, 0.1, states)
        transition[:, -1] = last / last.sum(axis=1, keepdims=True)
    return Tasks(transition, reward + 0.5 * (kind == "rewards"))


@dataclass(frozen=True)
class Sampled:
    """Tasks with n states, their values (N, n), and a context of each."""

    tasks: Tasks
    value: np.ndarray
    context: Context

    def prompts(self, discount: float, share: float = 1.0, weight: float = 1.0) -> Prompts:
        """Prompts of 2n - 1 columns, with M and c multiplied by ``share``, and the MSVE by ``weight``."""
        gram = gram_of(self.context, discount)
        X, y = columns(Gram(gram.length, share * gram.M, share * gram.c), 2 * self.tasks.states - 1)
        return Prompts(X, y, self.value, weight * self.tasks.stationary)

    def error(self, estimate: np.ndarray) -> np.ndarray:
        """MSVE (N,) of estimates (N, n)."""
        return msve(self.tasks.stationary, self.value, estimate)


def sampled(tasks: Tasks, lengths: np.ndarray | int, discount: float, rng: np.random.Generator) -> Sampled:
    """A context of each of N tasks, of its own length (N,) or all of one, from the stationary distribution."""
    context = sample_contexts(tasks, np.broadcast_to(lengths, len(tasks)), rng)
    return Sampled(tasks, value_function(tasks.transition, tasks.reward, discount), context)


def with_pseudo_steps(context: Context, steps: np.ndarray, reward: float, discount: float) -> np.ndarray:
    """Values (N, n) of contexts to which the steps (n, n) from state to state are added."""
    counts, left = context.length[:, None, None] * context.successors + steps, context.visits > 0
    p = counts / counts.sum(axis=-1, keepdims=True)
    r = np.where(left, context.rewards / np.where(left, context.visits, 1.0), reward)
    return np.linalg.solve(np.eye(r.shape[-1]) - discount * p, r[..., None])[..., 0]
