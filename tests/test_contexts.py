"""Pretraining on sampled contexts beside whole prompts in torch, and the Bayesian floor beside quadrature."""

import itertools

import numpy as np
import pytest
import torch
from test_engines import larger_weights
from tolerances import ENGINES, ROUNDING

import ictd
from ictd import estimators, yardsticks
from ictd.autograd_engine import batch_of
from ictd.context_engine import GramEngine, agent_material, expected_batches, sample_contexts
from ictd.gram import Gram, enumerated_gram, sampled_gram
from ictd.streams import generator
from ictd.trajectories import sample_paths
from ictd.unseen_tasks import validation_set
from studies.agents.bayes import boyan_posterior, posterior_values

GAMMA = 0.9


def material(env, states, size, lengths, seed=0):
    """Tasks, unrolls, the contexts' Gram matrices, and the paths that they come from."""
    tasks = ictd.sample_tasks(env, states, size, generator(seed, env, states, "tasks"))
    unrolls = ictd.unroll(tasks, 16, GAMMA, 20, generator(seed, env, states, "unrolls"))
    contexts = sample_contexts(tasks, lengths, generator(seed, env, states, "contexts"))
    paths = sample_paths(tasks, int(lengths.max()), generator(seed, env, states, "contexts"))
    return tasks, unrolls, sampled_gram(contexts, tasks.reward, GAMMA), paths


def naive_training(tasks, unrolls, paths, lengths, algo, depth, start, clip):
    """Algorithms 1 and 2 with a sampled context as the prompt, in torch on whole prompts."""
    model = ictd.LinearTransformer(start, depth)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for i in range(len(tasks)):
        context = ictd.sampled_context(paths[i, : lengths[i] + 1], tasks.reward[i], GAMMA)
        prompts = torch.from_numpy(ictd.prompts_of(context))
        state, following, mean_return = batch_of(unrolls, i)
        estimate = model(prompts[state])
        target = mean_return
        if algo == "td":
            target = torch.from_numpy(tasks.reward[i])[state] + GAMMA * model(prompts[following]).detach()
        optimizer.zero_grad()
        (0.5 * ((target - estimate) ** 2).mean()).backward()
        if clip:
            norm = torch.sqrt((model.u.grad**2).sum() + (model.A.grad**2).sum())
            for parameter in model.parameters():
                parameter.grad *= min(1, clip / norm)
        optimizer.step()
    return model.u.detach().numpy(), model.A.detach().numpy()


@pytest.mark.parametrize(
    ("algo", "env", "states", "depth", "clip"),
    [("td", "boyan", 5, 6, 0), ("mc", "boyan", 4, 3, 0.5), ("td", "loop", 3, 9, 0.02), ("mc", "loop", 2, 1, 0)],
)
def test_gram_engine_is_training_on_whole_sampled_prompts(algo, env, states, depth, clip):
    lengths = generator(0, env, states, "lengths").integers(1, 30, 40)
    tasks, unrolls, gram, paths = material(env, states, 40, lengths)
    start = larger_weights(states)
    engine = GramEngine(start, algo, depth, GAMMA, 1e-3, clip)
    _, done = engine.train(tasks, unrolls, gram)
    u, A = naive_training(tasks, unrolls, paths, lengths, algo, depth, start, clip)
    assert done == 40 and np.abs(A - start.A).max() > 1e-3
    np.testing.assert_allclose(engine.weights()[1], A, atol=ENGINES)
    np.testing.assert_allclose(engine.weights()[0], u, atol=ENGINES)


@pytest.mark.parametrize("algo", ["td", "mc"])
def test_the_enumerated_prompt_is_a_case_of_it(algo):
    tasks, unrolls, _, _ = material("boyan", 5, 300, np.full(300, 3))
    start = ictd.initial_weights(5, 0.1, generator(0, "boyan", 5, "weights"))
    engine = GramEngine(start, algo, 30, GAMMA, 1e-3, 0)
    for part in (slice(0, 7), slice(7, 300)):
        engine.train(tasks[part], unrolls[part], enumerated_gram(tasks[part], GAMMA))
    fused = ictd.pretrain(tasks, unrolls, algo, 30, GAMMA, 1e-3, start.u, start.A)
    np.testing.assert_allclose(engine.weights()[1], fused.A, atol=ROUNDING)


