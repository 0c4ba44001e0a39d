"""Generate task sets: tasks (Algorithms 3 and 4), their stationary distributions and true values."""

from pathlib import Path

import numpy as np

from ictd.environments import sample_tasks
from ictd.mrp import value_function
from ictd.pipeline.storage import save_arrays, stacked
from ictd.streams import generator, seeds_of


def main(env: str, states: int, seeds: str, tasks: int, discount: float, env_options: dict, output: Path) -> None:
    """Write transition, reward, stationary and value, with leading axes of seeds and tasks."""
    sets = [
        sample_tasks(env, states, tasks, generator(seed, env, states, "tasks"), **env_options)
        for seed in seeds_of(seeds)
    ]
    save_arrays(
        output,
        seeds=np.array(seeds_of(seeds)),
        **stacked(sets),
        value=np.stack([value_function(part.transition, part.reward, discount) for part in sets]),
    )
