"""Errors of Transformers and baselines on unseen tasks."""

import naive
import numpy as np
import pytest
from tolerances import ROUNDING

import ictd
from ictd.baselines import BASELINES, Given, tuned_baselines
from ictd.evaluation import (
    baseline_msve,
    draw_unseen_tasks,
    factor_scores,
    layer_measures,
    weights_msve,
)
from ictd.prompt import ENUMERATED
from ictd.transformer import estimates

STATES, DISCOUNT, LENGTHS, DEPTH = 4, 0.85, [1, 6, 25], 6
PSEUDO_STEPS = {"constant_tuned": 1.5, "lstd_pseudo_steps": 0.8}
# Factors of all baselines, also of those of one's own.
FACTORS = dict.fromkeys(tuned_baselines(), 0.7) | PSEUDO_STEPS


@pytest.fixture(scope="module")
def data():
    return draw_unseen_tasks(7, STATES, 5, max(LENGTHS), DISCOUNT, "boyan")


@pytest.fixture(scope="module")
def contexts(data):
    return [data.context(length) for length in LENGTHS]


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
    given = Given(DISCOUNT, DEPTH, 0.1, scaled, FACTORS | {"theta_td": step_size})
    msve = baseline_msve(BASELINES, data, contexts, given)
    for k, length in enumerate(LENGTHS):
        for i, (_, r, path, mu, v) in enumerate(zip(*naive.tasks_of(data), strict=True)):
            trajectory = path[: length + 1], r[path[:length]], STATES, DISCOUNT
            by_td = naive.batch_td(*trajectory, step_size * (1 if scaled else length), DEPTH)
            values = {"theta_td": by_td, "lstd": naive.lstd(*trajectory, 0.1), "zero": 0 * v}
            values["constant"] = r[path[:length]].mean() / (1 - DISCOUNT)
            values["constant_tuned"] = r[path[:length]].sum() / (length + 1.5) / (1 - DISCOUNT)
            uniform = np.full((STATES, STATES), 0.8 / STATES)
            values["lstd_pseudo_steps"] = naive.certainty_equivalence(*trajectory, uniform, 0)
            assert values.keys() <= msve.keys()  # Baselines of one's own are not among the values.
            for name, value in values.items():
                expected = (mu * (v - value) ** 2).sum()
                np.testing.assert_allclose(msve[name][k, i], expected, rtol=1e-9, err_msg=name)


@pytest.mark.parametrize("name", ["theta_td", *PSEUDO_STEPS])
def test_the_score_of_a_factor_is_its_mean_msve(data, contexts, name):
    """The largest step size diverges."""
    factors = np.array([0.1, 1.0, 30.0])
    scores = factor_scores(BASELINES[name], data, contexts, Given(DISCOUNT, 20, 0.1, True, {}), factors)
    given = [Given(DISCOUNT, 20, 0.1, True, {name: factor}) for factor in factors]
    with np.errstate(over="ignore"):
        each = [baseline_msve([name], data, contexts, one)[name].mean() for one in given]
    np.testing.assert_allclose(scores, each)
    assert scores.argmin() == 1


def test_the_score_of_a_step_size_that_overflows_is_infinite(data, contexts):
    given = Given(DISCOUNT, 3000, 0.1, True, {})
    assert factor_scores(BASELINES["theta_td"], data, contexts, given, np.array([30.0])) == np.inf


def test_true_values_use_the_given_discount(data):
    bellman = data.tasks.reward + DISCOUNT * np.matvec(data.tasks.transition, data.value)
    np.testing.assert_allclose(data.value, bellman, atol=ROUNDING)


def test_unseen_tasks_depend_on_the_seed_the_stream_and_the_options(data):
    settings = (STATES, 5, max(LENGTHS), DISCOUNT, "boyan")
    np.testing.assert_array_equal(draw_unseen_tasks(7, *settings).paths, data.paths)
    for other in (draw_unseen_tasks(8, *settings), draw_unseen_tasks(7, *settings, "tuning")):
        assert (other.tasks.reward != data.tasks.reward).all()
        assert (other.paths != data.paths).any()
    sparse = draw_unseen_tasks(0, 6, 50, 1, 0.9, "loop", threshold=0.9).tasks
    assert (sparse.transition > 0).sum(axis=-1).mean() < 2


def test_contexts_longer_than_the_paths_are_refused(data):
    assert data.context(25).length == 25
    with pytest.raises(ValueError, match="length is 26; give at most 25"):
        data.context(26)


@pytest.mark.parametrize("scaled", [True, False])
def test_layers_are_compared_with_td_by_the_outputs_of_fewer_layers(data, scaled):
    """The change by layer l + 1 is the difference of the outputs of l + 1 and l layers."""
    depth, found, several = 3, [], naive.several_weights(STATES, count=6)
    for i in range(6):
        weights = ictd.Weights(several.u[i], several.A[i] * (1 if scaled else 1 / STATES))
        found.append(layer_measures(weights, data, depth, scaled))
        G = data.gram_matrix(ENUMERATED, scaled)
        outputs = [estimates(weights, G, layers) for layers in range(1, depth + 1)]
        before, shares = 0 * outputs[0], []
        for after in outputs:
            along = of_layer = of_td = 0.0
            for p, r, _, mu, _, old, new in zip(*naive.tasks_of(data), before, after, strict=True):
                for s in range(STATES):
                    error = r[s] + DISCOUNT * sum(p[s, j] * old[j] for j in range(STATES)) - old[s]
                    along += mu[s] * (new[s] - old[s]) * error
                    of_layer += mu[s] * (new[s] - old[s]) ** 2
                    of_td += mu[s] * error**2
            shares.append(max(along, 0) ** 2 / of_layer / of_td)
            before = after
        assert found[-1]["layer_is_td"] == pytest.approx(np.mean(shares))
        early, late = (estimates(weights, G, layers + 1) - estimates(weights, G, layers) for layers in (20, 80))
        shrinking = np.linalg.norm(late, axis=1) < np.linalg.norm(early, axis=1)
        assert found[-1]["converging"] == shrinking.mean()
    assert len({one["converging"] for one in found}) > 1


def test_every_layer_of_theta_td_is_td(data):
    theta = ictd.theta_td(STATES)
    assert layer_measures(theta, data, 9) == pytest.approx({"layer_is_td": 1, "converging": 1})
    backwards = layer_measures(ictd.Weights(theta.u, -theta.A), data, 9)
    assert backwards == {"layer_is_td": 0, "converging": 0}
    nothing = layer_measures(ictd.Weights(theta.u, np.nan * theta.A), data, 9)
    assert np.isnan([*nothing.values()]).all()
