"""Unseen tasks with their contexts, the errors of weights on them, and the choice of theta^TD's step size."""

from dataclasses import dataclass

import numpy as np

from ictd.baselines import batch_td
from ictd.checks import DISCOUNT, FLAG, POSITIVE, TEXT, checked, each, of, own, reals, whole, wholes
from ictd.environments import sample_tasks
from ictd.gram import enumerated_gram, estimates, sampled_gram
from ictd.mrp import Tasks, msve, value_function
from ictd.prompts import ENUMERATED, Context
from ictd.streams import generator
from ictd.trajectories import sample_paths
from ictd.weights import Weights


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

    def __post_init__(self):
        paths = wholes("k, M+1", 0, "n-1")
        own(self, tasks=of(Tasks, reward="k, n"), value=reals("k, n"), paths=paths, discount=DISCOUNT)

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


@checked(data=DATA, weights=of(Weights, u="R, 2n"), lengths=wholes("K", ENUMERATED, "M"), depth=whole(1), scaled=FLAG)
def weights_msve(
    weights: Weights, data: UnseenTasks, lengths: list[int], depth: int, scaled: bool = True
) -> np.ndarray:
    """MSVE (R, K, k) of R weights, u (R, 2n) and A (R, 2n, 2n), at K context lengths on k unseen tasks.

    Some tasks have errors many times those of others.  ENUMERATED as a length stands for the enumerated prompt.  The
    depth is L, and ``scaled`` says whether attention is divided by the context length.
    """
    found = np.empty((len(weights.u), len(lengths), len(data.tasks)))
    for k, length in enumerate(lengths):
        if length == ENUMERATED:
            gram = enumerated_gram(data.tasks, data.discount)
        else:
            gram = sampled_gram(data.context(length), data.tasks.reward, data.discount)
        for i in range(len(found)):
            found[i, k] = data.error(estimates(weights[[i]], gram, depth, scaled)[0])
    return found


@checked(smallest=POSITIVE, largest=POSITIVE, number=whole(1))
def log_spaced(smallest: float, largest: float, number: int) -> np.ndarray:
    """Step sizes to choose from, (number,)."""
    return np.geomspace(smallest, largest, number)


@checked(data=DATA, depth=whole(1), contexts=each(of(Context, rewards="k, n")), step_sizes=reals("K"), scaled=FLAG)
def batch_td_msve(
    data: UnseenTasks, depth: int, contexts: list[Context], step_sizes: np.ndarray, scaled: bool = True
) -> np.ndarray:
    """MSVE (contexts, K, k) of the batch TD that theta^TD, its A multiplied by each of K step sizes, carries out.

    Where attention is not divided by the context length, a layer sums over the context, and its step grows with it.
    """
    found = []
    for context in contexts:
        steps = step_sizes * (1 if scaled else whole(1)("the context length", context.length, {}))
        found.append(data.error(np.moveaxis(batch_td(context, data.discount, steps, depth), -1, 0)))
    return np.stack(found)


@checked(data=DATA, depth=whole(1), lengths=wholes("J", ENUMERATED, "M"), step_sizes=reals("K"), scaled=FLAG)
def tune_step_size(
    data: UnseenTasks, depth: int, lengths: list[int], step_sizes: np.ndarray, scaled: bool = True
) -> np.ndarray:
    """Mean MSVE (step sizes,) of batch TD over tasks and context lengths; the best step size has the least.

    Values too large for floating point count as infinite.
    """
    contexts = [data.context(length) for length in lengths]
    with np.errstate(over="ignore", invalid="ignore"):
        scores = batch_td_msve(data, depth, contexts, step_sizes, scaled).mean(axis=(0, 2))
    return np.where(np.isnan(scores), np.inf, scores)
