"""Unseen tasks with their contexts, and the errors of value estimates on them."""

from dataclasses import dataclass

import numpy as np

from ictd.checks import DISCOUNT, TEXT, checked, of, one_or_more, own, reals, whole, wholes
from ictd.environments import sample_tasks
from ictd.gram import Gram, enumerated_gram, gram_of
from ictd.mrp import Tasks, msve, value_function
from ictd.prompts import ENUMERATED, Context, enumerated_context, sampled_context
from ictd.streams import generator
from ictd.trajectories import sample_paths


@dataclass(frozen=True)
class UnseenTasks:
    """Unseen tasks, their true values, and one trajectory each, whose first m steps are the context of length m.

    The arrays of a single task may be without the axis of tasks.

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

    def __post_init__(self):
        paths = one_or_more(wholes, "k, M+1", 0, "n-1")
        own(self, tasks=of(Tasks, reward="k, n"), value=one_or_more(reals, "k, n"), paths=paths, discount=DISCOUNT)

    @checked(self=of(object, value="k, n"), estimate=reals("..., k, n", False))
    def error(self, estimate: np.ndarray) -> np.ndarray:
        """MSVE (..., k) of value estimates (..., k, n)."""
        return msve(self.tasks.stationary, self.value, estimate)

    @checked(self=of(object, paths="k, M+1"), length=whole(ENUMERATED, "M"))
    def context(self, length: int) -> Context:
        """Averages over the contexts of one length, or over enumerated prompts."""
        if length == ENUMERATED:
            return Context.enumerated(self.tasks.transition, self.tasks.reward)
        return Context.of_paths(self.paths[:, : length + 1], self.tasks.reward)

    def gram(self, length: int) -> Gram:
        """Gram matrices of the contexts of one length, or of enumerated prompts."""
        if length == ENUMERATED:
            return enumerated_gram(self.tasks, self.discount)
        return gram_of(self.context(length), self.discount)

    @checked(self=of(object, paths="k, M+1"), length=whole(ENUMERATED, "M"))
    def columns(self, length: int) -> np.ndarray:
        """Contexts (k, 2n+1, m) of one length m, or those of enumerated prompts, of n columns, in full."""
        if length == ENUMERATED:
            return enumerated_context(self.tasks.transition, self.tasks.reward, self.discount)
        return sampled_context(self.paths[:, : length + 1], self.tasks.reward, self.discount)


@checked(steps=whole(1), discount=DISCOUNT, stream=TEXT)
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


DATA = of(UnseenTasks, value="k, n", paths="k, M+1")
