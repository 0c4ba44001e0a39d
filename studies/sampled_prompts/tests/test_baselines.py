"""Baselines compared with their definitions, and the Bayes estimate with the prior weighted by the likelihood."""

import itertools

import numpy as np
import pytest
from tolerances import ROUNDING

import ictd
import ictd.baselines
from ictd.evaluation import draw_unseen_tasks
from studies.sampled_prompts import baselines
from studies.sampled_prompts.bayes import boyan_posterior, posterior_values

GAMMA = 0.9


def literal_posterior(path, reward, states, draws):
    """The prior of Algorithm 3 weighted by the likelihood of every step; unknown rewards are drawn."""
    tasks = ictd.sample_tasks("boyan", states, draws, np.random.default_rng(7))
    likelihood = tasks.stationary[:, path[0]].copy()
    for now, following in itertools.pairwise(path):
        likelihood *= tasks.transition[:, now, following]
    known = np.isin(np.arange(states), path[:-1])
    values = ictd.value_function(tasks.transition, np.where(known, reward, tasks.reward), GAMMA)
    mean = likelihood @ values / likelihood.sum()
    by_state = likelihood @ (tasks.stationary * values) / (likelihood @ tasks.stationary)
    error = np.sqrt((likelihood**2) @ (values - mean) ** 2) / likelihood.sum()
    return mean, by_state, error


@pytest.mark.parametrize(("states", "path"), [(2, [1, 0, 1, 1]), (3, [0, 1, 2, 2, 0, 2, 1, 2]), (4, [3, 1]), (3, [2])])
def test_bayes_is_the_prior_weighted_by_the_likelihood(states, path):
    reward, path = np.random.default_rng(1).uniform(-1, 1, states), np.array(path)
    mean, by_state, error = literal_posterior(path, reward, states, 200_000)
    known = np.where(np.isin(np.arange(states), path[:-1]), reward, 0)
    posterior = boyan_posterior(path, states, 50_000, np.random.default_rng(2))
    found = posterior_values(posterior, known, GAMMA)
    assert posterior.effective_size > 1_500
    np.testing.assert_array_less(np.abs(found[0] - mean), 5 * error + 0.005)
    np.testing.assert_array_less(np.abs(found[1] - by_state), 5 * error + 0.005)


@pytest.mark.parametrize(("states", "steps"), [(5, 5), (5, 1000), (20, 100)])
def test_effective_sample_sizes_are_large(states, steps):
    data = draw_unseen_tasks(0, states, 5, steps, GAMMA, "boyan")
    rng = np.random.default_rng(3)
    assert min(boyan_posterior(path, states, 1000, rng).effective_size for path in data.paths) > 80


def literal_td_lambda(path, reward, discount, decay, step_size):
    """Sutton's online algorithm, a step at a time."""
    w, trace = np.zeros(len(reward)), np.zeros(len(reward))
    for now, following in itertools.pairwise(path):
        error = reward[now] + discount * w[following] - w[now]
        trace *= discount * decay
        trace[now] += 1
        w = w + step_size * error * trace
    return w


def test_td_lambda_and_certainty_equivalence_are_their_definitions():
    data = draw_unseen_tasks(0, 4, 6, 30, GAMMA, "loop")
    decay, step_size, lengths = np.array([0.0, 0.7, 1.0]), np.array([0.3, 0.1, 0.05]), [1, 9, 30]
    found = baselines.td_lambda(data.paths, data.tasks.reward, GAMMA, decay, step_size, lengths)
    for k, i, j in itertools.product(range(3), range(3), range(6)):
        path = data.paths[j, : lengths[k] + 1]
        expected = literal_td_lambda(path, data.tasks.reward[j], GAMMA, decay[i], step_size[i])
        np.testing.assert_allclose(found[k, i, j], expected, atol=ROUNDING)
    values = baselines.certainty_equivalence(data.context(30), GAMMA)
    short = baselines.certainty_equivalence(data.context(2), GAMMA)
    for j in range(6):
        steps = list(itertools.pairwise(data.paths[j]))
        for s in range(4):
            after = [values[j, following] for now, following in steps if now == s]
            expected = data.tasks.reward[j, s] + GAMMA * np.mean(after) if after else 0
            assert values[j, s] == pytest.approx(expected, abs=ROUNDING)
        assert (short[j, ~np.isin(np.arange(4), data.paths[j, :2])] == 0).all()


def literal_lstd(paths, reward, discount):
    """LSTD without a ridge over several trajectories, a column at a time."""
    n = len(reward)
    C, b = np.zeros((n, n)), np.zeros(n)
    for weight, now, following, r in paths:
        C[now] += weight * (np.eye(n)[now] - discount * np.eye(n)[following])
        b[now] += weight * r
    return np.linalg.solve(C, b)


