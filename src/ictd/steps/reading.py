"""Pretrain the main setting's runs under one reading of what the paper leaves open, and evaluate them."""

from pathlib import Path

import numpy as np
import torch

from ictd.evaluation import enumerated_msve, transformer_msve
from ictd.pipeline.storage import save_arrays
from ictd.pipeline.training_data import stored_runs
from ictd.streams import generator
from ictd.unseen_tasks import validation_set
from studies.emergence.readings import Reading


def main(
    algos: list[str],
    env: str,
    states: int,
    depth: int,
    discount: float,
    reading: dict,
    evaluation_env: str,
    env_options: dict,
    test_tasks: int,
    context_lengths: list[int],
    tasks: list[Path],
    unrolls: list[Path],
    output: Path,
) -> None:
    """Write for each algorithm and seed u and A, as means over layers, P and Q, and the MSVE on unseen tasks."""
    torch.set_num_threads(1)
    one = Reading(**reading)
    groups = zip(tasks, unrolls, strict=True)
    runs = [material for pair in groups for material in stored_runs(env, states, one.initial_gain, *pair)]
    seeds, task_sets, batches, _ = zip(*runs, strict=True)
    starts = [generator(seed, env, states, "weights") for seed in seeds]
    model, diverged_at = one.pretrain(algos, depth, discount, task_sets, batches, starts)
    sampled, enumerated = [], []
    for i, seed in enumerate(seeds * len(algos)):
        data = validation_set(seed, states, test_tasks, max(context_lengths), discount, evaluation_env, **env_options)
        sampled.append(transformer_msve(model[i], data, context_lengths))
        enumerated.append(enumerated_msve(model[i], data))
    weights, (P, Q) = model.weights(), model.matrices()
    arrays = {
        "u": weights.u, "A": weights.A, "P": P, "Q": Q, "diverged_at": diverged_at,
        "msve": np.stack(sampled), "enumerated_msve": np.stack(enumerated),
    }  # fmt: skip
    save_arrays(
        output, scaled=np.array(model.scaled), algos=np.array(algos), seeds=np.array(seeds),
        context_lengths=np.array(context_lengths),
        **{name: array.reshape(len(algos), len(seeds), *array.shape[1:]) for name, array in arrays.items()},
    )  # fmt: skip
