"""Files of task sets and unrolls.

Most states have few successors.  So a file stores only the k of n^2 transitions that are non-zero in at least one task,
as k columns.  The array ``followers`` (n, n) marks these transitions.  This module imports no kernels, because the step
that samples task sets takes less time than the import of numba.
"""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np

from ictd.mrp import TaskArrays, Tasks
from ictd.storage import load_arrays, reading, save_arrays, stacked


def save_material(path: Path, seeds: Sequence[int], data: Iterable[TaskArrays]) -> None:
    """Write the ``Tasks`` or ``BatchStatistics`` of some seeds, each array with leading axes of seeds and tasks."""
    arrays = stacked(data, len(seeds))
    (name,) = arrays.keys() & {"transition", "transitions"}
    arrays[name], followers = _compressed(arrays[name])
    arrays.pop("visits", None)  # Visits are the row sums of the transitions, so they are not stored.
    save_arrays(path, seeds=np.array(seeds), followers=followers, **arrays)


def _compressed(transitions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Drop the transitions that are zero in all tasks: columns (S, N, k), and a mask (n, n) of the kept transitions."""
    followers = transitions.any(axis=(0, 1))
    flat = transitions.reshape(*transitions.shape[:2], -1)
    return flat.compress(followers.ravel(), axis=-1), followers


def expanded(columns: np.ndarray, followers: np.ndarray) -> np.ndarray:
    """Transitions (N, n, n) from columns (N, k)."""
    transitions = np.zeros((len(columns), *followers.shape), columns.dtype)
    transitions[:, followers] = columns
    return transitions


def stored_tasks(path: Path) -> Iterator[tuple[int, Tasks]]:
    """Yield each seed with its task set; ValueError if the file is missing or damaged, or has no valid tasks."""
    with reading(path):
        seeds, followers, *arrays = load_arrays(path, "seeds", "followers", "transition", "reward", "stationary")
        for seed, columns, reward, stationary in zip(seeds.tolist(), *arrays, strict=True):
            yield seed, Tasks(expanded(columns, followers), reward, stationary)
