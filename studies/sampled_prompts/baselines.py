"""Baselines for in-context policy evaluation on sampled contexts, each with its parameters tuned on other tasks."""

import itertools
from pathlib import Path

import numpy as np

from ictd.baselines import certainty_equivalence, lstd
from ictd.evaluation import UnseenTasks, batch_td_msve, draw_unseen_tasks, log_spaced
from ictd.rng import generator
from ictd.storage import save_arrays
from studies.sampled_prompts.bayes import boyan_posterior, posterior_values

DECAYS = (0.0, 0.5, 0.9, 1.0)
# A floor from weighted samples is too high by about one over their effective number, here at most a percent.
ENOUGH = 100


def main(
    env: str,
    states: int,
    discount: float,
    depth: int,
    test_tasks: int,
    tuning_tasks: int,
    context_lengths: list[int],
    step_sizes: dict,
    updates: list[int],
    ridges: dict,
    pseudo_steps: dict,
    bayes_samples: int,
    env_options: dict,
    output: Path,
) -> None:
    """Write the MSVE (methods, lengths, tasks), and what was chosen for each length.

    ``theta_td`` is batch TD with as many updates as the Transformer has layers, ``batch_td`` with the best number.
    ``ce_uniform``, ``ce_prior`` and ``lstd_prior`` are certainty equivalence after pseudo-steps, which are as many from
    each state to all states; the same by the mean chain p of the tuning tasks; and from each state as many as there are
    under that chain's mean stationary distribution, which is LSTD with steps of that chain added to the context's.
    Only Boyan's chains have a Bayesian floor.
    """
    data, tuning = (
        draw_unseen_tasks(0, states, size, max(context_lengths), discount, env, purpose, **env_options)
        for purpose, size in (("beyond", test_tasks), ("beyond tuning", tuning_tasks))
    )
    sizes, of = log_spaced(**step_sizes), (data, tuning, context_lengths)
    zero = data.error(np.zeros_like(data.value))
    error, chosen = {"zero": np.broadcast_to(zero, (len(context_lengths), test_tasks))}, {}
    error["lstd"], chosen["ridge"] = tuned_lstd(*of, log_spaced(**ridges))
    error["theta_td"], chosen["theta_td"] = tuned_batch_td(*of, sizes, [depth])
    error["batch_td"], chosen["batch_td"] = tuned_batch_td(*of, sizes, updates)
    error["td_lambda"], chosen["td_lambda"] = tuned_td_lambda(*of, sizes[sizes <= 1])
    error["certainty_equivalence"] = np.stack([
        data.error(certainty_equivalence(data.context(length), discount)) for length in context_lengths
    ])  # fmt: skip
    chain, visited = (of_tuning.mean(axis=0) for of_tuning in (tuning.tasks.transition, tuning.tasks.stationary))
    shares = {"ce_uniform": np.full_like(chain, 1 / states), "ce_prior": chain, "lstd_prior": visited[:, None] * chain}
    for name, share in shares.items():
        error[name], chosen[name] = tuned_smoothing(*of, share, log_spaced(**pseudo_steps))
    chosen["effective_sizes"] = np.full((len(context_lengths), test_tasks), np.nan)
    if env == "boyan":
        rng = generator(0, env, states, "beyond bayes")
        error["posterior_mean"], error["bayes"], chosen["effective_sizes"] = bayes(
            data, context_lengths, bayes_samples, rng
        )
    save_arrays(
        output, methods=np.array(list(error)), context_lengths=np.array(context_lengths),
        msve=np.stack(list(error.values())), **chosen,
    )  # fmt: skip


def best(scores: np.ndarray) -> int:
    """Index of the least mean MSVE over tasks, the last axis; what is no number counts as infinite."""
    means = scores.mean(axis=-1)
    return int(np.where(np.isnan(means), np.inf, means).argmin())


