"""Contexts and algorithms on episodes with ends, time limits and a discount for each step, by literal code."""

import tracemalloc

import naive
import numpy as np
import pandas as pd
import pytest
from tolerances import ROUNDING

import ictd
from ictd.context import Context

# Three episodes of the states 0 and 1: 0, 1, end; 1, 0, cut by a time limit before 1; 1, end.
STATES, NEXT_STATES, REWARDS = [0, 1, 1, 0, 1], [1, -1, 0, 1, 2], [1.0, 2.0, -1.0, 3.0, 4.0]
TERMINALS, TRUNCATIONS = [0, 1, 0, 0, 1], [0, 0, 0, 1, 0]


def random_steps(rng, n):
    """Steps of random episodes, as a dict of arrays (m,).  Next states at an end are not states."""
    names = "states", "rewards", "next_states", "terminals", "truncations", "discounts"
    steps, state = [], rng.integers(n)
    for _ in range(rng.integers(1, 40)):
        following, ended, cut = rng.integers(n), rng.random() < 0.15, rng.random() < 0.15
        discount = rng.choice([0.0, 0.5, rng.random(), 1.0])
        steps.append((state, rng.normal(), rng.integers(-2, n + 2) if ended else following, ended, cut, discount))
        state = rng.integers(n) if ended or cut else following
    return dict(zip(names, map(np.array, zip(*steps, strict=True)), strict=True))


def literal(steps, phi, decay, step_size, ridge, depth, weights):
    """TD(lambda), LSTD(lambda), LSTD, batch TD and TF_L, step by step, of features phi (n, d)."""
    d = phi.shape[1]
    w, trace, A, b, A0, b0 = np.zeros(d), np.zeros(d), np.zeros((d, d)), np.zeros(d), np.zeros((d, d)), np.zeros(d)
    columns, before, begins = [], 0.0, True
    for s, reward, following, ended, cut, discount in zip(*steps.values(), strict=True):
        next_feature = np.zeros(d) if ended else discount * phi[following]
        trace = phi[s] if begins else before * decay * trace + phi[s]
        w = w + step_size * (reward + w @ next_feature - w @ phi[s]) * trace
        A, b = A + np.outer(trace, phi[s] - next_feature), b + reward * trace
        A0, b0 = A0 + np.outer(phi[s], phi[s] - next_feature), b0 + reward * phi[s]
        columns.append([*phi[s], *next_feature, reward])
        before, begins = discount, ended or cut
    m, batch = len(columns), np.zeros(d)
    for _ in range(depth):
        batch = batch + step_size * (b0 - A0 @ batch) / m
    identity = ridge * np.eye(d)
    prompts = [np.column_stack([*columns, [*query, *np.zeros(d + 1)]]) for query in phi]
    return {
        "td_lambda": w,
        "lstd_lambda": np.linalg.solve(A + identity, b),
        "lstd": np.linalg.solve(A0 + identity, b0),
        "batch_td": batch,
        "transformer": np.array([naive.transformer(weights, depth, prompt) for prompt in prompts]),
    }


def by_library(steps, phi, decay, step_size, ridge, depth, weights, one_hot):
    """The same by the library, whose context and traces get states and features, or one-hot features."""
    states, rewards, next_states, terminals, truncations, discounts = steps.values()
    given = {"n": len(phi)} if one_hot else {"features": phi}
    ends = {"next_states": next_states, "terminals": terminals, "truncations": truncations}
    context = Context.from_transitions(states, rewards, next_states, **given, terminals=terminals, discounts=discounts)
    return {
        "td_lambda": ictd.td_lambda(states, rewards, discounts, decay, step_size, **given, **ends),
        "lstd_lambda": ictd.lstd_lambda(states, rewards, discounts, decay, ridge, **given, **ends),
        "lstd": ictd.lstd(context, 1, ridge),
        "batch_td": ictd.batch_td(context, 1, step_size, depth),
        "transformer": ictd.Model(weights, depth, discount=1).values(context, queries=phi),
    }


def compare_with_literal(seed):
    """Compare all algorithms on random episodes, in which each visited state reaches an end of those with one-hot
    features."""
    rng = np.random.default_rng(seed)
    n, one_hot = rng.integers(1, 6), rng.random() < 0.5
    steps = random_steps(rng, n)
    phi = np.eye(n) if one_hot else rng.normal(size=(n, rng.integers(1, 5))) / 2
    weights = naive.larger_weights(phi.shape[1])
    given = phi, rng.choice([0.0, rng.random(), 1.0]), rng.uniform(0.05, 0.6), rng.uniform(0.01, 1), 4, weights
    expected = literal(steps, *given)
    with np.errstate(over="ignore"):
        try:
            found = by_library(steps, *given, one_hot)
        except ValueError as error:
            assert "reaches no end" in str(error) and one_hot
            return False
    for name, values in expected.items():
        scale = max(1, np.abs(values).max())
        np.testing.assert_allclose(found[name], values, atol=1e-9 * scale, err_msg=f"{name}, seed {seed}")
    return True


