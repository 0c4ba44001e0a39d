"""Speed of the batched autograd engine, compared with that of single runs (``make benchmark``)."""

import numpy as np
import torch
from benchmark import DEPTH, DISCOUNT, STATES, material, seconds

import ictd
from studies.emergence.batched_engine import Transformers, initial_matrices, pretrain_runs, theta_masks

RUNS, TASKS = 40, 50


def main():
    """Print times per task and run, and their ratio."""
    torch.set_num_threads(1)
    tasks, unrolls, start = material(TASKS)
    matrices = initial_matrices(STATES, 0.1, 1, False, ictd.generator(0, "boyan", STATES, "weights"))
    model = Transformers(*np.stack([matrices] * RUNS, axis=1), DEPTH, True)
    arguments = (["td"] * RUNS, [tasks] * RUNS, [unrolls] * RUNS, DISCOUNT, 1e-3, theta_masks(STATES))
    one = ("td", DEPTH, DISCOUNT, 1e-3, start, "autograd")
    batched = seconds(lambda: pretrain_runs(model, *arguments), repeats=1) / (RUNS * TASKS)
    alone = seconds(lambda: ictd.pretrain(tasks, unrolls, *one), repeats=1) / TASKS
    print(f"td, autograd engine, {RUNS} runs side by side {batched * 1e6:6.0f} microseconds a task and run: ", end="")
    print(f"{alone / batched:.0f} times as fast as one by itself")


if __name__ == "__main__":
    main()
