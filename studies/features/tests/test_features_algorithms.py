"""Tasks, algorithms and measures of the study, beside slow and obvious twins."""

import numpy as np
import pytest
from tolerances import ENGINES, ROUNDING

from ictd.context import Context
from ictd.transformer import Weights, estimates
from studies.features.algorithms import LSTD, blocks_of, fit, lstd, td, trimmed_mean, tuned_lstd
from studies.features.measures import block_coefficients, measures
from studies.features.tasks import held_out
from studies.features.tests.small import small

COLUMNS = ["equal", "weighted", "reversible"]


def drawn(size=5, columns="equal", **changes):
    return held_out(small(**changes), size, 0, "test", columns)


@pytest.mark.parametrize("env", ["boyan", "loop", "dense"])
def test_reversible_chains_have_the_same_stationary_distribution(env):
    own, reversible = (drawn(env=env, columns=columns).tasks for columns in ("weighted", "reversible"))
    np.testing.assert_allclose(reversible.stationary, own.stationary, rtol=1e-9)
    flow = reversible.stationary[..., None] * reversible.transition
    np.testing.assert_allclose(flow, flow.mT, atol=ROUNDING)
    assert not np.allclose(own.transition, reversible.transition)


def test_features_of_each_kind():
    assert (drawn(features="constant").phi[..., -1] == 1).all()
    phi = drawn(features="orthonormal", dimension=6).phi
    np.testing.assert_allclose(phi @ phi.mT, np.broadcast_to(np.eye(6), (5, 6, 6)), atol=ROUNDING)
    assert (drawn(2000).phi ** 2).sum(axis=-1).mean() == pytest.approx(1, abs=0.05)


@pytest.mark.parametrize("columns", COLUMNS)
def test_an_update_weighs_the_mean_td_error_and_a_covariance(columns):
    data, alpha, eta_m, eta_r = drawn(columns=columns), 0.7, 2.0, -0.4
    w, _ = td(data, blocks_of(data, "split"), alpha * np.array([1, eta_m, eta_r]), 4)
    weights = data.tasks.stationary if columns != "equal" else np.full((5, 6), 1 / 6)
    for i in range(5):
        phi, following, c = data.phi[i], data.tasks.transition[i] @ data.phi[i], weights[i]
        m, expected = c @ following, np.zeros(3)
        for _ in range(4):
            delta = data.tasks.reward[i] + (0.9 * following - phi) @ expected
            change = c @ (delta[:, None] * phi) + 0.9 * eta_m * (c @ delta) * m
            covariance = sum(c[s] * (delta[s] - c @ delta) * (following[s] - m) for s in range(6))
            expected = expected + alpha * (change + 0.9 * eta_r * covariance)
        np.testing.assert_allclose(w[i], expected, rtol=ENGINES, atol=ENGINES)


def test_a_layer_makes_the_update():
    data, alpha, eta = drawn(), 0.7, 0.4
    B = alpha * np.array([[-1, 1], [-eta, eta]])
    G = Context.enumerated(data.tasks.transition, data.tasks.reward, data.phi).gram_matrix(0.9)
    w, _ = td(data, blocks_of(data, "eta"), alpha * np.array([1, eta]), 4)
    weights = Weights(np.zeros(6), np.kron(B, np.eye(3)))
    np.testing.assert_allclose(estimates(weights, G, 4), w, rtol=ENGINES, atol=ENGINES)
    # 11' adds 1 to the multiples of I in `four`, and 6 squares in each of two blocks; alpha and eta leave it out.
    found = measures(weights.A + np.kron([[-1, 1], [0, 0]], np.ones((3, 3))))
    share = (2 * (alpha + 1) ** 2 + 2 * (alpha * eta) ** 2) / (2 * (alpha + 1) ** 2 + 2 * (alpha * eta) ** 2 + 4)
    assert [found[name] for name in ("alpha", "eta", "four")] == pytest.approx([alpha, eta, share])


def test_derivatives_are_those_of_small_differences():
    data, numbers = drawn(), np.array([0.5, 0.2, 0.1])
    blocks = blocks_of(data, "split")
    _, derivatives = td(data, blocks, numbers, 4)
    for k, step in enumerate(1e-5 * np.eye(3)):
        high, low = (td(data, blocks, numbers + sign * step, 4)[0] for sign in (1, -1))
        np.testing.assert_allclose(derivatives[k], (high - low) / 2e-5, rtol=1e-6, atol=1e-8)


def test_a_fit_is_no_worse_than_a_grid():
    data = drawn(40)
    blocks = blocks_of(data, "split")
    numbers = fit(data, blocks, 4)
    near = [numbers + 0.05 * np.array(step) - 0.05 for step in np.ndindex(3, 3, 3)]
    grid = [alpha * np.array([1, *etas]) for alpha in np.linspace(0.2, 4, 20) for etas in np.ndindex(4, 4)]
    least, *others = (data.msve(td(data, blocks, one, 4)[0]).mean() for one in [numbers, *near, *grid])
    assert least <= min(others) * (1 + 1e-6)


@pytest.mark.parametrize("columns", COLUMNS)
def test_lstd_solves_for_zero_mean_td_errors(columns):
    data = drawn(3, columns)
    for kind, x in (("features", 0.0), ("mean", 2.0), ("traces", 0.5)):
        (w,) = lstd(data, kind, x, [1e-12])
        for i in range(3):
            phi, p, c = data.phi[i], data.tasks.transition[i], data.weight[i]
            delta = data.tasks.reward[i] + (0.9 * p @ phi - phi) @ w[i]
            z = phi + x * c @ phi if kind == "mean" else phi
            if kind == "traces":
                delta = sum((0.9 * x) ** k * np.linalg.matrix_power(p, k) @ delta for k in range(300))
            assert np.abs((c * delta) @ z).max() < 1e-8


def test_tuning_takes_the_least_trimmed_mean(monkeypatch):
    xs, ridges = [0.0, 0.5, 5.0], [0.01, 0.1]
    monkeypatch.setitem(LSTD, "lstd_mean", ("mean", xs, ridges))
    data = drawn(40)
    scores = {(x, ridge): trimmed_mean(data.msve(lstd(data, "mean", x, [ridge])[0])) for x in xs for ridge in ridges}
    assert tuned_lstd("lstd_mean", data) == min(scores, key=scores.get)
    assert trimmed_mean(np.arange(40.0)) == np.arange(38).mean()
    assert (data.msve(np.full((40, 3), np.nan)) == np.inf).all()


def test_measures_of_known_weights():
    """Least squares over multiples of I and of 11' in each block of the first d columns."""
    A = np.random.default_rng(0).normal(size=(12, 12))
    basis = np.stack([np.eye(3).ravel(), np.ones(9)], axis=1)
    blocks = [A[3 * row : 3 * row + 3, :3] for row in range(4)]
    k = [-np.linalg.lstsq(basis, block.ravel())[0][0] for block in blocks]
    found, share = block_coefficients(A)
    np.testing.assert_allclose(found, k, rtol=ENGINES)
    assert share == pytest.approx(3 * np.square(k).sum() / np.square(blocks).sum())
