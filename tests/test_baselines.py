"""Baselines, each compared with a slow version that loops over steps, with features that are not one-hot."""

import itertools
import warnings
from dataclasses import replace

import naive
import numpy as np
import pytest
from tolerances import DIFFERENCES, ROUNDING, STANDARD_ERRORS

import ictd
from ictd.baselines import batch_td, boyan_posterior, certainty_equivalence, lstd, posterior_values
from ictd.evaluation import draw_unseen_tasks
from ictd.prompt import Context

STATES, DISCOUNT = 3, 0.85
# Numbers of states and features.
SIZES = pytest.mark.parametrize(("n", "d"), [(6, 3), (4, 4), (3, 5)])


def trajectories(length, count=4):
    """States (count, length + 1), and random rewards (count, length), which are not functions of the state."""
    rng = np.random.default_rng(length)
    return rng.integers(0, STATES, (count, length + 1)), rng.normal(size=(count, length))


@pytest.mark.parametrize("depth", [1, 40])
@pytest.mark.parametrize("length", [1, 6, 25])
def test_batch_td_equals_naive_and_theta_td(length, depth):
    states, rewards = trajectories(length)
    context = Context.from_trajectory(states, rewards, STATES)
    values = batch_td(context, DISCOUNT, 1.3, depth)
    theta = ictd.theta_td(STATES)
    by_theta = ictd.Model(ictd.Weights(theta.u, 1.3 * theta.A), depth, DISCOUNT).values(context)
    for i in range(len(states)):
        expected = naive.batch_td(states[i], rewards[i], STATES, DISCOUNT, 1.3, depth)
        np.testing.assert_allclose(values[i], expected, atol=ROUNDING)
        np.testing.assert_allclose(by_theta[i], expected, atol=ROUNDING)


def test_batch_td_of_several_step_sizes():
    context = Context.from_trajectory(*trajectories(6), STATES)
    together = batch_td(context, DISCOUNT, [0.1, 0.5], 7)
    assert together.shape == (4, STATES, 2)
    for k, step_size in enumerate([0.1, 0.5]):
        np.testing.assert_array_equal(together[..., k], batch_td(context, DISCOUNT, step_size, 7))


def test_batch_td_continues_from_earlier_estimates():
    context = Context.from_trajectory(*trajectories(6), STATES)
    for step_size in (0.5, [0.1, 0.5]):
        halfway = batch_td(context, DISCOUNT, step_size, 3)
        before = halfway.copy()
        continued = batch_td(context, DISCOUNT, step_size, 4, start=halfway)
        np.testing.assert_array_equal(continued, batch_td(context, DISCOUNT, step_size, 7))
        np.testing.assert_array_equal(halfway, before)


@pytest.mark.parametrize("ridge", [0.01, 1.0])
@pytest.mark.parametrize("length", [1, 6, 25])
def test_lstd_equals_naive(length, ridge):
    states, rewards = trajectories(length)
    values = lstd(Context.from_trajectory(states, rewards, STATES), DISCOUNT, ridge)
    for i in range(len(states)):
        expected = naive.lstd(states[i], rewards[i], STATES, DISCOUNT, ridge)
        np.testing.assert_allclose(values[i], expected, atol=ROUNDING * 1000)


def test_lstd_of_contexts_of_several_lengths():
    """With as many contexts as states."""
    states, rewards = trajectories(5, count=STATES)
    contexts = Context.from_trajectory(states, rewards, STATES)
    same = replace(contexts, length=np.full(STATES, 5))
    np.testing.assert_array_equal(lstd(same, DISCOUNT, 0.1), lstd(contexts, DISCOUNT, 0.1))
    varied = replace(contexts, length=np.arange(1, STATES + 1))
    for i in range(STATES):
        alone = Context(i + 1, *(getattr(contexts, name)[i] for name in [*"CDEbd", "reward_square"]))
        np.testing.assert_allclose(lstd(varied, DISCOUNT, 0.1)[i], lstd(alone, DISCOUNT, 0.1), rtol=ROUNDING)


