"""Pretrain Transformers with one kind of attention, on enumerated or on sampled prompts, and evaluate them on both."""

from pathlib import Path

import numpy as np
import torch

from ictd.batched import Transformers, initial_matrices, pretrain_runs, theta_masks
from ictd.environments import sample_tasks
from ictd.evaluation import estimates
from ictd.prompts import enumerated_context, sampled_context
from ictd.sampling import sample_paths, unroll
from ictd.steps import run
from ictd.storage import save_arrays
from ictd.streams import generator
from ictd.validation import ENUMERATED, validation_set


def main(
    attention: str,
    prompts: str,
    algos: list[str],
    env: str,
    states: int,
    depth: int,
    discount: float,
    seeds: int,
    tasks: int,
    lengths: list[int],
    clip: float,
    batch_size: int,
    rollout_steps: int,
    learning_rate: float,
    initial_gain: float,
    test_tasks: int,
    context_lengths: list[int],
    env_options: dict,
    output: Path,
) -> None:
    """Write for each algorithm and seed u, A, and the mean and median MSVE on enumerated prompts and at each length.

    Contexts that are sampled have the same length for all runs at a task, so that these can be taken side by side.
    """
    torch.set_num_threads(1)
    streams = [
        {name: generator(seed, env, states, f"attention {name}") for name in ("tasks", "unrolls", "contexts")}
        for seed in range(seeds)
    ]
    task_sets = [sample_tasks(env, states, tasks, stream["tasks"], **env_options) for stream in streams]
    batches = [
        unroll(one, batch_size, discount, rollout_steps, stream["unrolls"])
        for one, stream in zip(task_sets, streams, strict=True)
    ]
    start = [
        initial_matrices(states, initial_gain, 1, False, generator(seed, env, states, "weights"))
        for seed in range(seeds)
    ]
    model = Transformers(*np.stack(start * len(algos), axis=1), depth, True, attention=attention)
    context_of = None
    if prompts == "sampled":
        paths = [
            sample_paths(one, lengths[1], stream["contexts"]) for one, stream in zip(task_sets, streams, strict=True)
        ]
        rewards = np.stack([one.reward for one in task_sets])
        drawn = generator(0, env, states, "attention lengths").integers(lengths[0], lengths[1], tasks, endpoint=True)

        def context_of(i):
            steps = np.stack([path[i, : drawn[i] + 1] for path in paths])
            return np.concatenate([sampled_context(steps, rewards[:, i], discount)] * len(algos))

    diverged_at = pretrain_runs(
        model, np.repeat(algos, seeds), task_sets * len(algos), batches * len(algos), discount, learning_rate,
        theta_masks(states), clip, context_of,
    )  # fmt: skip
    data = validation_set(0, states, test_tasks, max(context_lengths), discount, env, "beyond", **env_options)
    columns = [ENUMERATED, *context_lengths]
    errors = np.empty((len(algos) * seeds, len(columns), test_tasks))
    for k, length in enumerate(columns):
        if length == ENUMERATED:
            context = enumerated_context(data.tasks.transition, data.tasks.reward, discount)
        else:
            context = sampled_context(data.paths[:, : length + 1], data.tasks.reward, discount)
        for i in range(len(errors)):
            errors[i, k] = data.error(estimates(model[i], context))
    weights, shape = model.weights(), (len(algos), seeds)
    arrays = {
        "u": weights.u, "A": weights.A, "diverged_at": diverged_at,
        "mean": errors.mean(axis=-1), "median": np.median(errors, axis=-1),
    }  # fmt: skip
    save_arrays(
        output, algos=np.array(algos), context_lengths=np.array(columns),
        **{name: array.reshape(*shape, *array.shape[1:]) for name, array in arrays.items()},
    )  # fmt: skip


if __name__ == "__main__":
    run(main)
