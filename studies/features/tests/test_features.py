"""Values from few numbers, algorithms and measures of the study, beside slow and obvious twins."""

import numpy as np
import pytest
from tolerances import ENGINES

from ictd import Model, initial_weights
from ictd.prompt import Context
from studies.features import algorithms
from studies.features.algorithms import estimates, projection, trimmed_mean, tune
from studies.features.coefficients import alignment, measures, permutation_fit
from studies.features.grid import varied
from studies.features.symmetric import (
    FAMILIES,
    block_numbers,
    fixed_point,
    least_squares,
    values_and_derivatives,
    weights_of,
)
from studies.features.tasks import FEATURES, draw_features, held_out, prompts_of

SETTING = {
    "env": "boyan", "states": 6, "features": "normal", "dimension": 3, "depth": 4, "discount": 0.9,
    "prompts": "enumerated", "start": "random", "initial_gain": 0.1, "updates": 100, "targets": ["td"], "seeds": 2,
}  # fmt: skip
KINDS = ["enumerated", "weighted", "shuffled", 12]


@pytest.mark.parametrize("prompts", KINDS)
def test_a_layer_makes_the_update_with_second_test_functions(prompts):
    data = held_out(SETTING | {"prompts": prompts}, 5, 0, "test")
    alpha, eta = 0.7, 0.4
    B = alpha * np.array([[-1, 1], [-eta, eta]])
    values, _ = values_and_derivatives(
        np.array([alpha, alpha * eta]), FAMILIES["two_numbers"], data.gram, data.tasks.features, 4
    )
    for i in range(5):
        w = np.zeros(3)
        for _ in range(4):
            change = np.zeros(3)
            for phi, following, reward, weight in zip(
                data.phi[i], data.phi_next[i], data.reward[i], data.weight[i], strict=True
            ):
                delta = reward + data.discount * following @ w - phi @ w
                change += weight * delta * (phi + eta * data.discount * following)
            w = w + alpha * change
        np.testing.assert_allclose(values[i], data.tasks.features[i] @ w, rtol=ENGINES, atol=ENGINES)
    np.testing.assert_allclose(block_numbers(weights_of(B, 3).A), B, rtol=ENGINES)


@pytest.mark.parametrize("prompts", KINDS)
def test_held_out_prompts_are_those_of_pretraining(prompts):
    setting = SETTING | {"prompts": prompts}
    data = held_out(setting, 4, 0, "test")
    if prompts == 12:
        steps = data.phi, data.phi_next, data.reward
        expected = Context.from_features(*steps)
    elif prompts == "shuffled":
        expected = Context.enumerated(data.chain, data.tasks.reward, data.tasks.features)
        assert (np.sort(data.chain, axis=1) == np.sort(data.tasks.transition, axis=1)).all()
    else:
        expected = prompts_of(setting).contexts(data.tasks, None)
    np.testing.assert_allclose(data.gram, expected.gram_matrix(0.9), rtol=ENGINES, atol=ENGINES)
    weights = initial_weights(3, 1.0, np.random.default_rng(0))
    values = Model(weights, 4, 0.9).values(expected, data.tasks.features)
    assert values.shape == data.value.shape


def test_derivatives_are_those_of_small_differences():
    data, numbers = held_out(SETTING, 5, 0, "test"), np.array([0.5, 0.2, 0.1, -0.1])
    directions = FAMILIES["four_numbers"]
    _, derivatives = values_and_derivatives(numbers, directions, data.gram, data.tasks.features, 4)
    for k, small in enumerate(1e-5 * np.eye(4)):
        high, low = (
            values_and_derivatives(numbers + sign * small, directions, data.gram, data.tasks.features, 4)[0]
            for sign in (1, -1)
        )
        np.testing.assert_allclose(derivatives[k], (high - low) / 2e-5, rtol=1e-6, atol=1e-8)


def test_least_squares_finds_the_least_error_of_a_grid():
    data = held_out(SETTING, 50, 0, "tuning")
    gram, mu = data.gram, data.tasks.stationary
    numbers, msve = least_squares([0.5], FAMILIES["theta_td"], data, gram, 4)
    errors = {}
    for alpha in np.linspace(0.05, 6, 400):
        values, _ = values_and_derivatives(np.array([alpha]), FAMILIES["theta_td"], gram, data.tasks.features, 4)
        errors[alpha] = (mu * (data.value - values) ** 2).sum(axis=-1).mean()
    best = min(errors, key=errors.get)
    assert msve <= errors[best] and abs(numbers[0] - best) < 0.02


def test_the_expected_update_is_zero_at_the_fixed_point():
    data = held_out(SETTING, 200, 0, "tuning")
    directions = FAMILIES["two_numbers"]
    numbers = fixed_point([0.5, 0.0], directions, data, data.gram, 4)
    values, derivatives = values_and_derivatives(numbers, directions, data.gram, data.tasks.features, 4)
    tasks = data.tasks
    delta = tasks.reward + 0.9 * np.matvec(tasks.transition, values) - values
    update = (tasks.stationary * delta * derivatives).sum(axis=(1, 2))
    size = (tasks.stationary * np.abs(delta * derivatives)).sum(axis=(1, 2))
    assert (np.abs(update) < 1e-4 * size).all()


