"""Unroll tasks, and keep the sufficient statistics of the batches of Algorithms 1 and 2."""

from pathlib import Path

from ictd.rng import generator
from ictd.sampling import unroll
from ictd.steps.material import save_material, stored_tasks
from ictd.storage import load_arrays


def main(
    env: str, states: int, batch_size: int, discount: float, rollout_steps: int, tasks: Path, output: Path
) -> None:
    """Write the counts of transitions and the sums of returns of each task's batch."""
    (seeds,) = load_arrays(tasks, "seeds")
    batches = (
        unroll(task_set, batch_size, discount, rollout_steps, generator(seed, env, states, "unrolls"))
        for seed, task_set in stored_tasks(tasks)
    )
    save_material(output, seeds.tolist(), batches)
