"""Evaluate the runs with one kind of attention on enumerated and on sampled prompts of unseen tasks."""

from pathlib import Path

import numpy as np
import pandas as pd

from ictd.evaluation import UnseenTasks, draw_unseen_tasks
from ictd.prompt import ENUMERATED
from ictd.storage import load_arrays, save_table
from ictd.transformer import Weights
from studies.sampled_prompts.attention_engine import Attention, WeightedColumns, estimates


def main(
    attention: dict,
    env: str,
    states: int,
    depth: int,
    discount: float,
    test_tasks: int,
    context_lengths: list[int],
    env_options: dict,
    runs: list[Path],
    output: Path,
) -> None:
    """Write a row for each run and context length; the length ENUMERATED stands for enumerated prompts.

    ``mean`` and ``median`` of the MSVE are over tasks.  The response of an estimate is its increase if all rewards rise
    from 0 to 1; ``least_response`` and ``greatest_response`` are the extremes over tasks and states.  Runs are in
    folders PROMPTS-ALGO.
    """
    kind = Attention(**attention)
    data = draw_unseen_tasks(0, states, test_tasks, max(context_lengths), discount, env, "beyond", **env_options[env])
    trained = [(path.parent.name.split("-"), load_arrays(path, "seeds", "u", "A")) for path in runs]
    unit_reward = kind.prompt_rewards(1.0, discount)
    table = []
    for length in (ENUMERATED, *context_lengths):
        columns = columns_of_length(data, length, kind)
        for (prompts, algo), weights in trained:
            for seed, u, A in zip(*weights, strict=True):
                with np.errstate(over="ignore", invalid="ignore"):
                    estimate, response = estimates(Weights(u, A), columns, kind, depth, unit_reward)
                    error = data.error(estimate)
                table.append({
                    "prompts": prompts, "algo": algo, "seed": seed, "context_length": length,
                    "mean": error.mean(), "median": np.median(error),
                    "least_response": response.min(), "greatest_response": response.max(),
                })  # fmt: skip
    save_table(output, pd.DataFrame(table))


def columns_of_length(data: UnseenTasks, length: int, attention: Attention) -> WeightedColumns:
    """Columns of the contexts of one length, or of enumerated contexts, for the length ENUMERATED."""
    reward = attention.prompt_rewards(data.tasks.reward, data.discount)
    if length == ENUMERATED:
        return WeightedColumns.enumerated(data.tasks.transition, reward, data.discount)
    return WeightedColumns.sampled(data.context(length), reward, data.discount)
