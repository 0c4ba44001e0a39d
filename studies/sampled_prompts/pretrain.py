"""Pretrain on sampled contexts of random length, and keep snapshots of the weights.

One job trains all runs of an environment, number of states and discount, because sampling takes longer than training.
"""

import logging
from pathlib import Path

import numpy as np

from ictd.engine import Engine
from ictd.pipeline.grid import seeds_of
from ictd.pretraining import pretrain_runs
from ictd.rng import generator
from ictd.statistics import log_spaced_integers
from ictd.storage import save_arrays
from ictd.transformer import initial_weights
from studies.sampled_prompts.training_data import (
    algorithm,
    batch_kind,
    prompt_format,
    training_data,
    training_prompts,
)

logger = logging.getLogger(__name__)


def main(
    targets: list[str],
    depths: list[int],
    run_tasks: list[int],
    env: str,
    states: int,
    discount: float,
    seeds: str,
    snapshots: int,
    tasks: int,
    lengths: list[int],
    clip: float,
    batch_size: int,
    rollout_steps: int,
    learning_rate: float,
    initial_gain: float,
    env_options: dict,
    outputs: list[Path],
) -> None:
    """Write snapshots of the weights of runs that share tasks, contexts and batches, NaN after a divergence.

    ``targets``, ``depths``, ``run_tasks`` and ``outputs`` have the target, the number of layers, the number of tasks
    and the file of each run, in the same order.  Snapshots are taken at log-spaced numbers of tasks, and at ``tasks``,
    the number of tasks of runs in other settings than the main setting.
    """
    tasks_seen = [np.union1d(log_spaced_integers(own, snapshots), min(tasks, own)) for own in run_tasks]
    histories = []
    for seed in seeds_of(seeds):
        data = training_data(env, states, seed, lengths, discount, batch_size, rollout_steps, **env_options[env])
        start = initial_weights(states, initial_gain, generator(seed, env, states, "weights"))
        engines = [
            Engine(start, algorithm(target), depth, discount, learning_rate, clip=clip)
            for target, depth in zip(targets, depths, strict=True)
        ]

        def draw(size, running, data=data):
            names = [targets[run] for run in running]
            block, context, batches = data(size, map(batch_kind, names))
            formats = {prompt_format(name) for name in names}
            prompts = {name: training_prompts(name, block, context, discount) for name in formats}
            return [(block.reward, batches[batch_kind(name)], prompts[prompt_format(name)]) for name in names]

        histories.append(pretrain_runs(engines, draw, tasks_seen))
        logger.info("seed %d pretrained", seed)
    for run, output in enumerate(outputs):
        save_arrays(
            output,
            seeds=np.array(seeds_of(seeds)),
            tasks_seen=tasks_seen[run],
            history_u=np.stack([weights[run].u for weights in histories]),
            history_A=np.stack([weights[run].A for weights in histories]),
        )