def test_all_algorithms_equal_literal_code_on_random_episodes():
    """Most contexts reach an end from every visited state."""
    assert sum(compare_with_literal(seed) for seed in range(150)) > 100


@pytest.mark.parametrize("ended", [0.1, 0.0])
def test_several_contexts_and_long_ones_equal_single_short_ones(ended):
    """Contexts with leading axes, features of each context, and more steps than one block; with and without ends."""
    rng = np.random.default_rng(0)
    states, rewards, discounts = rng.integers(0, 4, (3, 601)), rng.normal(size=(3, 600)), rng.random((3, 600))
    ends, phi = rng.random((3, 600)) < ended, rng.normal(size=(3, 4, 2)) / 2
    discounts = discounts if ended else np.full((3, 600), 0.85)
    for function, number in ((ictd.td_lambda, 0.1), (ictd.lstd_lambda, 0.3)):
        for features in (phi, phi[0], None):
            given = (discounts, 0.7, number, 4, features) if ended else (0.85, 0.7, number, 4, features)
            found = function(states, rewards, *given, terminals=ends if ended else None)
            assert function(states[:0], rewards[:0], 0.9, 0.7, number, 4).shape == (0, 4)
            for i, own in enumerate(
                np.broadcast_to(np.eye(4) if features is None else features, (3, 4, found.shape[1]))
            ):
                steps = states[i, :-1], rewards[i], states[i, 1:], ends[i], ends[i], discounts[i]
                steps = dict(zip("srntcd", steps, strict=True))
                expected = literal(steps, own, 0.7, number, number, 0, naive.larger_weights(own.shape[1]))
                np.testing.assert_allclose(found[i], expected[function.__name__], atol=1e-10)


def test_values_of_episodes_by_hand():
    """From state 0 both steps lead to 1; from 1, two steps of three end and one leads to 0.

    So v(0) = 2 + v(1) and v(1) = 5/3 + v(0) / 3, with the mean rewards 2 and 5/3.
    """
    context = Context.from_transitions(STATES, REWARDS, NEXT_STATES, 2, terminals=TERMINALS)
    np.testing.assert_allclose(context.ended, [0, 2 / 5], atol=ROUNDING)
    values = [11 / 2, 7 / 2]
    np.testing.assert_allclose(ictd.certainty_equivalence(context, 1), values, rtol=ROUNDING)
    # One value w for all states: 9 = 5 w - 3 w, and 9 = (5 - 3/2) w.
    np.testing.assert_allclose(ictd.constant_estimate(context, 1), [9 / 2] * 2, rtol=ROUNDING)
    np.testing.assert_allclose(ictd.constant_estimate(context, 0.5), [9 / 3.5] * 2, rtol=ROUNDING)
    np.testing.assert_allclose(ictd.lstd(context.grouped(), 1, ridge=1e-13), values, rtol=1e-11)


def test_states_with_the_same_features_continue_an_episode():
    """Logged observations and next observations, each with a row of features."""
    observations, after, rewards = np.array([[1.0], [2.0], [3.0]]), np.array([[2.0], [3.0], [0.5]]), [1.0, 2.0, 3.0]
    given = rewards, 0.9, 0.5, 0.1, None, np.concatenate([observations, after])
    found = ictd.td_lambda([0, 1, 2], *given, next_states=[3, 4, 5])
    expected = ictd.td_lambda([0, 1, 2, 3], *given[:5], [[1.0], [2.0], [3.0], [0.5]], truncations=[0, 0, 1])
    np.testing.assert_array_equal(found, expected)


def test_many_steps_and_states_take_little_memory():
    rng = np.random.default_rng(0)
    states, rewards = rng.integers(0, 500, 200_001), rng.normal(size=200_000)
    tracemalloc.start()
    Context.from_trajectory(states, rewards, 500)
    Context.from_trajectory(states, rewards, features=rng.normal(size=(500, 60)))
    Context.from_trajectory(states[:11], rewards[:10], features=rng.normal(size=(3000, 1)))
    for function in (ictd.td_lambda, ictd.lstd_lambda):
        function(states[:3001], rewards[:3000], 0.9, 0.5, 0.1, 500)
    assert tracemalloc.get_traced_memory()[1] < 60e6
    tracemalloc.stop()


