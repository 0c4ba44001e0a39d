"""In-context policy evaluation on unseen tasks (section "In-Context Policy Evaluation Verification")."""

from collections.abc import Iterable

import numpy as np

from ictd.baselines import batch_td, lstd
from ictd.gram import Gram, estimates, gram_of
from ictd.prompts import Context
from ictd.unseen_tasks import UnseenTasks
from ictd.weights import Weights, theta_td


def weights_msve(
    weights: Weights, data: UnseenTasks, lengths: list[int], depth: int, scaled: bool = True
) -> np.ndarray:
    """MSVE (R, K, k) of R weights, u (R, 2n) and A (R, 2n, 2n), at K context lengths on k unseen tasks.

    The axis R may be left out, or be several.  Some tasks have errors many times those of others.  ENUMERATED as a
    length stands for the enumerated prompt.  The depth is L, and ``scaled`` says whether attention is divided by the
    context length.
    """
    return _msve(weights, data, map(data.gram, lengths), depth, scaled)


def _msve(weights: Weights, data: UnseenTasks, grams: Iterable[Gram], depth: int, scaled: bool) -> np.ndarray:
    """MSVE (R, K, k) of R weights on the contexts that K Gram matrices are of."""
    found = []
    for gram in grams:
        found.append(np.empty((*weights.u.shape[:-1], len(data.tasks))))
        for i in np.ndindex(found[-1].shape[:-1]):
            found[-1][i] = data.error(estimates(weights[i], gram, depth, scaled))
    return np.stack(found, axis=-2)


def log_spaced(smallest: float, largest: float, number: int) -> np.ndarray:
    """Step sizes to choose from, (number,)."""
    return np.geomspace(smallest, largest, number)


def batch_td_msve(
    data: UnseenTasks, depth: int, contexts: list[Context], step_sizes: np.ndarray, scaled: bool = True
) -> np.ndarray:
    """MSVE (contexts, K, k) of the batch TD that theta^TD, its A multiplied by each of K step sizes, carries out.

    Where attention is not divided by the context length, a layer sums over the context, and its step grows with it.
    """
    found = []
    for context in contexts:
        steps = step_sizes * (1 if scaled else context.length)
        found.append(data.error(np.moveaxis(batch_td(context, data.discount, steps, depth), -1, 0)))
    return np.stack(found)


def tune_step_size(
    data: UnseenTasks, depth: int, contexts: list[Context], step_sizes: np.ndarray, scaled: bool = True
) -> np.ndarray:
    """Mean MSVE (step sizes,) of batch TD over tasks and contexts; the best step size has the least.

    Values too large for floating point count as infinite.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        scores = batch_td_msve(data, depth, contexts, step_sizes, scaled).mean(axis=(0, 2))
    return np.where(np.isnan(scores), np.inf, scores)


def baseline_msve(
    data: UnseenTasks, depth: int, contexts: list[Context], step_size: float, ridge: float, scaled: bool = True
) -> dict[str, np.ndarray]:
    """MSVE (contexts, k) of theta^TD with a step size, of batch TD that it must equal, of LSTD, and of predicting zero.

    The step size is a factor of theta^TD's A.  ``depth`` is the number of the Transformer's layers and of batch TD's
    updates.  For ``ridge`` see ``baselines.lstd``; ``scaled`` says whether attention is divided by the context length.
    """
    theta = theta_td(data.tasks.states)
    weights = Weights(theta.u, step_size * theta.A)
    grams = (gram_of(context, data.discount) for context in contexts)
    return {
        "theta_td": _msve(weights, data, grams, depth, scaled),
        "batch_td": batch_td_msve(data, depth, contexts, np.array([step_size]), scaled)[:, 0],
        "lstd": data.error(np.stack([lstd(context, data.discount, ridge) for context in contexts])),
        "zero": np.broadcast_to(data.error(np.zeros_like(data.value)), (len(contexts), len(data.tasks))),
    }