@pytest.mark.parametrize("pseudo_counts", [None, np.arange(9.0).reshape(3, 3) / 4])
def test_certainty_equivalence_equals_naive(pseudo_counts):
    """With short trajectories, which do not visit all states."""
    states, rewards = trajectories(3, count=20)
    assert any(len({*path[:-1]}) < STATES for path in states)
    contexts = Context.from_trajectory(states, rewards, STATES)
    values = certainty_equivalence(contexts, DISCOUNT, pseudo_counts, reward=0.3)
    for i in range(20):
        expected = naive.certainty_equivalence(states[i], rewards[i], STATES, DISCOUNT, pseudo_counts, 0.3)
        np.testing.assert_allclose(values[i], expected, atol=ROUNDING * 10)


def test_states_without_steps_have_a_reward_of_zero_by_default():
    context = Context.from_trajectory([0, 1, 1], [1.0, -2.0], STATES)
    np.testing.assert_allclose(certainty_equivalence(context, 0.5), [1 + 0.5 * -4, -4, 0], atol=ROUNDING)


def test_certainty_equivalence_with_stationary_pseudo_counts_equals_lstd():
    states = trajectories(25)[0]
    reward = np.array([0.5, -1.0, 2.0])
    context = Context.from_trajectory(states, reward[states[:, :-1]], STATES)
    chain = ictd.sample_tasks("loop", STATES, 1, np.random.default_rng(0))
    steps = 6 * chain.stationary[0][:, None] * chain.transition[0]
    values = certainty_equivalence(context, DISCOUNT, steps)
    counts = 25 * context.D + steps
    system = np.eye(STATES) * counts.sum(axis=-1, keepdims=True) - DISCOUNT * counts
    expected = np.linalg.solve(system, (counts.sum(axis=-1) * reward)[..., None])[..., 0]
    np.testing.assert_allclose(values, expected, atol=ROUNDING * 10)


# Features that are not one-hot


def featured(n, d, count=3, length=12):
    """Trajectories of several contexts, each with its own features, and lists of their steps."""
    rng = np.random.default_rng(10 * n + d)
    states, rewards = rng.integers(0, n, (count, length + 1)), rng.normal(size=(count, length))
    features = rng.normal(size=(count, n, d)) / 2
    steps = [naive.steps_of(states[i], rewards[i], features[i]) for i in range(count)]
    return states, rewards, features, steps


def featured_chain(n, d, behaviour=False):
    """Chains with features, and weights of the states: from a behaviour policy, or the stationary distribution."""
    rng = np.random.default_rng(n + d)
    tasks = ictd.sample_tasks("loop", n, 3, rng)
    weights = rng.dirichlet(np.ones(n), 3) if behaviour else tasks.stationary
    return tasks.transition, tasks.reward, rng.normal(size=(3, n, d)) / 2, weights


@SIZES
@pytest.mark.parametrize("precondition", [False, True])
def test_batch_td_with_features_equals_naive_and_its_transformer(n, d, precondition):
    states, rewards, features, steps = featured(n, d)
    context = Context.from_trajectory(states, rewards, features=features)
    H = np.random.default_rng(0).normal(size=(3, d, d)) / 2 if precondition else None
    w = batch_td(context, DISCOUNT, 0.4, 6, preconditioner=H)
    matrices = np.broadcast_to(np.eye(d), (3, d, d)) if H is None else H
    for i in range(3):
        expected = np.zeros(d)
        for _ in range(6):
            update = naive.update_by_steps(steps[i], DISCOUNT, expected, lambda t, i=i: steps[i][t][0])
            expected = expected + 0.4 * matrices[i] @ update
        np.testing.assert_allclose(w[i], expected, atol=ROUNDING * 10)
        theta = ictd.theta_preconditioned_td(0.4 * matrices[i])
        model = ictd.Model(theta, depth=6, discount=DISCOUNT)
        alone = Context.from_trajectory(states[i], rewards[i], features=features[i])
        np.testing.assert_allclose(model.values(alone, features[i]), features[i] @ expected, atol=ROUNDING * 10)


def test_preconditioners_may_have_leading_axes_that_the_context_lacks():
    context = Context.from_trajectory([0, 1, 1, 0], [1.0, -1.0, -1.0], 2)
    H = np.random.default_rng(0).normal(size=(3, 2, 2)) / 4
    w = batch_td(context, DISCOUNT, [0.5, 0.1], 6, preconditioner=H)
    for i in range(3):
        np.testing.assert_array_equal(w[i], batch_td(context, DISCOUNT, [0.5, 0.1], 6, preconditioner=H[i]))


