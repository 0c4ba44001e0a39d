"""Statistics over trials, and log-spaced grids.  A sample is the result of one trial, unless stated otherwise."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

NORMAL = NormalDist()
# Estimates whose relative difference is smaller count as equal.
ROUNDING = 1e-12
# Number of bootstrap resamples.
RESAMPLES = 10_000
# Number of parts of the resamples that are computed one after the other, so that arrays stay in the processor's cache.
BLOCKS = 10


@cache
def _shares(size: int) -> np.ndarray:
    """Shares (RESAMPLES, size) of the samples in bootstrap resamples; every call returns the same array."""
    drawn = np.random.default_rng(0).integers(size, size=(RESAMPLES, size))
    index = drawn + size * np.arange(RESAMPLES)[:, None]  # One bin for each resample and sample.
    return np.bincount(index.ravel(), minlength=RESAMPLES * size).reshape(RESAMPLES, size) / size


class Estimate(NamedTuple):
    """An estimate with the lower and the upper end of its 95% confidence interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Bootstrap:
    """An estimate with its bootstrap distribution, from which BCa confidence intervals follow.

    A nonlinear statistic of a mean, such as a squared cosine, is biased because the mean has noise, and a resample has
    noise of twice this variance.  The BCa interval (bias-corrected and accelerated) accounts for this bias and for
    skewness, and is invariant under monotone transformations of the statistic.  Source: Efron, Better
    Bootstrap Confidence Intervals, Journal of the American Statistical Association 82(397), 1987.

    Parameters
    ----------
    value : float, the estimate
    resampled : (RESAMPLES,) array, the estimate from each resample
    left_out : (N,) array, for each sample the estimate from all other samples; NaN if there is a single sample
    """

    value: float
    resampled: np.ndarray
    left_out: np.ndarray

    @property
    def bias(self) -> float:
        """Normal quantile z_0 of the share of resampled estimates below the estimate."""
        return NORMAL.inv_cdf(self._share_below(self.value))

    @property
    def acceleration(self) -> float:
        """Skewness a of the jackknife estimates ``left_out``; zero if they are all equal."""
        deviation = self.left_out.mean() - self.left_out
        squares = (deviation**2).sum()
        return float((deviation**3).sum() / (6 * squares**1.5)) if squares > 0 else 0.0

    def estimate(self) -> Estimate:
        """The estimate with its 95% BCa interval.

        The ends are NaN for a single sample, or if an estimate is not finite.
        """
        if not (np.isfinite(self.value) and np.isfinite(self.resampled).all() and np.isfinite(self.left_out).all()):
            return Estimate(float(self.value), np.nan, np.nan)
        levels = []
        for level in (0.025, 0.975):
            z = self.bias + NORMAL.inv_cdf(level)
            levels.append(NORMAL.cdf(self.bias + z / (1 - self.acceleration * z)))
        low, high = np.quantile(self.resampled, levels)
        return Estimate(float(self.value), float(low), float(high))

    def level_below(self, threshold: float) -> float:
        """The p-value of the hypothesis that the estimated quantity is at most the threshold.

        At this level the lower end of the one-sided BCa interval equals the threshold.
        """
        z = NORMAL.inv_cdf(self._share_below(threshold)) - self.bias
        scale = 1 + self.acceleration * z
        z = z / scale if scale > 0 else np.copysign(np.inf, z)
        return NORMAL.cdf(z - self.bias)

    def _share_below(self, value: float) -> float:
        """Share of resampled estimates below a value, clipped so that its normal quantile is finite.

        An estimate that equals the value counts half.  Estimates that differ only by rounding count as equal, because a
        resample that has each sample once should have exactly the original estimate.
        """
        rounding = ROUNDING * np.abs(self.resampled).max()
        below = (self.resampled < value - rounding).mean() + (np.abs(self.resampled - value) <= rounding).mean() / 2
        return float(np.clip(below, 0.5 / RESAMPLES, 1 - 0.5 / RESAMPLES))


def bootstrap(statistics: Callable[..., dict[str, np.ndarray]], *samples: np.ndarray) -> dict[str, Bootstrap]:
    """Bootstrap statistics of the means of samples; each resample draws the same samples from all arrays.

    Parameters
    ----------
    statistics : function that takes K arrays of means, (R, ...) each, and returns a dict of (R,) arrays
    *samples : K arrays (N, ...), with N the number of samples

    Returns
    -------
    dict of Bootstrap, with the names of the statistics as keys
    """
    size = len(samples[0])
    estimates = statistics(*(array.mean(axis=0, keepdims=True) for array in samples))
    means = (np.split(np.tensordot(_shares(size), array, axes=1), BLOCKS) for array in samples)
    blocks = [statistics(*block) for block in zip(*means, strict=True)]
    resampled = {name: np.concatenate([block[name] for block in blocks]) for name in estimates}
    if size > 1:
        left_out = statistics(*((size * array.mean(axis=0) - array) / (size - 1) for array in samples))
    else:
        left_out = {name: np.array([np.nan]) for name in estimates}
    return {name: Bootstrap(estimates[name][0], resampled[name], left_out[name]) for name in estimates}


