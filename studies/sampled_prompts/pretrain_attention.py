"""Pretrain with one kind of attention, on enumerated or on sampled prompts."""

import logging
from pathlib import Path

import numpy as np

from ictd.pipeline.grid import seeds_of
from ictd.pretraining import pretrain_in_blocks
from ictd.rng import generator
from ictd.storage import save_arrays
from ictd.transformer import initial_weights
from studies.sampled_prompts.attention_engine import Attention, AttentionEngine, columns_of
from studies.sampled_prompts.material import draw_material

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

    Runs on both kinds of prompts have the same tasks and batches.
    """
    kind, u, A = Attention(**attention), [], []
    for seed in seeds_of(seeds):
        material = draw_material(algo, env, states, seed, lengths, discount, batch_size, rollout_steps, **env_options)
        start = initial_weights(states, initial_gain, generator(seed, env, states, "weights"))
        engine = AttentionEngine(start, algo, depth, discount, learning_rate, clip, kind)

        def draw(size, material=material):
            block, batches, context = material(size)
            of = None if prompts == "enumerated" else context
            return block.reward, batches, columns_of(block, discount, kind.shown(block.reward, discount), of)

        weights = pretrain_in_blocks(engine, draw, np.array([attention_tasks]))
        u.append(weights.u[-1])
        A.append(weights.A[-1])
        logger.info("seed %d pretrained", seed)
    save_arrays(output, seeds=np.array(seeds_of(seeds)), u=np.stack(u), A=np.stack(A))
