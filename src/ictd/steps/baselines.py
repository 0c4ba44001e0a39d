"""Evaluate theta^TD, batch TD, LSTD and the zero predictor on the contexts that the Transformers are evaluated on.

The step size of theta^TD is chosen on tasks that nothing is evaluated on.
"""

from pathlib import Path

import numpy as np

from ictd.evaluation import UnseenTasks, baseline_msve, draw_unseen_tasks, tune_step_size
from ictd.prompt import Context
from ictd.statistics import log_spaced
from ictd.storage import save_arrays, stacked


def main(
    discount: float,
    scaled_attention: bool,
    evaluation_env: str,
    env_options: dict,
    seeds: int,
    tasks: int,
    tuning_tasks: int,
    context_lengths: list[int],
    step_sizes: dict,
    lstd_ridge: float,
    settings: list[str],
    outputs: list[Path],
) -> None:
    """Write the MSVE of each method, for each seed, context length and task, and the errors that chose the step size.

    ``settings`` are the numbers of states and layers, each "states-depth"; ``outputs`` has a file for each, in the same
    order.  Settings with the same number of states are evaluated on the same contexts.
    """
    candidates = log_spaced(**step_sizes)
    place = {"steps": max(context_lengths), "discount": discount, "env": evaluation_env, **env_options}

    def draw(seed: int, states: int, number: int, **stream: str) -> tuple[UnseenTasks, list[Context]]:
        data = draw_unseen_tasks(seed, states, number, **stream, **place)
        return data, [data.context(length) for length in context_lengths]

    # Files by number of states, and by depth.
    files = {}
    for setting, output in zip(settings, outputs, strict=True):
        states, depth = map(int, setting.split("-"))
        files.setdefault(states, {})[depth] = output
    for states, by_depth in files.items():
        data, contexts = draw(0, states, tuning_tasks, stream="tuning")
        tuning_msve = {depth: tune_step_size(data, depth, contexts, candidates, scaled_attention) for depth in by_depth}
        best = {depth: float(candidates[np.argmin(msve)]) for depth, msve in tuning_msve.items()}
        errors = {depth: [] for depth in by_depth}
        for seed in range(seeds):
            data, contexts = draw(seed, states, tasks)
            for depth in by_depth:
                errors[depth].append(baseline_msve(data, depth, contexts, best[depth], lstd_ridge, scaled_attention))
        for depth, output in by_depth.items():
            save_arrays(
                output,
                seeds=np.arange(seeds),
                context_lengths=np.array(context_lengths),
                step_sizes=candidates,
                tuning_msve=tuning_msve[depth],
                **stacked(errors[depth], seeds),
            )