def bootstrap_mean(samples: np.ndarray) -> Bootstrap:
    """Bootstrap of the mean of samples (N,)."""
    return bootstrap(lambda means: {"mean": means}, np.asarray(samples, dtype=float))["mean"]


def interval_ends(measures: Callable[..., dict[str, np.ndarray]], *samples: np.ndarray) -> dict[str, float]:
    """Ends of 95% BCa intervals of measures of the means of samples, by ``NAME_low`` and ``NAME_high``."""
    ends = {}
    for name, resampled in bootstrap(measures, *samples).items():
        _, ends[f"{name}_low"], ends[f"{name}_high"] = resampled.estimate()
    return ends


def proportion(successes: int, trials: int) -> Estimate:
    """Share of successes in trials, with its exact 95% interval.

    At the lower end, at least this number of successes has probability 2.5%; at the upper end, at most this number has
    probability 2.5%.  Source: Clopper and Pearson, Biometrika 26(4), 1934.
    """
    low = _root(lambda share: _at_least(successes, trials, share) - 0.025) if successes > 0 else 0.0
    high = _root(lambda share: _at_least(successes + 1, trials, share) - 0.975) if successes < trials else 1.0
    return Estimate(successes / trials, low, high)


def _at_least(successes: int, trials: int, share: float) -> float:
    """Probability of at least ``successes`` successes in independent trials that succeed with probability ``share``."""
    counts = range(successes, trials + 1)
    return sum(math.comb(trials, count) * share**count * (1 - share) ** (trials - count) for count in counts)


def _root(increasing: Callable[[float], float]) -> float:
    """Find the root of an increasing function in [0, 1] by bisection."""
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if increasing(middle) > 0 else (middle, high)
    return (low + high) / 2


def discoveries(p: np.ndarray, level: float) -> np.ndarray:
    """Select the hypotheses to reject at a false discovery rate.

    Let k be the largest number such that the k-th smallest p-value is at most level k / m.  The hypotheses with the k
    smallest p-values are rejected.  Source: Benjamini and Hochberg, Journal of the Royal Statistical Society B 57(1),
    1995.

    Parameters
    ----------
    p : (m,) array of p-values
    level : float, the false discovery rate

    Returns
    -------
    rejected : (m,) bool array
    """
    order = np.argsort(p, kind="stable")
    below = np.nonzero(p[order] <= level * np.arange(1, len(p) + 1) / len(p))[0]
    rejected = np.zeros(len(p), dtype=bool)
    rejected[order[: below.max(initial=-1) + 1]] = True
    return rejected


def ranks(values: np.ndarray) -> np.ndarray:
    """Ranks from 0 along the last axis; equal values get the mean of their ranks, and NaN counts as infinite."""
    values = np.where(np.isnan(values), np.inf, values)
    below = (values[..., None, :] < values[..., :, None]).sum(axis=-1)
    equal = (values[..., None, :] == values[..., :, None]).sum(axis=-1)
    return below + (equal - 1) / 2


def correlation(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Pearson's correlation along the last axis; zero where one of the arrays is constant."""
    first = first - first.mean(axis=-1, keepdims=True)
    second = second - second.mean(axis=-1, keepdims=True)
    norms = np.sqrt((first**2).sum(axis=-1) * (second**2).sum(axis=-1))
    return np.divide((first * second).sum(axis=-1), norms, out=np.zeros(norms.shape), where=norms != 0)


def rank_correlation(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Spearman's rank correlation along the last axis; zero where one of the arrays is constant."""
    return correlation(ranks(first), ranks(second))


def standard_error(samples: np.ndarray) -> np.ndarray:
    """Standard error of the mean along the first axis; zero for a single sample."""
    count = len(samples)
    return samples.std(axis=0, ddof=1 if count > 1 else 0) / np.sqrt(count)


def log_spaced(smallest: float, largest: float, number: int) -> np.ndarray:
    """Make a log-spaced grid (number,) of candidates for a parameter, such as a step size."""
    return np.geomspace(smallest, largest, number)


def mean_score(msve: np.ndarray, axis: int | tuple[int, ...] = -1) -> np.ndarray:
    """Mean of MSVE over axes, by which candidates are compared; NaN, from an overflow, counts as infinite."""
    means = msve.mean(axis=axis)
    return np.where(np.isnan(means), np.inf, means)
