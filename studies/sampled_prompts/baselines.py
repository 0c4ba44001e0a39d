"""Evaluate baselines on the contexts of unseen tasks; their parameters are tuned on other tasks.

A state that no step of a context starts from has no known transitions or reward.  The baselines differ mostly in what
they assume of such states:

- "zero": the value 0 for all states
- "constant": the mean observed reward divided by 1 - gamma for all states; it has no parameter
- "constant_tuned": the same, multiplied by a factor
- "lstd": least-squares TD with a ridge, which assumes the value 0; "lstd_centred" assumes that of the constant
- "lstd_unvisited": one pseudo-step to all states equally, in states that no step starts from; it has no parameter
- "ce_uniform": pseudo-steps from every state to all states equally
- "lstd_prior": pseudo-steps of the mean chain of the tuning tasks
- "bayes": the estimate with the least expected MSVE (``posterior``); NaN for other environments than Boyan's chains

Pseudo-steps have the mean reward that the context has in their state, or 0 (``ictd.baselines.certainty_equivalence``).
"""

from collections.abc import Callable, Iterator

import numpy as np

from ictd.baselines import certainty_equivalence, constant_estimate, lstd
from ictd.context import Context
from ictd.evaluation import UnseenTasks
from ictd.rng import generator
from ictd.statistics import log_spaced
from studies.sampled_prompts.posterior import boyan_posterior, posterior_values

# Candidates for the parameters.
FACTORS = np.linspace(0.05, 1.5, 30)
RIDGES = log_spaced(1e-4, 30, 22)
PSEUDO_COUNTS = log_spaced(0.01, 1000, 31)
# Smallest allowed median effective sample size.  The relative bias of the estimated Bayes error is about one over the
# effective sample size, so at most one percent.
LEAST_EFFECTIVE_SIZE = 100


def baseline_estimates(
    env: str, data: UnseenTasks, tuning: UnseenTasks, lengths: list[int], bayes_samples: int
) -> Iterator[tuple[str, int, float, np.ndarray]]:
    """Yield the name of a method, a context length, the tuned parameter (NaN without one) and estimates (k, n).

    Parameters
    ----------
    env : str, environment of the tasks
    data : UnseenTasks, k of them, for evaluation
    tuning : UnseenTasks, for the choice of parameters
    lengths : list of context lengths
    bayes_samples : int, number of weighted samples of each posterior
    """
    for name, (estimate, candidates) in methods(tuning).items():
        chosen = tuned(tuning, lengths, estimate, candidates)
        for length, parameter in zip(lengths, chosen, strict=True):
            number = np.nan if len(candidates) == 1 else parameter
            yield name, length, number, estimate(data, data.context(length), parameter)
    rng = generator(0, env, data.tasks.states, "beyond bayes")
    for length in lengths:
        of_boyan = env == "boyan"
        yield "bayes", length, np.nan, bayes(data, length, bayes_samples, rng) if of_boyan else np.nan * data.value


def methods(tuning: UnseenTasks) -> dict[str, tuple[Callable, np.ndarray | list]]:
    """Baselines by name: a function of tasks, their contexts and a parameter, and candidates for the parameter.

    The functions return estimates (k, n) for k tasks.
    """
    discount = tuning.discount
    p, mu = tuning.tasks.transition.mean(axis=0), tuning.tasks.stationary.mean(axis=0)
    uniform = np.full_like(p, 1 / len(p))

    def constant(data, context, factor):
        return factor * constant_estimate(context, discount)

    def lstd_centred(data, context, ridge):
        added, remaining = centred(data, context)
        return added + lstd(remaining, discount, ridge)

    def in_unvisited(data, context, _):
        return certainty_equivalence(context, discount, (context.visits == 0)[..., None] * uniform)

    def with_steps_of(chain):
        return lambda data, context, k: certainty_equivalence(context, discount, k * chain)

    return {
        "zero": (lambda data, context, _: np.zeros_like(data.value), [0]),
        "constant": (constant, [1.0]),
        "constant_tuned": (constant, FACTORS),
        "lstd": (lambda data, context, ridge: lstd(context, discount, ridge), RIDGES),
        "lstd_centred": (lstd_centred, RIDGES),
        "lstd_unvisited": (in_unvisited, [0]),
        "ce_uniform": (with_steps_of(uniform), PSEUDO_COUNTS),
        "lstd_prior": (with_steps_of(mu[:, None] * p), PSEUDO_COUNTS),
    }


def centred(data: UnseenTasks, context: Context) -> tuple[np.ndarray, Context]:
    """The constant (k, n) of contexts of one-hot steps, and these contexts with rewards minus their mean."""
    constant = constant_estimate(context, data.discount)
    rewards = data.tasks.reward - (1 - data.discount) * constant
    return constant, Context.of_shares(context.length, context.D, rewards)


def tuned(tuning: UnseenTasks, lengths: list[int], estimate: Callable, candidates: np.ndarray | list) -> list:
    """Choose the candidate with the least mean MSVE, for each context length."""
    if len(candidates) == 1:
        return [candidates[0]] * len(lengths)
    chosen = []
    for context in map(tuning.context, lengths):
        scores = [tuning.error(estimate(tuning, context, candidate)).mean() for candidate in candidates]
        chosen.append(candidates[int(np.argmin(scores))])
    return chosen


def bayes(data: UnseenTasks, length: int, samples: int, rng: np.random.Generator) -> np.ndarray:
    """Estimates (k, n) with the least expected MSVE on k Boyan's chains, from weighted samples of each posterior.

    They are NaN if the median effective sample size is below ``LEAST_EFFECTIVE_SIZE``.
    """
    estimates, sizes = np.empty_like(data.value), []
    _, known_reward, _ = data.context(length).empirical_model()
    for i, path in enumerate(data.paths[:, : length + 1]):
        posterior = boyan_posterior(path, data.tasks.states, samples, rng)
        estimates[i] = posterior_values(posterior, known_reward[i], data.discount)
        sizes.append(posterior.effective_size)
    return estimates if np.median(sizes) >= LEAST_EFFECTIVE_SIZE else np.full_like(estimates, np.nan)
