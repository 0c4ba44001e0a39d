"""Batch TD, LSTD and certainty equivalence."""

from dataclasses import replace

import naive
import numpy as np
import pytest
from tolerances import ROUNDING

import ictd
from ictd.baselines import batch_td, certainty_equivalence, lstd
from ictd.prompt import Context

STATES, DISCOUNT = 3, 0.85


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
    """Of short trajectories, which leave states out."""
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


def test_certainty_equivalence_of_stationary_pseudo_counts_is_lstd_with_them():
    states = trajectories(25)[0]
    reward = np.array([0.5, -1.0, 2.0])
    context = Context.of_paths(states, np.tile(reward, (4, 1)))
    chain = ictd.sample_tasks("loop", STATES, 1, np.random.default_rng(0))
    steps = 6 * chain.stationary[0][:, None] * chain.transition[0]
    values = certainty_equivalence(context, DISCOUNT, steps)
    counts = 25 * context.D + steps
    system = np.eye(STATES) * counts.sum(axis=-1, keepdims=True) - DISCOUNT * counts
    expected = np.linalg.solve(system, (counts.sum(axis=-1) * reward)[..., None])[..., 0]
    np.testing.assert_allclose(values, expected, atol=ROUNDING * 10)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda context: lstd(context, DISCOUNT, 0), "ridge is 0"),
        (lambda context: lstd(context, 1.0, 0.1), "discount is 1"),
        (lambda context: batch_td(context, DISCOUNT, np.nan, 3), "step_size is nan"),
        (lambda context: batch_td(context, DISCOUNT, 0.1, 0), "depth is 0"),
        (lambda context: batch_td(context.D, DISCOUNT, 0.1, 3), "context is .* Context"),
    ],
)
def test_invalid_arguments_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call(Context.of_paths(np.array([0, 1]), np.zeros(2)))
