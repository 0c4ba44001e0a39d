"""Markov reward processes and the environments that they are drawn from."""

import naive
import numpy as np
import pytest
from tolerances import ROUNDING

import ictd
from ictd.mrp import truncation_bias


def rng(seed=0):
    return np.random.default_rng(seed)


@pytest.mark.parametrize("env", ["boyan", "loop"])
@pytest.mark.parametrize("states", [2, 3, 5, 12])
def test_stationary_distribution_solves_its_equation(env, states):
    tasks = ictd.sample_tasks(env, states, 20, rng())
    for transition, mu in zip(tasks.transition, tasks.stationary, strict=True):
        np.testing.assert_allclose(mu, naive.stationary(transition), atol=ROUNDING)


def test_stationary_distribution_known_cases():
    two = np.array([[0.7, 0.3], [0.1, 0.9]])
    np.testing.assert_allclose(ictd.stationary_distribution(two), [0.25, 0.75], rtol=ROUNDING)
    # Kemeny and Snell's weather in the land of Oz.
    oz = np.array([[0.5, 0.25, 0.25], [0.5, 0.0, 0.5], [0.25, 0.25, 0.5]])
    np.testing.assert_allclose(ictd.stationary_distribution(oz), [0.4, 0.2, 0.4], rtol=ROUNDING)
    # Nearly decomposable: relative precision where solving the linear system loses it.
    weak = np.array([[1 - 1e-14, 1e-14], [3e-14, 1 - 3e-14]])
    np.testing.assert_allclose(ictd.stationary_distribution(weak), [0.75, 0.25], rtol=1e-10)


@pytest.mark.parametrize("bad", [[[1.0, 0.0], [0.5, 0.5]], [[0.5, 0.5], [0.0, 1.0]], [[1.0, 0.0], [0.0, 1.0]]])
def test_reducible_chain_is_named(bad):
    good = [[0.5, 0.5], [0.5, 0.5]]
    with pytest.raises(ValueError, match=r"transition\[1\] is reducible"):
        ictd.stationary_distribution(np.array([good, bad]))


def test_value_function_satisfies_bellman():
    tasks = ictd.sample_tasks("loop", 6, 30, rng())
    v = ictd.value_function(tasks.transition, tasks.reward, 0.97)
    bellman = tasks.reward + 0.97 * np.einsum("isj,ij->is", tasks.transition, v)
    np.testing.assert_allclose(v, bellman, atol=ROUNDING * 100)


def test_msve_is_a_weighted_square():
    assert ictd.msve(np.array([0.25, 0.75]), np.array([1.0, 2.0]), np.array([3.0, 1.0])) == 0.25 * 4 + 0.75 * 1


@pytest.mark.parametrize("steps", [1, 3, 20])
def test_truncation_bias(steps):
    tasks = ictd.sample_tasks("boyan", 4, 5, rng())
    value = ictd.value_function(tasks.transition, tasks.reward, 0.8)
    bias = truncation_bias(tasks.transition, value, 0.8, steps)
    for i in range(len(tasks)):
        cut = naive.truncated_value(tasks.transition[i], tasks.reward[i], 0.8, steps)
        np.testing.assert_allclose(bias[i], cut - value[i], atol=ROUNDING)


@pytest.mark.parametrize("states", [2, 3, 7])
def test_boyan_topology(states):
    tasks = ictd.sample_tasks("boyan", states, 200, rng())
    assert (np.abs(tasks.reward) <= 1).all() and tasks.reward.min() < -0.5 < 0.5 < tasks.reward.max()
    allowed = np.zeros((states, states), bool)
    for s in range(states - 1):
        allowed[s, s + 1 : s + 3] = True
    allowed[states - 1] = True
    assert ((tasks.transition > 0).any(axis=0) == allowed).all()
    first = tasks.transition[:, 0, 1]
    assert (first == 1).all() if states == 2 else abs(first.mean() - 0.5) < 0.1


def test_loop_topology_and_threshold():
    for threshold in (0.2, 0.8):
        tasks = ictd.sample_tasks("loop", 6, 2000, rng(), threshold=threshold)
        cycle = [tasks.transition[:, s, (s + 1) % 6] > 0 for s in range(6)]
        assert np.all(cycle)
        assert (np.diagonal(tasks.transition, axis1=1, axis2=2) == 0).all()
        chords = (tasks.transition > 0).sum() - 6 * len(tasks)
        assert abs(chords / (len(tasks) * 6 * 4) - (1 - threshold)) < 0.01


def quantiles_of_uniform(sample, low=0.0, high=1.0):
    """Whether a large sample has the quantiles of a uniform distribution."""
    levels = np.linspace(0.05, 0.95, 19)
    np.testing.assert_allclose(np.quantile(sample, levels), low + (high - low) * levels, atol=0.02 * (high - low))


