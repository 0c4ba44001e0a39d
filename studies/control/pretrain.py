"""Pretraining to evaluate policies of random processes."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ictd.algorithms import ALGORITHMS
from ictd.context import Context
from ictd.engine import Engine
from ictd.mrp import Tasks
from ictd.pretraining import pretrain_runs
from ictd.sampling import BatchStatistics, visits_of
from ictd.storage import save_arrays, stacked
from ictd.transformer import Weights, initial_weights
from studies.control.critics import pair_context
from studies.control.processes import (
    Place,
    blocks,
    draw_policies,
    draw_processes,
    pair_paths,
    pair_transitions,
    transition_counts,
)


@dataclass(frozen=True)
class Variant:
    """How a Transformer is pretrained, the settings of one of ``variants``.

    Parameters
    ----------
    place : Place of the processes
    depth : int, number of layers L
    algo : str, "td" or "mc"
    prompts : str
        Prompts of "transitions" have a column for each transition under another policy than the evaluated policy.
        "grouped" prompts have a column for each observed pair (``ictd.context.Context.grouped``).  "enumerated" prompts
        have a column for each pair, as in the paper.
    tasks : int
    prompt_lengths : list of two ints
        The smallest and the largest number of transitions in a prompt that is not enumerated.
    batch : int, number of pairs in a batch
    rollout : int, number of rewards in a return of MC
    clip : float, largest norm of a gradient
    """

    place: Place
    depth: int
    algo: str
    prompts: str
    tasks: int
    prompt_lengths: list[int]
    batch: int
    rollout: int
    clip: float


def main(variant: dict, place: dict, seeds: int, learning_rate: float, initial_gain: float, output: Path) -> None:
    """Write the weights ``u`` and ``A`` of all seeds of a variant, NaN after a divergence, and its ``depth``."""
    variant = Variant(**variant | {"place": Place(**place)})
    place = variant.place

    def pretrained(seed: int) -> Weights:
        start = initial_weights(place.states * place.actions, initial_gain, place.generator(seed, "weights"))
        engine = Engine(start, variant.depth, place.discount, learning_rate, clip=variant.clip)
        draw = training_data(variant, place.generator(seed, "tasks"))
        return pretrain_runs([engine], lambda size, _: [draw(size)], variant.tasks)[0]

    save_arrays(output, depth=variant.depth, **stacked(map(pretrained, range(seeds)), seeds))


def training_data(variant: Variant, rng: np.random.Generator) -> Callable[[int], tuple]:
    """Make a function that draws the arguments of ``Engine.train`` for a number of tasks.

    A task is a random process with a random policy to evaluate, which is soft or greedy with equal probability.
    """
    place = variant.place

    def draw(size):
        shape = (size, place.states, place.actions)
        processes = draw_processes(place, size, rng)
        policy = draw_policies(shape, 0.5, rng)
        behaviour = draw_policies(shape, 1, rng)
        reward = processes.reward.reshape(size, -1)
        if variant.prompts == "enumerated":
            context = Context.enumerated(pair_transitions(processes.transition, policy), reward)
        else:
            paths = pair_paths(processes, behaviour, 1, variant.prompt_lengths[1], rng)[:, 0]
            lengths = rng.integers(*variant.prompt_lengths, size, endpoint=True)
            context = pair_context(transition_counts(paths, lengths, *shape[1:]), processes.reward, policy)
            context = context.grouped() if variant.prompts == "grouped" else context
        steps = variant.rollout if variant.algo == "mc" else 1
        paths = pair_paths(processes, policy, variant.batch, steps, rng)
        batches = batch_statistics(paths, reward, place.discount)
        targets = ALGORITHMS[variant.algo].targets(Tasks.unchecked(reward=reward), batches, place.discount)
        return reward, targets, context.gram_matrix(place.discount)

    return draw


def batch_statistics(paths: np.ndarray, reward: np.ndarray, discount: float) -> BatchStatistics:
    """Compute the statistics of batches of pairs; each pair has its own trajectory.

    Parameters
    ----------
    paths : (N, b, T+1) int array of pairs
    reward : (N, d) array
    discount : float, gamma

    Returns
    -------
    BatchStatistics of the first pairs, the first transitions, and the returns of T rewards
    """
    size, pairs = reward.shape
    powers = discount ** np.arange(paths.shape[2] - 1)
    returns = np.empty(paths.shape[:2])  # (N, b)
    for block in blocks(size):
        rewards = np.take_along_axis(reward[block, None], paths[block, :, :-1], axis=-1)
        returns[block] = rewards @ powers
    start = np.arange(size)[:, None] * pairs + paths[..., 0]
    transition = start * pairs + paths[..., 1]
    transitions = np.bincount(transition.ravel(), minlength=size * pairs**2).reshape(size, pairs, pairs)
    return_sums = np.bincount(start.ravel(), returns.ravel(), size * pairs).reshape(reward.shape)
    return BatchStatistics(visits_of(transitions), transitions, return_sums)