# Equations without a single solution


@pytest.mark.parametrize("ridge", [1e-12, 1.0])
@pytest.mark.parametrize("mixed", [[[1, 0, 1], [0, 1, 1]], [[1, 0, 0], [0, 0.1, 3]]])
def test_weights_of_collinear_features_are_in_the_span_of_the_features(mixed, ridge):
    """Features phi M of two features phi: w = M' a solves M' (A M M' + ridge) a = M' b, for any small ridge."""
    rng = np.random.default_rng(0)
    states, rewards, phi, M = rng.integers(0, 4, 61), rng.normal(size=60), rng.normal(size=(4, 2)), np.array(mixed)
    context = Context.from_trajectory(states, rewards, features=phi)
    A, b = 60 * (context.C - 0.9 * context.D), 60 * context.b
    expected = M.T @ np.linalg.solve(A @ M @ M.T + ridge * np.eye(2), b)
    found = ictd.lstd(Context.from_trajectory(states, rewards, features=phi @ M), 0.9, ridge)
    by_traces = ictd.lstd_lambda(states, rewards, 0.9, 0, ridge, features=phi @ M)
    np.testing.assert_allclose([found, by_traces], [expected] * 2, atol=1e-11)


def test_features_of_small_numbers_are_not_collinear():
    """The second feature is a million million times smaller than the first, so its weight is as much larger."""
    features = np.array([[1.0, 0.5], [0.2, -1.0], [0.3, 0.1]])
    states, rewards = [0, 1, 2, 2, 0, 1, 0], [1.0, -1.0, 2.0, 0.5, 0.0, 1.0]
    given = rewards, 0.9, 0.3, 1e-300, None
    expected = ictd.lstd_lambda(states, *given, features)
    np.testing.assert_allclose(ictd.lstd_lambda(states, *given, features * [1, 1e-12]), expected * [1, 1e12], rtol=1e-9)


@pytest.mark.parametrize(("discount", "ridge"), [(0.9, 0.8), (0.5, 1e-300)])
@pytest.mark.parametrize("traces", [False, True])
def test_an_equation_that_the_ridge_makes_singular_is_refused(discount, ridge, traces):
    """C + ridge - gamma D is 0 but for rounding: 1 + 0.8 - 0.9 * 2, and 1 - 0.5 * 2."""

    def solve(ridge):
        steps = [0, 1], [1.0]
        if traces:
            return ictd.lstd_lambda(*steps, discount, 0, ridge, features=[[1.0], [2.0]])
        return ictd.lstd(Context.from_trajectory(*steps, features=[[1.0], [2.0]]), discount, ridge)

    with pytest.raises(ValueError, match="estimate of LSTD is not determined, because m C - gamma m D"):
        solve(ridge)
    with pytest.warns(RuntimeWarning, match=r"lstd.* for 1 of 1 estimates; give a larger ridge"):
        solve(ridge + 1e-4)


# Divergence


@pytest.mark.parametrize(("rate", "steps"), [(3.0, 100), (30.0, 1000)])
def test_divergent_td_lambda_warns(rate, steps):
    rng = np.random.default_rng(0)
    given = rng.integers(0, 3, steps + 1), rng.normal(size=steps), 0.9, 0.0
    with pytest.warns(RuntimeWarning, match="td_lambda diverged for 1 of 1 estimates.* smaller step size") as caught:
        ictd.td_lambda(*given, rate, n=3)
    assert [warning.filename for warning in caught] == [__file__]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("discount", [0.0, 0.9, 1.0])
def test_convergent_updates_give_no_warning(discount):
    """With zero rewards, with large ones, and with rewards at the end only."""
    rng = np.random.default_rng(1)
    states, terminals = rng.integers(0, 3, 301), rng.random(300) < 0.2
    for rewards in (np.zeros(300), 1e150 * rng.normal(size=300), terminals * 1.0):
        ictd.td_lambda(states, rewards, discount, 0.9, 0.05, n=3, terminals=terminals)


# Types of numbers and truth values


@pytest.mark.parametrize("kind", [np.int8, np.uint64, ">i4"])
def test_states_and_ends_may_have_any_type(kind):
    states, following, ends = np.array([[[0, 99], [99, 1]], [[99, 0], [1, 0]], [[0, 1], [0, 1]]], kind)
    found = Context.from_transitions(
        states, np.ones((2, 2)), following, 100, terminals=ends.astype(bool).astype(object)
    )
    states, following, ends = states.tolist(), following.tolist(), ends.tolist()
    assert found == Context.from_transitions(states, np.ones((2, 2)), following, 100, terminals=ends)


# Equality


