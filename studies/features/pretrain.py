"""Pretrain Transformers on tasks with features, for each target and seed of a setting."""

from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np

from ictd.engine import Engine
from ictd.mrp import TaskDistribution
from ictd.prompt import Gram
from ictd.rng import generator
from ictd.storage import save_arrays
from ictd.training_data import BLOCK, Block, EnumeratedPrompts, training_blocks
from ictd.transformer import Weights, initial_weights
from studies.features.symmetric import SECOND, STEP, weights_of
from studies.features.tasks import distribution, prompts_of


def main(
    setting: dict,
    batch_size: int,
    rollout_steps: int,
    learning_rate: float,
    output: Path,
) -> None:
    """Write u (targets, seeds, K, 2d) and A (targets, seeds, K, 2d, 2d) after ``tasks_seen`` (K,) tasks.

    The last snapshot is that after all updates.  The snapshots of a run that diverged are NaN from there on.
    """
    updates, discount = setting["updates"], setting["discount"]
    seen = np.append(np.arange(BLOCK, updates, BLOCK), updates)
    width = 2 * setting["dimension"]
    shape = len(setting["targets"]), setting["seeds"], len(seen), width
    u, A = np.full(shape, np.nan), np.full((*shape, width), np.nan)
    for i, target in enumerate(setting["targets"]):
        for seed in range(setting["seeds"]):
            tasks, prompts = distribution(setting, seed), prompts_of(setting)
            blocks = training_blocks(tasks, prompts, target, discount, updates, seed, batch_size, rollout_steps)
            prompted = ((block, block.gram(discount)) for block in blocks)
            snapshots = pretrain(first_weights(setting, seed), target, setting, learning_rate, prompted)
            for k, weights in enumerate(snapshots):
                if weights is not None:
                    u[i, seed, k], A[i, seed, k] = weights.u, weights.A
    save_arrays(output, tasks_seen=seen, u=u, A=A)


def pretrain(
    first: Weights, target: str, setting: dict, learning_rate: float, blocks: Iterable[tuple[Block, Gram]]
) -> Iterator[Weights | None]:
    """Pretrain all of u and A, and yield the weights after each block of tasks; None, at last, if they diverge.

    Parameters
    ----------
    first : Weights before the first update
    target : "td", "mc" or "values"
    setting : dict with depth and discount
    learning_rate : float, Adam's
    blocks : blocks of tasks with their prompts
    """
    engine = Engine(first, "td" if target == "td" else "mc", setting["depth"], setting["discount"], learning_rate)
    for block, gram in blocks:
        _, done = engine.train(block.tasks.reward, block.batches, gram)
        if done < len(block.tasks) or not np.isfinite(engine.parameter).all():
            yield None
            return
        yield engine.weights()


def first_weights(setting: dict, seed: int) -> Weights:
    """Weights before the first update: random, or those of the residual gradient algorithm with a step size of 1."""
    d = setting["dimension"]
    if setting["start"] == "residual_gradient":
        return weights_of(STEP - SECOND, d)
    rng = generator(seed, setting["env"], setting["states"], f"features weights {d}")
    return initial_weights(d, setting["initial_gain"], rng)


def pretrained_towards_values(
    tasks: TaskDistribution,
    prompts: EnumeratedPrompts,
    setting: dict,
    updates: int,
    seed: int,
    batch_size: int,
    learning_rate: float,
) -> Weights | None:
    """Weights after pretraining with true values as targets; None if pretraining diverges.

    Parameters
    ----------
    tasks : TaskDistribution, or an object with its ``sample``, ``name`` and ``states``
    prompts : EnumeratedPrompts, or an object with its ``contexts``
    setting : dict with dimension, depth, discount, start and initial_gain
    updates : int, number of tasks
    seed : int
    batch_size : int, number of steps of a batch
    learning_rate : float, Adam's
    """
    discount = setting["discount"]
    blocks = training_blocks(tasks, prompts, "values", discount, updates, seed, batch_size, rollout_steps=1)
    prompted = ((block, block.gram(discount)) for block in blocks)
    *_, weights = pretrain(first_weights(setting, seed), "values", setting, learning_rate, prompted)
    return weights
