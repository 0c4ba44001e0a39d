"""Statistics over trials."""

import naive
import numpy as np
import pytest
from tolerances import ROUNDING

from ictd.statistics import (
    bootstrap_interval,
    bootstrap_means,
    correlation,
    discoveries,
    interval,
    rank_correlation,
    ranks,
    standard_error,
)


def test_rank_correlations_equal_naive():
    rng = np.random.default_rng(0)
    first, second = rng.normal(size=(4, 9)), rng.normal(size=9)
    for row, value in zip(first, rank_correlation(first, second), strict=True):
        assert value == pytest.approx(naive.rank_correlation(row, second))


@pytest.mark.parametrize(
    ("values", "expected"), [([3.0, 1.0, 3.0], [1.5, 0, 1.5]), ([1.0, np.nan, 2.0], [0, 2, 1]), ([5.0], [0])]
)
def test_ranks_of_ties_and_of_values_that_are_not_finite(values, expected):
    np.testing.assert_array_equal(ranks(np.array(values)), expected)


def test_correlations_of_known_cases():
    """Those with a constant are zero."""
    rows = np.array([[1.0, 1, 1], [1, 2, 4]])
    np.testing.assert_allclose(correlation(rows, np.array([0.0, 1, 3])), [0, 1])
    np.testing.assert_allclose(correlation(rows, np.ones(3)), [0, 0])
    assert rank_correlation(np.ones(5), np.arange(5.0)) == 0
    assert rank_correlation(np.array([1.0, 2.0, np.nan]), np.arange(3.0)) == 1


def test_standard_errors():
    samples = np.random.default_rng(1).normal(2.0, 3.0, 400)
    assert standard_error(samples) == pytest.approx(samples.std(ddof=1) / 20)
    np.testing.assert_allclose(standard_error(np.array([[1.0, 2], [3, 2]])), [1, 0])
    assert standard_error(np.array([5.0])) == 0


def test_the_bootstrap_is_10_000_draws_with_replacement():
    samples = np.random.default_rng(3).normal(size=(40, 2))
    drawn = np.random.default_rng(0).integers(40, size=(10_000, 40))
    means = np.array([samples[draw].mean(axis=0) for draw in drawn])
    np.testing.assert_allclose(bootstrap_means(samples), means, atol=ROUNDING)
    np.testing.assert_allclose(bootstrap_means(samples, 9), means[:9], atol=ROUNDING)
    low, high = bootstrap_interval(samples[:, 0])
    assert (low, high) == interval(means[:, 0])
    assert (means[:, 0] < low).mean() == pytest.approx(0.025, abs=0.001)
    assert (means[:, 0] > high).mean() == pytest.approx(0.025, abs=0.001)


@pytest.mark.parametrize("size", [1, 2, 7, 30])
def test_discoveries_equal_naive(size):
    rng = np.random.default_rng(size)
    for power in (1, 2, 3):
        p = rng.uniform(size=size) ** power
        assert discoveries(p, 0.1).tolist() == naive.discoveries(p, 0.1)


def test_the_share_of_false_discoveries_is_controlled():
    """Where every hypothesis is true."""
    rng, level = np.random.default_rng(0), 0.1
    false = np.mean([discoveries(rng.uniform(size=20), level).any() for _ in range(2000)])
    assert false < level + 0.03
