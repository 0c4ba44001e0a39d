"""The data of runs, from files of task sets and unrolls."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from ictd.mrp import Tasks
from ictd.rng import generator
from ictd.sampling import BatchStatistics
from ictd.steps.material import expanded, stored_tasks
from ictd.storage import load_arrays, reading
from ictd.transformer import Weights, initial_weights


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
            transitions = expanded(columns, followers)
            visits = transitions.sum(axis=-1, dtype=transitions.dtype)
            batches = BatchStatistics(visits, transitions, return_sums)
        yield seed, task_set, batches, initial_weights(states, initial_gain, generator(seed, env, states, "weights"))
