"""Task sets and unrolls as files hold them, and what they give a run to start from.

Most states follow few others, so of transitions (n, n) those are held that are not 0 in all tasks, row by row, with
``followers`` (n, n), which says where they are.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np

from ictd.checks import row_sums
from ictd.mrp import Tasks
from ictd.rng import generator
from ictd.sampling import BatchStatistics
from ictd.storage import load_arrays, reading, save_arrays, stacked
from ictd.transformer import Weights, initial_weights


def save_material(path: Path, seeds: list[int], parts: Iterable[Tasks] | Iterable[BatchStatistics]) -> None:
    """Write the task sets or unrolls of some seeds, each array with leading axes of seeds and tasks."""
    arrays = stacked(parts, len(seeds))
    (name,) = arrays.keys() & {"transition", "transitions"}
    arrays[name], followers = _held(arrays[name])
    arrays.pop("visits", None)  # The sums of transitions.
    save_arrays(path, seeds=np.array(seeds), followers=followers, **arrays)


def _held(whole: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Transitions (S, N, k) that occur in any task, in C order as they are read, and which these are (n, n)."""
    followers = whole.any(axis=(0, 1))
    return whole.reshape(*whole.shape[:2], -1).compress(followers.ravel(), axis=-1), followers


def _whole(held: np.ndarray, followers: np.ndarray) -> np.ndarray:
    """Transitions (N, n, n) of those that are held, (N, k)."""
    whole = np.zeros((len(held), *followers.shape), held.dtype)
    whole[:, followers] = held
    return whole


def stored_tasks(path: Path) -> Iterator[tuple[int, Tasks]]:
    """Seed and task set, one after the other; a ValueError names a file that is missing or damaged, or a task that
    makes no sense."""
    with reading(path):
        seeds, followers, *arrays = load_arrays(path, "seeds", "followers", "transition", "reward", "stationary")
        for seed, held, *others in zip(seeds.tolist(), *arrays, strict=True):
            yield seed, Tasks(_whole(held, followers), *others)


def stored_runs(
    env: str, states: int, initial_gain: float, tasks: Path, unrolls: Path
) -> Iterator[tuple[int, Tasks, BatchStatistics, Weights]]:
    """Seed, task set, unrolls and initial weights of each run that two files hold the material of.

    A ValueError names a file that is missing or damaged, or a task that makes no sense.
    """
    with reading(unrolls):
        seeds, followers, *arrays = load_arrays(unrolls, "seeds", "followers", "transitions", "return_sums")
        parts = list(zip(seeds, *arrays, strict=True))
    if not np.array_equal(seeds, *load_arrays(tasks, "seeds")):
        raise ValueError(f"{unrolls} has other seeds than {tasks}; give those that the step unrolls made of it.")
    for (seed, task_set), (_, held, return_sums) in zip(stored_tasks(tasks), parts, strict=True):
        with reading(unrolls):
            transitions = _whole(held, followers)
            batches = BatchStatistics(row_sums(transitions), transitions, return_sums)
        yield seed, task_set, batches, initial_weights(states, initial_gain, generator(seed, env, states, "weights"))
