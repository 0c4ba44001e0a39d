"""Unseen tasks with their contexts, and the errors of value estimates on them."""

from dataclasses import dataclass

import numpy as np

from ictd.environments import sample_tasks
from ictd.gram import Gram, enumerated_gram, gram_of
from ictd.mrp import Tasks, msve, value_function
from ictd.prompts import ENUMERATED, Context, enumerated_context, sampled_context
from ictd.streams import generator
from ictd.trajectories import sample_paths


@dataclass(frozen=True)
class UnseenTasks:
    """Unseen tasks, their true values, and one trajectory each, whose first m steps are the context of length m.

    Parameters
    ----------
    tasks : Tasks, k of them with n states
    value : (k, n) array
    paths : (k, M+1) int array, M the greatest context length
    discount : float, gamma
    """

    tasks: Tasks
    value: np.ndarray
    paths: np.ndarray
    discount: float

    def error(self, estimate: np.ndarray) -> np.ndarray:
        """MSVE (..., k) of value estimates (..., k, n)."""
        return msve(self.tasks.stationary, self.value, estimate)

    def context(self, length: int) -> Context:
        """Averages over the contexts of one length, or over enumerated prompts."""
        if length == ENUMERATED:
            return Context.enumerated(self.tasks.transition, self.tasks.reward)
        return Context.of_paths(self._beginnings(length), self.tasks.reward)

    def gram(self, length: int) -> Gram:
        """Gram matrices of the contexts of one length, or of enumerated prompts."""
        if length == ENUMERATED:
            return enumerated_gram(self.tasks, self.discount)
        return gram_of(self.context(length), self.discount)

    def columns(self, length: int) -> np.ndarray:
        """Contexts (k, 2n+1, m) of one length m, or those of enumerated prompts, of n columns, in full."""
        if length == ENUMERATED:
            return enumerated_context(self.tasks.transition, self.tasks.reward, self.discount)
        return sampled_context(self._beginnings(length), self.tasks.reward, self.discount)

    def _beginnings(self, length: int) -> np.ndarray:
        """States (k, m+1) of the first m steps."""
        if length >= self.paths.shape[1]:
            raise ValueError(f"length is {length}; give at most {self.paths.shape[1] - 1}, the steps of the paths.")
        return self.paths[:, : length + 1]


def draw_unseen_tasks(
    seed: int, states: int, size: int, steps: int, discount: float, env: str, stream: str = "validation", **env_options
) -> UnseenTasks:
    """Draw unseen tasks and their trajectories; the same for every model of a seed, whatever it was pretrained on.

    ``size`` is the number of tasks k, ``steps`` the greatest context length M, and the discount is gamma.  ``env`` is
    the environment of the tasks, and ``stream`` the purpose of the random streams.
    """
    tasks = sample_tasks(env, states, size, generator(seed, env, states, stream), **env_options)
    paths = sample_paths(tasks, steps, generator(seed, env, states, f"{stream} contexts"))
    return UnseenTasks(tasks, value_function(tasks.transition, tasks.reward, discount), paths, discount)
