"""Statistics over trials; the seed is the unit."""

import numpy as np


def bootstrap_interval(
    samples: np.ndarray, level: float = 0.95, resamples: int = 10_000, seed: int = 0
) -> tuple[float, float]:
    """Percentile bootstrap interval of the mean of one-dimensional samples, the same at every call."""
    rng = np.random.default_rng(seed)
    means = np.asarray(samples)[rng.integers(len(samples), size=(resamples, len(samples)))].mean(axis=1)
    low, high = np.quantile(means, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def ranks(values: np.ndarray) -> np.ndarray:
    """Ranks from 0 along the last axis; ties share the mean of their ranks."""
    below = (values[..., None, :] < values[..., :, None]).sum(axis=-1)
    equal = (values[..., None, :] == values[..., :, None]).sum(axis=-1)
    return below + (equal - 1) / 2


def rank_correlation(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Spearman's rank correlation along the last axis; zero where one side is constant."""
    first, second = ranks(first), ranks(second)
    first = first - first.mean(axis=-1, keepdims=True)
    second = second - second.mean(axis=-1, keepdims=True)
    norms = np.sqrt((first**2).sum(axis=-1) * (second**2).sum(axis=-1))
    return np.divide((first * second).sum(axis=-1), norms, out=np.zeros(norms.shape), where=norms > 0)


def standard_error(samples: np.ndarray, axis: int = 0) -> np.ndarray:
    """Standard error of the mean along an axis; zero for a single sample."""
    count = samples.shape[axis]
    return samples.std(axis=axis, ddof=1 if count > 1 else 0) / np.sqrt(count)
