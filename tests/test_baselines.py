"""Baselines, each compared with a slow version that loops over steps; ``test_episodes`` has those with traces."""

import warnings
from dataclasses import replace

import naive
import numpy as np
import pytest
from tolerances import ROUNDING

import ictd
from ictd.baselines import (
    BASELINES,
    batch_td,
    best_factors,
    certainty_equivalence,
    constant_estimate,
    lstd,
    tuned_baselines,
)
from ictd.context import Context

STATES, DISCOUNT = 3, 0.85


def trajectories(length, count=4):
    """States (count, length + 1), and random rewards (count, length), which are not functions of the state."""
    rng = np.random.default_rng(length)
    return rng.integers(0, STATES, (count, length + 1)), rng.normal(size=(count, length))


@pytest.mark.parametrize(("length", "depth"), [(1, 40), (6, 1), (25, 40)])
def test_batch_td_equals_naive_and_theta_td(length, depth):
    """With one and with several step sizes."""
    states, rewards = trajectories(length)
    context = Context.from_trajectory(states, rewards, STATES)
    values = batch_td(context, DISCOUNT, 1.3, depth), batch_td(context, DISCOUNT, [0.1, 1.3], depth)[..., 1]
    theta = ictd.theta_td(STATES)
    by_theta = ictd.Model(ictd.Weights(theta.u, 1.3 * theta.A), depth, DISCOUNT).values(context)
    for i in range(len(states)):
        expected = naive.batch_td(states[i], rewards[i], STATES, DISCOUNT, 1.3, depth)
        for found in (*values, by_theta):
            np.testing.assert_allclose(found[i], expected, atol=ROUNDING)


def test_lstd_of_contexts_of_several_lengths():
    """With as many contexts as states."""
    states, rewards = trajectories(5, count=STATES)
    contexts = Context.from_trajectory(states, rewards, STATES)
    varied = replace(contexts, length=np.arange(1, STATES + 1))
    for i in range(STATES):
        alone = Context(i + 1, contexts.G[i])
        np.testing.assert_allclose(lstd(varied, DISCOUNT, 0.1)[i], lstd(alone, DISCOUNT, 0.1), rtol=ROUNDING)


@pytest.mark.parametrize("pseudo_counts", [None, np.arange(9.0).reshape(3, 3) / 4])
def test_certainty_equivalence_equals_naive(pseudo_counts):
    """With short trajectories, which do not visit all states."""
    states, rewards = trajectories(3, count=20)
    assert any(len({*path[:-1]}) < STATES for path in states)
    contexts = Context.from_trajectory(states, rewards, STATES)
    values = certainty_equivalence(contexts, DISCOUNT, pseudo_counts)
    for i in range(20):
        expected = naive.certainty_equivalence(states[i], rewards[i], STATES, DISCOUNT, pseudo_counts, 0)
        np.testing.assert_allclose(values[i], expected, atol=ROUNDING * 10)


def test_a_layer_with_a_preconditioner_is_an_update():
    """With features that are not one-hot."""
    rng = np.random.default_rng(0)
    states, rewards, features = rng.integers(0, 6, 13), rng.normal(size=12), rng.normal(size=(6, 3)) / 2
    context = Context.from_trajectory(states, rewards, features=features)
    H, w = 0.2 * rng.normal(size=(3, 3)), np.zeros(3)
    for _ in range(6):
        w = w + H @ (context.b + (DISCOUNT * context.D - context.C) @ w)
    model = ictd.Model(ictd.theta_preconditioned_td(H), depth=6, discount=DISCOUNT)
    np.testing.assert_allclose(model.values(context, features), features @ w, atol=ROUNDING * 10)


def test_the_constant_of_a_grouped_context_counts_each_visited_state_once():
    """With short trajectories, which do not visit all states."""
    states, rewards = trajectories(3, count=20)
    found = constant_estimate(Context.from_trajectory(states, rewards, STATES).grouped(), DISCOUNT)
    for i, path in enumerate(states[:, :-1]):
        mean_reward = np.mean([rewards[i, path == s].mean() for s in {*path}])
        np.testing.assert_allclose(found[i], np.full(STATES, mean_reward / (1 - DISCOUNT)), atol=ROUNDING * 10)


# Divergence


@pytest.mark.parametrize("depth", [20, 2000])
def test_divergent_updates_give_a_warning(depth):
    """For estimates that are too large, and for estimates that are not finite."""
    context = Context.from_trajectory(*trajectories(6), STATES)
    with pytest.warns(RuntimeWarning, match="batch_td diverged for 4 of 8 estimates.* smaller step size") as caught:
        batch_td(context, DISCOUNT, [0.5, 50.0], depth)
    assert [warning.filename for warning in caught] == [__file__]
    with warnings.catch_warnings(), np.errstate(over="ignore"):
        warnings.simplefilter("error")
        batch_td(context, DISCOUNT, 50.0, depth)


def test_one_weight_that_is_not_finite_is_divergence():
    """The estimate of state 0 is -inf after two updates; no step starts from state 1."""
    with pytest.warns(RuntimeWarning, match="batch_td diverged for 1 of 1 estimates"):
        assert batch_td(Context.from_trajectory([0, 0], [1.0], 2), 0.9, 1e200, 2).tolist() == [-np.inf, 0]


@pytest.mark.filterwarnings("error")
def test_convergent_updates_give_no_warning():
    """The state with the large reward has a small weight, so values exceed the rewards of all frequent states."""
    rare = Context.enumerated([[0.0, 1.0], [0.0, 1.0]], [0.0, 1.0], weights=[0.99, 0.01])
    w = batch_td(rare, 0.9, 1.0, 25_000)
    np.testing.assert_allclose(w, [9, 10], rtol=1e-9)
    batch_td(rare, 0.9, 1.0, 3)  # Updates grow before they shrink.


def test_a_step_size_of_one_length_is_not_next_to_one_that_diverges():
    """The third candidate is the best for all lengths; the other baselines have one factor for all lengths."""
    factors, names = np.array([1.0, 2.0, 3.0, 4.0]), tuned_baselines()
    scores = np.random.default_rng(0).uniform(1, 2, (len(names), 5, 4))
    rows = {
        (5.0, 2.0, 0.5, 0.1): 3.0,  # Of enumerated contexts. Nothing is known beyond the last candidate.
        (5.0, 1.0, 1.5, 9.0): 2.0,
        (5.0, 4.0, 3.0, np.inf): 3.0,
        (1.0, 1.2, 1.4, 9.0): 1.0,
        (1.0, 4.0, 1.1, 1.0): 3.0,  # Not the first or the last, because their next ones are bad or unknown.
    }
    scores[names.index("theta_td")] = [*rows]
    found = best_factors(factors, scores)
    assert [one["theta_td"] for one in found] == [*rows.values()]
    for name, score in zip(names, scores, strict=True):
        if not BASELINES[name].by_length:
            assert {one[name] for one in found} == {factors[score[1:].mean(axis=0).argmin()]}
