"""Pretrain far beyond the paper's number of tasks, and keep snapshots of the weights."""

from pathlib import Path

import numpy as np

from ictd.engine import Engine
from ictd.mrp import sample_tasks
from ictd.pipeline.grid import seeds_of
from ictd.pretraining import pretrain_runs
from ictd.rng import generator
from ictd.sampling import unroll
from ictd.statistics import log_spaced_integers
from ictd.storage import save_arrays
from ictd.transformer import Weights, initial_weights


def main(
    algo: str,
    env: str,
    states: int,
    depth: int,
    seeds: str,
    tasks: int,
    snapshots: int,
    discount: float,
    batch_size: int,
    rollout_steps: int,
    learning_rate: float,
    initial_gain: float,
    scaled_attention: bool,
    env_options: dict,
    output: Path,
) -> None:
    """Write the weights of each seed's run at log-spaced numbers of tasks, NaN after a divergence."""
    tasks_seen = log_spaced_integers(tasks, snapshots)
    # TD does not use returns.  Sampling them takes most of the time.
    steps = rollout_steps if algo == "mc" else 1

    def run(seed: int) -> Weights:
        streams = {name: generator(seed, env, states, f"course {name}") for name in ("tasks", "unrolls")}
        start = initial_weights(states, initial_gain, generator(seed, env, states, "weights"))
        engine = Engine(start, algo, depth, discount, learning_rate, scaled_attention)

        def draw(size, _):
            block = sample_tasks(env, states, size, streams["tasks"], **env_options[env])
            batches = unroll(block, batch_size, discount, steps, streams["unrolls"])
            return [(block.reward, batches, block.transition)]

        return pretrain_runs([engine], draw, [tasks_seen])[0]

    runs = [run(seed) for seed in seeds_of(seeds)]
    u, A = (np.stack([getattr(weights, name) for weights in runs]) for name in ("u", "A"))
    save_arrays(output, seeds=np.array(seeds_of(seeds)), tasks_seen=tasks_seen, u=u, A=A)
