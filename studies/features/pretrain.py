"""Pretrain Transformers on tasks with features, for each target and seed of a setting."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import product
from pathlib import Path

import numpy as np

from ictd.engine import Engine
from ictd.mrp import TaskDistribution
from ictd.pretraining import train_until_divergence
from ictd.rng import generator
from ictd.storage import save_arrays
from ictd.training_data import BLOCK, Block, EnumeratedPrompts, training_blocks
from ictd.transformer import Weights, initial_weights
from studies.features.symmetric import SECOND, STEP, weights_of
from studies.features.tasks import distribution, prompts_of

# Targets with the same tasks and batches: true values take the place of returns, which TD does not use.
SAME_DATA = ("td", "values"), ("mc",)


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
    for seed, same in product(range(setting["seeds"]), SAME_DATA):
        targets = [target for target in same if target in setting["targets"]]
        if targets:
            tasks, prompts = distribution(setting, seed), prompts_of(setting)
            blocks = training_blocks(tasks, prompts, targets[-1], discount, updates, seed, batch_size, rollout_steps)
            prompted = ((block, block.contexts.gram_matrix(discount), block.tasks.features) for block in blocks)
            snapshots = pretrain(first_weights(setting, seed), targets, setting, learning_rate, prompted)
            for k, by_target in enumerate(snapshots):
                for target, weights in by_target.items():
                    i = setting["targets"].index(target)
                    u[i, seed, k], A[i, seed, k] = weights.u, weights.A
    save_arrays(output, tasks_seen=seen, u=u, A=A)


def pretrain(
    first: Weights,
    targets: Sequence[str],
    setting: dict,
    learning_rate: float,
    blocks: Iterable[tuple[Block, np.ndarray, np.ndarray]],
) -> Iterator[dict[str, Weights]]:
    """Pretrain all of u and A with each target, and yield the weights after each block of tasks.

    From the block in which pretraining with a target diverges, its weights are left out.

    Parameters
    ----------
    first : Weights before the first update
    targets : one of ``SAME_DATA``, or a part of it
    setting : dict with depth and discount
    learning_rate : float, Adam's
    blocks : blocks of tasks with the matrices G and the queries of their prompts, drawn for the last target
    """
    depth, discount = setting["depth"], setting["discount"]
    engines = {
        target: Engine(first, "td" if target == "td" else "mc", depth, discount, learning_rate) for target in targets
    }
    for block, G, queries in blocks:
        for target, engine in list(engines.items()):
            _, done = train_until_divergence(engine, block.tasks.reward, block.batches, G, queries)
            if done < len(block.tasks):
                del engines[target]
        yield {target: engine.weights() for target, engine in engines.items()}
        if not engines:
            return


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
    prompted = ((block, block.contexts.gram_matrix(discount), block.tasks.features) for block in blocks)
    *_, last = pretrain(first_weights(setting, seed), ["values"], setting, learning_rate, prompted)
    return last.get("values")
