"""Pretrain on sampled contexts of random length, in several formats of prompts, by TD and by MC.

The runs of a setting share tasks, contexts and batches.  A run is named after its format and its algorithm:

- "step": a column for each step of a context, eq. (Z0 def original)
- "grouped": a column for each visited state, with means over its steps (``ictd.context.Context.grouped``)
- "enumerated": a column for each state, with its expected next feature, eq. (Z0 redef), as in the paper
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ictd.algorithms import ALGORITHMS, Targets
from ictd.context import Context
from ictd.engine import Engine
from ictd.mrp import Tasks, sample_tasks
from ictd.pipeline.grid import seeds_of
from ictd.pretraining import pretrain_runs
from ictd.rng import generator
from ictd.sampling import unroll
from ictd.storage import save_arrays, stacked
from ictd.training_data import sample_contexts
from ictd.transformer import Weights, initial_weights

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Training:
    """A setting of pretraining.

    Parameters
    ----------
    env : str, environment of the tasks
    states : int, n
    depth : int, number of layers L
    discount : float, gamma
    algos : list of str, "td" or "mc"
    formats : list of str, "step", "grouped" or "enumerated"
    tasks : int, number of tasks of each run
    lengths : list of two ints, least and greatest length of a context; the length is uniform between the two
    clip : float, largest norm of a gradient; 0 means no limit
    batch_size : int, b
    rollout_steps : int, tau, after which returns are truncated
    learning_rate : float, Adam's alpha
    initial_gain : float
    """

    env: str
    states: int
    depth: int
    discount: float
    algos: list[str]
    formats: list[str]
    tasks: int
    lengths: list[int]
    clip: float
    batch_size: int
    rollout_steps: int
    learning_rate: float
    initial_gain: float

    @property
    def runs(self) -> list[tuple[str, str]]:
        """Format and algorithm of each run."""
        return [(name, algo) for name in self.formats for algo in self.algos]


def main(training: dict, env: str, seeds: str, env_options: dict, output: Path) -> None:
    """Write the last weights of all runs of a setting, u (S, runs, 2n) and A; NaN for a run that diverged.

    ``env`` is the environment of the setting, whose options ``env_options`` has.
    """
    setting = Training(**training)
    weights = []
    for seed in seeds_of(seeds):
        weights.append(train(setting, seed, env_options[env]))
        logger.info("seed %d pretrained", seed)
    save_arrays(
        output,
        seeds=np.array(seeds_of(seeds)),
        formats=np.array([name for name, _ in setting.runs]),
        algos=np.array([algo for _, algo in setting.runs]),
        **stacked(weights, len(weights)),
    )


def train(setting: Training, seed: int, options: dict) -> Weights:
    """Train all runs of a setting from one seed, and return their last weights with a leading axis of runs."""
    data = training_data(setting, seed, options)
    rng = generator(seed, setting.env, setting.states, "weights")
    start = initial_weights(setting.states, setting.initial_gain, rng)
    engines = [
        Engine(start, setting.depth, setting.discount, setting.learning_rate, clip=setting.clip) for _ in setting.runs
    ]

    def draw(size: int, running: list[int]) -> list[tuple]:
        tasks, context, targets = data(size)
        by_format = {name: prompts(name, tasks, context, setting.discount) for name in setting.formats}
        runs = [setting.runs[run] for run in running]
        return [(tasks.reward, targets[algo], by_format[name]) for name, algo in runs]

    trained = pretrain_runs(engines, draw, setting.tasks)
    return Weights(**stacked(trained, len(trained)))


def prompts(name: str, tasks: Tasks, context: Context, discount: float) -> np.ndarray:
    """The prompts of N tasks in one format, for ``ictd.engine.Engine.train``."""
    if name == "enumerated":
        return tasks.transition
    return (context.grouped() if name == "grouped" else context).gram_matrix(discount)


def training_data(
    setting: Training, seed: int, options: dict
) -> Callable[[int], tuple[Tasks, Context, dict[str, Targets]]]:
    """Make a function that samples the next tasks of a seed, with a context of each, and their targets by algorithm.

    The batches of an algorithm do not depend on the other algorithms.
    """
    env, states = setting.env, setting.states
    streams = {name: generator(seed, env, states, f"agent {name}") for name in ("tasks", "lengths", "contexts")}
    # TD does not use returns.  Sampling them takes most of the time.
    steps = {algo: setting.rollout_steps if algo == "mc" else 1 for algo in setting.algos}
    batch_streams = {algo: generator(seed, env, states, "agent unrolls") for algo in steps}

    def draw(size: int) -> tuple[Tasks, Context, dict[str, Targets]]:
        tasks = sample_tasks(env, states, size, streams["tasks"], **options)
        lengths = streams["lengths"].integers(*setting.lengths, size, endpoint=True)
        context = sample_contexts(tasks, lengths, streams["contexts"])
        batches = {
            algo: unroll(tasks, setting.batch_size, setting.discount, steps[algo], rng)
            for algo, rng in batch_streams.items()
        }
        targets = {algo: ALGORITHMS[algo].targets(tasks, batches[algo], setting.discount) for algo in batches}
        return tasks, context, targets

    return draw
