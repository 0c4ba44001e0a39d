"""Pretrain far beyond the paper's number of tasks, and keep the weights on the way."""

from pathlib import Path

import numpy as np

from ictd.environments import sample_tasks
from ictd.fused import FusedEngine
from ictd.pretraining import snapshot_counts
from ictd.sampling import unroll
from ictd.steps import logger, run
from ictd.storage import save_arrays
from ictd.streams import generator
from ictd.weights import initial_weights

# Tasks that are in memory together; a run's tasks are drawn in blocks of this size.
BLOCK = 10_000


def main(
    algo: str,
    env: str,
    states: int,
    depth: int,
    seed: int,
    tasks: int,
    snapshots: int,
    discount: float,
    batch_size: int,
    rollout_steps: int,
    learning_rate: float,
    initial_gain: float,
    attention_scale: str,
    env_options: dict,
    output: Path,
) -> None:
    """Write the weights of one run at log-spaced task counts; NaN from a divergence on."""
    streams = {name: generator(seed, env, states, f"course {name}") for name in ("tasks", "unrolls")}
    start = initial_weights(states, initial_gain, generator(seed, env, states, "weights"))
    engine = FusedEngine(start, algo, depth, discount, learning_rate, attention_scale == "context_length")
    # Multi-task TD has no use for returns, whose simulation takes most of the time.
    steps = rollout_steps if algo == "mc" else 1
    seen = snapshot_counts(tasks, snapshots)
    u, A = np.full((len(seen), 2 * states), np.nan), np.full((len(seen), 2 * states, 2 * states), np.nan)
    for first in range(0, tasks, BLOCK):
        size = min(BLOCK, tasks - first)
        block = sample_tasks(env, states, size, streams["tasks"], **env_options)
        batches = unroll(block, batch_size, discount, steps, streams["unrolls"])
        stops = seen[(seen > first) & (seen <= first + size)]
        at = 0
        for stop in [*(stops - first), size]:
            _, done = engine.train(block[at:stop], batches[at:stop])
            if done < stop - at:
                logger.warning("diverged at task %d", first + at + done + 1)
                break
            at = stop
            if first + stop in stops:
                u[seen == first + stop], A[seen == first + stop] = engine.weights()
        if at < size:
            break
    save_arrays(output, tasks_seen=seen, u=u, A=A)


if __name__ == "__main__":
    run(main)
