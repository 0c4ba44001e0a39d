"""Measures of weights beside theta^TD, and of the weights of two algorithms beside each other."""

import numpy as np
import pytest
from tolerances import ROUNDING

import ictd
from ictd.anatomy import agreement_measures, pattern_measures, pattern_shares, residual


def test_measures_of_theta_td_itself():
    theta = ictd.theta_td(4)
    measures = pattern_measures(ictd.Weights(theta.u, 2.0 * theta.A))
    expected = {"cosine": 1, "cosine_top": 1, "cosine_A11": 1, "cosine_A12": 1, "alpha": 0.5, "diagonal_signs": 1}
    expected |= {"share_A11": 0.5, "share_A12": 0.5, "share_A21": 0, "share_A22": 0, "largest_u": 0}
    assert {name: value.item() for name, value in measures.items()} == pytest.approx(expected)
    shares = {"pattern": 1, "pattern_A11": 1, "pattern_A12": 1, "pattern_A21": 0, "pattern_A22": 0}
    assert {name: value.item() for name, value in pattern_shares(theta.A).items()} == pytest.approx(shares)
    shares |= dict.fromkeys(("pattern", "pattern_A11", "pattern_A12"), 0)
    assert {name: value.item() for name, value in pattern_shares(-theta.A).items()} == pytest.approx(shares)


def test_measures_are_their_definitions():
    A = ictd.theta_td(2).A.copy()
    A[0, 0], A[2:, :2], A[2, 3], A[1, 3] = 3.0, 0.5, 0.2, 2.0
    measures = pattern_measures(ictd.Weights(np.array([0.1, -0.7, 0, 0]), A))
    squares = {"A11": 9 + 1, "A12": 1 + 4, "A21": 1, "A22": 0.04}
    expected = {f"share_{name}": value / sum(squares.values()) for name, value in squares.items()}
    expected |= {"diagonal_signs": 0.75, "largest_u": 0.7, "alpha": (-3 + 1 + 1 + 2) / 4 / 2}
    expected["cosine_A11"] = (-3 + 1) / np.sqrt(10 * 2)
    expected["cosine_A12"] = (1 + 2) / np.sqrt(5 * 2)
    expected["cosine_top"] = (-3 + 1 + 1 + 2) / np.sqrt(15 * 4)
    expected["cosine"] = (-3 + 1 + 1 + 2) / np.sqrt(sum(squares.values()) * 4)
    assert {name: value.item() for name, value in measures.items()} == pytest.approx(expected)
    shares = pattern_shares(A)
    expected = {"pattern": expected["cosine"] ** 2, "pattern_A11": 0, "pattern_A12": 0.9}
    expected |= {"pattern_A21": 1 / 15, "pattern_A22": 0.04 / 15}
    assert {name: value.item() for name, value in shares.items()} == pytest.approx(expected)


def test_residual_is_orthogonal_to_theta_td():
    A, theta = np.random.default_rng(0).normal(size=(5, 6, 6)), ictd.theta_td(3).A
    assert np.abs((residual(A) * theta).sum(axis=(1, 2))).max() < ROUNDING
    assert np.abs(residual(4.2 * theta)).max() < ROUNDING


def test_agreement_measures():
    A = np.random.default_rng(0).normal(size=(6, 6))
    same, opposite, twice = (agreement_measures(A, factor * A) for factor in (1, -1, 2))
    assert same["correlation"] == pytest.approx(1) and same["distance"] == 0
    assert opposite["correlation"] == pytest.approx(-1) and opposite["distance"] == pytest.approx(2)
    assert twice["correlation"] == pytest.approx(1) and twice["distance"] == pytest.approx(2 / 3)
    shifted = agreement_measures(A, A + 50 * ictd.theta_td(3).A)
    assert shifted["residual_correlation"] == pytest.approx(1) and shifted["correlation"] < 0.9
