"""Measures of weights in comparison with theta^TD, and directions of weights that change no output."""

import naive
import numpy as np
import pytest
from tolerances import ROUNDING

import ictd
from ictd.evaluation import draw_unseen_tasks
from ictd.prompt import ENUMERATED
from ictd.transformer import estimates
from ictd.weight_measures import (
    agreement_measures,
    pattern_measures,
    pattern_shares,
    preconditioner,
    project_identifiable,
    representative_shares,
    share_outside,
    shortest_identifiable,
    squared_norm,
    unidentifiable_direction,
)


def items(measures):
    """Measures of a single matrix as numbers."""
    return {name: value.item() for name, value in measures.items()}


def test_pattern_measures_equal_their_definitions():
    A = ictd.theta_td(2).A.copy()
    A[0, 0], A[2:, :2], A[2, 3], A[0, 2], A[1, 3] = 3.0, 0.5, 0.2, 0.0, 4.0
    u = np.array([0.1, -0.7, 0, 0])
    squares = {"A11": 9 + 1, "A12": 16, "A21": 1, "A22": 0.04}
    total, along = sum(squares.values()), -3 + 1 + 0 + 4
    expected = {f"share_{name}": square / total for name, square in squares.items()}
    expected |= {"bootstraps": 4 / (-3 + 1), "largest_u": 0.7, "alpha": along / 4 / 2}
    expected |= {"cosine": along / np.sqrt(total * 4), "cosine_top": along / np.sqrt(26 * 4)}
    expected |= {"cosine_A11": (-3 + 1) / np.sqrt(10 * 2), "cosine_A12": 4 / np.sqrt(16 * 2)}
    assert items(pattern_measures(ictd.Weights(u, A))) == pytest.approx(expected)
    shares = {"pattern": along**2 / total / 4, "pattern_A11": 0, "pattern_A12": 0.5}
    shares |= {"pattern_A21": 1 / 26, "pattern_A22": 0.04 / 26, "bootstraps": -2}
    assert items(pattern_shares(A)) == pytest.approx(shares)
    shares |= {"pattern": 0, "pattern_A11": 4 / 20, "pattern_A12": 0}
    assert items(pattern_shares(-A)) == pytest.approx(shares)


def test_measures_of_several_weights_are_those_of_each():
    weights = naive.several_weights(3)
    together = pattern_measures(weights[:, None]) | pattern_shares(weights.A[:, None])
    for k in range(3):
        alone = pattern_measures(weights[k]) | pattern_shares(weights.A[k])
        for name, values in together.items():
            assert values[k, 0] == pytest.approx(alone[name], abs=ROUNDING), name


@pytest.mark.parametrize(("next_state", "pattern"), [(1.0, 1.0), (0.1, 0.599), (1e-9, 0.5)])
def test_weights_that_hardly_bootstrap_have_half_of_the_pattern(next_state, pattern):
    A = ictd.theta_td(3).A * np.where(np.arange(6) < 3, 1, next_state)
    shares = pattern_shares(A)
    assert (shares["bootstraps"], shares["pattern"]) == pytest.approx((next_state, pattern), abs=1e-3)


def test_agreement_measures_equal_their_definitions():
    td, mc = np.random.default_rng(1).normal(size=(2, 3, 6, 6))
    theta = ictd.theta_td(3).A
    mc = mc + 2 * theta
    measures = {name: each[0] for name, each in agreement_measures(td[None], mc[None]).items()}
    for k in range(3):
        correlation = np.corrcoef(td[k].ravel(), mc[k].ravel())[0, 1]
        left = [one[k] - (one[k] * theta).sum() / 6 * theta for one in (td, mc)]
        norms = np.linalg.norm(td[k]), np.linalg.norm(mc[k])
        assert measures["correlation"][k] == pytest.approx(correlation)
        assert measures["residual_correlation"][k] == pytest.approx(np.corrcoef(*map(np.ravel, left))[0, 1])
        assert measures["distance"][k] == pytest.approx(np.linalg.norm(td[k] - mc[k]) / np.mean(norms))


