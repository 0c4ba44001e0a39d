"""Pretrain on sampled contexts of random length, and keep snapshots of the weights."""

import logging
from pathlib import Path

import numpy as np

from ictd.engine import Engine
from ictd.pipeline.grid import seeds_of
from ictd.pretraining import pretrain_in_blocks
from ictd.rng import generator
from ictd.statistics import log_spaced_integers
from ictd.storage import save_arrays
from ictd.transformer import initial_weights
from studies.sampled_prompts.training_data import algorithm, training_data

logger = logging.getLogger(__name__)


def main(
    target: str,
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
    """Write snapshots of the weights of some seeds' runs, NaN after a divergence.

    Snapshots are taken at log-spaced numbers of tasks, and at ``tasks``, the number of tasks of runs in other settings
    than the main one.
    """
    tasks_seen = np.union1d(log_spaced_integers(run_tasks, snapshots), min(tasks, run_tasks))
    u, A = [], []
    for seed in seeds_of(seeds):
        data = training_data(target, env, states, seed, lengths, discount, batch_size, rollout_steps, **env_options)
        start = initial_weights(states, initial_gain, generator(seed, env, states, "weights"))
        engine = Engine(start, algorithm(target), depth, discount, learning_rate, clip=clip)

        def draw(size, data=data):
            block, batches, context = data(size)
            return block.reward, batches, context.gram(discount)

        weights = pretrain_in_blocks(engine, draw, tasks_seen)
        u.append(weights.u)
        A.append(weights.A)
        logger.info("seed %d pretrained", seed)
    save_arrays(
        output, seeds=np.array(seeds_of(seeds)), tasks_seen=tasks_seen, history_u=np.stack(u), history_A=np.stack(A)
    )
