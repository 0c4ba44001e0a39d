"""Evaluate baselines on sampled contexts; their parameters are tuned on other tasks, for each context length."""

import itertools
from collections.abc import Callable
from pathlib import Path

import numpy as np

from ictd.baselines import certainty_equivalence, lstd, td_lambda
from ictd.evaluation import (
    UnseenTasks,
    batch_td_course,
    batch_td_msve,
    draw_unseen_tasks,
    index_of_best,
    step_size_scores,
)
from ictd.mrp import value_function
from ictd.prompt import Context
from ictd.rng import generator
from ictd.statistics import log_spaced
from ictd.storage import save_arrays
from studies.sampled_prompts.posterior import boyan_posterior, posterior_values

# Candidates for lambda of TD(lambda).
DECAYS = (0.0, 0.5, 0.9, 1.0)
# Smallest allowed median effective sample size.  The relative bias of the estimated Bayes error is about one over the
# effective sample size, so at most one percent.
LEAST_EFFECTIVE_SIZE = 100


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
    pseudo_counts: dict,
    bayes_samples: int,
    env_options: dict,
    output: Path,
) -> None:
    """Write the MSVE (methods, lengths, tasks), and the tuned parameters of each method.

    ``theta_td`` is batch TD with as many updates as the Transformer has layers, and with one step size for all lengths,
    because theta^TD is a single Transformer; ``batch_td`` has the best number of updates and step size for each length.
    ``mean_chain`` computes values from the mean transition matrix p of the tuning tasks and the observed rewards.

    ``ce_uniform``, ``ce_prior`` and ``lstd_prior`` are certainty equivalence with pseudo-counts.  With p and the mean
    stationary distribution mu of the tuning tasks, their pseudo-counts from s to s' are proportional to 1, to p(s' |
    s), and to mu(s) p(s' | s).  ``lstd_prior`` is LSTD with steps of the mean chain added to the context.  The Bayes
    error is computed for Boyan's chains only.
    """
    longest = max(context_lengths)
    data = draw_unseen_tasks(0, states, test_tasks, longest, discount, env, "beyond", **env_options[env])
    tuning = draw_unseen_tasks(0, states, tuning_tasks, longest, discount, env, "beyond tuning", **env_options[env])
    contexts = [(data.context(length), tuning.context(length)) for length in context_lengths]
    tasks = (data, tuning, contexts)
    sizes = log_spaced(**step_sizes)
    error, tuned = {}, {}
    zero = data.error(np.zeros_like(data.value))
    error["zero"] = np.broadcast_to(zero, (len(context_lengths), test_tasks))

    def lstd_of(context: Context, ridge: float) -> np.ndarray:
        return lstd(context, discount, ridge)

    error["lstd"], tuned["ridge"] = tuned_msve(*tasks, lstd_of, log_spaced(**ridges))
    error["theta_td"], tuned["theta_td_step"] = tuned_theta_td(*tasks, sizes, depth)
    error["batch_td"], tuned["batch_td"] = tuned_batch_td(*tasks, sizes, updates)
    error["td_lambda"], tuned["td_lambda"] = tuned_td_lambda(data, tuning, context_lengths, sizes[sizes <= 1])
    tested = [context for context, _ in contexts]
    certain = [certainty_equivalence(context, discount) for context in tested]
    error["certainty_equivalence"] = data.error(np.stack(certain))
    error["mean_chain"] = data.error(np.stack([mean_chain_values(context, tuning) for context in tested]))
    for name, proportions in pseudo_count_proportions(tuning).items():

        def smoothed(context: Context, factor: float, proportions=proportions) -> np.ndarray:
            return certainty_equivalence(context, discount, pseudo_counts=factor * proportions)

        error[name], tuned[name] = tuned_msve(*tasks, smoothed, log_spaced(**pseudo_counts))
    tuned["effective_sizes"] = np.full((len(context_lengths), test_tasks), np.nan)
    if env == "boyan":
        rng = generator(0, env, states, "beyond bayes")
        error["posterior_mean"], error["bayes"], tuned["effective_sizes"] = bayes(data, tested, bayes_samples, rng)
    save_arrays(
        output, methods=np.array(list(error)), context_lengths=np.array(context_lengths),
        msve=np.stack(list(error.values())), **tuned,
    )  # fmt: skip


def mean_chain_values(context: Context, tuning: UnseenTasks) -> np.ndarray:
    """Values (k, n) of the tuning tasks' mean chain with the rewards of contexts, 0 for states without a visit."""
    _, reward, _ = context.empirical_model()
    return value_function(tuning.tasks.transition.mean(axis=0), reward, tuning.discount)


def pseudo_count_proportions(tuning: UnseenTasks) -> dict[str, np.ndarray]:
    """Proportions (n, n) of the pseudo-counts from state to state, by the names of the baselines."""
    p = tuning.tasks.transition.mean(axis=0)
    mu = tuning.tasks.stationary.mean(axis=0)
    return {
        "ce_uniform": np.full_like(p, 1 / tuning.tasks.states),
        "ce_prior": p,
        "lstd_prior": mu[:, None] * p,
    }


