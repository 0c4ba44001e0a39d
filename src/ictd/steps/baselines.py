"""Evaluate theta^TD, batch TD, LSTD and the zero predictor on the contexts that the Transformers are evaluated on.

The step size of theta^TD is chosen on tasks that nothing is evaluated on.
"""

from pathlib import Path

import numpy as np

from ictd.evaluation import UnseenTasks, baseline_msve, draw_unseen_tasks, log_spaced, tune_step_size
from ictd.prompt import Context
from ictd.storage import save_arrays, save_json


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
    tuned: list[Path],
    baselines: list[Path],
) -> None:
    """Write the best step size, with the mean MSVE over all tuning tasks and context lengths for each, as JSON, and
    each method's MSVE for each seed, context length and task, for each number of states and of layers.

    These are the ``settings``, each "states-depth", and the files of both are in the order of these.
    """
    scaled, sizes = scaled_attention, log_spaced(**step_sizes)
    place = {"steps": max(context_lengths), "discount": discount, "env": evaluation_env, **env_options}

    def drawn(seed: int, states: int, number: int, **stream: str) -> tuple[UnseenTasks, list[Context]]:
        data = draw_unseen_tasks(seed, states, number, **stream, **place)
        return data, [data.context(length) for length in context_lengths]

    files = {}
    for setting, of_step_size, output in zip(settings, tuned, baselines, strict=True):
        states, depth = map(int, setting.split("-"))
        files.setdefault(states, {})[depth] = of_step_size, output
    for states, of_depths in files.items():
        tuning, contexts = drawn(0, states, tuning_tasks, stream="tuning")
        scores = {depth: tune_step_size(tuning, depth, contexts, sizes, scaled) for depth in of_depths}
        best, errors = {depth: float(sizes[np.argmin(one)]) for depth, one in scores.items()}, {}
        for seed in range(seeds):
            data, contexts = drawn(seed, states, tasks)
            for depth in of_depths:
                found = baseline_msve(data, depth, contexts, best[depth], lstd_ridge, scaled)
                errors.setdefault(depth, []).append(found)
        for depth, (of_step_size, output) in of_depths.items():
            shown = [score if np.isfinite(score) else None for score in scores[depth]]
            save_json(of_step_size, {"step_size": best[depth], "step_sizes": sizes.tolist(), "msve": shown})
            methods = {name: np.stack([error[name] for error in errors[depth]]) for name in errors[depth][0]}
            save_arrays(output, seeds=np.arange(seeds), context_lengths=np.array(context_lengths), **methods)
