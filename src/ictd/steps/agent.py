"""Pretrain on sampled contexts of random length, and keep the weights on the way."""

from pathlib import Path

import numpy as np

from ictd.blocks import pretrain_in_blocks
from ictd.contexts import GramEngine, expected_batches, sample_contexts
from ictd.environments import sample_tasks
from ictd.gram import sampled_gram
from ictd.sampling import unroll
from ictd.steps import logger, run
from ictd.storage import save_arrays
from ictd.streams import generator
from ictd.weights import initial_weights


def main(
    teacher: str,
    env: str,
    states: int,
    depth: int,
    discount: float,
    seeds: str,
    tasks: int,
    snapshots: int,
    lengths: list[int],
    clip: float,
    batch_size: int,
    rollout_steps: int,
    learning_rate: float,
    initial_gain: float,
    env_options: dict,
    output: Path,
) -> None:
    """Write the weights of some seeds' runs at log-spaced task counts; NaN from a divergence on.

    A teacher is an algorithm, "td" or "mc", or "expected_td" or "expected_mc" where batches are infinitely large;
    ``lengths`` are the least and the greatest length of a context, each length between them as likely.
    """
    first, last = map(int, seeds.split("-"))
    expected, algo = teacher.startswith("expected_"), teacher.removeprefix("expected_")
    u, A = [], []
    for seed in range(first, last + 1):
        names = ("tasks", "unrolls", "lengths", "contexts")
        streams = {name: generator(seed, env, states, f"agent {name}") for name in names}
        start = initial_weights(states, initial_gain, generator(seed, env, states, "weights"))
        engine = GramEngine(start, algo, depth, discount, learning_rate, clip)
        # Multi-task TD has no use for returns, whose simulation takes most of the time.
        steps = rollout_steps if algo == "mc" else 1

        def draw(size, streams=streams, steps=steps):
            block = sample_tasks(env, states, size, streams["tasks"], **env_options)
            drawn = streams["lengths"].integers(lengths[0], lengths[1], size, endpoint=True)
            context = sample_contexts(block, drawn, streams["contexts"])
            gram = sampled_gram(context, block.reward, discount)
            if expected:
                return block, expected_batches(block, discount), gram
            return block, unroll(block, batch_size, discount, steps, streams["unrolls"]), gram

        seen, weights = pretrain_in_blocks(engine, draw, tasks, snapshots)
        u.append(weights.u)
        A.append(weights.A)
        logger.info("seed %d pretrained", seed)
    save_arrays(output, seeds=np.arange(first, last + 1), tasks_seen=seen, history_u=np.stack(u), history_A=np.stack(A))


if __name__ == "__main__":
    run(main)
