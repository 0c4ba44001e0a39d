"""Errors of Transformers and baselines on unseen tasks."""

import naive
import numpy as np
import pytest
from tolerances import ROUNDING

import ictd
from ictd.baselines import BASELINES, Given
from ictd.evaluation import (
    baseline_msve,
    draw_unseen_tasks,
    factor_scores,
    joined,
    weights_msve,
)
from ictd.prompt import ENUMERATED
from ictd.statistics import log_spaced

STATES, DISCOUNT, LENGTHS, DEPTH = 4, 0.85, [1, 6, 25], 6


@pytest.fixture(scope="module")
def data():
    return draw_unseen_tasks(7, STATES, 5, max(LENGTHS), DISCOUNT, "boyan")


@pytest.fixture(scope="module")
def contexts(data):
    return [data.context(length) for length in LENGTHS]


def test_joined_tasks_have_the_errors_of_their_parts():
    parts = [draw_unseen_tasks(seed, STATES, 4, 9, DISCOUNT, "loop") for seed in (0, 1)]
    data = joined(parts)
    given = Given(DISCOUNT, DEPTH, 0.1, True, {"theta_td": 0.7})
    together, *alone = (baseline_msve(BASELINES, part, [part.context(9)], given) for part in (data, *parts))
    for name, msve in together.items():
        np.testing.assert_array_equal(msve, np.hstack([errors[name] for errors in alone]))


@pytest.mark.parametrize("scaled", [True, False])
def test_msve_of_transformers_equals_naive(data, scaled):
    weights = naive.several_weights(STATES, count=2)
    weights = weights if scaled else ictd.Weights(weights.u, weights.A / 25)
    msve = weights_msve(weights, data, [ENUMERATED, *LENGTHS], DEPTH, scaled)
    assert msve.shape == (2, 4, 5)
    for run in range(2):
        for k, length in enumerate([ENUMERATED, *LENGTHS]):
            expected = naive.errors(weights[run], data, length, DEPTH, scaled)
            np.testing.assert_allclose(msve[run, k], expected, rtol=1e-9)
    np.testing.assert_array_equal(weights_msve(weights[1], data, [6], DEPTH, scaled), msve[1, 2:3])


@pytest.mark.parametrize(("scaled", "step_size"), [(True, 0.7), (False, 0.03)])
def test_msve_of_baselines_equals_naive(data, contexts, scaled, step_size):
    msve = baseline_msve(BASELINES, data, contexts, Given(DISCOUNT, DEPTH, 0.1, scaled, {"theta_td": step_size}))
    for k, length in enumerate(LENGTHS):
        for i, (_, r, path, mu, v) in enumerate(zip(*naive.tasks_of(data), strict=True)):
            trajectory = path[: length + 1], r[path[:length]], STATES, DISCOUNT
            by_td = naive.batch_td(*trajectory, step_size * (1 if scaled else length), DEPTH)
            values = {"theta_td": by_td, "batch_td": by_td, "lstd": naive.lstd(*trajectory, 0.1), "zero": 0 * v}
            values["constant"] = r[path[:length]].mean() / (1 - DISCOUNT)
            assert msve.keys() == values.keys()
            for name, value in values.items():
                expected = (mu * (v - value) ** 2).sum()
                np.testing.assert_allclose(msve[name][k, i], expected, rtol=1e-9, err_msg=name)


def test_the_score_of_a_step_size_is_its_mean_msve(data, contexts):
    step_sizes = np.array([0.1, 1.0, 30.0])
    scores = factor_scores(BASELINES["theta_td"], data, contexts, Given(DISCOUNT, 20, 0.1, True, {}), step_sizes)
    given = [Given(DISCOUNT, 20, 0.1, True, {"theta_td": step_size}) for step_size in step_sizes]
    with np.errstate(over="ignore"):  # The largest step size diverges.
        each = [baseline_msve(["batch_td"], data, contexts, one)["batch_td"].mean() for one in given]
    np.testing.assert_allclose(scores, each)
    assert scores.argmin() == 1
    overflowing = factor_scores(
        BASELINES["theta_td"], data, contexts, Given(DISCOUNT, 3000, 0.1, True, {}), step_sizes[-1:]
    )
    assert overflowing[0] == np.inf


def test_theta_td_on_enumerated_prompts_is_value_iteration():
    data = draw_unseen_tasks(0, 3, 30, 10, 0.9, "boyan")
    value = np.zeros((30, 3))
    for _ in range(40):
        value = data.tasks.reward + 0.9 * np.matvec(data.tasks.transition, value)
    msve = weights_msve(ictd.theta_td(3), data, [ENUMERATED], 40, scaled=False)[0]
    np.testing.assert_allclose(msve, data.error(value), rtol=1e-9)


def test_true_values_use_the_given_discount(data):
    bellman = data.tasks.reward + DISCOUNT * np.matvec(data.tasks.transition, data.value)
    np.testing.assert_allclose(data.value, bellman, atol=ROUNDING)


def test_unseen_tasks_depend_on_the_seed_the_stream_and_the_options(data):
    settings = (STATES, 5, max(LENGTHS), DISCOUNT, "boyan")
    again = draw_unseen_tasks(7, *settings)
    np.testing.assert_array_equal(again.tasks.reward, data.tasks.reward)
    np.testing.assert_array_equal(again.paths, data.paths)
    for other in (draw_unseen_tasks(8, *settings), draw_unseen_tasks(7, *settings, "tuning")):
        assert (other.tasks.reward != data.tasks.reward).all()
        assert (other.paths != data.paths).any()
    sparse = draw_unseen_tasks(0, 6, 50, 1, 0.9, "loop", threshold=0.9).tasks
    assert (sparse.transition > 0).sum(axis=-1).mean() < 2


def test_contexts_longer_than_the_paths_are_refused(data):
    assert data.context(25).length == 25
    with pytest.raises(ValueError, match="length is 26; give at most 25"):
        data.context(26)


def test_log_spaced_candidates():
    np.testing.assert_allclose(log_spaced(0.01, 100, 5), [0.01, 0.1, 1, 10, 100])
