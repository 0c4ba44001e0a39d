"""Pretrain far beyond the paper's number of tasks, and keep the weights on the way."""

from pathlib import Path

from ictd.environments import sample_tasks
from ictd.fused_engine import FusedEngine
from ictd.pipeline.storage import save_arrays
from ictd.pretraining import pretrain_in_blocks
from ictd.snapshots import snapshot_counts
from ictd.streams import generator
from ictd.trajectories import unroll
from ictd.weights import initial_weights


def main(
    algo: str,
    env: str,
    states: int,
    depth: int,
    seed: int,
    tasks: int,
    snapshots: int,
    discount: float,
    batch_size: int,
    rollout_steps: int,
    learning_rate: float,
    initial_gain: float,
    attention_scale: str,
    env_options: dict,
    output: Path,
) -> None:
    """Write the weights of one run at log-spaced task counts; NaN from a divergence on."""
    streams = {name: generator(seed, env, states, f"course {name}") for name in ("tasks", "unrolls")}
    start = initial_weights(states, initial_gain, generator(seed, env, states, "weights"))
    engine = FusedEngine(start, algo, depth, discount, learning_rate, attention_scale == "context_length")
    # Multi-task TD has no use for returns, whose simulation takes most of the time.
    steps = rollout_steps if algo == "mc" else 1

    def draw(size):
        block = sample_tasks(env, states, size, streams["tasks"], **env_options)
        return block, unroll(block, batch_size, discount, steps, streams["unrolls"])

    seen = snapshot_counts(tasks, snapshots)
    weights = pretrain_in_blocks(engine, draw, seen)
    save_arrays(output, tasks_seen=seen, u=weights.u, A=weights.A)