def test_a_multiple_of_the_identity_is_a_step_size():
    theta, scaled = ictd.theta_td(3), ictd.theta_preconditioned_td(0.7 * np.eye(3))
    np.testing.assert_array_equal(scaled.A, 0.7 * theta.A)
    np.testing.assert_array_equal(scaled.u, theta.u)
    context = Context.from_trajectory(*trajectories(6), STATES)
    by_matrix = batch_td(context, DISCOUNT, [1.0, 0.5], 7, preconditioner=np.diag([0.7, 0.7, 0.7]))
    np.testing.assert_allclose(by_matrix, batch_td(context, DISCOUNT, [0.7, 0.35], 7), rtol=ROUNDING)


@SIZES
@pytest.mark.parametrize("behaviour", [False, True])
def test_the_residual_gradient_descends_the_bellman_residual_on_enumerated_contexts(n, d, behaviour):
    """A step is minus the gradient of half the mean square Bellman residual (Baird 1995), by central differences."""
    transition, reward, features, weights = featured_chain(n, d, behaviour)
    context = Context.enumerated(transition, reward, features, weights)
    preconditioner = np.random.default_rng(1).normal(size=(d, d)) / 2
    start = np.random.default_rng(2).normal(size=(3, d))

    def half_residual(i, w):
        v = features[i] @ w
        return weights[i] @ (reward[i] + DISCOUNT * transition[i] @ v - v) ** 2 / 2

    w = ictd.residual_gradient(context, DISCOUNT, 0.5, 1, start, preconditioner)
    for i, k in itertools.product(range(3), range(d)):
        step = 1e-6
        ends = [half_residual(i, start[i] + sign * step * preconditioner.T[:, k]) for sign in (1, -1)]
        expected = start[i, k] - 0.5 * (ends[0] - ends[1]) / (2 * step)
        np.testing.assert_allclose(w[i, k], expected, atol=DIFFERENCES)


@SIZES
@pytest.mark.parametrize("depth", [1, 5])
def test_the_residual_gradient_on_steps_and_its_transformer(n, d, depth):
    """On sampled contexts it descends the mean square TD error."""
    states, rewards, features, steps = featured(n, d)
    context = Context.from_trajectory(states, rewards, features=features)
    H = 0.3 * np.eye(d) + np.random.default_rng(0).normal(size=(d, d)) / 10
    w = ictd.residual_gradient(context, DISCOUNT, [1.0, 0.5], depth, preconditioner=H)
    model = ictd.Model(ictd.theta_residual_gradient(H), depth, DISCOUNT)
    for i in range(3):
        expected = np.zeros(d)
        for _ in range(depth):
            instruments = [phi - DISCOUNT * following for phi, following, _ in steps[i]]
            update = naive.update_by_steps(steps[i], DISCOUNT, expected, instruments.__getitem__)
            expected = expected + H @ update
        np.testing.assert_allclose(w[i, :, 0], expected, atol=ROUNDING * 10)
        alone = Context.from_trajectory(states[i], rewards[i], features=features[i])
        np.testing.assert_allclose(model.values(alone, features[i]), features[i] @ expected, atol=ROUNDING * 10)
    halved = ictd.residual_gradient(context, DISCOUNT, 1.0, depth, preconditioner=H / 2)
    np.testing.assert_allclose(w[..., 1], halved, rtol=ROUNDING)


@SIZES
def test_layers_of_the_residual_gradient_on_enumerated_prompts(n, d):
    """On whole prompts, with a column for each state that has its expected next features."""
    transition, reward, features, _ = featured_chain(n, d)
    model = ictd.LinearTransformer(ictd.theta_residual_gradient(0.3 * np.eye(d)), depth=4)
    w = ictd.residual_gradient(Context.enumerated(transition, reward, features), DISCOUNT, 0.3, 4)
    for i in range(3):
        columns = ictd.enumerated_columns(transition[i], reward[i], DISCOUNT, features[i])
        values = model(ictd.joint_prompt(columns, features[i]), queries=n).detach().numpy()
        np.testing.assert_allclose(values, features[i] @ w[i], atol=ROUNDING * 10)


