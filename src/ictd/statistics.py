"""Statistics over trials, and log-spaced grids.  A sample is a seed, unless stated otherwise."""

from functools import cache

import numpy as np

# Number of bootstrap resamples.
RESAMPLES = 10_000


@cache
def _shares(size: int) -> np.ndarray:
    """Shares (RESAMPLES, size) of ``size`` samples in bootstrap resamples, the same at every call."""
    drawn = np.random.default_rng(0).integers(size, size=(RESAMPLES, size))
    index = drawn + size * np.arange(RESAMPLES)[:, None]  # One bin for each resample and sample.
    return np.bincount(index.ravel(), minlength=RESAMPLES * size).reshape(RESAMPLES, size) / size


def bootstrap_means(samples: np.ndarray, resamples: int = RESAMPLES) -> np.ndarray:
    """Means (resamples, ...) of bootstrap resamples of samples (N, ...), the same draws at every call."""
    return np.tensordot(_shares(len(samples))[:resamples], samples, axes=1)


def interval(resampled: np.ndarray) -> tuple[float, float]:
    """95% percentile interval of a statistic (R,) over R resamples."""
    low, high = np.quantile(resampled, [0.025, 0.975])
    return float(low), float(high)


def bootstrap_interval(samples: np.ndarray) -> tuple[float, float]:
    """95% percentile bootstrap interval of the mean of samples (N,)."""
    return interval(bootstrap_means(samples))


def discoveries(p: np.ndarray, level: float) -> np.ndarray:
    """Select the hypotheses to reject at a false discovery rate.

    Rejects the hypotheses with the k smallest p-values, where k is the largest number such that the k-th smallest
    p-value is at most level k / m.  Source: Benjamini and Hochberg, Journal of the Royal Statistical Society B 57(1),
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
    """Ranks from 0 along the last axis; ties get the mean of their ranks, and NaN counts as infinite."""
    values = np.where(np.isnan(values), np.inf, values)
    below = (values[..., None, :] < values[..., :, None]).sum(axis=-1)
    equal = (values[..., None, :] == values[..., :, None]).sum(axis=-1)
    return below + (equal - 1) / 2


def correlation(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Pearson's correlation along the last axis; zero if one array is constant there."""
    first = first - first.mean(axis=-1, keepdims=True)
    second = second - second.mean(axis=-1, keepdims=True)
    norms = np.sqrt((first**2).sum(axis=-1) * (second**2).sum(axis=-1))
    return np.divide((first * second).sum(axis=-1), norms, out=np.zeros(norms.shape), where=norms != 0)


def rank_correlation(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Spearman's rank correlation along the last axis; zero if one array is constant there."""
    return correlation(ranks(first), ranks(second))


def standard_error(samples: np.ndarray) -> np.ndarray:
    """Standard error of the mean along the first axis; zero for a single sample."""
    count = len(samples)
    return samples.std(axis=0, ddof=1 if count > 1 else 0) / np.sqrt(count)


def log_spaced(smallest: float, largest: float, number: int) -> np.ndarray:
    """Make a log-spaced grid (number,) of candidates for a parameter, such as a step size."""
    return np.geomspace(smallest, largest, number)


def log_spaced_integers(largest: int, number: int) -> np.ndarray:
    """Make at most ``number`` log-spaced integers from 1 to ``largest``, ascending, as an int array.

    With ``number`` 1 there is only ``largest``.
    """
    return np.unique(np.geomspace(largest, 1, number).round().astype(np.int64))