def test_pseudo_counts_are_steps_that_are_added():
    """A model with fractional counts, and LSTD with weighted steps of a chain added to the context."""
    data, n = draw_unseen_tasks(0, 4, 6, 8, GAMMA, "loop"), 4
    chain, visited = data.tasks.transition.mean(axis=0), data.tasks.stationary.mean(axis=0)
    context = data.context(5)
    smoothed = baselines.certainty_equivalence(context, GAMMA, pseudo_counts=np.full((n, n), 0.5))
    mixed = baselines.certainty_equivalence(context, GAMMA, pseudo_counts=3 * visited[:, None] * chain)
    for j in range(6):
        path = data.paths[j, :6]
        reward = np.where(np.isin(np.arange(n), path[:-1]), data.tasks.reward[j], 0)
        counts = np.full((n, n), 0.5)
        for now, following in itertools.pairwise(path):
            counts[now, following] += 1
        p = counts / counts.sum(axis=1, keepdims=True)
        np.testing.assert_allclose(smoothed[j], np.linalg.inv(np.eye(n) - GAMMA * p) @ reward, atol=ROUNDING)
        steps = [(1.0, now, following, reward[now]) for now, following in itertools.pairwise(path)]
        steps += [(3 * visited[s] * chain[s, after], s, after, reward[s]) for s in range(n) for after in range(n)]
        np.testing.assert_allclose(mixed[j], literal_lstd(steps, reward, GAMMA), atol=ROUNDING)


def test_pseudo_counts_are_tuned_on_other_tasks():
    data, tuning = (draw_unseen_tasks(seed, 3, 30, 20, GAMMA, "boyan") for seed in (0, 1))
    factors = np.array([0.01, 1.0, 100.0])

    def smoothed(context, factor):
        return baselines.certainty_equivalence(context, GAMMA, pseudo_counts=factor * np.full((3, 3), 1 / 3))

    errors, chosen = baselines.tuned_msve(data, tuning, [5, 20], smoothed, factors)
    for k, length in enumerate((5, 20)):
        means = [tuning.error(smoothed(tuning.context(length), factor)).mean() for factor in factors]
        assert chosen[k] == factors[np.argmin(means)]
        np.testing.assert_array_equal(errors[k], data.error(smoothed(data.context(length), chosen[k])))


def test_the_bayes_estimate_uses_the_rewards_of_the_context():
    data = draw_unseen_tasks(0, 4, 1, 2, GAMMA, "boyan", "beyond")
    path, reward = data.paths[0], data.tasks.reward[0]
    posterior = boyan_posterior(path, 4, 500, np.random.default_rng(0))
    mean, least = posterior_values(posterior, np.where(np.isin(np.arange(4), path[:-1]), reward, 0), GAMMA)
    found = baselines.bayes(data, [2], 500, np.random.default_rng(0))
    assert len(set(path[:-1])) == 2 and found[2] == posterior.effective_size
    np.testing.assert_allclose(found[0][0], data.error(mean[None]))
    np.testing.assert_allclose(found[1][0], data.error(least[None]))
    few = baselines.bayes(data, [2], 20, np.random.default_rng(0))
    assert np.isnan(few[0]).all() and np.isnan(few[1]).all() and few[2] < baselines.LEAST_EFFECTIVE_SIZE


def test_baselines_are_tuned_on_other_tasks_and_exceed_the_bayes_error():
    lengths = [5, 60]
    data, tuning = (draw_unseen_tasks(0, 3, 60, 60, GAMMA, "boyan", purpose) for purpose in ("beyond", "beyond tuning"))
    ridges, sizes = np.array([1e-3, 0.1, 10]), np.array([0.1, 1.0, 2.0, 300.0])

    def lstd_of(context, ridge):
        return ictd.baselines.lstd(context, GAMMA, ridge)

    lstd, chosen = baselines.tuned_msve(data, tuning, lengths, lstd_of, ridges)
    for k, length in enumerate(lengths):
        scores = [tuning.error(lstd_of(tuning.context(length), ridge)).mean() for ridge in ridges]
        assert chosen[k] == ridges[np.argmin(scores)]
        expected = data.error(lstd_of(data.context(length), chosen[k]))
        np.testing.assert_array_equal(lstd[k], expected)
    td, pairs = baselines.tuned_batch_td(data, tuning, lengths, sizes, [1, 30])
    online, traces = baselines.tuned_td_lambda(data, tuning, lengths, sizes[:2])
    choices = list(itertools.product(baselines.DECAYS, sizes[:2]))

    def batch_td(of, length, depth, size):
        return of.error(ictd.baselines.batch_td(of.context(length), GAMMA, size, depth))

    def td_lambda(of, length, decay, size):
        given = of.paths, of.tasks.reward, GAMMA, np.array([decay]), np.array([size]), [length]
        return of.error(baselines.td_lambda(*given)[0, 0])

    for k, length in enumerate(lengths):
        scores = {pair: batch_td(tuning, length, *pair).mean() for pair in itertools.product([1, 30], sizes[:3])}
        assert tuple(pairs[k]) == min(scores, key=scores.get)
        np.testing.assert_allclose(td[k], batch_td(data, length, int(pairs[k, 0]), pairs[k, 1]))
        scores = {pair: td_lambda(tuning, length, *pair).mean() for pair in choices}
        assert tuple(traces[k]) == min(scores, key=scores.get)
        np.testing.assert_allclose(online[k], td_lambda(data, length, *traces[k]))
    mean, least, sizes = baselines.bayes(data, lengths, 2000, np.random.default_rng(0))
    certain = [data.error(baselines.certainty_equivalence(data.context(length), GAMMA)) for length in lengths]
    others = [lstd, td, online, np.stack(certain), mean]
    assert all((least.mean(axis=1) < other.mean(axis=1)).all() for other in others) and sizes.min() > 50
