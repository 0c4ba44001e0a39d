"""Prompts of whole columns, and the matrices G of contexts."""

import naive
import numpy as np
import pytest
from tolerances import ROUNDING

import ictd
from ictd.context import Context

DISCOUNT, STATES = 0.85, 4


@pytest.fixture(scope="module")
def tasks():
    return ictd.sample_tasks("loop", STATES, 3, np.random.default_rng(0))


def test_prompts_equal_naive(tasks):
    paths = ictd.sample_paths(tasks, 7, np.random.default_rng(1))
    sampled = ictd.prompts_of(ictd.sampled_columns(paths, tasks.reward, DISCOUNT))
    enumerated = ictd.prompts_of(ictd.enumerated_columns(tasks.transition, tasks.reward, DISCOUNT))
    for i, reward in enumerate(tasks.reward):
        for s in range(STATES):
            expected = naive.sampled_prompt(paths[i], reward, DISCOUNT, s)
            np.testing.assert_array_equal(sampled[i, s], expected)
            expected = naive.enumerated_prompt(tasks.transition[i], reward, DISCOUNT, s)
            np.testing.assert_array_equal(enumerated[i, s], expected)


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
    columns = naive.columns_of_features(features, now, following, rewards, 1)
    for context in contexts:
        np.testing.assert_allclose(context.G, columns @ columns.T / length, atol=ROUNDING)
        assert (context.length, context.dimension) == (length, features.shape[1])
        b, d = context.b[:, None], context.d[:, None]
        blocks = [[context.C, context.D, b], [context.D.T, context.E, d], [b.T, d.T, context.reward_square]]
        np.testing.assert_allclose(context.G, np.block(blocks), atol=ROUNDING)
    shares = np.zeros((states, states))
    np.add.at(shares, (now, following), 1 / length)
    of_shares = Context.of_shares(length, shares, reward)
    of_shares = of_shares.with_features(features) if dimension else of_shares
    columns = naive.columns_of_features(features, now, following, reward[now], 1)
    np.testing.assert_allclose(of_shares.G, columns @ columns.T / length, atol=ROUNDING)
    columns = naive.columns_of_features(features, now, following, reward[now], DISCOUNT)
    np.testing.assert_array_equal(ictd.sampled_columns(path, reward, DISCOUNT, features), columns)


def test_a_grouped_context_of_all_states_is_enumerated(tasks):
    """With shares mu(s) p(s' | s) of the transitions, the means are p and r, for any mu."""
    D = tasks.stationary[..., None] * tasks.transition
    grouped = Context.of_shares(1000, D, tasks.reward).grouped()
    assert grouped.length == STATES
    np.testing.assert_allclose(grouped.G, Context.enumerated(tasks.transition, tasks.reward).G, atol=ROUNDING)


@pytest.mark.parametrize(("length", "pseudo_steps"), [(1, 0), (40, 0), (3, 1)])
def test_grouped_contexts_equal_whole_prompts(length, pseudo_steps):
    """Rewards are random.  Without a column of a state, attention is still divided by n."""
    rng = np.random.default_rng(length)
    states, rewards = rng.integers(0, STATES, (3, length + 1)), rng.normal(size=(3, length))
    pseudo_counts = np.full((STATES, STATES), pseudo_steps / STATES) if pseudo_steps else None
    grouped = Context.from_trajectory(states, rewards, STATES).grouped(pseudo_counts)
    weights, depth = naive.larger_weights(STATES), 3
    values = ictd.Model(weights, depth, DISCOUNT).values(grouped)
    for i in range(3):
        columns = naive.grouped_columns(states[i], rewards[i], STATES, DISCOUNT, pseudo_steps)
        # The model divides by the number of columns.
        share = columns.shape[1] / STATES
        model = ictd.LinearTransformer(ictd.Weights(weights.u, share * weights.A), depth)
        expected = model(ictd.joint_prompt(columns), queries=STATES).detach().numpy()
        np.testing.assert_allclose(values[i], expected, atol=ROUNDING)