def tuned_lstd(data: UnseenTasks, tuning: UnseenTasks, lengths: list[int], ridges: np.ndarray):
    """LSTD with the best ridge for each length: MSVE (lengths, k) of each task, and the ridges (lengths,)."""
    errors, chosen = [], []
    for length in lengths:
        scores = [tuning.error(lstd(tuning.context(length), data.discount, ridge)) for ridge in ridges]
        chosen.append(ridges[best(np.array(scores))])
        errors.append(data.error(lstd(data.context(length), data.discount, chosen[-1])))
    return np.stack(errors), np.array(chosen)


def tuned_smoothing(
    data: UnseenTasks, tuning: UnseenTasks, lengths: list[int], share: np.ndarray, strengths: np.ndarray
):
    """Certainty equivalence with the best multiple of pseudo-steps ``share`` (n, n) for each length: MSVE, and it."""
    errors, chosen = [], []
    for length in lengths:
        context = tuning.context(length)
        scores = [tuning.error(certainty_equivalence(context, tuning.discount, k * share)) for k in strengths]
        chosen.append(strengths[best(np.array(scores))])
        errors.append(data.error(certainty_equivalence(data.context(length), data.discount, chosen[-1] * share)))
    return np.stack(errors), np.array(chosen)


def tuned_batch_td(
    data: UnseenTasks, tuning: UnseenTasks, lengths: list[int], step_sizes: np.ndarray, depths: list[int]
):
    """Batch TD with the best number of updates and step size for each length: MSVE, and these (lengths, 2)."""
    errors, chosen = [], []
    with np.errstate(over="ignore", invalid="ignore"):
        for length in lengths:
            scores = [batch_td_msve(tuning, depth, [tuning.context(length)], step_sizes)[0] for depth in depths]
            depth, step = divmod(best(np.concatenate(scores)), len(step_sizes))
            chosen.append((depths[depth], step_sizes[step]))
            errors.append(batch_td_msve(data, depths[depth], [data.context(length)], step_sizes[[step]])[0, 0])
    return np.stack(errors), np.array(chosen, dtype=float)


def tuned_td_lambda(data: UnseenTasks, tuning: UnseenTasks, lengths: list[int], step_sizes: np.ndarray):
    """Online TD(lambda) with the best lambda and step size for each length: MSVE, and these (lengths, 2)."""
    pairs = np.array(list(itertools.product(DECAYS, step_sizes)))
    with np.errstate(over="ignore", invalid="ignore"):
        scores, of_data = (
            part.error(td_lambda(part.paths, part.tasks.reward, part.discount, *pairs.T, lengths))
            for part in (tuning, data)
        )
    chosen = [best(of_length) for of_length in scores]
    return of_data[np.arange(len(lengths)), chosen], pairs[chosen]


def bayes(data: UnseenTasks, lengths: list[int], samples: int, rng: np.random.Generator):
    """Posterior means on Boyan's chains, of v and for the least MSVE: MSVE of both, and effective sample sizes.

    All are (lengths, k); MSVE is NaN at lengths whose median context has samples that are worth fewer than ENOUGH.
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


def td_lambda(
    paths: np.ndarray, reward: np.ndarray, discount: float, decay: np.ndarray, step_size: np.ndarray, lengths: list[int]
) -> np.ndarray:
    """Value estimates (lengths, K, k, n) of online TD(lambda) with accumulating traces (Sutton, Machine Learning 3,
    1988), once through each context.

    Parameters
    ----------
    paths : (k, M+1) int array of states S_0, ..., S_M
    reward : (k, n) array, r(s)
    discount : float, gamma
    decay, step_size : (K,) arrays, pairs of lambda and a step size
    lengths : ascending list of int, numbers of steps after which the estimates are kept
    """
    each = np.arange(len(paths))
    w = np.zeros((len(decay), *reward.shape))
    trace, kept = np.zeros_like(w), []
    rates, forget = step_size[:, None], discount * decay[:, None, None]
    for t in range(max(lengths)):
        now, following = paths[:, t], paths[:, t + 1]
        error = reward[each, now] + discount * w[:, each, following] - w[:, each, now]
        trace *= forget
        trace[:, each, now] += 1
        w += (rates * error)[..., None] * trace
        if t + 1 in lengths:
            kept.append(w.copy())
    return np.stack(kept)
