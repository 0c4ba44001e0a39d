"""Pretraining to evaluate policies of random processes, with snapshots of the weights."""

from collections.abc import Callable
from pathlib import Path

import numpy as np

from ictd.engine import Engine
from ictd.pretraining import pretrain_runs
from ictd.prompt import Context
from ictd.rng import generator
from ictd.sampling import BatchStatistics
from ictd.storage import save_arrays
from ictd.transformer import initial_weights
from studies.control.contexts import pair_context
from studies.control.processes import (
    blocks,
    draw_policies,
    draw_processes,
    pair_paths,
    pair_transitions,
    transition_counts,
)


def main(
    variant: dict,
    seeds: int,
    snapshots: list[int],
    prompt_lengths: list[int],
    concentrations: list[float],
    batch: int,
    rollout: int,
    clip: float,
    learning_rate: float,
    initial_gain: float,
    output: Path,
) -> None:
    """Write snapshots of the weights ``u`` and ``A`` of all seeds of a variant, NaN after a divergence."""
    tasks = variant["tasks"]
    tasks_seen = np.array(sorted({number for number in (*snapshots, tasks) if number <= tasks}))
    pairs = variant["states"] * variant["actions"]
    name = f"{variant['family']}-{variant['actions']}"
    u, A = [], []
    for seed in range(seeds):
        start = initial_weights(pairs, initial_gain, generator(seed, name, variant["states"], "control weights"))
        rng = generator(seed, name, variant["states"], "control tasks")
        engine = Engine(start, variant["algo"], variant["depth"], variant["discount"], learning_rate, clip=clip)
        draw = training_data(variant, prompt_lengths, concentrations, batch, rollout, rng)
        (weights,) = pretrain_runs([engine], lambda size, _, draw=draw: [draw(size)], [tasks_seen])
        u.append(weights.u)
        A.append(weights.A)
    save_arrays(output, tasks_seen=tasks_seen, u=np.stack(u), A=np.stack(A))


def training_data(
    variant: dict,
    lengths: list[int],
    concentrations: list[float],
    batch: int,
    rollout: int,
    rng: np.random.Generator,
) -> Callable[[int], tuple]:
    """Make a function that draws the arguments of ``Engine.train`` for a number of tasks.

    A task is a random process with a random policy to evaluate.

    Parameters
    ----------
    variant : dict of ``grid.variants``
        "sampled" prompts have a column for each transition under another policy than the evaluated policy.  "grouped"
        prompts have a column for each observed pair (``ictd.prompt.Context.grouped``).  "enumerated" prompts have a
        column for each pair, as in the paper.
    lengths : list of two ints, the smallest and the largest number of transitions in a sampled or grouped prompt
    concentrations : list of float, of the Dirichlet distributions
    batch : int, number of pairs in a batch
    rollout : int, number of rewards in a return of MC
    rng : numpy.random.Generator
    """
    states, actions = variant["states"], variant["actions"]

    def draw(size):
        shape = (size, states, actions)
        processes = draw_processes(variant["family"], *shape, concentrations, rng)
        policy = draw_policies(variant["policies"], shape, rng)
        behaviour = draw_policies("soft", shape, rng)
        reward = processes.reward.reshape(size, -1)
        if variant["prompts"] == "enumerated":
            context = Context.enumerated(pair_transitions(processes.transition, policy), reward)
        else:
            paths = pair_paths(processes, behaviour, 1, lengths[1], rng)[:, 0]
            prompt_lengths = rng.integers(*lengths, size, endpoint=True)
            counts = transition_counts(paths, prompt_lengths, states, actions)
            context = pair_context(counts, processes.reward, policy)
            if variant["prompts"] == "grouped":
                context = context.grouped()
        gram = context.gram_matrix(variant["discount"])
        steps = rollout if variant["algo"] == "mc" else 1
        paths = pair_paths(processes, policy, batch, steps, rng)
        return reward, batch_statistics(paths, reward, variant["discount"]), gram

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
    task = np.arange(size)[:, None]
    powers = discount ** np.arange(paths.shape[2] - 1)
    returns = np.empty(paths.shape[:2])  # (N, b)
    for block in blocks(size):
        rewards = np.take_along_axis(reward[block, None], paths[block, :, :-1], axis=-1)
        returns[block] = rewards @ powers
    start = task * pairs + paths[..., 0]
    transition = start * pairs + paths[..., 1]
    visits = np.bincount(start.ravel(), minlength=size * pairs)
    transitions = np.bincount(transition.ravel(), minlength=size * pairs**2)
    return_sums = np.bincount(start.ravel(), returns.ravel(), size * pairs)
    return BatchStatistics(
        visits.reshape(size, pairs), transitions.reshape(size, pairs, pairs), return_sums.reshape(size, pairs)
    )