@pytest.mark.parametrize(("env", "states", "discount"), [("boyan", 5, 0.9), ("loop", 4, 0.5)])
def test_unidentifiable_directions_change_no_output(env, states, discount):
    data = draw_unseen_tasks(1, states, 5, 12, discount, env)
    weights, rng = naive.several_weights(states), np.random.default_rng(0)
    a = unidentifiable_direction(states, discount)
    added = ictd.Weights(weights.u + 3 * a, weights.A + a[:, None] * rng.normal(size=2 * states))
    from_the_right = ictd.Weights(weights.u, weights.A + rng.normal(size=(2 * states, 1)) * a)
    projected = project_identifiable(weights, discount)
    for gram in (data.gram_matrix(ENUMERATED), data.gram_matrix(12)):
        expected = estimates(weights, gram, 5)
        largest = np.abs(expected).max()
        for same in (added, projected, project_identifiable(added, discount)):
            np.testing.assert_allclose(estimates(same, gram, 5), expected, atol=1e-10 * largest)
        assert np.abs(estimates(from_the_right, gram, 5) - expected).max() > 0.01 * largest
    np.testing.assert_allclose(project_identifiable(added, discount).A, projected.A, atol=ROUNDING * 10)
    assert np.abs(projected.u[:, states:].sum(axis=1)).max() < ROUNDING * 10
    assert np.abs(projected.A[:, states:].sum(axis=1)).max() < ROUNDING * 10


@pytest.mark.parametrize(("env", "states", "count"), [("boyan", 2, 4), ("boyan", 3, 6), ("loop", 5, 10)])
def test_there_are_no_other_unidentifiable_directions(env, states, count):
    tasks = ictd.sample_tasks(env, states, 40, ictd.generator(2, env, states, "tasks"))
    basis = np.eye(4 * states**2).reshape(-1, 2 * states, 2 * states)
    contexts = ictd.enumerated_columns(tasks.transition, tasks.reward, 0.9)[:, :-1]
    products = []
    for X in contexts:
        XA = X.T @ basis
        products += [(XA @ X).reshape(len(basis), -1), XA[:, :, :states].reshape(len(basis), -1)]
    of_A = np.linalg.svd(np.concatenate(products, axis=1), compute_uv=False)
    assert (of_A < 1e-10 * of_A[0]).sum() == count
    of_u = np.linalg.svd(np.concatenate(contexts, axis=1), compute_uv=False)
    assert (of_u < 1e-10 * of_u[0]).sum() == 1


def test_shares_of_other_representatives():
    rng = np.random.default_rng(1)
    a, theta = unidentifiable_direction(3, 0.9), ictd.theta_td(3).A
    A = np.stack([2 * theta + np.outer(a, rng.normal(size=6)), -theta])
    # Of the matrices with the same outputs, the one that is orthogonal to the direction has the least norm.
    np.testing.assert_allclose(a @ shortest_identifiable(A, 0.9), 0, atol=ROUNDING)
    found = representative_shares(A[:, None], 0.9)
    np.testing.assert_allclose(found["pattern_shortest"][:, 0], [1, 0], atol=ROUNDING)
    cosine = np.vdot(A[0], theta) / np.linalg.norm(A[0]) / np.linalg.norm(theta)
    np.testing.assert_allclose(found["pattern_full"][:, 0], [cosine**2, 0], rtol=ROUNDING)


def test_the_share_outside_the_family_is_that_of_the_orthogonal_part():
    """K [-I, I] and N [I, I] are orthogonal."""
    K, N = np.random.default_rng(0).normal(size=(2, 6, 3))
    A = np.hstack([N - K, N + K])
    np.testing.assert_allclose(preconditioner(A), K, atol=ROUNDING)
    assert share_outside(A) == pytest.approx(squared_norm(N) / (squared_norm(K) + squared_norm(N)))
