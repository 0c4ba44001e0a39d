"""Unroll task sets, and keep the sufficient statistics of the batches of Algorithms 1 and 2."""

from pathlib import Path

import numpy as np

from ictd.mrp import Tasks
from ictd.pipeline.storage import load_arrays, save_arrays
from ictd.streams import generator
from ictd.trajectories import unroll


def main(
    env: str, states: int, batch_size: int, discount: float, rollout_steps: int, tasks: Path, output: Path
) -> None:
    """Write visits, transitions and returns, with leading axes of seeds and tasks."""
    seeds, *arrays = load_arrays(tasks, "seeds", "transition", "reward", "stationary")
    batches = [
        unroll(Tasks(*task_set), batch_size, discount, rollout_steps, generator(int(seed), env, states, "unrolls"))
        for seed, *task_set in zip(seeds, *arrays, strict=True)
    ]
    save_arrays(
        output,
        seeds=seeds,
        visits=np.stack([batch.visits for batch in batches]),
        transitions=np.stack([batch.transitions for batch in batches]),
        returns=np.stack([batch.returns for batch in batches]),
    )