def test_weights_models_and_tasks_can_be_compared():
    def made():
        tasks = ictd.sample_tasks("loop", 4, 2, np.random.default_rng(0))
        weights = ictd.Weights(np.full(4, np.nan), np.ones((4, 4)))
        others = tasks[:1], ictd.Tasks(tasks.transition, tasks.reward, features=np.ones((4, 1)))
        return weights, ictd.Model(weights, 3, 0.9), ictd.Model(weights, 4, 0.9), tasks, *others

    for i, one in enumerate(made()):
        assert [one == other for other in (*made(), 5)] == [i == k for k in range(7)]
        assert (one == np.ones(3)) is False


# Missing and swapped values


@pytest.mark.parametrize("form", [pd.Series, lambda column: pd.Series(column, dtype="Int64"), list])
def test_missing_next_states_of_ends_are_ignored(form):
    column = form(np.where(TERMINALS, np.nan, NEXT_STATES))
    expected = Context.from_transitions(STATES, REWARDS, NEXT_STATES, 2, terminals=TERMINALS)
    assert Context.from_transitions(STATES, REWARDS, column, 2, terminals=TERMINALS) == expected
    given = STATES, REWARDS, 1, 0.5, 0.1, 2, None
    found = ictd.td_lambda(*given, column, TERMINALS, TRUNCATIONS)
    np.testing.assert_array_equal(found, ictd.td_lambda(*given, NEXT_STATES, TERMINALS, TRUNCATIONS))
    phi_next = np.array([[0, 1], [np.nan, 0], [1, 0], [0, 1], [np.nan, np.nan]])
    by_features = Context.from_features(np.eye(2)[STATES], phi_next, REWARDS, TERMINALS)
    np.testing.assert_allclose(by_features.G, expected.G, atol=ROUNDING)


def test_logs_of_several_agents_with_swapped_axes_give_a_warning():
    """Steps (T, N) of N agents are T contexts of N steps for the library."""
    rng = np.random.default_rng(0)
    paths, rewards, ends = rng.integers(0, 5, (31, 4)), rng.normal(size=(30, 4)), rng.random((30, 4)) < 0.1
    with pytest.warns(UserWarning, match="steps follow each other along the first axis") as caught:
        Context.from_transitions(paths[:-1], rewards, paths[1:], 5, terminals=ends)
    assert [warning.filename for warning in caught] == [__file__]


@pytest.mark.parametrize("given", [{"n": 2}, {"features": [[1.0], [2.0]]}])
def test_joined_contexts_have_the_steps_of_all(given):
    """Those of the episodes, of different lengths, of two tasks with different rewards."""
    columns = [np.array([column] * 2) for column in (STATES, REWARDS, NEXT_STATES, TERMINALS)]
    columns[1][1] *= 2
    expected, *contexts = (
        Context.from_transitions(*(column[:, part] for column in columns[:3]), **given, terminals=columns[3][:, part])
        for part in (slice(None), slice(2), slice(2, 5))
    )
    found = Context.joined(contexts)
    np.testing.assert_allclose(found.G, expected.G, atol=ROUNDING)
    assert found.length == 5


FEATURES = np.array([[1.0, 0.5], [0.25, 1.0], [0.5, 2.0], [1.0, 1.0]])
ENDLESS = Context.from_trajectory([0, 1, 2, 0], [1.0] * 3, features=FEATURES)


@pytest.mark.parametrize(
    "call",
    [
        lambda context: ictd.certainty_equivalence(context, 1 - 1e-12),
        lambda context: ictd.lstd_lambda([0, 1, 2, 1, 2], [1.0] * 4, [0.5, 1, 1, 1], 0.5, 0.1, n=4),
        lambda context: ictd.constant_estimate(Context.from_trajectory([0, 1, 0], [1.0] * 2, 2), 1),
        lambda context: ictd.batch_td(Context.joined([ENDLESS, ENDLESS]), 1, 0.1, 3),
        lambda context: ictd.lstd(Context.enumerated(np.eye(4), [1.0] * 4, FEATURES), 1, 0.1),
        lambda context: ictd.lstd_lambda([0, 1, 2, 1, 2], [1.0] * 4, 1, 0.5, 0.1, features=FEATURES),
    ],
)
def test_a_discount_of_one_needs_an_end(call):
    """State 0 ends or leads to 1; from 1 and 2 no step ends.  No step starts from state 3."""
    context = Context.from_transitions([0, 0, 1, 2], [1.0] * 4, [1, 1, 2, 1], 4, terminals=[1, 0, 0, 0])
    message = r"state\[\d\] of the context reaches no end of an episode|context has no step that ends an episode"
    with pytest.raises(ValueError, match=message):
        call(context)