@pytest.mark.parametrize("algo", ["td", "mc"])
def test_expected_batches_weigh_errors_by_the_stationary_distribution(algo):
    lengths = np.arange(1, 41)
    tasks, _, gram, paths = material("boyan", 4, 40, lengths)
    start = larger_weights(4)
    model = ictd.LinearTransformer(start, 3)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for i, length in enumerate(lengths):
        context = ictd.sampled_context(paths[i, : length + 1], tasks.reward[i], GAMMA)
        estimate = model(torch.from_numpy(ictd.prompts_of(context)))
        target = tasks.reward[i] + GAMMA * tasks.transition[i] @ estimate.detach().numpy()
        if algo == "mc":
            target = tasks.reward[i] + GAMMA * tasks.transition[i] @ tasks.reward[i]
        optimizer.zero_grad()
        (0.5 * torch.from_numpy(tasks.stationary[i]) * (torch.from_numpy(target) - estimate) ** 2).sum().backward()
        optimizer.step()
    engine = GramEngine(start, algo, 3, GAMMA, 1e-3, 0)
    engine.train(tasks, expected_batches(tasks, GAMMA, 2), gram)
    np.testing.assert_allclose(engine.weights()[1], model.A.detach().numpy(), atol=ENGINES)


def test_training_stops_where_estimates_are_not_finite():
    tasks, unrolls, gram, _ = material("boyan", 3, 9, np.full(9, 4))
    wrong = gram.c.copy()
    wrong[5] = np.inf
    engine = GramEngine(larger_weights(3), "td", 5, GAMMA, 1e-3, 1)
    estimates, done = engine.train(tasks, unrolls, Gram(gram.length, gram.M, wrong))
    assert done == 5 == engine.steps and np.isfinite(estimates[:5]).all() and np.isnan(estimates[6:]).all()


def test_contexts_are_the_beginnings_of_paths():
    lengths = np.array([1, 7, 30, 2])
    tasks = ictd.sample_tasks("loop", 4, 4, generator(3, "loop", 4, "tasks"))
    contexts = sample_contexts(tasks, lengths, generator(3, "loop", 4, "contexts"))
    paths = sample_paths(tasks, 30, generator(3, "loop", 4, "contexts"))
    for i, m in enumerate(lengths):
        one = ictd.estimators.summarise(paths[i, : m + 1], tasks.reward[i])
        for name in ("visits", "successors", "rewards"):
            np.testing.assert_allclose(getattr(contexts, name)[i], getattr(one, name), atol=ROUNDING)
    with pytest.raises(ValueError, match="give one of at least 1 for each of 4 tasks"):
        sample_contexts(tasks, np.array([1, 2, 0, 3]), np.random.default_rng(0))


def literal_posterior(path, reward, states, draws):
    """The prior of Algorithm 3 weighted by the likelihood of every step; rewards are drawn where they are not known."""
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
    mean, by_state, error = literal_posterior(path, reward, states, 400_000)
    known = np.where(np.isin(np.arange(states), path[:-1]), reward, 0)
    posterior = boyan_posterior(path, states, 100_000, np.random.default_rng(2))
    found = posterior_values(posterior, known, GAMMA)
    assert posterior.effective_size > 3_000
    np.testing.assert_array_less(np.abs(found[0] - mean), 5 * error + 0.005)
    np.testing.assert_array_less(np.abs(found[1] - by_state), 5 * error + 0.005)


@pytest.mark.parametrize(("states", "steps"), [(5, 5), (5, 1000), (20, 5), (20, 100)])
def test_samples_of_the_posterior_are_worth_many(states, steps):
    data = validation_set(0, states, 5, steps, GAMMA, "boyan")
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
    data = validation_set(0, 4, 6, 30, GAMMA, "loop")
    decay, step_size, lengths = np.array([0.0, 0.7, 1.0]), np.array([0.3, 0.1, 0.05]), [1, 9, 30]
    found = estimators.td_lambda(data.paths, data.tasks.reward, GAMMA, decay, step_size, lengths)
    for k, i, j in itertools.product(range(3), range(3), range(6)):
        path = data.paths[j, : lengths[k] + 1]
        expected = literal_td_lambda(path, data.tasks.reward[j], GAMMA, decay[i], step_size[i])
        np.testing.assert_allclose(found[k, i, j], expected, atol=ROUNDING)
    values = estimators.certainty_equivalence(data.context(30), GAMMA)
    short = estimators.certainty_equivalence(data.context(2), GAMMA)
    for j in range(6):
        steps = list(itertools.pairwise(data.paths[j]))
        for s in range(4):
            after = [values[j, following] for now, following in steps if now == s]
            expected = data.tasks.reward[j, s] + GAMMA * np.mean(after) if after else 0
            assert values[j, s] == pytest.approx(expected, abs=ROUNDING)
        assert (short[j, ~np.isin(np.arange(4), data.paths[j, :2])] == 0).all()


