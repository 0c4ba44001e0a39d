"""Prompts of whole columns, and the matrices G of contexts."""

import naive
import numpy as np
import pytest
from tolerances import ROUNDING

import ictd
from ictd.context import Context
from ictd.training_data import sample_contexts

DISCOUNT, STATES = 0.85, 4


@pytest.fixture(scope="module")
def tasks():
    return ictd.sample_tasks("loop", STATES, 3, np.random.default_rng(0))


@pytest.fixture(scope="module")
def paths(tasks):
    return ictd.sample_paths(tasks, 7, np.random.default_rng(1))


def assert_averages(context, expected):
    """The fields of a context of no leading axes."""
    for name, value in expected.items():
        np.testing.assert_allclose(getattr(context, name), value, atol=ROUNDING, err_msg=name)


def context_of(contexts, i):
    """One of several contexts along a leading axis."""
    length = contexts.length[i] if np.ndim(contexts.length) else contexts.length
    return Context(length, contexts.G[i])


def test_prompts_equal_naive(tasks, paths):
    sampled = ictd.prompts_of(ictd.sampled_columns(paths, tasks.reward, DISCOUNT))
    enumerated = ictd.prompts_of(ictd.enumerated_columns(tasks.transition, tasks.reward, DISCOUNT))
    for i, reward in enumerate(tasks.reward):
        for s in range(STATES):
            expected = naive.sampled_prompt(paths[i], reward, DISCOUNT, s)
            np.testing.assert_array_equal(sampled[i, s], expected)
            expected = naive.enumerated_prompt(tasks.transition[i], reward, DISCOUNT, s)
            np.testing.assert_array_equal(enumerated[i, s], expected)


def test_contexts_are_shown_in_one_line():
    assert repr(Context(7, np.zeros((9, 9)))) == "<Context of 7 steps, 4 features>"
    several = Context([[1, 9, 7]] * 2, np.zeros((2, 3, 9, 9)))
    assert repr(several) == "<Context of 2 x 3 prompts, 1 to 9 steps, 4 features>"


def test_a_joint_prompt_ends_with_all_queries(tasks, paths):
    columns = ictd.sampled_columns(paths, tasks.reward, DISCOUNT)
    joint = ictd.joint_prompt(columns)
    np.testing.assert_array_equal(joint[..., :-STATES], columns)
    for s in range(STATES):
        np.testing.assert_array_equal(joint[..., s - STATES], ictd.prompts_of(columns)[:, s, :, -1])


@pytest.mark.parametrize("length", [1, 11])
@pytest.mark.parametrize(("states", "dimension"), [(STATES, None), (4, 2), (3, 5)])
def test_averages_of_steps_equal_naive(length, states, dimension):
    """Rewards are random, and those of a context given by shares are functions of the state."""
    rng = np.random.default_rng(length)
    path, rewards, reward = rng.integers(0, states, length + 1), rng.normal(size=length), rng.normal(size=states)
    features = rng.normal(size=(states, dimension)) if dimension else np.eye(states)
    given = {"features": features} if dimension else {"n": states}
    now, following, mixed = path[:-1], path[1:], rng.permutation(length)
    contexts = [
        Context.from_trajectory(path, rewards, **given),
        Context.from_features(features[now], features[following], rewards),
        Context.from_transitions(now[mixed], rewards[mixed], following[mixed], **given),
    ]
    expected = {"length": length, "dimension": features.shape[1]}
    for context in contexts:
        assert_averages(context, expected | naive.averages(features[now], features[following], rewards))
    counts = naive.transition_counts([path], [length], states)[0]
    of_shares = Context.of_shares(length, counts / length, reward)
    of_shares = of_shares.with_features(features) if dimension else of_shares
    assert_averages(of_shares, expected | naive.averages(features[now], features[following], reward[now]))
    columns = naive.columns_of_features(features, now, following, reward[now], DISCOUNT)
    np.testing.assert_array_equal(ictd.sampled_columns(path, reward, DISCOUNT, features), columns)


def test_averages_of_enumerated_contexts_equal_naive(tasks):
    """With shares mu(s) p(s' | s) of the transitions, the means of a grouped context are p and r, for any mu."""
    contexts = Context.enumerated(tasks.transition, tasks.reward)
    D = tasks.stationary[..., None] * tasks.transition
    grouped = Context.of_shares(1000, D, tasks.reward).grouped()
    for i in range(len(tasks)):
        expected = naive.averages(np.eye(STATES), tasks.transition[i], tasks.reward[i]) | {"length": STATES}
        assert_averages(context_of(contexts, i), expected)
        assert_averages(context_of(grouped, i), expected)


@pytest.mark.parametrize(("length", "pseudo_steps"), [(1, 0), (40, 0), (3, 1)])
def test_grouped_contexts_equal_whole_prompts(length, pseudo_steps):
    """Rewards are random.  Without a column of a state, attention is still divided by n."""
    rng = np.random.default_rng(length)
    states, rewards = rng.integers(0, STATES, (3, length + 1)), rng.normal(size=(3, length))
    pseudo_counts = np.full((STATES, STATES), pseudo_steps / STATES) if pseudo_steps else None
    grouped = Context.from_trajectory(states, rewards, STATES).grouped(pseudo_counts)
    assert grouped.length == STATES
    weights, depth = naive.larger_weights(STATES), 3
    values = ictd.Model(weights, depth, DISCOUNT).values(grouped)
    for i in range(3):
        columns = naive.grouped_columns(states[i], rewards[i], STATES, DISCOUNT, pseudo_steps)
        # The model divides by the number of columns.
        share = columns.shape[1] / STATES
        model = ictd.LinearTransformer(ictd.Weights(weights.u, share * weights.A), depth)
        expected = model(ictd.joint_prompt(columns), queries=STATES).detach().numpy()
        np.testing.assert_allclose(values[i], expected, atol=ROUNDING)


def test_contexts_of_several_lengths_are_the_beginnings_of_paths():
    lengths = np.array([1, 7, 30, 2])
    tasks = ictd.sample_tasks("loop", 4, 4, ictd.generator(3, "loop", 4, "tasks"))
    contexts = sample_contexts(tasks, lengths, ictd.generator(3, "loop", 4, "contexts"))
    paths = ictd.sample_paths(tasks, 30, ictd.generator(3, "loop", 4, "contexts"))
    for i, length in enumerate(lengths):
        alone = Context.from_trajectory(paths[i, : length + 1], tasks.reward[i][paths[i, :length]], 4)
        assert_averages(context_of(contexts, i), {name: getattr(alone, name) for name in ("length", *"CDEbd")})


@pytest.mark.parametrize("scaled", [True, False])
def test_gram_matrices_are_means_or_sums_over_columns(tasks, paths, scaled):
    rewards = np.take_along_axis(tasks.reward, paths[:, :-1], axis=1)
    context = Context.from_trajectory(paths, rewards, STATES)
    columns = ictd.sampled_columns(paths, tasks.reward, DISCOUNT)
    for i in range(len(tasks)):
        expected = sum(np.outer(column, column) for column in columns[i].T) / (7 if scaled else 1)
        np.testing.assert_allclose(context.gram_matrix(DISCOUNT, scaled)[i], expected, atol=ROUNDING * 10)
    lengths = np.array([1, 5, 7])
    several = Context(lengths, context.G).gram_matrix(DISCOUNT, scaled=False)
    np.testing.assert_array_equal(several, lengths[:, None, None] * context.gram_matrix(DISCOUNT))
