"""In-context policy evaluation on unseen tasks (section "In-Context Policy Evaluation Verification").

Transformers, theta^TD and the baselines estimate values from the same contexts: the first m steps of one trajectory of
each unseen task.  The error of an estimate is its MSVE.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from ictd.baselines import BASELINES, Baseline, Given
from ictd.context import Context
from ictd.mrp import Tasks, msve, sample_tasks, value_function
from ictd.prompt import ENUMERATED, enumerated_columns, sampled_columns
from ictd.rng import generator
from ictd.sampling import sample_paths, transition_counts
from ictd.statistics import mean_score
from ictd.storage import joined_arrays
from ictd.transformer import Weights, estimates


@dataclass(frozen=True)
class UnseenTasks:
    """Tasks that no model was pretrained on, with their true values and one trajectory each.

    The context of length m is the first m steps of the trajectory.

    Parameters
    ----------
    tasks : Tasks, k of them with n states
    value : (k, n) array, v
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
        """The contexts of one length m; the length ENUMERATED stands for enumerated contexts."""
        tasks = self.tasks
        if length == ENUMERATED:
            return Context.enumerated(tasks.transition, tasks.reward)
        paths = self._paths(length)
        counts = transition_counts(paths[:, :-1], paths[:, 1:], np.full(len(tasks), length), tasks.states)
        return Context.of_shares(length, counts / length, tasks.reward)

    def gram_matrix(self, length: int, scaled: bool = True) -> np.ndarray:
        """``Context.gram_matrix`` (k, 2n+1, 2n+1) of the contexts of one length m, or of enumerated contexts."""
        return self.context(length).gram_matrix(self.discount, scaled)

    def columns(self, length: int) -> np.ndarray:
        """Columns (k, 2n+1, m) of the contexts of one length m, or (k, 2n+1, n) of enumerated contexts."""
        if length == ENUMERATED:
            return enumerated_columns(self.tasks.transition, self.tasks.reward, self.discount)
        return sampled_columns(self._paths(length), self.tasks.reward, self.discount)

    def _paths(self, length: int) -> np.ndarray:
        """States (k, m+1) of the first m steps."""
        if length >= self.paths.shape[1]:
            raise ValueError(f"length is {length}; give at most {self.paths.shape[1] - 1}, the steps of the paths.")
        return self.paths[:, : length + 1]


def draw_unseen_tasks(
    seed: int, states: int, size: int, steps: int, discount: float, env: str, stream: str = "validation", **options
) -> UnseenTasks:
    """Draw unseen tasks and their trajectories, the same for every model of a seed.

    Parameters
    ----------
    seed : int
    states : int, n
    size : int, number of tasks k
    steps : int, greatest context length M
    discount : float, gamma
    env : str, environment of the tasks
    stream : str, purpose of the random number streams
    **options : options of the environment
    """
    tasks = sample_tasks(env, states, size, generator(seed, env, states, stream), **options)
    paths = sample_paths(tasks, steps, generator(seed, env, states, f"{stream} contexts"))
    return UnseenTasks(tasks, value_function(tasks.transition, tasks.reward, discount), paths, discount)


def joined(parts: list[UnseenTasks]) -> UnseenTasks:
    """Join sets of k unseen tasks each, of the same n and M, to one set of all their tasks, in the same order."""
    tasks = Tasks.unchecked(**joined_arrays([vars(part.tasks) for part in parts]))
    value = np.concatenate([part.value for part in parts])
    paths = np.concatenate([part.paths for part in parts])
    return UnseenTasks(tasks, value, paths, parts[0].discount)


def weights_msve(
    weights: Weights, data: UnseenTasks, lengths: list[int], depth: int, scaled: bool = True
) -> np.ndarray:
    """Compute the MSVE of R Transformers at K context lengths on k unseen tasks.

    Parameters
    ----------
    weights : Weights, u (R, 2d) and A (R, 2d, 2d); any leading axes, or none, in place of R
    data : UnseenTasks
    lengths : list of K ints, of which ENUMERATED stands for the enumerated context
    depth : int, number of layers L
    scaled : bool
        Whether attention is divided by the context length.

    Returns
    -------
    msve : (R, K, k) array
    """
    errors = []
    for length in lengths:
        G = data.gram_matrix(length, scaled)
        errors.append(np.empty((*weights.u.shape[:-1], len(data.tasks))))
        for i in np.ndindex(errors[-1].shape[:-1]):
            errors[-1][i] = data.error(estimates(weights[i], G, depth))
    return np.stack(errors, axis=-2)


def factor_scores(
    baseline: Baseline, data: UnseenTasks, contexts: list[Context], given: Given, factors: np.ndarray
) -> np.ndarray:
    """Compute the ``mean_score`` (K,) of a baseline with each of K factors, over contexts and tasks."""
    with np.errstate(over="ignore", invalid="ignore"):
        errors = [data.error(np.moveaxis(baseline.tuned(context, given, factors), -1, 0)) for context in contexts]
    return mean_score(np.stack(errors), axis=(0, 2))


def baseline_msve(
    names: Iterable[str], data: UnseenTasks, contexts: list[Context], given: Given
) -> dict[str, np.ndarray]:
    """Compute the MSVE of baselines (``ictd.baselines.BASELINES``).

    Parameters
    ----------
    names : names of baselines
    data : UnseenTasks, k of them
    contexts : list of Contexts of (k, n)
    given : Given

    Returns
    -------
    dict of (contexts, k) arrays, by name
    """
    return {
        name: np.stack([data.error(BASELINES[name].estimate(context, given)) for context in contexts]) for name in names
    }


def layer_measures(weights: Weights, data: UnseenTasks, depth: int, scaled: bool = True) -> dict[str, float]:
    """Compare the layers of a Transformer with updates of batch TD, on the enumerated prompts of k tasks.

    From estimates w, a layer makes the change d = -h R (n,), in the words of ``ictd.engine``, and TD a change in
    proportion to the TD errors g = r + gamma P w - w.

    Parameters
    ----------
    weights : Weights, u (2n,) and A (2n, 2n)
    data : UnseenTasks
    depth : int, number of layers L
    scaled : bool
        Whether attention is divided by the context length.

    Returns
    -------
    dict of floats, NaN if the weights are not finite
        layer_is_td : squared cosine between d and g over tasks and states, weighted by mu, zero if the cosine is
            negative; the mean over layers
        converging : share of the tasks in which the layer converges if it is repeated (spectral radius of T below 1)
    """
    if not all(np.isfinite(array).all() for array in (weights.u, weights.A)):
        return {"layer_is_td": np.nan, "converging": np.nan}
    columns = data.columns(ENUMERATED)  # (k, 2n+1, n)
    X, r = columns[:, :-1], columns[:, -1]
    n = r.shape[-1]
    XA = X.mT @ weights.A / (n if scaled else 1)
    T, R = np.eye(n) + XA @ X, XA[:, :, :n]
    mu = data.tasks.stationary
    h, w, shares = weights.u @ X + r, np.zeros_like(r), []
    with np.errstate(all="ignore"):
        for _ in range(depth):
            change = -np.vecmat(h, R)
            error = r + data.discount * np.matvec(data.tasks.transition, w) - w
            along = (mu * change * error).sum()
            shares.append(max(along, 0) ** 2 / ((mu * change**2).sum() * (mu * error**2).sum()))
            w, h = w + change, np.vecmat(h, T)
    radius = np.abs(np.linalg.eigvals(T)).max(axis=-1)
    return {"layer_is_td": float(np.mean(shares)), "converging": float((radius < 1).mean())}