@SIZES
@pytest.mark.parametrize("decay", [0.0, 0.6, 1.0])
def test_td_lambda_and_lstd_lambda_equal_naive(n, d, decay):
    states, rewards, features, steps = featured(n, d)
    traces = ictd.eligibility_traces(states, rewards, DISCOUNT, decay, features=features)
    by_solution = lstd(traces, DISCOUNT, ridge=0.2)
    by_updates = batch_td(traces, DISCOUNT, 0.3, 5)
    for i in range(3):
        expected = naive.lstd_lambda(steps[i], DISCOUNT, decay, 0.2)
        np.testing.assert_allclose(by_solution[i], expected, rtol=1e-9)
        expected = np.zeros(d)
        for _ in range(5):

            def trace(t, i=i):
                return naive.trace_of(steps[i], DISCOUNT, decay, t)

            expected = expected + 0.3 * naive.update_by_steps(steps[i], DISCOUNT, expected, trace)
        np.testing.assert_allclose(by_updates[i], expected, atol=ROUNDING * 10)


def test_traces_without_memory_are_the_features():
    states, rewards = trajectories(6)
    context = Context.from_trajectory(states, rewards, STATES)
    traces = ictd.eligibility_traces(states, rewards, DISCOUNT, decay=0, n=STATES)
    np.testing.assert_allclose(lstd(traces, DISCOUNT, 0.1), lstd(context, DISCOUNT, 0.1), rtol=ROUNDING)
    np.testing.assert_allclose(batch_td(traces, DISCOUNT, 0.5, 9), batch_td(context, DISCOUNT, 0.5, 9), rtol=ROUNDING)
    with pytest.raises(ValueError, match=r"context is .* Context"):
        ictd.Model(ictd.theta_td(STATES), 2, DISCOUNT).values(traces)


@SIZES
def test_online_td_lambda_equals_naive(n, d):
    states, rewards, features, steps = featured(n, d)
    decay, step_size, lengths = [0.0, 0.7, 1.0], [0.3, 0.1, 0.05], [1, 5, 12]
    w = ictd.td_lambda(states, rewards, DISCOUNT, decay, step_size, lengths, features=features)
    shared = ictd.td_lambda(states, rewards, DISCOUNT, decay, step_size, lengths, features=features[0])
    one_hot = ictd.td_lambda(states, rewards, DISCOUNT, decay, step_size, lengths, n=n)
    assert w.shape == (3, 3, 3, d)
    for j, k, i in itertools.product(range(3), range(3), range(3)):
        given = DISCOUNT, decay[k], step_size[k]
        expected = naive.online_td_lambda(steps[i][: lengths[j]], *given)
        np.testing.assert_allclose(w[j, k, i], expected, atol=ROUNDING)
        for found, own_features in ((shared, features[0]), (one_hot, np.eye(n))):
            own_steps = naive.steps_of(states[i], rewards[i], own_features)[: lengths[j]]
            np.testing.assert_allclose(found[j, k, i], naive.online_td_lambda(own_steps, *given), atol=ROUNDING)


@SIZES
def test_off_policy_td_lambda_equals_naive(n, d):
    states, rewards, features, steps = featured(n, d)
    ratios = np.random.default_rng(4).uniform(0, 2, rewards.shape)
    w = ictd.td_lambda(states, rewards, DISCOUNT, [0.0, 0.7], [0.3, 0.1], [12], features=features, ratios=ratios)
    for i in range(3):
        for k, given in enumerate([(0.0, 0.3), (0.7, 0.1)]):
            expected = naive.online_td_lambda(steps[i][:12], DISCOUNT, *given, ratios[i])
            np.testing.assert_allclose(w[0, k, i], expected, atol=ROUNDING)


def test_off_policy_td_lambda_estimates_the_other_chain():
    """The mean update at the true values of p is zero, on a long trajectory of another chain q."""
    p, q = np.array([[0.9, 0.1], [0.4, 0.6]]), np.array([[0.5, 0.5], [0.5, 0.5]])
    reward, length = np.array([1.0, -1.0]), 200_000
    path = ictd.sample_paths(ictd.Tasks(q, reward), length, np.random.default_rng(0))[0]
    now, following = path[:-1], path[1:]
    ratios = p[now, following] / q[now, following]
    w = ictd.td_lambda(path, reward[now], 0.5, [0.5], [0.001], [length], n=2, ratios=ratios)[0, 0]
    np.testing.assert_allclose(w, ictd.value_function(p, reward, 0.5), atol=0.1)
    on_policy = ictd.td_lambda(path, reward[now], 0.5, [0.5], [0.001], [length], n=2)[0, 0]
    assert np.abs(on_policy - ictd.value_function(p, reward, 0.5)).max() > 0.2


