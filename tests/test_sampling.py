"""Trajectories, and the statistics of batches."""

import naive
import numpy as np
import pytest
from tolerances import ALIAS, ROUNDING

import ictd
from ictd import jumps
from ictd.sampling import sample_returns


def generator(purpose="tests"):
    return ictd.generator(3, "loop", 5, purpose)


@pytest.mark.parametrize(("env", "states"), [("boyan", 2), ("loop", 40)])
def test_alias_tables_have_the_given_distributions(env, states):
    tasks = ictd.sample_tasks(env, states, 4, generator())
    for distribution in [*np.vstack(tasks.transition), *tasks.stationary]:
        drawn = naive.alias_probabilities(*naive.alias_row(distribution))
        np.testing.assert_allclose(drawn, distribution, atol=ALIAS)
        assert (drawn[distribution == 0] == 0).all()


@pytest.mark.parametrize(("batch", "tau", "discount"), [(1, 1, 0.0), (7, 2, 0.5), (300, 5, 0.99), (4, 30, 0.9)])
def test_unroll_equals_naive(batch, tau, discount):
    tasks = ictd.sample_tasks("loop", 5, 3, generator())
    fast = ictd.unroll(tasks, batch, discount, tau, generator("batches"))
    visits, transitions, return_sums = naive.unroll(tasks, batch, discount, tau, generator("batches"))
    np.testing.assert_array_equal(fast.visits, visits)
    np.testing.assert_array_equal(fast.transitions, transitions)
    np.testing.assert_allclose(fast.return_sums, return_sums, atol=ROUNDING * 100)


@pytest.mark.parametrize("batch", [255, 256])
def test_counts_of_large_batches_do_not_overflow(batch):
    tasks = ictd.Tasks(np.array([[1 - 1e-6, 1e-6], [1.0, 0.0]]), np.array([1.0, 0.0]))
    batches = ictd.unroll(tasks, batch, 0.9, 1, generator("batches"))
    assert batches.visits[0, 0] == batches.transitions[0, 0, 0] == batch


@pytest.mark.parametrize(("env", "states"), [("boyan", 10), ("loop", 5)])
def test_the_length_of_jumps_keeps_their_tables_small(env, states):
    transition, scratch = ictd.sample_tasks(env, states, 1, generator()).transition[0], np.empty((2, states), np.int64)
    length = jumps.jump_length(transition, 50, scratch)
    assert length == naive.jump_length(transition, 50) > 1
    assert jumps.jump_length(transition, 2, scratch) == 2 and jumps.jump_length(transition, 0, scratch) == 1
    assert jumps.jump_length(np.full((60, 60), 1 / 60), 5, np.empty((2, 60), np.int64)) == 1


def test_returns_of_many_states():
    """A cycle has one path from each state; arrays of n^3 numbers would be 16 GB."""
    n, steps = 1000, 50
    reward = generator().normal(size=(1, n))
    tasks = ictd.Tasks(np.roll(np.eye(n), 1, axis=1)[None], reward, np.full((1, n), 1 / n))
    expected = sum(0.9**t * np.roll(reward, -t, axis=1) for t in range(steps))
    found = sample_returns(tasks, np.full((1, n), 2), 0.9, steps, generator("returns"))
    np.testing.assert_allclose(found, 2 * expected, rtol=0, atol=ROUNDING)


@pytest.mark.parametrize("episodic", [False, True])
@pytest.mark.parametrize("behaviour", [None, [[0.1, 0.9, 0.0], [0.3, 0.0, 0.7], [0.5, 0.5, 0.0]]])
def test_steps_equal_naive(behaviour, episodic):
    """On-policy, 3 + s is state s as the first state of an episode; otherwise, 3 is the end."""
    p = ictd.sample_tasks("loop", 3, 1, generator()).transition[0]
    p[:2] *= [[0.5], [0]] if episodic else 1
    start = np.array([0.5, 0, 0.5]) if episodic else None
    visits = behaviour and [behaviour] * 5
    tasks = ictd.Tasks([p] * 5, np.zeros((5, 3)), behaviour=visits, episodic=episodic, start=start)
    ends = np.maximum(1 - p.sum(axis=1, keepdims=True), 0)
    rng = generator("paths")
    for states, next_states in zip(*ictd.sample_steps(tasks, 9, generator("paths")), strict=True):
        if behaviour:
            expected = naive.trajectory(behaviour, tasks.visited[0], 8, rng)
            after = [naive.next_state([*p[s], *ends[s]], rng.random()) for s in expected]
        else:
            chain = np.vstack([np.hstack([p, ends * (start if episodic else p)])] * 2)
            path = np.array(naive.trajectory(chain, [*tasks.stationary[0], 0, 0, 0], 9, rng))
            expected, after = path[:-1] % 3, np.minimum(path[1:], 3)
        np.testing.assert_array_equal([states, next_states], [expected, after])


def test_contexts_of_episodes_have_an_end():
    """Enumerated contexts give the values."""
    walk, reward, features = (np.eye(4, k=1) + np.eye(4, k=-1)) / 2, np.array([0, 0, 0, 0.5]), np.eye(4) + 1
    tasks = ictd.Tasks(walk, reward, features=features, episodic=True)
    value = ictd.value_function(walk, reward, 1, episodic=True)
    enumerated = ictd.Context.enumerated(walk, reward, episodic=True)
    np.testing.assert_allclose(ictd.certainty_equivalence(enumerated, discount=1), value, rtol=ROUNDING)
    columns = ictd.enumerated_columns(walk, reward, 1, episodic=True)
    np.testing.assert_array_equal(columns, np.vstack([np.eye(4), walk.T, reward]))
    np.testing.assert_array_equal(ictd.EnumeratedPrompts().columns(tasks, 0.5)[0, 4:8], 0.5 * (walk @ features).T)
    of_tasks = ictd.EnumeratedPrompts().contexts(tasks)
    np.testing.assert_allclose(of_tasks.G[0], enumerated.with_features(features).G, atol=ROUNDING)
