"""Pretrain to evaluate policies of random processes, and keep the weights on the way."""

from pathlib import Path

import numpy as np

from ictd.engine import Engine
from ictd.pretraining import pretrain_in_blocks
from ictd.prompt import Context
from ictd.rng import generator
from ictd.sampling import BatchStatistics
from ictd.storage import save_arrays
from ictd.transformer import initial_weights
from studies.control.contexts import context_of
from studies.control.processes import draw_policies, draw_processes, pair_paths, pair_transitions, transition_counts


def batches(paths: np.ndarray, reward: np.ndarray, discount: float) -> BatchStatistics:
    """What multi-task TD and MC take from the paths (N, W, T + 1) of a batch of pairs: their first pairs, of d, their
    first transitions, and their returns of T rewards, of which r is (N, d)."""
    (size, pairs), task = reward.shape, np.arange(len(paths))[:, None]
    powers = discount ** np.arange(paths.shape[2] - 1)
    returns, start = reward[task[..., None], paths[..., :-1]] @ powers, task * pairs + paths[..., 0]
    visits = np.bincount(start.ravel(), minlength=size * pairs).reshape(size, pairs)
    moves = np.bincount((start * pairs + paths[..., 1]).ravel(), minlength=size * pairs**2)
    sums = np.bincount(start.ravel(), returns.ravel(), size * pairs).reshape(size, pairs)
    return BatchStatistics(visits, moves.reshape(size, pairs, pairs), sums)


def material(of: dict, lengths: list[int], concentrations: list[float], batch: int, rollout: int, rng):
    """A function that draws what the engine takes of a number of tasks of a variant.  Prompts are "sampled" under
    another policy than the one evaluated, or "enumerated", as the paper's: a column a pair, its next feature a mean."""

    def draw(size):
        shape = (size, of["states"], of["actions"])
        processes = draw_processes(of["family"], *shape, concentrations, rng)
        policy, behaviour = (draw_policies(kind, shape, rng) for kind in (of["policies"], "soft"))
        reward = processes.reward.reshape(size, -1)
        if of["prompts"] == "enumerated":
            context = Context.enumerated(pair_transitions(processes.transition, policy), reward)
        else:
            paths = pair_paths(processes, behaviour, 1, lengths[1], rng)
            cut = rng.integers(*lengths, size, endpoint=True)
            context = context_of(transition_counts(paths, cut, *shape[1:]), processes.reward, policy)
        gram = context.gram(of["discount"])
        paths = pair_paths(processes, policy, batch, rollout if of["algo"] == "mc" else 1, rng)
        return reward, batches(paths, reward, of["discount"]), gram

    return draw


def main(variant: dict, seeds: int, snapshots: list[int], prompt_lengths: list[int], concentrations: list[float],
         batch: int, rollout: int, clip: float, learning_rate: float, initial_gain: float,
         output: Path) -> None:  # fmt: skip
    """Write the weights ``u`` and ``A`` of all seeds of a variant at numbers of tasks, NaN from a divergence on."""
    seen, found = np.array(sorted({one for one in (*snapshots, variant["tasks"]) if one <= variant["tasks"]})), []
    pairs, name = variant["states"] * variant["actions"], f"{variant['family']}-{variant['actions']}"
    for seed in range(seeds):
        start = initial_weights(pairs, initial_gain, generator(seed, name, variant["states"], "control weights"))
        rng = generator(seed, name, variant["states"], "control tasks")
        engine = Engine(start, variant["algo"], variant["depth"], variant["discount"], learning_rate, clip=clip)
        draw = material(variant, prompt_lengths, concentrations, batch, rollout, rng)
        found.append(pretrain_in_blocks(engine, draw, seen))
    save_arrays(output, tasks_seen=seen, **{key: np.stack([getattr(one, key) for one in found]) for key in "uA"})
