"""Files of task sets and unrolls, and the data of a run that they hold.

Most states have few successors, so a file holds only those of the n^2 transitions that are non-zero in some task, as k
columns.  The array ``followers`` (n, n) has their places.
"""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np

from ictd.mrp import Tasks
from ictd.rng import generator
from ictd.sampling import BatchStatistics
from ictd.storage import load_arrays, reading, save_arrays, stacked
from ictd.transformer import Weights, initial_weights


def save_material(path: Path, seeds: Sequence[int], data: Iterable[Tasks] | Iterable[BatchStatistics]) -> None:
    """Write the task sets or unrolls of some seeds, each array with leading axes of seeds and tasks."""
    arrays = stacked(data, len(seeds))
    (name,) = arrays.keys() & {"transition", "transitions"}
    arrays[name], followers = _compressed(arrays[name])
    arrays.pop("visits", None)  # These are the row sums of the transitions.
    save_arrays(path, seeds=np.array(seeds), followers=followers, **arrays)


def _compressed(transitions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Columns (S, N, k) of the transitions (S, N, n, n) that are non-zero in some task, and their places (n, n)."""
    followers = transitions.any(axis=(0, 1))
    flat = transitions.reshape(*transitions.shape[:2], -1)
    return flat.compress(followers.ravel(), axis=-1), followers


def _expanded(columns: np.ndarray, followers: np.ndarray) -> np.ndarray:
    """Transitions (N, n, n) from columns (N, k)."""
    transitions = np.zeros((len(columns), *followers.shape), columns.dtype)
    transitions[:, followers] = columns
    return transitions


def stored_tasks(path: Path) -> Iterator[tuple[int, Tasks]]:
    """Yield each seed with its task set; ValueError if the file is missing or damaged, or has no valid tasks."""
    with reading(path):
        seeds, followers, *arrays = load_arrays(path, "seeds", "followers", "transition", "reward", "stationary")
        for seed, columns, reward, stationary in zip(seeds.tolist(), *arrays, strict=True):
            yield seed, Tasks(_expanded(columns, followers), reward, stationary)


def stored_runs(
    env: str, states: int, initial_gain: float, tasks: Path, unrolls: Path
) -> Iterator[tuple[int, Tasks, BatchStatistics, Weights]]:
    """Yield seed, task set, unrolls and initial weights of each run.

    Parameters
    ----------
    env : str
    states : int, n
    initial_gain : float, of ``ictd.transformer.initial_weights``
    tasks, unrolls : Path, files of the same seeds

    Raises
    ------
    ValueError
        If a file is missing or damaged, has no valid data, or the seeds differ.
    """
    with reading(unrolls):
        seeds, followers, *arrays = load_arrays(unrolls, "seeds", "followers", "transitions", "return_sums")
        columns_and_returns = list(zip(*arrays, strict=True))
    if not np.array_equal(seeds, *load_arrays(tasks, "seeds")):
        raise ValueError(f"{unrolls} has other seeds than {tasks}; give those that the step unrolls made of it.")
    for (seed, task_set), (columns, return_sums) in zip(stored_tasks(tasks), columns_and_returns, strict=True):
        with reading(unrolls):
            transitions = _expanded(columns, followers)
            visits = transitions.sum(axis=-1, dtype=transitions.dtype)
            batches = BatchStatistics(visits, transitions, return_sums)
        yield seed, task_set, batches, initial_weights(states, initial_gain, generator(seed, env, states, "weights"))
