"""Sample the returns of multi-task MC (Algorithm 2)."""

from pathlib import Path

import numpy as np

from ictd.sampling import sample_returns
from ictd.steps.tasks import stored_runs
from ictd.storage import save_arrays
from ictd.training_data import batch_streams


def main(env: str, states: int, discount: float, rollout_steps: int, tasks: Path, output: Path) -> None:
    """Write the sum of the returns from each state of each task's batch."""
    seeds, return_sums = [], []
    for seed, task_set, batches in stored_runs(tasks):
        _, rng = batch_streams(env, states, seed)
        seeds.append(seed)
        return_sums.append(sample_returns(task_set, batches.visits, discount, rollout_steps, rng))
    save_arrays(output, seeds=np.array(seeds), return_sums=np.stack(return_sums))
