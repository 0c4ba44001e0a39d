"""Choose theta^TD's step size for one number of states and layers, on tasks that nothing is evaluated on."""

from pathlib import Path

import numpy as np

from ictd.pipeline.storage import save_json
from ictd.unseen_tasks import draw_unseen_tasks, log_spaced, tune_step_size

# Section of the configuration that this step takes its settings from first.
SECTION = "evaluation"


def main(
    states: int,
    depth: int,
    discount: float,
    attention_scale: str,
    evaluation_env: str,
    env_options: dict,
    tuning_tasks: int,
    context_lengths: list[int],
    step_sizes: dict,
    output: Path,
) -> None:
    """Write the best step size, and the mean MSVE over all tasks and context lengths for each."""
    data = draw_unseen_tasks(
        0, states, tuning_tasks, max(context_lengths), discount, evaluation_env, "tuning", **env_options
    )
    sizes = log_spaced(**step_sizes)
    scores = tune_step_size(data, depth, context_lengths, sizes, attention_scale == "context_length")
    best = float(sizes[np.argmin(scores)])
    save_json(
        output,
        {
            "step_size": best,
            "step_sizes": sizes.tolist(),
            "msve": [score if np.isfinite(score) else None for score in scores],
        },
    )
