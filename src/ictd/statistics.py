"""Statistics over trials; the seed is the unit, where no other is named."""

from functools import cache

import numpy as np

RESAMPLES = 10_000


@cache
def _shares(size: int) -> np.ndarray:
    """Share (RESAMPLES, size) of each of some samples in each resample, the same at every call."""
    taken = np.random.default_rng(0).integers(size, size=(RESAMPLES, size)) + size * np.arange(RESAMPLES)[:, None]
    return np.bincount(taken.ravel(), minlength=RESAMPLES * size).reshape(RESAMPLES, size) / size


def bootstrap_means(samples: np.ndarray, resamples: int = RESAMPLES) -> np.ndarray:
    """Means (resamples, ...) of samples (N, ...) drawn with replacement, the same draws at every call."""
    return np.tensordot(_shares(len(samples))[:resamples], samples, axes=1)


def interval(resampled: np.ndarray) -> tuple[float, float]:
    """95% percentile interval of a statistic (R,) of resamples."""
    low, high = np.quantile(resampled, [0.025, 0.975])
    return float(low), float(high)


def bootstrap_interval(samples: np.ndarray) -> tuple[float, float]:
    """95% percentile bootstrap interval of the mean of one-dimensional samples."""
    return interval(bootstrap_means(samples))


def discoveries(p: np.ndarray, level: float) -> np.ndarray:
    """Which of m hypotheses are rejected while the expected share of wrong ones among them stays below a level.

    Benjamini and Hochberg, Journal of the Royal Statistical Society B 57(1), 1995: all up to the largest k whose k-th
    smallest p-value is at most level k / m.  ``p`` is (m,); the result is (m,) bool.
    """
    order = np.argsort(p, kind="stable")
    below = np.nonzero(p[order] <= level * np.arange(1, len(p) + 1) / len(p))[0]
    found = np.zeros(len(p), dtype=bool)
    found[order[: below.max(initial=-1) + 1]] = True
    return found


def ranks(values: np.ndarray) -> np.ndarray:
    """Ranks from 0 along the last axis; ties share the mean of their ranks, and NaN counts as infinite."""
    values = np.where(np.isnan(values), np.inf, values)
    below = (values[..., None, :] < values[..., :, None]).sum(axis=-1)
    equal = (values[..., None, :] == values[..., :, None]).sum(axis=-1)
    return below + (equal - 1) / 2


def correlation(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Pearson's correlation along the last axis; zero where one side is constant."""
    first = first - first.mean(axis=-1, keepdims=True)
    second = second - second.mean(axis=-1, keepdims=True)
    norms = np.sqrt((first**2).sum(axis=-1) * (second**2).sum(axis=-1))
    return np.divide((first * second).sum(axis=-1), norms, out=np.zeros(norms.shape), where=norms != 0)


def rank_correlation(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Spearman's rank correlation along the last axis; zero where one side is constant."""
    return correlation(ranks(first), ranks(second))


def standard_error(samples: np.ndarray) -> np.ndarray:
    """Standard error of the mean along the first axis; zero for a single sample."""
    count = len(samples)
    return samples.std(axis=0, ddof=1 if count > 1 else 0) / np.sqrt(count)