@pytest.mark.parametrize("prompts", KINDS)
def test_lstd_solves_for_zero_mean_td_errors(prompts):
    data = held_out(SETTING | {"prompts": prompts}, 3, 0, "test")
    for name, x in (("lstd", 0.0), ("lstd_second", 0.6), ("lstd_mean", 2.0), ("lstd_lambda", 0.5)):
        (w,) = estimates(name, data, x, [1e-12], 4)
        for i in range(3):
            delta = data.reward[i] + (0.9 * data.phi_next[i] - data.phi[i]) @ w[i]
            z = data.phi[i]
            if name == "lstd_second":
                z = z + x * 0.9 * data.phi_next[i]
            elif name == "lstd_mean":
                z = z + x * data.weight[i] @ data.phi[i]
            elif name == "lstd_lambda" and prompts == 12:
                z = np.array([sum((0.9 * x) ** (t - k) * data.phi[i, k] for k in range(t + 1)) for t in range(12)])
            elif name == "lstd_lambda":
                delta = sum((0.9 * x) ** k * np.linalg.matrix_power(data.chain[i], k) @ delta for k in range(300))
            assert np.abs((data.weight[i] * delta) @ z).max() < 1e-8


def test_lstd_1_of_weighted_prompts_is_the_projection_and_no_method_is_below_it():
    data = held_out(SETTING | {"prompts": "weighted"}, 20, 0, "test")
    w = projection(data)
    (found,) = estimates("lstd_lambda", data, 1.0, [1e-14], 4)
    np.testing.assert_allclose(found, w, rtol=1e-6, atol=1e-8)
    least = data.msve(w)
    for name in algorithms.TUNED:
        assert (data.msve(estimates(name, data, 0.5, [0.1, 0.2], 4)) >= least).all()


def test_td_tends_to_lstd():
    data = held_out(SETTING, 5, 0, "test")
    (td,), (lstd,) = (
        estimates(name, data, 0.0, [other], 20_000) for name, other in (("td_lambda", 1.0), ("lstd", 1e-12))
    )
    np.testing.assert_allclose(td, lstd, rtol=1e-6, atol=1e-8)


def test_tuning_takes_the_least_trimmed_mean(monkeypatch):
    monkeypatch.setitem(algorithms.TUNED, "lstd_second", ("second", [0.0, 0.5], [0.01, 0.1]))
    data = held_out(SETTING, 40, 0, "tuning")
    chosen = tune("lstd_second", data, 4)
    scores = {
        (x, ridge): trimmed_mean(data.msve(estimates("lstd_second", data, x, [ridge], 4))[0])
        for x in (0.0, 0.5)
        for ridge in (0.01, 0.1)
    }
    assert chosen == min(scores, key=scores.get)
    assert trimmed_mean(np.arange(40.0)) == np.arange(38).mean()


def test_measures_of_known_weights():
    d, G, H = 3, 2 * np.eye(3) + 0.5, np.eye(3)
    A = np.block([[-G, G], [-H, H]])
    found = measures(np.zeros(6), A)
    assert found["alpha"] == pytest.approx(2) and found["ones"] == pytest.approx(0.5)
    assert found["eta"] == pytest.approx(0.5) and found["outside"] == pytest.approx(0)
    assert found["eight"] == pytest.approx(1) and found["u"] == 0
    diagonal = 2 * ((2.5**2) * d + d)
    assert found["four"] == pytest.approx(diagonal / (A**2).sum())
    assert permutation_fit(np.array([[4.0]])) == (4.0, 0.0)
    random = np.random.default_rng(0).normal(size=(d, d))
    basis = np.stack([np.eye(d).ravel(), np.ones(d * d)], axis=1)
    np.testing.assert_allclose(
        permutation_fit(random), np.linalg.lstsq(basis, random.ravel())[0], rtol=ENGINES, atol=ENGINES
    )
    assert alignment(random.T, 3 * random + np.eye(d)) == pytest.approx(1)


def test_features_of_each_kind():
    rng = np.random.default_rng(0)
    for kind in FEATURES:
        d = 6 if kind in ("rotated", "one_hot") else 3
        features = draw_features(SETTING | {"features": kind, "dimension": d}, 5, rng, 0)
        assert features.shape == (5, 6, d) and (np.linalg.matrix_rank(features) > 0).all()
    grouped = draw_features(SETTING | {"features": "aggregated"}, 5, rng, 0)
    assert (grouped.sum(axis=2) == 1).all() and (grouped.sum(axis=1) == 2).all()
    fixed = [draw_features(SETTING | {"features": "fixed"}, 2, rng, seed) for seed in (0, 0, 1)]
    assert (fixed[0] == fixed[1]).all() and (fixed[0] != fixed[2]).all()


def test_centred_environments_have_values_of_mean_zero():
    data = held_out(SETTING | {"env": "loop_centred"}, 5, 0, "test")
    np.testing.assert_allclose((data.tasks.stationary * data.value).sum(axis=1), 0, atol=1e-12)
    assert (np.abs(data.value) > 0.01).any()


def test_a_factor_is_varied_alone():
    found = {"main": SETTING, "d_1": SETTING | {"dimension": 1, "seeds": 5}, "other": SETTING | {"depth": 3}}
    assert varied(found, "dimension") == {"main": 3, "d_1": 1}
