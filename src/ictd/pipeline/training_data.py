"""What stored task sets and unrolls give a run to start from."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from ictd.mrp import Tasks
from ictd.pipeline.storage import load_arrays
from ictd.streams import generator
from ictd.trajectories import Unrolls
from ictd.weights import Weights, initial_weights


def stored_runs(
    env: str, states: int, initial_gain: float, tasks: Path, unrolls: Path
) -> Iterator[tuple[int, Tasks, Unrolls, Weights]]:
    """Seed, task set, unrolls and initial weights of each run that two files hold the material of.

    A ValueError names a file that is missing or damaged, or a task that makes no sense.
    """
    seeds, *task_arrays = load_arrays(tasks, "seeds", "transition", "reward", "stationary")
    of_unrolls, *unroll_arrays = load_arrays(unrolls, "seeds", "visits", "transitions", "returns")
    if not np.array_equal(seeds, of_unrolls):
        raise ValueError(f"{unrolls} has other seeds than {tasks}; give those that the step unrolls made of it.")
    for i, seed in enumerate(map(int, seeds)):
        start = initial_weights(states, initial_gain, generator(seed, env, states, "weights"))
        yield seed, Tasks(*(array[i] for array in task_arrays)), Unrolls(*(array[i] for array in unroll_arrays)), start
