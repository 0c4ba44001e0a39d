"""Statistics over trials, beside their definitions."""

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


def test_rank_correlation():
    rng = np.random.default_rng(0)
    first, second = rng.normal(size=(4, 9)), rng.normal(size=9)
    for row, value in zip(first, rank_correlation(first, second), strict=True):
        assert value == pytest.approx(naive.rank_correlation(row, second))
    assert rank_correlation(np.ones(5), np.arange(5.0)) == 0
    np.testing.assert_array_equal(ranks(np.array([3.0, 1.0, 3.0])), [1.5, 0, 1.5])
    assert rank_correlation(np.array([1.0, 2.0, np.nan]), np.arange(3.0)) == 1


def test_correlations_with_a_constant_are_zero():
    rows = np.array([[1.0, 1, 1], [1, 2, 4]])
    np.testing.assert_allclose(correlation(rows, np.array([0.0, 1, 3])), [0, 1])
    np.testing.assert_allclose(correlation(rows, np.ones(3)), [0, 0])


def test_standard_errors():
    samples = np.random.default_rng(1).normal(2.0, 3.0, 400)
    assert standard_error(samples) == pytest.approx(samples.std(ddof=1) / 20)
    np.testing.assert_allclose(standard_error(np.array([[1.0, 2], [3, 2]])), [1, 0])
    assert standard_error(np.array([5.0])) == 0


def test_bootstrap_is_10_000_draws_with_replacement():
    samples = np.random.default_rng(3).normal(size=(40, 2))
    taken = np.random.default_rng(0).integers(40, size=(10_000, 40))
    means = np.array([samples[draw].mean(axis=0) for draw in taken])
    np.testing.assert_allclose(bootstrap_means(samples), means, atol=ROUNDING)
    np.testing.assert_allclose(bootstrap_means(samples, 9), means[:9], atol=ROUNDING)
    low, high = bootstrap_interval(samples[:, 0])
    assert (low, high) == interval(means[:, 0])
    assert (means[:, 0] < low).mean() == pytest.approx(0.025, abs=0.001)
    assert (means[:, 0] > high).mean() == pytest.approx(0.025, abs=0.001)


def test_the_share_of_wrong_discoveries_is_controlled():
    """Beside the definition, for every number of rejections; and that it is kept where every hypothesis is true."""
    rng, level = np.random.default_rng(0), 0.1
    for size in (1, 2, 7, 30):
        p = rng.uniform(size=size) ** rng.integers(1, 4, size)
        most = max(k for k in range(size + 1) if not k or np.sort(p)[k - 1] <= level * k / size)
        assert discoveries(p, level).tolist() == [bool(np.sum(p <= one) <= most) for one in p]
    wrong = np.mean([discoveries(rng.uniform(size=20), level).any() for _ in range(2000)])
    assert wrong < level + 0.03
