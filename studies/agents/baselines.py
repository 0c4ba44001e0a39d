"""Yardsticks for in-context policy evaluation on sampled contexts, each with its parameters tuned on other tasks.

For one Validation set they give the MSVE (lengths, k) of every task at every context length.
"""

import itertools

import numpy as np

from ictd import estimators
from ictd.unseen_tasks import Validation, batch_td_msve
from studies.agents.bayes import boyan_posterior, posterior_values

DECAYS = (0.0, 0.5, 0.9, 1.0)
# A floor from weighted samples is too high by about one over their effective number, here at most a percent.
ENOUGH = 100


def best(scores: np.ndarray) -> int:
    """Index of the least mean MSVE over tasks, the last axis; what is no number counts as infinite."""
    means = scores.mean(axis=-1)
    return int(np.where(np.isnan(means), np.inf, means).argmin())


def tuned_lstd(data: Validation, tuning: Validation, lengths: list[int], ridges: np.ndarray):
    """LSTD with the best ridge for each length: MSVE, and the ridges (lengths,)."""
    errors, chosen = [], []
    for length in lengths:
        scores = [tuning.error(estimators.lstd(tuning.context(length), data.discount, ridge)) for ridge in ridges]
        chosen.append(ridges[best(np.array(scores))])
        errors.append(data.error(estimators.lstd(data.context(length), data.discount, chosen[-1])))
    return np.stack(errors), np.array(chosen)


def tuned_batch_td(data: Validation, tuning: Validation, lengths: list[int], step_sizes: np.ndarray, depths: list[int]):
    """Batch TD with the best step size and number of updates for each length: MSVE, and these (lengths, 2)."""
    errors, chosen = [], []
    with np.errstate(over="ignore", invalid="ignore"):
        for length in lengths:
            scores = [batch_td_msve(tuning, depth, [tuning.context(length)], step_sizes)[0] for depth in depths]
            depth, step = divmod(best(np.concatenate(scores)), len(step_sizes))
            chosen.append((depths[depth], step_sizes[step]))
            errors.append(batch_td_msve(data, depths[depth], [data.context(length)], step_sizes[[step]])[0, 0])
    return np.stack(errors), np.array(chosen, dtype=float)


def tuned_td_lambda(data: Validation, tuning: Validation, lengths: list[int], step_sizes: np.ndarray):
    """Online TD(lambda) with the best lambda and step size for each length: MSVE, and these (lengths, 2)."""
    pairs = np.array(list(itertools.product(DECAYS, step_sizes)))
    errors, chosen = [], []
    with np.errstate(over="ignore", invalid="ignore"):
        found = [
            part.error(estimators.td_lambda(part.paths, part.tasks.reward, part.discount, *pairs.T, lengths))
            for part in (tuning, data)
        ]
    for scores, of_data in zip(*found, strict=True):
        chosen.append(best(scores))
        errors.append(of_data[chosen[-1]])
    return np.stack(errors), pairs[chosen]


def certainty_equivalence(data: Validation, lengths: list[int]) -> np.ndarray:
    """The values of the maximum likelihood model."""
    return np.stack([
        data.error(estimators.certainty_equivalence(data.context(length), data.discount)) for length in lengths
    ])  # fmt: skip


def bayes(data: Validation, lengths: list[int], samples: int, rng: np.random.Generator):
    """Posterior means on Boyan's chains, of v and for the least MSVE: MSVE of both, and effective sample sizes.

    MSVE is NaN at lengths whose median context has samples that are worth fewer than ENOUGH.
    """
    estimates, sizes = np.empty((2, len(lengths), *data.value.shape)), np.empty((len(lengths), len(data.tasks)))
    for k, length in enumerate(lengths):
        visits = data.context(length).visits
        for i, path in enumerate(data.paths[:, : length + 1]):
            posterior = boyan_posterior(path, data.tasks.states, samples, rng)
            known = np.where(visits[i] > 0, data.tasks.reward[i], 0)
            estimates[:, k, i] = posterior_values(posterior, known, data.discount)
            sizes[k, i] = posterior.effective_size
    estimates[:, np.median(sizes, axis=-1) < ENOUGH] = np.nan
    return *data.error(estimates), sizes
