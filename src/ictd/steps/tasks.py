"""Generate task sets: tasks (Algorithms 3 and 4), their stationary distributions and true values."""

from pathlib import Path

import numpy as np

from ictd.environments import sample_tasks
from ictd.mrp import value_function
from ictd.pipeline.storage import save_arrays, stacked
from ictd.streams import generator, seeds_of


def main(env: str, states: int, seeds: str, tasks: int, discount: float, env_options: dict, output: Path) -> None:
    """Write transition, reward, stationary and value, with leading axes of seeds and tasks."""

    def task_set(seed: int) -> dict[str, np.ndarray]:
        drawn = sample_tasks(env, states, tasks, generator(seed, env, states, "tasks"), **env_options)
        return vars(drawn) | {"value": value_function(drawn.transition, drawn.reward, discount)}

    of = seeds_of(seeds)
    save_arrays(output, seeds=np.array(of), **stacked(map(task_set, of), len(of)))
