"""Sample task sets: tasks (Algorithms 3 and 4) and their stationary distributions."""

from pathlib import Path

from ictd.mrp import sample_tasks
from ictd.pipeline.grid import seeds_of
from ictd.rng import generator
from ictd.steps.material import save_material


def main(env: str, states: int, seeds: str, tasks: int, env_options: dict, output: Path) -> None:
    """Write transition, reward and stationary, each with leading axes of seeds and tasks."""
    task_sets = (
        sample_tasks(env, states, tasks, generator(seed, env, states, "tasks"), **env_options[env])
        for seed in seeds_of(seeds)
    )
    save_material(output, seeds_of(seeds), task_sets)
