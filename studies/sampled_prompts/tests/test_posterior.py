"""The posterior of Boyan's chains, beside its definition: the prior weighted by the likelihood."""

import itertools

import numpy as np
import pytest
from tolerances import ROUNDING

import ictd
from ictd.evaluation import draw_unseen_tasks
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


@pytest.mark.parametrize(("states", "path"), [(2, [1, 0, 1, 1]), (3, [0, 1, 2, 2, 0, 2, 1, 2]), (4, [3, 1]), (3, [2])])
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


@pytest.mark.parametrize(("states", "steps"), [(5, 5), (5, 1000), (20, 100)])
def test_effective_sample_sizes_are_large(states, steps):
    data = draw_unseen_tasks(0, states, 5, steps, DISCOUNT, "boyan")
    rng = np.random.default_rng(3)
    assert min(boyan_posterior(path, states, 1000, rng).effective_size for path in data.paths) > 80


def test_the_estimate_has_the_least_expected_msve():
    """Other estimates have a larger expected MSVE over the samples of the posterior."""
    rng = np.random.default_rng(4)
    posterior = boyan_posterior(np.array([0, 1, 3]), 4, 500, rng)
    reward = np.array([0.5, -1.0, 0.0, 0.0])
    values = ictd.value_function(posterior.transition, reward, DISCOUNT)
    estimate = posterior_values(posterior, reward, DISCOUNT)

    def expected_msve(estimate):
        return posterior.weights @ ictd.msve(posterior.stationary, values, estimate)

    for direction in rng.normal(size=(10, 4)):
        assert expected_msve(estimate) < expected_msve(estimate + 1e-3 * direction)
