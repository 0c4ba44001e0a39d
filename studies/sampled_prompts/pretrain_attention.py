"""Pretrain with one kind of attention, on enumerated or on sampled prompts."""

import logging
from pathlib import Path

import numpy as np

from ictd.pipeline.grid import seeds_of
from ictd.pretraining import pretrain_in_blocks
from ictd.rng import generator
from ictd.storage import save_arrays
from ictd.transformer import initial_weights
from studies.sampled_prompts.attention_engine import Attention, AttentionEngine, WeightedColumns
from studies.sampled_prompts.training_data import training_data

logger = logging.getLogger(__name__)


def main(
    attention: dict,
    prompts: str,
    algo: str,
    env: str,
    states: int,
    depth: int,
    discount: float,
    seeds: str,
    attention_tasks: int,
    lengths: list[int],
    clip: float,
    batch_size: int,
    rollout_steps: int,
    learning_rate: float,
    initial_gain: float,
    env_options: dict,
    output: Path,
) -> None:
    """Write the last weights of some seeds' runs, NaN where they diverged.

    Runs on enumerated and on sampled prompts have the same tasks and batches.
    """
    kind = Attention(**attention)
    u, A = [], []
    for seed in seeds_of(seeds):
        data = training_data(algo, env, states, seed, lengths, discount, batch_size, rollout_steps, **env_options)
        start = initial_weights(states, initial_gain, generator(seed, env, states, "weights"))
        engine = AttentionEngine(start, algo, depth, discount, learning_rate, clip, kind)

        def draw(size, data=data):
            block, batches, context = data(size)
            reward = kind.prompt_rewards(block.reward, discount)
            if prompts == "enumerated":
                columns = WeightedColumns.enumerated(block.transition, reward, discount)
            else:
                columns = WeightedColumns.sampled(context, reward, discount)
            return block.reward, batches, columns

        weights = pretrain_in_blocks(engine, draw, np.array([attention_tasks]))
        u.append(weights.u[-1])
        A.append(weights.A[-1])
        logger.info("seed %d pretrained", seed)
    save_arrays(output, seeds=np.array(seeds_of(seeds)), u=np.stack(u), A=np.stack(A))
