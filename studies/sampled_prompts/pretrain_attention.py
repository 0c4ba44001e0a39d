"""Pretrain with each kind of attention, on enumerated and on sampled prompts."""

import itertools
import logging
from pathlib import Path

import numpy as np

from ictd.mrp import Tasks
from ictd.pipeline.grid import seeds_of
from ictd.pretraining import pretrain_runs
from ictd.prompt import Context
from ictd.rng import generator
from ictd.storage import save_arrays
from ictd.transformer import initial_weights
from studies.sampled_prompts.attention_engine import Attention, AttentionEngine, WeightedColumns
from studies.sampled_prompts.grid import PROMPTS
from studies.sampled_prompts.training_data import training_data

logger = logging.getLogger(__name__)


def main(
    attentions: dict,
    algos: list[str],
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
    outputs: list[Path],
) -> None:
    """Write the last weights of the runs of some seeds; weights of runs that diverged are NaN.

    There is a run for each kind of attention, kind of prompts and algorithm, in the order of ``outputs``.
    ``attentions`` has the parameters of each kind of attention, by its name; kinds are sorted by their names.  All
    runs of a seed have the same tasks and contexts, and all runs of a seed and an algorithm have the same batches.
    """
    kinds = [Attention(**attentions[name]) for name in sorted(attentions)]
    runs = list(itertools.product(kinds, PROMPTS, algos))
    stops = [np.array([attention_tasks])] * len(runs)
    trained = []
    for seed in seeds_of(seeds):
        data = training_data(env, states, seed, lengths, discount, batch_size, rollout_steps, **env_options[env])
        start = initial_weights(states, initial_gain, generator(seed, env, states, "weights"))
        engines = [AttentionEngine(start, algo, depth, discount, learning_rate, clip, kind) for kind, _, algo in runs]

        def draw(size, running, data=data):
            block, context, batches = data(size, algos)
            columns = {}
            arguments = []
            for run in running:
                kind, prompts, algo = runs[run]
                place = prompts, kind.scaled_rewards
                if place not in columns:
                    columns[place] = prompt_columns(kind, prompts, block, context, discount)
                arguments.append((block.reward, batches[algo], columns[place]))
            return arguments

        trained.append(pretrain_runs(engines, draw, stops))
        logger.info("seed %d pretrained", seed)
    for run, output in enumerate(outputs):
        save_arrays(
            output,
            seeds=np.array(seeds_of(seeds)),
            u=np.stack([weights[run].u[-1] for weights in trained]),
            A=np.stack([weights[run].A[-1] for weights in trained]),
        )


def prompt_columns(kind: Attention, prompts: str, tasks: Tasks, context: Context, discount: float) -> WeightedColumns:
    """Columns of the enumerated prompts of tasks, or of their sampled contexts; ``prompts`` is one of PROMPTS."""
    reward = kind.prompt_rewards(tasks.reward, discount)
    if prompts == "enumerated":
        return WeightedColumns.enumerated(tasks.transition, reward, discount)
    return WeightedColumns.sampled(context, reward, discount)
