"""Join the runs of all seeds of a cell in one file, which ``ictd.load_model`` reads."""

from pathlib import Path

import numpy as np

from ictd.storage import join_arrays, save_arrays


def main(depth: int, discount: float, scaled_attention: bool, runs: list[Path], output: Path) -> None:
    """Write the weights at the end of pretraining and at all snapshots, learning curves, and settings of the model."""
    names = "seeds", "tasks_seen", "u", "A", "online_msve", "diverged_at"
    seeds, tasks_seen, u, A, online_msve, diverged_at = join_arrays(runs, *names)
    save_arrays(
        output,
        seeds=seeds,
        u=u[:, -1],
        A=A[:, -1],
        diverged_at=diverged_at,
        tasks_seen=tasks_seen[0],
        history_u=u,
        history_A=A,
        online_msve=online_msve,
        depth=np.array(depth),
        discount=np.array(discount),
        scaled=np.array(scaled_attention),
    )
