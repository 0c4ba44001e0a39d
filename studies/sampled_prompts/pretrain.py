"""Pretrain on sampled contexts of random length, and keep the weights on the way."""

import logging
from pathlib import Path

import numpy as np

from ictd.engine import Engine
from ictd.pipeline.grid import seeds_of
from ictd.pretraining import pretrain_in_blocks, snapshot_counts
from ictd.rng import generator
from ictd.storage import save_arrays
from ictd.transformer import initial_weights
from studies.sampled_prompts.material import draw_material

logger = logging.getLogger(__name__)


def main(
    teacher: str,
    env: str,
    states: int,
    depth: int,
    discount: float,
    seeds: str,
    run_tasks: int,
    snapshots: int,
    tasks: int,
    lengths: list[int],
    clip: float,
    batch_size: int,
    rollout_steps: int,
    learning_rate: float,
    initial_gain: float,
    env_options: dict,
    output: Path,
) -> None:
    """Write the weights of some seeds' runs at log-spaced task counts and at that of other settings' runs, ``tasks``;
    NaN from a divergence on."""
    seen = np.union1d(snapshot_counts(run_tasks, snapshots), min(tasks, run_tasks))
    u, A = [], []
    for seed in seeds_of(seeds):
        material = draw_material(
            teacher, env, states, seed, lengths, discount, batch_size, rollout_steps, **env_options
        )
        start = initial_weights(states, initial_gain, generator(seed, env, states, "weights"))
        engine = Engine(start, teacher.removeprefix("expected_"), depth, discount, learning_rate, clip=clip)

        def draw(size, material=material):
            block, batches, context = material(size)
            return block.reward, batches, context.gram(discount)

        weights = pretrain_in_blocks(engine, draw, seen)
        u.append(weights.u)
        A.append(weights.A)
        logger.info("seed %d pretrained", seed)
    save_arrays(output, seeds=np.array(seeds_of(seeds)), tasks_seen=seen, history_u=np.stack(u), history_A=np.stack(A))