def test_boyan_draws_what_algorithm_3_says():
    tasks = ictd.sample_tasks("boyan", 4, 20_000, rng())
    quantiles_of_uniform(tasks.reward[:, 2], -1, 1)
    quantiles_of_uniform(tasks.transition[:, 0, 1])
    quantiles_of_uniform(tasks.transition[:, 1, 2])
    # The last row is z / sum(z) for uniform z: its ratios have the law of a quotient of two uniform numbers.
    ratio = tasks.transition[:, 3, 0] / tasks.transition[:, 3, 2]
    quantiles_of_uniform(np.where(ratio < 1, ratio / 2, 1 - 1 / (2 * ratio)))
    assert np.corrcoef(tasks.transition[:, 0, 1], tasks.transition[:, 1, 2])[0, 1] == pytest.approx(0, abs=0.03)


def test_loop_draws_what_algorithm_4_says():
    tasks = ictd.sample_tasks("loop", 4, 40_000, rng())
    quantiles_of_uniform(tasks.reward[:, 0], -1, 1)
    both = tasks.transition[(tasks.transition[:, 0, 2] > 0) & (tasks.transition[:, 0, 3] > 0), 0]
    ratio = both[:, 2] / both[:, 1]
    quantiles_of_uniform(np.where(ratio < 1, ratio / 2, 1 - 1 / (2 * ratio)))
    assert (tasks.transition[:, 1, 3] > 0).mean() == pytest.approx(0.5, abs=0.02)


def test_initial_weights_are_xavier_normal_with_gain():
    drawn = ictd.initial_weights(100, 0.1, rng())
    for sample in (drawn.A, drawn.u):
        assert sample.std() == pytest.approx(0.1 / np.sqrt(201), rel=0.2)
    assert drawn.A.std() == pytest.approx(0.1 / np.sqrt(201), rel=0.02)
    assert abs(drawn.A.mean()) < 1e-4 and (drawn.u != 0).all()
    np.testing.assert_array_equal(ictd.initial_weights(1, 0.1, rng()).u, rng().normal(0, 0.1 / np.sqrt(3), 2))


HALVES, REWARD = np.full((1, 2, 2), 0.5), np.zeros((1, 2))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ictd.sample_tasks("ring", 5, 1, rng()), "env is 'ring'; choose from boyan, loop"),
        (lambda: ictd.sample_tasks("boyan", 1, 1, rng()), "states is 1"),
        (lambda: ictd.sample_tasks("boyan", 5, 0, rng()), "size is 0"),
        (lambda: ictd.sample_tasks("boyan", 5, 1, rng(), threshold=0.5), "does not take the options"),
        (lambda: ictd.sample_tasks("loop", 5, 1, rng(), threshold=1.5), "threshold is 1.5"),
        (lambda: ictd.value_function(HALVES, REWARD, 1), "discount is 1"),
        (lambda: ictd.Tasks(np.full(2, 0.5), REWARD), "transition has shape"),
        (lambda: ictd.Tasks(np.full((1, 2, 3), 1 / 3), REWARD), "transition has shape"),
        (lambda: ictd.Tasks(np.ones((1, 1, 1)), np.zeros((1, 1))), "of states is 1; give a whole number from 2"),
        (lambda: ictd.Tasks(np.eye(2), np.zeros((1, 3))), r"reward has shape \(1, 3\); give .* n = 2"),
        (lambda: ictd.Tasks(HALVES, np.zeros((2, 2))), "reward has shape"),
        (lambda: ictd.Tasks([[1.5, -0.5], [0.5, 0.5]], [0, 0]), r"transition\[0, 1\] is not a probability"),
        (lambda: ictd.Tasks(HALVES, REWARD, [[0.9, 0.1]]), r"stationary\[0\] is not stationary"),
        (lambda: ictd.stationary_distribution(np.full((2, 3), 1 / 3)), r"give .*n, n"),
    ],
)
def test_bad_tasks_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("transition", np.nan, r"transition\[2, 0, 0\] is not"),
        ("transition", -0.25, r"transition\[2, 0, 0\] is not"),
        ("transition", 0.75, r"transition\[2, 0\] does not sum to one"),
        ("reward", np.inf, r"reward\[2, 0\] is not finite"),
        ("stationary", -0.25, r"stationary\[2, 0\] is not"),
        ("stationary", 0.75, r"stationary\[2\] does not sum to one"),
    ],
)
def test_the_task_that_is_wrong_is_named(name, value, message):
    arrays = {"transition": np.full((4, 2, 2), 0.5), "reward": np.zeros((4, 2)), "stationary": np.full((4, 2), 0.5)}
    ictd.Tasks(**arrays)
    arrays[name][2].flat[0] = value
    with pytest.raises(ValueError, match=f"^{message}"):
        ictd.Tasks(**arrays)


def test_rows_may_be_off_by_a_billionth():
    rows = HALVES.copy()
    rows[0, 0, 0] += 0.9e-9
    ictd.Tasks(rows, REWARD)
    rows[0, 0, 0] += 0.2e-9
    with pytest.raises(ValueError, match=r"transition\[0, 0\] does not sum to one"):
        ictd.Tasks(rows, REWARD)
