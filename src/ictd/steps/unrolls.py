"""Unroll task sets, and keep the sufficient statistics of the batches of Algorithms 1 and 2."""

from pathlib import Path

from ictd.mrp import Tasks
from ictd.pipeline.storage import load_arrays, save_arrays, stacked
from ictd.streams import generator
from ictd.trajectories import unroll


def main(
    env: str, states: int, batch_size: int, discount: float, rollout_steps: int, tasks: Path, output: Path
) -> None:
    """Write visits, transitions and returns, with leading axes of seeds and tasks."""
    seeds, *arrays = load_arrays(tasks, "seeds", "transition", "reward", "stationary")
    batches = (
        unroll(Tasks(*task_set), batch_size, discount, rollout_steps, generator(int(seed), env, states, "unrolls"))
        for seed, *task_set in zip(seeds, *arrays, strict=True)
    )
    save_arrays(output, seeds=seeds, **stacked(batches, len(seeds)))
