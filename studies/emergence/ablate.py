"""Decompose a cell's pretrained weights, and evaluate them with parts removed."""

from pathlib import Path

import numpy as np

from ictd.decomposition import decomposition_measures
from ictd.pipeline.storage import load_arrays, save_arrays
from ictd.unseen_tasks import ENUMERATED, batch_td_msve, log_spaced, tune_step_size, validation_set
from ictd.weights import Weights
from studies.emergence.variants import VARIANTS, errors

# All models are evaluated on the same tasks.
SEED = 0


def main(
    states: int,
    depth: int,
    discount: float,
    attention_scale: str,
    evaluation_env: str,
    env_options: dict,
    tasks: int,
    tuning_tasks: int,
    context_lengths: list[int],
    step_sizes: dict,
    weights: Path,
    output: Path,
) -> None:
    """Write each run's measures, and its MSVE and that of each variant, on enumerated prompts and sampled contexts."""
    seeds, u, A, diverged_at = load_arrays(weights, "seeds", "u", "A", "diverged_at")
    kept = diverged_at == 0
    runs, lengths = Weights(u[kept], A[kept]), [ENUMERATED, *context_lengths]
    scaled = attention_scale == "context_length"
    place = {"longest": max(context_lengths), "discount": discount, "env": evaluation_env, **env_options}
    data = validation_set(SEED, states, tasks, purpose="ablation", **place)
    tuning = validation_set(SEED, states, tuning_tasks, purpose="ablation tuning", **place)
    sizes = log_spaced(**step_sizes) * (states if scaled else 1)
    scores = [tune_step_size(tuning, depth, [length], sizes, scaled) for length in lengths]
    best = sizes[np.argmin(scores, axis=1)]
    with np.errstate(over="ignore", invalid="ignore"):
        found = [errors(variant(runs, discount), data, lengths, depth, scaled) for variant in VARIANTS.values()]
        theta = np.concatenate(
            [
                batch_td_msve(data, depth, [data.context(length)], one, scaled)[0]
                for one, length in zip(best[:, None], lengths, strict=True)
            ]
        )
    save_arrays(
        output, seeds=seeds[kept], variants=np.array(list(VARIANTS)), lengths=np.array(lengths),
        mean=np.stack([part.mean for part in found]), median=np.stack([part.median for part in found]),
        best_coefficient=best, best_mean=theta.mean(axis=1), best_median=np.median(theta, axis=1),
        **decomposition_measures(runs, discount, scaled),
    )  # fmt: skip
