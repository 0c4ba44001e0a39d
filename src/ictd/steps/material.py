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
    # Each seed is compressed as soon as it is made, so that no memory is fetched for the zeros of all seeds.
    parts = [_compressed(part) for part in data]
    followers = np.any([own for own, _, _ in parts], axis=0)
    arrays = stacked((_with_columns(followers, *part) for part in parts), len(seeds))
    save_arrays(path, seeds=np.array(seeds), followers=followers, **arrays)


def _compressed(part: TaskArrays) -> tuple[np.ndarray, str, dict[str, np.ndarray]]:
    """Mask (n, n) of one seed's non-zero transitions, the name of their array, and all arrays, this one (N, k)."""
    # Visits are the row sums of the transitions, so they are not stored.
    arrays = {name: array for name, array in vars(part).items() if name != "visits"}
    (name,) = arrays.keys() & {"transition", "transitions"}
    followers = arrays[name].any(axis=0)
    flat = arrays[name].reshape(len(part), -1)
    return followers, name, arrays | {name: flat.compress(followers.ravel(), axis=1)}


def _with_columns(followers: np.ndarray, own: np.ndarray, name: str, arrays: dict) -> dict[str, np.ndarray]:
    """Arrays of one seed, with a column for each transition that is non-zero in some seed."""
    if np.array_equal(own, followers):
        return arrays
    return arrays | {name: expanded(arrays[name], own)[:, followers]}


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
