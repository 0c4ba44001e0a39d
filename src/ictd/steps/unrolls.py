"""Unroll tasks, and keep the sufficient statistics of the batches of Algorithms 1 and 2."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from ictd.mrp import Tasks
from ictd.rng import generator
from ictd.sampling import BatchStatistics, unroll
from ictd.steps.tasks import all_transitions, stored_tasks
from ictd.storage import load_arrays, reading, save_arrays


def main(
    env: str, states: int, batch_size: int, discount: float, rollout_steps: int, tasks: Path, output: Path
) -> None:
    """Write the counts of transitions and the sums of returns of each task's batch.

    The counts are stored as columns, like the transitions of the tasks.
    """
    seeds, followers = load_arrays(tasks, "seeds", "followers")
    arrays = {"transitions": [], "return_sums": []}
    for seed, task_set in stored_tasks(tasks):
        batches = unroll(task_set, batch_size, discount, rollout_steps, generator(seed, env, states, "unrolls"))
        arrays["transitions"].append(batches.transitions[:, followers])
        arrays["return_sums"].append(batches.return_sums)
    save_arrays(output, seeds=seeds, **{name: np.stack(parts) for name, parts in arrays.items()})


def stored_runs(tasks: Path, unrolls: Path) -> Iterator[tuple[int, Tasks, BatchStatistics]]:
    """Yield each seed with its task set and batches.

    Parameters
    ----------
    tasks, unrolls : Path, files of the same seeds

    Raises
    ------
    ValueError
        If a file is missing or damaged, has no valid data, or the seeds differ.
    """
    seeds, transitions, return_sums = load_arrays(unrolls, "seeds", "transitions", "return_sums")
    own_seeds, followers = load_arrays(tasks, "seeds", "followers")
    if not np.array_equal(seeds, own_seeds):
        raise ValueError(f"{unrolls} has other seeds than {tasks}; give those that the step unrolls made of it.")
    for i, (seed, task_set) in enumerate(stored_tasks(tasks)):
        with reading(unrolls):
            counts = all_transitions(transitions[i], followers)
            batches = BatchStatistics(counts.sum(axis=-1, dtype=counts.dtype), counts, return_sums[i])
        yield seed, task_set, batches
