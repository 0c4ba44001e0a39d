"""Sample task sets: tasks (Algorithms 3 and 4) and their stationary distributions."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from ictd.mrp import Tasks, sample_tasks
from ictd.pipeline.grid import seeds_of
from ictd.rng import generator
from ictd.storage import load_arrays, reading, save_arrays, stacked


def main(env: str, states: int, seeds: str, tasks: int, env_options: dict, output: Path) -> None:
    """Write transition, reward and stationary, each with leading axes of seeds and tasks.

    Most states have few successors.  So only the k of n^2 transitions that some task has are stored, as k columns; the
    array ``followers`` (n, n) marks them.
    """
    numbers = seeds_of(seeds)
    options = env_options[env]
    drawn = (sample_tasks(env, states, tasks, generator(seed, env, states, "tasks"), **options) for seed in numbers)
    arrays = stacked(drawn, len(numbers))
    followers = (arrays["transition"] > 0).any(axis=(0, 1))
    arrays["transition"] = arrays["transition"][:, :, followers]
    save_arrays(output, seeds=np.array(numbers), followers=followers, **arrays)


def stored_tasks(path: Path) -> Iterator[tuple[int, Tasks]]:
    """Yield each seed with its task set; ValueError if the file is missing or damaged, or has no valid tasks."""
    with reading(path):
        seeds, followers, *arrays = load_arrays(path, "seeds", "followers", "transition", "reward", "stationary")
        for seed, columns, reward, stationary in zip(seeds.tolist(), *arrays, strict=True):
            yield seed, Tasks(all_transitions(columns, followers), reward, stationary)


def all_transitions(columns: np.ndarray, followers: np.ndarray) -> np.ndarray:
    """Transitions (N, n, n) from columns (N, k), the entries where ``followers`` (n, n) is true."""
    transitions = np.zeros((len(columns), *followers.shape), columns.dtype)
    transitions[:, followers] = columns
    return transitions
