"""Unseen tasks with their contexts, and the choice of theta^TD's step size on such tasks."""

from dataclasses import dataclass

import numpy as np

from ictd import estimators
from ictd.environments import sample_tasks
from ictd.mrp import Tasks, msve, value_function
from ictd.sampling import sample_paths
from ictd.streams import generator

ENUMERATED = 0  # In place of a context length, for enumerated prompts.


@dataclass(frozen=True)
class Validation:
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

    def context(self, length: int) -> estimators.Context:
        """Averages over the contexts of one length, or over enumerated prompts."""
        if length == ENUMERATED:
            return estimators.enumerated(self.tasks.transition, self.tasks.reward)
        return estimators.summarise(self.paths[:, : length + 1], self.tasks.reward)


def validation_set(
    seed: int,
    states: int,
    size: int,
    longest: int,
    discount: float,
    env: str,
    purpose: str = "validation",
    **env_options,
) -> Validation:
    """Draw unseen tasks and their trajectories; the same for every model of a seed, whatever it was pretrained on.

    Parameters
    ----------
    seed, states : int
    size : int, number of tasks k
    longest : int, greatest context length M
    discount : float, gamma
    env : str, environment of the tasks
    purpose : str, name of the random stream
    """
    tasks = sample_tasks(env, states, size, generator(seed, env, states, purpose), **env_options)
    paths = sample_paths(tasks, longest, generator(seed, env, states, f"{purpose} contexts"))
    return Validation(tasks, value_function(tasks.transition, tasks.reward, discount), paths, discount)


def log_spaced(smallest: float, largest: float, number: int) -> np.ndarray:
    """Step sizes to choose from, (number,)."""
    return np.geomspace(smallest, largest, number)


def batch_td_msve(
    data: Validation, depth: int, contexts: list[estimators.Context], step_sizes: np.ndarray, scaled: bool = True
) -> np.ndarray:
    """MSVE (contexts, K, k) of the batch TD that theta^TD, its A multiplied by each of K step sizes, carries out.

    Where attention is not divided by the context length, a layer sums over the context, and its step grows with it.
    """
    found = []
    for context in contexts:
        steps = step_sizes * (1 if scaled else context.length)
        found.append(data.error(np.moveaxis(estimators.batch_td(context, data.discount, steps, depth), -1, 0)))
    return np.stack(found)


def tune_step_size(
    data: Validation, depth: int, lengths: list[int], step_sizes: np.ndarray, scaled: bool = True
) -> np.ndarray:
    """Mean MSVE (step sizes,) of batch TD over tasks and context lengths; the best step size has the least.

    Values too large for floating point count as infinite.
    """
    contexts = [data.context(length) for length in lengths]
    with np.errstate(over="ignore", invalid="ignore"):
        scores = batch_td_msve(data, depth, contexts, step_sizes, scaled).mean(axis=(0, 2))
    return np.where(np.isnan(scores), np.inf, scores)
