"""theta^TD in decimal arithmetic, for deep Transformers.

At L = 500 and gamma = 0.9 a value differs from its limit by 1e-23, far less than the rounding error of a difference of
two float64 numbers.  Python's ``decimal`` has as many digits as it is told.  The float64 numbers of a task count as
exact.
"""

import math
from contextlib import AbstractContextManager
from decimal import Decimal, localcontext
from functools import cached_property
from types import SimpleNamespace

import numpy as np

from ictd.mrp import Tasks
from ictd.theory.recursion import Embeddings, unrolled
from ictd.transformer import theta_td

# Number of digits that remain after a difference.
DIGITS = 30
exact = np.vectorize(Decimal, otypes=[object])


def enough_digits(discount: float, depth: int) -> AbstractContextManager:
    """A context of decimal arithmetic with DIGITS digits beyond gamma^L."""
    cancelled = -depth * math.log10(discount) if discount else 0
    return localcontext(prec=DIGITS + math.ceil(cancelled))


class ExactEmbeddings(Embeddings):
    """Embeddings whose numbers are of the type Decimal."""

    @cached_property
    def value(self) -> np.ndarray:
        """True values v, (N, n), by Gauss-Jordan elimination.

        Elimination needs no pivots, because I - gamma P is diagonally dominant.
        """
        states = self.tasks.states
        matrix = np.eye(states, dtype=object) - self.discount * self.tasks.transition
        system = np.concatenate([matrix, self.tasks.reward[..., None]], axis=-1)
        for i in range(states):
            system[:, i] = system[:, i] / system[:, i, i, None]
            others = np.arange(states) != i
            rows = system[:, others]
            system[:, others] = rows - rows[:, :, i, None] * system[:, None, i]
        return system[..., -1]


def exact_theta_td(tasks: Tasks, discount: float, depth: int) -> ExactEmbeddings:
    """Compute the embeddings at theta^TD as ``ictd.theory.recursion.evolve`` does, within ``enough_digits``."""
    n, gamma = tasks.states, Decimal(discount)
    parts = {name: exact(getattr(tasks, name)) for name in ("transition", "reward", "stationary")}
    identity = np.broadcast_to(np.eye(n, dtype=object), (len(tasks), n, n))
    X = np.concatenate([identity, gamma * parts["transition"].mT], axis=1)
    weights = theta_td(n)
    u, A = (part.astype(int).astype(object) for part in (weights.u, weights.A))
    return ExactEmbeddings(*unrolled(u, A, X, SimpleNamespace(states=n, **parts), gamma, depth))
