"""Evaluate theta^TD, batch TD, LSTD and the zero predictor on the contexts that the Transformers are evaluated on."""

from pathlib import Path

import numpy as np
import torch

from ictd.evaluation import baseline_msve
from ictd.pipeline.storage import load_json, save_arrays
from ictd.unseen_tasks import draw_unseen_tasks

# Section of the configuration that this step takes its settings from first.
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
    context_lengths: list[int],
    lstd_ridge: float,
    tuned: Path,
    output: Path,
) -> None:
    """Write each method's MSVE for each seed, context length and task."""
    torch.set_num_threads(1)
    step_size = load_json(tuned)["step_size"]
    errors = []
    for seed in range(seeds):
        data = draw_unseen_tasks(seed, states, tasks, max(context_lengths), discount, evaluation_env, **env_options)
        scaled = attention_scale == "context_length"
        errors.append(baseline_msve(data, depth, context_lengths, step_size, lstd_ridge, scaled))
    methods = {name: np.stack([error[name] for error in errors]) for name in errors[0]}
    save_arrays(output, seeds=np.arange(seeds), context_lengths=np.array(context_lengths), **methods)
