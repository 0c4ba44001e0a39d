"""Control experiments: evaluators with partly exact estimates, which show which errors are most costly."""

from dataclasses import dataclass

import numpy as np

from ictd.rng import generator
from studies.control.evaluators import Evaluator
from studies.control.processes import Processes


def advantage(q: np.ndarray) -> np.ndarray:
    """Advantages (..., S, A): q minus its mean over the actions of each state."""
    return q - q.mean(axis=-1, keepdims=True)


def inner(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Inner products (N, 1, 1) over all pairs of arrays (N, S, A)."""
    return (x * y).sum(axis=(1, 2), keepdims=True)


@dataclass(frozen=True)
class PartlyExact:
    """An evaluator that uses the true values to change the errors of another evaluator.

    Random numbers are the same at every call.

    Parameters
    ----------
    evaluate : Evaluator
    processes : Processes, N of them
    kind : str, one of ``grid.CONTROLS``
        exact_unseen : exact values of the pairs that were not observed
        exact_as_unseen : exact values of as many random pairs
        half_error : half of the error
        random_advantage : a random error of the advantages with the same norm, and no other error
        aligned_advantage : the same, but the error keeps its component along the true advantages
    """

    evaluate: Evaluator
    processes: Processes
    kind: str

    def __call__(self, counts, reward, policy, discount):
        """Estimate q (N, S, A)."""
        exact = self.processes.values(policy, discount)
        own = self.evaluate(counts, reward, policy, discount)
        noise = generator(0, self.kind, own.shape[1], "control errors").normal(size=own.shape)
        if self.kind.startswith("exact"):
            return np.where(self._known(counts, noise), exact, own)
        return self._with_error(exact, own - exact, noise)

    def _known(self, counts: np.ndarray, noise: np.ndarray) -> np.ndarray:
        """Pairs (N, S, A) whose exact values are known."""
        unseen = counts.sum(axis=-1) == 0
        if self.kind == "exact_unseen":
            return unseen
        ranks = noise.reshape(len(noise), -1).argsort(axis=-1).argsort(axis=-1).reshape(noise.shape)
        return ranks < unseen.sum(axis=(1, 2), keepdims=True)

    def _with_error(self, exact: np.ndarray, error: np.ndarray, noise: np.ndarray) -> np.ndarray:
        """Estimates (N, S, A) with a changed error, from exact values, the error and noise (N, S, A)."""
        if self.kind == "half_error":
            return exact + error / 2
        error, noise, true = advantage(error), advantage(noise), advantage(exact)
        if self.kind == "random_advantage":
            return exact + scaled_to(noise, error)
        along = projection(error, true)
        return exact + along + scaled_to(noise - projection(noise, true), error - along)


def scaled_to(noise: np.ndarray, error: np.ndarray) -> np.ndarray:
    """Noise (N, S, A) with the norm of an error (N, S, A) in each process."""
    return noise * np.sqrt(inner(error, error) / inner(noise, noise))


def projection(values: np.ndarray, direction: np.ndarray) -> np.ndarray:
    """Projection of values (N, S, A) on a direction (N, S, A) in each process."""
    return inner(values, direction) / inner(direction, direction) * direction