@SIZES
@pytest.mark.parametrize("behaviour", [False, True])
@pytest.mark.parametrize("decay", [0.0, 0.6, 1.0])
def test_expected_traces_project_lambda_returns(n, d, behaviour, decay):
    """The mean update b + gamma D w - C w is that towards the lambda-returns of w, from states with these weights."""
    transition, reward, features, weights = featured_chain(n, d, behaviour)
    traces = ictd.expected_traces(transition, reward, DISCOUNT, decay, features, weights)
    w = np.random.default_rng(3).normal(size=(3, d))
    update = batch_td(traces, DISCOUNT, 1.0, 1, start=w) - w
    for i in range(3):
        value = features[i] @ w[i]
        target = naive.lambda_returns(transition[i], reward[i], DISCOUNT, decay, value, 300)
        expected = features[i].T @ (weights[i] * (target - value))
        np.testing.assert_allclose(update[i], expected, atol=ROUNDING * 100)
    if d == n:
        values = ictd.value_function(transition, reward, DISCOUNT)
        found = np.matvec(features, lstd(traces, DISCOUNT, ridge=1e-300))
        np.testing.assert_allclose(found, values, rtol=1e-7)


def test_expected_traces_are_the_limit_of_long_trajectories():
    transition, reward, features, weights = featured_chain(4, 2)
    rng, length = np.random.default_rng(5), 20_000
    tasks = ictd.Tasks(transition, reward)
    paths = np.stack([ictd.sample_paths(tasks, length, rng)[0] for _ in range(20)])
    rewards = reward[0][paths[:, :-1]]
    samples = ictd.eligibility_traces(paths, rewards, DISCOUNT, 0.7, features=features[0])
    limit = ictd.expected_traces(transition[0], reward[0], DISCOUNT, 0.7, features[0], weights[0])
    for name in "CDb":
        found = getattr(samples, name)
        error = found.std(axis=0, ddof=1) / np.sqrt(20)
        # The traces of the first steps are shorter than the limit's, by a share of about 1 / (1 - gamma lambda) steps.
        start = 10 / length
        assert (np.abs(found.mean(axis=0) - getattr(limit, name)) < STANDARD_ERRORS * error + start).all()


@SIZES
@pytest.mark.parametrize("name", ["gtd2", "tdc"])
def test_gradient_td_equals_naive(n, d, name):
    states, rewards, features, steps = featured(n, d)
    context = Context.from_trajectory(states, rewards, features=features)
    w = getattr(ictd, name)(context, DISCOUNT, step_size=0.3, correction_step_size=0.7, depth=8)
    for i in range(3):
        expected = naive.gradient_td(steps[i], DISCOUNT, 0.3, 0.7, 8, corrected=name == "tdc")
        np.testing.assert_allclose(w[i], expected, atol=ROUNDING * 10)


@pytest.mark.parametrize("name", ["gtd2", "tdc"])
def test_gradient_td_converges_off_policy_where_td_diverges(name):
    """Two states with the features 1 and 2, of which only the first is visited (Tsitsiklis and Van Roy 1996)."""
    context = Context.enumerated([[0.0, 1.0], [0.5, 0.5]], [0.5, 1.0], [[1.0], [2.0]], [1.0, 0.0])
    solution = 0.5 / (1 - 2 * 0.9)
    w = getattr(ictd, name)(context, 0.9, step_size=0.1, correction_step_size=0.5, depth=2000)
    np.testing.assert_allclose(w, [solution], rtol=1e-9)
    with pytest.warns(RuntimeWarning, match="batch_td diverged for 1 of 1 estimates"):
        batch_td(context, 0.9, 0.1, 2000)


@SIZES
def test_projected_values_have_the_least_error(n, d):
    transition, reward, features, weights = featured_chain(n, d, behaviour=True)
    value = ictd.value_function(transition, reward, DISCOUNT)
    w = ictd.project_values(value, features, weights)
    for i in range(3):
        root = np.sqrt(weights[i])
        expected = np.linalg.lstsq(root[:, None] * features[i], root * value[i], rcond=None)[0]
        np.testing.assert_allclose(w[i], expected, atol=1e-9)
    fitted = np.matvec(features, w)
    least = ictd.msve(weights, value, fitted)
    if d >= n:
        np.testing.assert_allclose(fitted, value, atol=1e-9)
    for ridge in (0.01, 1.0):
        found = lstd(Context.enumerated(transition, reward, features, weights), DISCOUNT, ridge)
        assert (least <= ictd.msve(weights, value, np.matvec(features, found))).all()
    one_state = ictd.project_values(value, features, np.eye(n)[0])
    np.testing.assert_allclose((features[:, 0] * one_state).sum(axis=-1), value[:, 0])


