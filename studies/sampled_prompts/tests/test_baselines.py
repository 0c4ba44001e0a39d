"""Tuning of baselines, and the Bayes error."""

import itertools

import numpy as np
from tolerances import ROUNDING

import ictd
from ictd.baselines import certainty_equivalence
from ictd.evaluation import draw_unseen_tasks
from studies.sampled_prompts import baselines
from studies.sampled_prompts.posterior import boyan_posterior, posterior_values

GAMMA = 0.9


def contexts_of(data, tuning, lengths):
    return [(data.context(length), tuning.context(length)) for length in lengths]


def literal_lstd(paths, reward, discount):
    """LSTD without a ridge over several trajectories, a column at a time."""
    n = len(reward)
    C, b = np.zeros((n, n)), np.zeros(n)
    for weight, now, following, r in paths:
        C[now] += weight * (np.eye(n)[now] - discount * np.eye(n)[following])
        b[now] += weight * r
    return np.linalg.solve(C, b)


def test_pseudo_counts_equal_added_steps():
    """A model with fractional counts, and LSTD with weighted steps of a chain added to the context."""
    data, n = draw_unseen_tasks(0, 4, 6, 8, GAMMA, "loop"), 4
    chain, visited = data.tasks.transition.mean(axis=0), data.tasks.stationary.mean(axis=0)
    context = data.context(5)
    smoothed = certainty_equivalence(context, GAMMA, pseudo_counts=np.full((n, n), 0.5))
    mixed = certainty_equivalence(context, GAMMA, pseudo_counts=3 * visited[:, None] * chain)
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
        return certainty_equivalence(context, GAMMA, pseudo_counts=factor * np.full((3, 3), 1 / 3))

    errors, chosen = baselines.tuned_msve(data, tuning, contexts_of(data, tuning, [5, 20]), smoothed, factors)
    for k, length in enumerate((5, 20)):
        means = [tuning.error(smoothed(tuning.context(length), factor)).mean() for factor in factors]
        assert chosen[k] == factors[np.argmin(means)]
        np.testing.assert_array_equal(errors[k], data.error(smoothed(data.context(length), chosen[k])))


def test_the_bayes_estimate_uses_the_rewards_of_the_context():
    data = draw_unseen_tasks(0, 4, 1, 2, GAMMA, "boyan", "beyond")
    path, reward = data.paths[0], data.tasks.reward[0]
    posterior = boyan_posterior(path, 4, 500, np.random.default_rng(0))
    mean, least = posterior_values(posterior, np.where(np.isin(np.arange(4), path[:-1]), reward, 0), GAMMA)
    found = baselines.bayes(data, [data.context(2)], 500, np.random.default_rng(0))
    assert len(set(path[:-1])) == 2 and found[2] == posterior.effective_size
    np.testing.assert_allclose(found[0][0], data.error(mean[None]))
    np.testing.assert_allclose(found[1][0], data.error(least[None]))
    few = baselines.bayes(data, [data.context(2)], 20, np.random.default_rng(0))
    assert np.isnan(few[0]).all() and np.isnan(few[1]).all() and few[2] < baselines.LEAST_EFFECTIVE_SIZE


def test_baselines_are_tuned_on_other_tasks_and_exceed_the_bayes_error():
    lengths = [5, 60]
    data, tuning = (draw_unseen_tasks(0, 3, 60, 60, GAMMA, "boyan", purpose) for purpose in ("beyond", "beyond tuning"))
    ridges, sizes = np.array([1e-3, 0.1, 10]), np.array([0.1, 1.0, 2.0, 300.0])

    def lstd_of(context, ridge):
        return ictd.lstd(context, GAMMA, ridge)

    contexts = contexts_of(data, tuning, lengths)
    lstd, chosen = baselines.tuned_msve(data, tuning, contexts, lstd_of, ridges)
    for k, length in enumerate(lengths):
        scores = [tuning.error(lstd_of(tuning.context(length), ridge)).mean() for ridge in ridges]
        assert chosen[k] == ridges[np.argmin(scores)]
        expected = data.error(lstd_of(data.context(length), chosen[k]))
        np.testing.assert_array_equal(lstd[k], expected)
    td, pairs = baselines.tuned_batch_td(data, tuning, contexts, sizes, [1, 30])
    online, traces = baselines.tuned_td_lambda(data, tuning, lengths, sizes[:2])
    choices = list(itertools.product(baselines.DECAYS, sizes[:2]))

    def batch_td(of, length, depth, size):
        return of.error(ictd.batch_td(of.context(length), GAMMA, size, depth))

    def td_lambda(of, length, decay, size):
        return baselines.td_lambda_msve(of, np.array([[decay, size]]), [length])[0, 0]

    for k, length in enumerate(lengths):
        scores = {pair: batch_td(tuning, length, *pair).mean() for pair in itertools.product([1, 30], sizes[:3])}
        assert tuple(pairs[k]) == min(scores, key=scores.get)
        np.testing.assert_allclose(td[k], batch_td(data, length, int(pairs[k, 0]), pairs[k, 1]))
        scores = {pair: td_lambda(tuning, length, *pair).mean() for pair in choices}
        assert tuple(traces[k]) == min(scores, key=scores.get)
        np.testing.assert_allclose(online[k], td_lambda(data, length, *traces[k]))
    mean, least, sizes = baselines.bayes(data, [tested for tested, _ in contexts], 2000, np.random.default_rng(0))
    certain = [data.error(certainty_equivalence(data.context(length), GAMMA)) for length in lengths]
    others = [lstd, td, online, np.stack(certain), mean]
    assert all((least.mean(axis=1) < other.mean(axis=1)).all() for other in others) and sizes.min() > 50