def test_the_floor_knows_what_the_context_shows():
    data = validation_set(0, 4, 1, 2, GAMMA, "boyan", "beyond")
    path, reward = data.paths[0], data.tasks.reward[0]
    posterior = boyan_posterior(path, 4, 500, np.random.default_rng(0))
    mean, least = posterior_values(posterior, np.where(np.isin(np.arange(4), path[:-1]), reward, 0), GAMMA)
    found = yardsticks.bayes(data, [2], 500, np.random.default_rng(0))
    assert len(set(path[:-1])) == 2 and found[2] == posterior.effective_size
    np.testing.assert_allclose(found[0][0], data.error(mean[None]))
    np.testing.assert_allclose(found[1][0], data.error(least[None]))
    few = yardsticks.bayes(data, [2], 20, np.random.default_rng(0))
    assert np.isnan(few[0]).all() and np.isnan(few[1]).all() and few[2] < yardsticks.ENOUGH


def test_teachers_of_a_seed_have_the_same_tasks_and_contexts():
    teachers = ("td", "mc", "expected_td", "expected_mc")
    drawn = [agent_material(one, "boyan", 4, 7, [3, 9], GAMMA, 16, 40)(200) for one in teachers]
    for tasks, _, context in drawn:
        np.testing.assert_array_equal(tasks.transition, drawn[0][0].transition)
        np.testing.assert_array_equal(context.successors, drawn[0][2].successors)
    assert set(drawn[0][2].length) == set(range(3, 10))
    tasks, batches, _ = drawn[1]
    value = ictd.value_function(tasks.transition, tasks.reward, GAMMA)
    # Means over the visits to a state scatter around v, far less than single rewards are from it.
    visited = batches.visits > 0
    away = (batches.returns[visited] / batches.visits[visited] - value[visited]).mean()
    assert abs(away) < 0.2 and np.abs(tasks.reward - value)[visited].mean() > 0.5
    np.testing.assert_allclose(drawn[3][1].returns / tasks.stationary, value, atol=GAMMA**40 * 10)


def test_yardsticks_are_tuned_on_other_tasks_and_reach_the_floor():
    lengths = [5, 60]
    data, tuning = (validation_set(0, 3, 60, 60, GAMMA, "boyan", purpose) for purpose in ("beyond", "beyond tuning"))
    ridges, sizes = np.array([1e-3, 0.1, 10]), np.array([0.1, 1.0, 2.0, 300.0])
    lstd, chosen = yardsticks.tuned_lstd(data, tuning, lengths, ridges)
    for k, length in enumerate(lengths):
        scores = [tuning.error(estimators.lstd(tuning.context(length), GAMMA, ridge)).mean() for ridge in ridges]
        assert chosen[k] == ridges[np.argmin(scores)]
        expected = data.error(estimators.lstd(data.context(length), GAMMA, chosen[k]))
        np.testing.assert_array_equal(lstd[k], expected)
    td, pairs = yardsticks.tuned_batch_td(data, tuning, lengths, sizes, [1, 30])
    online, traces = yardsticks.tuned_td_lambda(data, tuning, lengths, sizes[:2])
    choices = list(itertools.product(yardsticks.DECAYS, sizes[:2]))

    def batch_td(of, length, depth, size):
        return of.error(estimators.batch_td(of.context(length), GAMMA, size, depth))

    def td_lambda(of, length, decay, size):
        given = of.paths, of.tasks.reward, GAMMA, np.array([decay]), np.array([size]), [length]
        return of.error(estimators.td_lambda(*given)[0, 0])

    for k, length in enumerate(lengths):
        scores = {pair: batch_td(tuning, length, *pair).mean() for pair in itertools.product([1, 30], sizes[:3])}
        assert tuple(pairs[k]) == min(scores, key=scores.get)
        np.testing.assert_allclose(td[k], batch_td(data, length, int(pairs[k, 0]), pairs[k, 1]))
        scores = {pair: td_lambda(tuning, length, *pair).mean() for pair in choices}
        assert tuple(traces[k]) == min(scores, key=scores.get)
        np.testing.assert_allclose(online[k], td_lambda(data, length, *traces[k]))
    mean, least, sizes = yardsticks.bayes(data, lengths, 2000, np.random.default_rng(0))
    others = [lstd, td, online, yardsticks.certainty_equivalence(data, lengths), mean]
    assert all((least.mean(axis=1) < other.mean(axis=1)).all() for other in others) and sizes.min() > 50
