"""Pretrain Transformers on tasks with features, for each target and seed of a setting."""

from pathlib import Path

import numpy as np

from ictd.engine import Engine
from ictd.mrp import TaskDistribution
from ictd.rng import generator
from ictd.storage import save_arrays
from ictd.training_data import BLOCK, EnumeratedPrompts, training_blocks
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
    updates = setting["updates"]
    seen = np.append(np.arange(BLOCK, updates, BLOCK), updates)
    width = 2 * setting["dimension"]
    shape = len(setting["targets"]), setting["seeds"], len(seen), width
    u, A = np.full(shape, np.nan), np.full((*shape, width), np.nan)
    for i, target in enumerate(setting["targets"]):
        for seed in range(setting["seeds"]):
            engine = Engine(
                first_weights(setting, seed), target if target == "td" else "mc", setting["depth"],
                setting["discount"], learning_rate,
            )  # fmt: skip
            blocks = training_blocks(
                distribution(setting, seed), prompts_of(setting), target, setting["discount"], updates, seed,
                batch_size, rollout_steps,
            )  # fmt: skip
            for k, block in enumerate(blocks):
                _, done = engine.train(block.tasks.reward, block.batches, block.gram(setting["discount"]))
                if done < len(block.tasks) or not np.isfinite(engine.parameter).all():
                    break
                weights = engine.weights()
                u[i, seed, k], A[i, seed, k] = weights.u, weights.A
    save_arrays(output, tasks_seen=seen, u=u, A=A)


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
    """Weights after pretraining all of u and A with true values as targets; None if pretraining diverges.

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
    engine = Engine(first_weights(setting, seed), "mc", setting["depth"], discount, learning_rate)
    for block in training_blocks(tasks, prompts, "values", discount, updates, seed, batch_size, rollout_steps=1):
        _, done = engine.train(block.tasks.reward, block.batches, block.gram(discount))
        if done < len(block.tasks):
            return None
    return engine.weights()