# Divergence


@pytest.mark.parametrize("depth", [20, 2000])
def test_divergent_updates_give_a_warning(depth):
    """For estimates that are too large, and for estimates that are not finite."""
    context = Context.from_trajectory(*trajectories(6), STATES)
    theirs = ictd.eligibility_traces(*trajectories(6), DISCOUNT, 0.5, STATES)
    calls = {
        "batch_td": [lambda: batch_td(context, DISCOUNT, 50.0, depth), lambda: batch_td(theirs, DISCOUNT, 50.0, depth)],
        "residual_gradient": [lambda: ictd.residual_gradient(context, DISCOUNT, 50.0, depth)],
        "gtd2": [lambda: ictd.gtd2(context, DISCOUNT, 50.0, 50.0, depth)],
        "tdc": [lambda: ictd.tdc(context, DISCOUNT, 50.0, 50.0, depth)],
    }
    for name, call in [(name, call) for name, group in calls.items() for call in group]:
        with pytest.warns(RuntimeWarning, match=f"{name} diverged for 4 of 4 estimates.* smaller step size") as caught:
            call()
        assert [warning.filename for warning in caught] == [__file__]
        with warnings.catch_warnings(), np.errstate(over="ignore"):
            warnings.simplefilter("error")
            call()


def test_the_warning_counts_the_step_sizes_and_contexts_that_diverged():
    context = Context.from_trajectory(*trajectories(6), STATES)
    with pytest.warns(RuntimeWarning, match="diverged for 4 of 8"):
        batch_td(context, DISCOUNT, [0.5, 50.0], 100)


@pytest.mark.filterwarnings("error")
def test_convergent_updates_give_no_warning():
    """The state with the large reward has a small weight, so values exceed the rewards of all frequent states."""
    rare = Context.enumerated([[0.0, 1.0], [0.0, 1.0]], [0.0, 1.0], weights=[1 - 1e-6, 1e-6])
    w = batch_td(rare, 0.9, 1.0, 400, preconditioner=np.diag([1, 1e6]))
    np.testing.assert_allclose(w, [9, 10], rtol=1e-9)
    batch_td(Context.from_trajectory([0, 0], [1.0], 1), 0.9, 1.0, 2000)
    batch_td(Context.from_trajectory([0, 0], [0.0], 1), 0.9, 1.0, 3)
    for length in (1, 6, 25):
        batch_td(Context.from_trajectory(*trajectories(length), STATES), DISCOUNT, [0.1, 1.0], 300)


# The Bayes estimate


def literal_posterior(path, reward, states, draws):
    """The prior of Algorithm 3 weighted by the likelihood of every step; unknown rewards are drawn."""
    tasks = ictd.sample_tasks("boyan", states, draws, np.random.default_rng(7))
    likelihood = tasks.stationary[:, path[0]].copy()
    for now, following in itertools.pairwise(path):
        likelihood *= tasks.transition[:, now, following]
    known = np.isin(np.arange(states), path[:-1])
    values = ictd.value_function(tasks.transition, np.where(known, reward, tasks.reward), DISCOUNT)
    mean = likelihood @ values / likelihood.sum()
    by_state = likelihood @ (tasks.stationary * values) / (likelihood @ tasks.stationary)
    error = np.sqrt((likelihood**2) @ (values - mean) ** 2) / likelihood.sum()
    return mean, by_state, error


@pytest.mark.parametrize(("states", "path"), [(2, [1, 0, 1, 1]), (3, [0, 1, 2, 2, 0, 2, 1, 2]), (4, [3, 1]), (3, [2])])
def test_bayes_samples_the_prior_weighted_by_the_likelihood(states, path):
    reward, path = np.random.default_rng(1).uniform(-1, 1, states), np.array(path)
    mean, by_state, error = literal_posterior(path, reward, states, 200_000)
    known = np.where(np.isin(np.arange(states), path[:-1]), reward, 0)
    posterior = boyan_posterior(path, states, 50_000, np.random.default_rng(2))
    found = posterior_values(posterior, known, DISCOUNT)
    assert posterior.effective_size > 1_500
    mu = ictd.stationary_distribution(posterior.transition)
    np.testing.assert_allclose(posterior.stationary, mu, rtol=ROUNDING)
    np.testing.assert_array_less(np.abs(found[0] - mean), 5 * error + 0.005)
    np.testing.assert_array_less(np.abs(found[1] - by_state), 5 * error + 0.005)


