"""Markov reward processes, and their environments."""

import naive
import numpy as np
import pytest
from tolerances import ROUNDING

import ictd
from ictd.mrp import truncation_bias


def rng():
    return np.random.default_rng(0)


def test_values_satisfy_the_bellman_equation():
    """Leading axes broadcast."""
    tasks = ictd.sample_tasks("loop", 6, 4, rng())
    v = ictd.value_function(tasks.transition[:, None], tasks.reward, 0.97)
    bellman = tasks.reward + 0.97 * np.einsum("isj,iks->ikj", tasks.transition.mT, v)
    np.testing.assert_allclose(v, bellman, atol=ROUNDING * 100)


def test_values_of_chains_with_an_end():
    """An end is a state of value 0 that is never left."""
    absorbing = np.random.default_rng(0).dirichlet(np.ones(6), 6)
    absorbing[-1] = np.eye(6)[-1]
    reward = np.arange(6.0)[::-1]
    found = ictd.value_function(absorbing[:5, :5], reward[:5], 0.9, episodic=True)
    np.testing.assert_allclose(found, ictd.value_function(absorbing, reward, 0.9)[:5], rtol=ROUNDING)


def test_values_of_endless_episodes_are_discounted():
    np.testing.assert_allclose(ictd.value_function([[0, 0.5], [0, 1]], [1, 1], 0.5, True), [1.5, 2], rtol=ROUNDING)


def test_tasks_with_episodes():
    walk = (np.eye(5, k=1) + np.eye(5, k=-1)) / 2
    start = np.eye(5)[2]
    tasks = ictd.Tasks(np.stack([walk, walk]), np.zeros((2, 5)), episodic=True, start=start)
    np.testing.assert_allclose(tasks.stationary, [np.array([1, 2, 3, 2, 1]) / 9] * 2, rtol=ROUNDING)
    assert tasks[1:].episodic and tasks[1:].start.tolist() == [start.tolist()]


def test_bairds_counterexample_is_a_task():
    """The target policy stays in the last of seven states, and the behaviour visits all equally often (Baird, 1995)."""
    target = np.tile(np.eye(7)[6], (7, 1))
    tasks = ictd.Tasks(target, np.zeros(7), behaviour=np.full(7, 1 / 7))
    np.testing.assert_array_equal(tasks.stationary, target[:1])
    np.testing.assert_allclose(tasks.visited, 1 / 7, rtol=ROUNDING)
    two_classes = ictd.Tasks(np.eye(2), np.zeros(2), [0.5, 0.5], behaviour=[0.25, 0.75])
    np.testing.assert_array_equal(two_classes.stationary, [[0.5, 0.5]])


@pytest.mark.parametrize("slow", [1e-2, 1e-14])
def test_a_given_stationary_distribution_is_compared_with_that_of_the_chain(slow):
    """Also if the chain is nearly decomposable, so that a wrong one hardly changes."""
    chain = np.array([[1 - slow, slow], [2 * slow, 1 - 2 * slow]])
    ictd.Tasks(chain, [0, 0], [2 / 3, 1 / 3])
    ictd.Tasks(chain.astype(np.float32) if slow > 1e-7 else chain, [0, 0], np.array([2 / 3, 1 / 3], np.float32))
    with pytest.raises(ValueError, match=r"^stationary\[0\] is not stationary; .*, \[0.666\d* 0.333"):
        ictd.Tasks(chain, [0, 0], [0.666, 0.334])


def test_a_function_can_give_one_chain():
    """As the message for a chain in place of an environment says."""
    p, r = [[0.9, 0.1], [0.2, 0.8]], [1.0, 0.0]
    with pytest.raises(ValueError, match=r"^env is .* such as lambda states, size, rng: \(\[p\] \* size, "):
        ictd.TaskDistribution(p, r)
    tasks = ictd.TaskDistribution(lambda states, size, rng: ([p] * size, [r] * size), states=2).sample(3, rng())
    np.testing.assert_array_equal(tasks.transition, [p] * 3)


def test_random_features_have_a_squared_norm_of_one_on_average():
    features = ictd.TaskDistribution("loop", 3, features=8).sample(5000, rng()).features
    assert (features**2).sum(axis=-1).mean() == pytest.approx(1, rel=0.02)


@pytest.mark.parametrize("steps", [1, 20])
def test_truncation_bias_equals_naive(steps):
    tasks = ictd.sample_tasks("boyan", 4, 5, rng())
    value = ictd.value_function(tasks.transition, tasks.reward, 0.8)
    bias = truncation_bias(tasks.transition, value, 0.8, steps)
    for i in range(len(tasks)):
        truncated = naive.truncated_value(tasks.transition[i], tasks.reward[i], 0.8, steps)
        np.testing.assert_allclose(bias[i], truncated - value[i], atol=ROUNDING)


def normalised(row):
    return np.array(row) / sum(row)


@pytest.mark.parametrize("states", [2, 4])
def test_boyan_equals_algorithm_3(states):
    tasks, draws = ictd.sample_tasks("boyan", states, 5, rng()), rng()
    reward, epsilon, last = (draws.uniform(low, 1, (5, k)) for low, k in ((-1, states), (0, states - 2), (0, states)))
    np.testing.assert_array_equal(tasks.reward, reward)
    for i in range(5):
        expected = [
            [e * (j == s + 1) + (1 - e) * (j == s + 2) for j in range(states)] for s, e in enumerate(epsilon[i])
        ]
        expected += [np.eye(states)[-1], normalised(last[i])]
        np.testing.assert_allclose(tasks.transition[i], expected, rtol=ROUNDING)


def test_loop_equals_algorithm_4():
    tasks, draws = ictd.sample_tasks("loop", 4, 50, rng()), rng()
    reward, chords, weights = draws.uniform(-1, 1, (50, 4)), *draws.uniform(0, 1, (2, 50, 4, 4))
    np.testing.assert_array_equal(tasks.reward, reward)
    for i, s in np.ndindex(50, 4):
        row = [w * (j == (s + 1) % 4 or (j != s and chords[i, s, j] > 0.5)) for j, w in enumerate(weights[i, s])]
        np.testing.assert_allclose(tasks.transition[i, s], normalised(row), rtol=ROUNDING)


def test_slices_of_tasks_keep_the_distribution_of_visited_states():
    behaviour = rng().dirichlet(np.ones(3), size=5)
    tasks = ictd.Tasks(*vars(ictd.sample_tasks("loop", 3, 5, rng())).values(), behaviour=behaviour)
    np.testing.assert_allclose(tasks.visited, behaviour, atol=ROUNDING)
    np.testing.assert_array_equal(tasks[1:4].visited, tasks.visited[1:4])
    assert repr(tasks) == "<Tasks: 5 tasks, 3 states, with a behaviour>"


def test_relabelled_tasks_are_tasks_with_permuted_labels():
    tasks = ictd.sample_tasks("boyan", 5, 50, rng())
    permuted = ictd.sample_tasks("relabelled_boyan", 5, 50, rng())
    # The new label of each state, by its reward.
    ranks = np.argsort(np.argsort(tasks.reward, axis=1), axis=1)
    position = np.take_along_axis(np.argsort(permuted.reward, axis=1), ranks, axis=1)
    for i, order in enumerate(position):
        np.testing.assert_array_equal(permuted.transition[i][np.ix_(order, order)], tasks.transition[i])
    assert len(np.unique(position, axis=0)) > 20
