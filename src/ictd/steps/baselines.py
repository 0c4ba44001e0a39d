"""Evaluate theta^TD, batch TD, LSTD and the zero predictor on the contexts that the Transformers are evaluated on.

The step size of theta^TD is chosen on tasks that nothing is evaluated on.
"""

from pathlib import Path

import numpy as np

from ictd.evaluation import baseline_msve, log_spaced, tune_step_size
from ictd.pipeline.storage import save_arrays, save_json
from ictd.unseen_tasks import draw_unseen_tasks

SECTION = "evaluation"


def main(
    states: int,
    depth: int,
    discount: float,
    attention_scale: str,
    evaluation_env: str,
    env_options: dict,
    seeds: int,
    tasks: int,
    tuning_tasks: int,
    context_lengths: list[int],
    step_sizes: dict,
    lstd_ridge: float,
    tuned: Path,
    output: Path,
) -> None:
    """Write the best step size, with the mean MSVE over all tuning tasks and context lengths for each, as JSON, and
    each method's MSVE for each seed, context length and task."""
    scaled = attention_scale == "context_length"
    place = {"steps": max(context_lengths), "discount": discount, "env": evaluation_env, **env_options}
    tuning, sizes = draw_unseen_tasks(0, states, tuning_tasks, stream="tuning", **place), log_spaced(**step_sizes)
    scores = tune_step_size(tuning, depth, context_lengths, sizes, scaled)
    step_size, shown = float(sizes[np.argmin(scores)]), [score if np.isfinite(score) else None for score in scores]
    save_json(tuned, {"step_size": step_size, "step_sizes": sizes.tolist(), "msve": shown})
    errors = []
    for seed in range(seeds):
        data = draw_unseen_tasks(seed, states, tasks, **place)
        errors.append(baseline_msve(data, depth, context_lengths, step_size, lstd_ridge, scaled))
    methods = {name: np.stack([error[name] for error in errors]) for name in errors[0]}
    save_arrays(output, seeds=np.arange(seeds), context_lengths=np.array(context_lengths), **methods)
