"""Statistics over trials."""

import naive
import numpy as np
import pytest

from ictd.statistics import (
    bootstrap,
    bootstrap_mean,
    correlation,
    discoveries,
    proportion,
    rank_correlation,
    ranks,
    standard_error,
)


@pytest.mark.parametrize(
    ("values", "expected"), [([3.0, 1.0, 3.0], [1.5, 0, 1.5]), ([1.0, np.nan, 2.0], [0, 2, 1]), ([5.0], [0])]
)
def test_ranks_of_ties_and_of_values_that_are_not_finite(values, expected):
    np.testing.assert_array_equal(ranks(np.array(values)), expected)


def test_correlations_of_known_cases():
    """Correlations with a constant are zero."""
    rows = np.array([[1.0, 1, 1], [1, 2, 4]])
    np.testing.assert_allclose(correlation(rows, np.array([0.0, 1, 3])), [0, 1])
    np.testing.assert_allclose(correlation(rows, np.ones(3)), [0, 0])
    np.testing.assert_allclose(rank_correlation(rows, np.array([0.0, 1, 9])), [0, 1])
    assert rank_correlation(np.array([1.0, 9.0, np.nan]), np.array([0.5, 1, 9])) == 1


def test_standard_errors():
    samples = np.random.default_rng(1).normal(2.0, 3.0, 400)
    assert standard_error(samples) == pytest.approx(samples.std(ddof=1) / 20)
    np.testing.assert_allclose(standard_error(np.array([[1.0, 2], [3, 2]])), [1, 0])
    assert standard_error(np.array([5.0])) == 0


def squared_cosine(means):
    """Squared cosine of vectors (..., k) to the first axis."""
    return means[..., 0] ** 2 / (means**2).sum(axis=-1)


@pytest.mark.usefixtures("few_resamples")
@pytest.mark.parametrize("size", [3, 20])
def test_bca_intervals_equal_naive(size):
    """Of a statistic that does not depend on the scale of the samples, and of one that does, with large values."""
    rng, statistics = np.random.default_rng(size), (squared_cosine, lambda means: 1e6 * (means[..., 0] + 3) ** 2)
    for samples in (rng.normal([2, 0, 0], size=(size, 3)), rng.lognormal(size=(size, 3))):
        made = bootstrap(lambda means: dict(enumerate(of(means) for of in statistics)), samples)
        for of, found in zip(statistics, made.values(), strict=True):
            expected = of(samples.mean(axis=0)), *naive.bca_interval(samples, of, 1000)
            assert found.estimate() == pytest.approx(expected, rel=1e-9)
            if size == 20:
                # The threshold at an end of the 95% interval has the level 2.5%.
                ends = found.estimate()[1:]
                assert [*map(found.level_below, ends)] == pytest.approx([0.025, 0.975], abs=2e-3)


def test_intervals_of_degenerate_samples():
    constant = bootstrap_mean(np.full(5, 3.0))
    assert constant.estimate() == pytest.approx((3, 3, 3))
    # Levels are not 0 or 1, so that their quantiles are finite.
    assert [constant.level_below(0), 1 - constant.level_below(9)] == pytest.approx([0.5e-4] * 2)
    for samples in (np.array([1.0]), np.array([1.0, np.nan, 2.0]), np.array([1.0, np.inf, 2.0])):
        with np.errstate(invalid="ignore"):
            assert np.isnan(bootstrap_mean(samples).estimate()[1:]).all()


@pytest.mark.parametrize(
    ("successes", "trials", "low", "high"),
    # From the quantiles of the beta distribution.
    [(20, 20, 0.8315665, 1), (0, 20, 0, 0.1684335), (17, 20, 0.6210732, 0.9679291), (1, 2, 0.01257912, 0.98742088)],
)
def test_proportions_have_exact_intervals(successes, trials, low, high):
    assert proportion(successes, trials) == pytest.approx((successes / trials, low, high), rel=1e-6, abs=0)


@pytest.mark.parametrize("size", [1, 7, 30])
def test_discoveries_equal_naive(size):
    rng = np.random.default_rng(size)
    for power in (1, 3, 9):
        p = rng.uniform(size=size) ** power
        assert discoveries(p, 0.1).tolist() == naive.discoveries(p, 0.1)
    assert discoveries(np.array([0.1, 0.05]), 0.1).all()
