"""Tune the step sizes of TD and of deflated TD on each format of prompts."""

from pathlib import Path

import numpy as np

from ictd.evaluation import UnseenTasks, draw_unseen_tasks
from ictd.prompt import ENUMERATED, Context
from ictd.storage import save_arrays
from studies.emergence.best_numbers import best_numbers
from studies.emergence.runs import SEED

# Names of the algorithms by the count of their step sizes.
ALGORITHMS = {1: "td", 2: "deflated_td"}


def main(
    states: int,
    depth: int,
    discount: float,
    evaluation_env: str,
    env_options: dict,
    tuning_tasks: int,
    context_lengths: list[int],
    output: Path,
) -> None:
    """Write the best step sizes (formats, K) of each of ALGORITHMS, in the order of ``formats``.

    The algorithms make as many updates as there are layers.  Their step sizes minimise the mean MSVE over all context
    lengths of one format.
    """
    steps = max(context_lengths)
    place = {"env": evaluation_env, "stream": "ablation tuning", **env_options[evaluation_env]}
    tuning = draw_unseen_tasks(SEED, states, tuning_tasks, steps, discount, **place)
    best = [
        best_numbers(tuning, list(contexts.values()), depth, tuple(ALGORITHMS))
        for contexts in formats(tuning, context_lengths).values()
    ]
    step_sizes = {
        method: np.array([of_format[count].numbers for of_format in best]) for count, method in ALGORITHMS.items()
    }
    save_arrays(output, **step_sizes)


def formats(data: UnseenTasks, context_lengths: list[int]) -> dict[str, dict[int, Context]]:
    """Contexts by format and length.

    ``enumerated`` is the prompt of pretraining.  ``steps`` has a column for each step of a trajectory.  ``grouped`` has
    a column for each visited state, with its mean next feature; attention is divided by n.
    """
    steps = {length: data.context(length) for length in context_lengths}
    return {
        "enumerated": {ENUMERATED: data.context(ENUMERATED)},
        "steps": steps,
        "grouped": {length: context.grouped() for length, context in steps.items()},
    }
