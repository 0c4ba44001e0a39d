"""Evaluate the runs with one kind of attention on enumerated and on sampled prompts of unseen tasks."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from ictd.evaluation import draw_unseen_tasks
from ictd.prompt import ENUMERATED
from ictd.storage import load_arrays
from ictd.tables import save_table
from ictd.transformer import Weights
from studies.sampled_prompts.attention_engine import Attention, columns_of, estimates


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
    """Write a row a run and context length, 0 for enumerated prompts; runs are in folders PROMPTS-ALGO.

    ``mean`` and ``median`` are of the MSVE over tasks.  ``least_of_one`` and ``most_of_one`` are the extremes, over
    tasks and states, of how much larger estimates are where all rewards are one than where they are zero; ``of_one`` is
    what they have to be with softmax, NaN with other kinds.
    """
    kind = Attention(**attention)
    data = draw_unseen_tasks(0, states, test_tasks, max(context_lengths), discount, env, "beyond", **env_options)
    reward, rows = kind.shown(data.tasks.reward, discount), []
    of_one = kind.of_constant(discount, depth) if kind.kind == "softmax" else np.nan
    loaded = [(path.parent.name.split("-"), load_arrays(path, "seeds", "u", "A")) for path in runs]
    for length in (ENUMERATED, *context_lengths):
        shown = columns_of(data.tasks, discount, reward, None if length == ENUMERATED else data.context(length))
        ones = replace(shown, y=kind.shown(np.ones_like(shown.y), discount))
        for (prompts, algo), trained in loaded:
            for seed, u, A in zip(*trained, strict=True):
                with np.errstate(over="ignore", invalid="ignore"):
                    error = data.error(estimates(Weights(u, A), shown, kind, depth))
                    response = estimates(Weights(0 * u, A), ones, kind, depth)
                name = {"prompts": prompts, "algo": algo, "seed": seed, "context_length": length}
                of = {"mean": error.mean(), "median": np.median(error)}
                of |= {"least_of_one": response.min(), "most_of_one": response.max(), "of_one": of_one}
                rows.append({**name, **of})
    save_table(output, pd.DataFrame(rows))
