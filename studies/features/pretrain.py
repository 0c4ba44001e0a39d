"""Pretrain Transformers on tasks with features, for each target and seed of a setting."""

from collections.abc import Iterable
from pathlib import Path

import numpy as np

from ictd.engine import Engine
from ictd.pretraining import train_until_divergence
from ictd.rng import generator
from ictd.storage import save_arrays, stacked
from ictd.training_data import Block, EnumeratedPrompts, training_blocks
from ictd.transformer import Weights, initial_weights
from studies.features.setting import Setting
from studies.features.tasks import distribution


def main(setting: dict, batch_size: int, rollout_steps: int, learning_rate: float, output: Path) -> None:
    """Write u (targets, seeds, 2d) and A (targets, seeds, 2d, 2d) after pretraining; NaN if it diverges."""
    given = Setting(**setting)
    found = []
    for target in given.targets:
        for seed in range(given.seeds):
            blocks = blocks_of_training(given, target, seed, batch_size, rollout_steps)
            prompted = ((block, block.prompts(given.discount), block.tasks.features) for block in blocks)
            found.append(pretrain(first_weights(given, seed), given, learning_rate, prompted))
    shape, arrays = (len(given.targets), given.seeds), stacked(found, len(found))
    save_arrays(output, **{name: array.reshape(*shape, *array.shape[1:]) for name, array in arrays.items()})


def blocks_of_training(
    setting: Setting, target: str, seed: int, batch_size: int, rollout_steps: int
) -> Iterable[Block]:
    """Draw the tasks and batches of pretraining with a target."""
    return training_blocks(
        distribution(setting), EnumeratedPrompts(), target, setting.discount, setting.updates, seed, batch_size,
        rollout_steps,
    )  # fmt: skip


def pretrain(
    first: Weights,
    setting: Setting,
    learning_rate: float,
    blocks: Iterable[tuple[Block, np.ndarray, np.ndarray]],
) -> Weights:
    """Pretrain all of u and A, and return the weights after all updates; they are NaN if pretraining diverges.

    Parameters
    ----------
    first : Weights before the first update
    setting : Setting
    learning_rate : float, Adam's
    blocks : blocks of tasks with the matrices G and the queries of their prompts
    """
    engine = Engine(first, setting.depth, setting.discount, learning_rate)
    for block, G, queries in blocks:
        _, done = train_until_divergence(engine, block.tasks.reward, block.targets, G, queries)
        if done < len(block.tasks):
            return Weights(np.full_like(first.u, np.nan), np.full_like(first.A, np.nan))
    return engine.weights()


def first_weights(setting: Setting, seed: int) -> Weights:
    """Weights before the first update: random, or those of the residual gradient algorithm with a step size of 1."""
    d = setting.dimension
    if setting.start == "residual_gradient":
        return Weights(np.zeros(2 * d), np.kron([[-1, 1], [1, -1]], np.eye(d)))
    rng = generator(seed, setting.env, setting.states, f"features weights {d}")
    return initial_weights(d, setting.initial_gain, rng)