def tuned_msve(
    data: UnseenTasks,
    tuning: UnseenTasks,
    contexts: list[tuple[Context, Context]],
    estimate: Callable[[Context, float], np.ndarray],
    candidates: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Compute the MSVE of a method, with the best parameter for each context length.

    Parameters
    ----------
    data : UnseenTasks, k of them, for evaluation
    tuning : UnseenTasks, for the choice of the parameter
    contexts : list of pairs of Contexts, of ``data`` and of ``tuning``, one for each context length
    estimate : function of a Context of (k, n) and a parameter, which returns estimates (k, n)
    candidates : (K,) array, parameters to choose from

    Returns
    -------
    msve : (lengths, k) array
    chosen : (lengths,) array, parameters
    """
    msve, chosen = [], []
    for tested, tuned_on in contexts:
        scores = np.array([tuning.error(estimate(tuned_on, candidate)) for candidate in candidates])
        parameter = candidates[index_of_best(scores)]
        msve.append(data.error(estimate(tested, parameter)))
        chosen.append(parameter)
    return np.stack(msve), np.array(chosen)


def tuned_batch_td(
    data: UnseenTasks,
    tuning: UnseenTasks,
    contexts: list[tuple[Context, Context]],
    step_sizes: np.ndarray,
    updates: list[int],
) -> tuple[np.ndarray, np.ndarray]:
    """Compute the MSVE (lengths, k) of batch TD, with the best number of updates and step size for each length.

    The second returned array (lengths, 2) has these numbers of updates and step sizes.  See ``tuned_msve`` for the
    other parameters.
    """
    msve, chosen, updates = [], [], sorted(updates)
    with np.errstate(over="ignore", invalid="ignore"):
        for tested, tuned_on in contexts:
            scores = batch_td_course(tuning, tuned_on, step_sizes, updates)
            best_updates, best_size = divmod(index_of_best(np.concatenate(scores)), len(step_sizes))
            number, size = updates[best_updates], step_sizes[best_size]
            msve.append(batch_td_msve(data, number, [tested], np.array([size]))[0, 0])
            chosen.append((number, size))
    return np.stack(msve), np.array(chosen, dtype=float)


def tuned_theta_td(
    data: UnseenTasks,
    tuning: UnseenTasks,
    contexts: list[tuple[Context, Context]],
    step_sizes: np.ndarray,
    depth: int,
) -> tuple[np.ndarray, np.ndarray]:
    """Compute the MSVE (lengths, k) of batch TD with one step size, the best on average over all lengths.

    The second returned array (lengths,) has this step size.  The paper's part tunes theta^TD in the same way.  See
    ``tuned_msve`` for the other parameters.
    """
    tested, tuned_on = map(list, zip(*contexts, strict=True))
    best = step_sizes[step_size_scores(tuning, depth, tuned_on, step_sizes).argmin()]
    return batch_td_msve(data, depth, tested, np.array([best]))[:, 0], np.full(len(contexts), best)


def tuned_td_lambda(
    data: UnseenTasks, tuning: UnseenTasks, lengths: list[int], step_sizes: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Compute the MSVE (lengths, k) of online TD(lambda), with the best lambda and step size for each length.

    The second returned array (lengths, 2) has these lambdas and step sizes.  ``lengths`` are the context lengths; see
    ``tuned_msve`` for the other parameters.
    """
    pairs = np.array(list(itertools.product(DECAYS, step_sizes)))  # (K, 2)
    with np.errstate(over="ignore", invalid="ignore"):
        best = pairs[[index_of_best(scores) for scores in td_lambda_msve(tuning, pairs, lengths)]]
        msve = td_lambda_msve(data, best, lengths)
    each = np.arange(len(lengths))
    return msve[each, each], best


def td_lambda_msve(data: UnseenTasks, pairs: np.ndarray, lengths: list[int]) -> np.ndarray:
    """MSVE (lengths, K, k) of online TD(lambda) with pairs (K, 2) of a lambda and a step size."""
    rewards = np.take_along_axis(data.tasks.reward, data.paths[:, :-1], axis=-1)
    n = data.tasks.states
    estimates = [
        [td_lambda(data.paths[:, : m + 1], rewards[:, :m], data.discount, *pair, n) for pair in pairs] for m in lengths
    ]
    return data.error(np.array(estimates))


def bayes(
    data: UnseenTasks, contexts: list[Context], samples: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Compute the MSVE of the posterior mean of v, and the Bayes error, on Boyan's chains.

    Parameters
    ----------
    data : UnseenTasks, k Boyan's chains
    contexts : list of Contexts of ``data``, one for each context length
    samples : int, number of weighted samples of each posterior
    rng : numpy.random.Generator

    Returns
    -------
    posterior_mean, bayes_error : (lengths, k) arrays
        MSVE of the two estimates of ``posterior_values``, NaN at lengths whose median effective sample size is below
        LEAST_EFFECTIVE_SIZE.
    effective_sizes : (lengths, k) array
    """
    estimates = np.empty((2, len(contexts), *data.value.shape))
    effective_sizes = np.empty((len(contexts), len(data.tasks)))
    for k, context in enumerate(contexts):
        for i, path in enumerate(data.paths[:, : context.length + 1]):
            posterior = boyan_posterior(path, data.tasks.states, samples, rng)
            known_reward = np.where(context.visits[i] > 0, data.tasks.reward[i], 0)
            estimates[:, k, i] = posterior_values(posterior, known_reward, data.discount)
            effective_sizes[k, i] = posterior.effective_size
    estimates[:, np.median(effective_sizes, axis=-1) < LEAST_EFFECTIVE_SIZE] = np.nan
    posterior_mean, bayes_error = data.error(estimates)
    return posterior_mean, bayes_error, effective_sizes