@pytest.mark.parametrize(("states", "steps"), [(5, 5), (5, 1000), (20, 100)])
def test_effective_sample_sizes_are_large(states, steps):
    data = draw_unseen_tasks(0, states, 5, steps, DISCOUNT, "boyan")
    rng = np.random.default_rng(3)
    assert min(boyan_posterior(path, states, 1000, rng).effective_size for path in data.paths) > 80


def test_the_best_linear_estimate_given_a_posterior():
    """Other weights of the features have a larger expected MSVE over the samples of the posterior."""
    rng = np.random.default_rng(4)
    features = rng.normal(size=(4, 2))
    posterior = boyan_posterior([0, 1, 3], 4, 500, rng)
    reward = np.array([0.5, -1.0, 0.0, 0.0])
    values = ictd.value_function(posterior.transition, reward, DISCOUNT)
    _, estimate = posterior_values(posterior, reward, DISCOUNT)
    w = ictd.project_values(estimate, features, posterior.weights @ posterior.stationary)

    def expected_msve(w):
        return posterior.weights @ ictd.msve(posterior.stationary, values, features @ w)

    for direction in rng.normal(size=(10, 2)):
        assert expected_msve(w) < expected_msve(w + 1e-3 * direction)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda context: lstd(context, DISCOUNT, 0), "ridge is 0"),
        (lambda context: lstd(context, 1.0, 0.1), "discount is 1"),
        (lambda context: batch_td(context, DISCOUNT, np.nan, 3), "step_size is nan"),
        (lambda context: batch_td(context, DISCOUNT, 0.1, 0), "depth is 0"),
        (lambda context: batch_td(context.D, DISCOUNT, 0.1, 3), "context is .* Context"),
        (lambda context: batch_td(context, DISCOUNT, 0.1, 3, preconditioner=np.eye(3)), "preconditioner has shape"),
        (
            lambda context: batch_td(context, DISCOUNT, 0.5, 3, start=np.zeros(3)),
            r"start has shape \(3,\); give \(2,\), the shape of the estimates",
        ),
        (
            lambda context: batch_td(context, DISCOUNT, [0.5, 0.1, 0.2], 3, start=np.zeros(2)),
            r"start has shape \(2,\); give \(2, 3\)",
        ),
        (lambda context: ictd.eligibility_traces([0, 2], [1.0], DISCOUNT, 0.5, n=2), "states.* not one of 2 states"),
        (lambda context: ictd.eligibility_traces([0, 1], [1.0], DISCOUNT, 1.5, n=2), "decay is 1.5"),
        (lambda context: ictd.eligibility_traces([0, 1], [1.0], DISCOUNT, 0.5), "n is missing"),
        (lambda context: ictd.td_lambda([0, 1], [1.0], DISCOUNT, [0.5], [1.0], [1]), "n is missing"),
        (lambda context: ictd.td_lambda([0, 1], [1.0], DISCOUNT, [0.5], [1.0], [2], n=2), "lengths.*more than 1"),
        (
            lambda context: ictd.td_lambda([0, 1], [1.0], DISCOUNT, [0.5], [1.0], [1, 1], n=2),
            r"lengths\[1\] is not more",
        ),
        (
            lambda context: ictd.td_lambda([0, 1], [1.0], DISCOUNT, [0.5], [1.0], [1], n=3, features=np.eye(2)),
            "n is 3, and features are those of 2 states",
        ),
        (lambda context: ictd.td_lambda([0, 2], [1.0], DISCOUNT, [0.5], [1.0], [1], n=2), "not one of 2 states"),
        (lambda context: boyan_posterior([0, 2], 2, 10, np.random.default_rng(0)), "path.* not one of 2 states"),
        (
            lambda context: boyan_posterior([3, 0, 2, 2], 4, 10, np.random.default_rng(0)),
            r"path\[2\] starts a step that no Boyan's chain makes",
        ),
        (
            lambda context: certainty_equivalence(context.with_features([[1.0, 1.0], [0.0, 1.0]]), DISCOUNT),
            "not one-hot",
        ),
    ],
)
def test_invalid_arguments_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call(Context.from_trajectory([0, 1], [0.0], 2))
