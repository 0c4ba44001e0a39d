"""The posterior of Boyan's chains, beside its definition: the prior weighted by the likelihood."""

import itertools

import numpy as np
import pytest
from tolerances import ROUNDING

import ictd
from studies.sampled_prompts.posterior import boyan_posterior, posterior_values

DISCOUNT = 0.85


def literal_estimate(path, reward, states, draws):
    """The estimate with the prior of Algorithm 3 weighted by the likelihood of every step, and its standard error.

    Unknown rewards are drawn.
    """
    tasks = ictd.sample_tasks("boyan", states, draws, np.random.default_rng(7))
    likelihood = tasks.stationary[:, path[0]].copy()
    for now, following in itertools.pairwise(path):
        likelihood *= tasks.transition[:, now, following]
    known = np.isin(np.arange(states), path[:-1])
    values = ictd.value_function(tasks.transition, np.where(known, reward, tasks.reward), DISCOUNT)
    weights = likelihood[:, None] * tasks.stationary
    estimate = (weights * values).sum(axis=0) / weights.sum(axis=0)
    error = np.sqrt((weights**2 * (values - estimate) ** 2).sum(axis=0)) / weights.sum(axis=0)
    return estimate, error


@pytest.mark.parametrize(
    ("states", "path"), [(2, [1, 1, 1, 0, 1, 1, 1, 1, 1]), (3, [0, 1, 2, 2, 0, 2, 1, 2]), (4, [3, 1]), (3, [2])]
)
def test_bayes_samples_the_prior_weighted_by_the_likelihood(states, path):
    reward, path = np.random.default_rng(1).uniform(-1, 1, states), np.array(path)
    expected, error = literal_estimate(path, reward, states, 200_000)
    known = np.where(np.isin(np.arange(states), path[:-1]), reward, 0)
    posterior = boyan_posterior(path, states, 50_000, np.random.default_rng(2))
    assert posterior.effective_size > 1_500
    mu = ictd.stationary_distribution(posterior.transition)
    np.testing.assert_allclose(posterior.stationary, mu, rtol=ROUNDING)
    found = posterior_values(posterior, known, DISCOUNT)
    np.testing.assert_array_less(np.abs(found - expected), 5 * error + 0.005)
