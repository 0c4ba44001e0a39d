"""Find the best step size of theta^TD and the best two numbers, and evaluate them on other tasks."""

from pathlib import Path

import numpy as np

from ictd.evaluation import draw_unseen_tasks
from ictd.mrp import Tasks
from ictd.prompt import ENUMERATED
from ictd.storage import save_table
from ictd.transformer import estimates
from studies.emergence.few_numbers import basis, without_u
from studies.emergence.minimise import MeanMsve, Minimum, descend

# Number of groups of the tasks for evaluation, over which intervals are computed.
GROUPS = 20
# Candidates for alpha and for beta n (1 - gamma), with attention divided by n.  The search starts from the best few.
ALPHAS, BETAS = (0.4, 0.6, 0.7, 0.8, 0.9, 1.1), (0.0, 0.25, 0.5, 1.0, 1.25)
STARTS, MOST_STEPS = 6, 100
COLUMNS = (
    "env", "states", "discount", "depth", "numbers", "group", "identity", "ones", "tuning_msve", "mean", "median",
)  # fmt: skip


def main(
    env: str,
    states: int,
    discounts: list[float],
    depths: list[int],
    tasks: int,
    tuning_tasks: int,
    env_options: dict,
    output: Path,
) -> None:
    """Write a row for each discount, number of layers, set of numbers and group of tasks for evaluation.

    ``identity`` and ``ones`` are alpha and beta, for attention divided by n.
    """
    rows = []
    for discount in discounts:
        tuning, data = (
            draw_unseen_tasks(seed, states, size, 1, discount, env, "best numbers", **env_options[env])
            for seed, size in ((0, tuning_tasks), (1, tasks))
        )
        gram = data.gram_matrix(ENUMERATED)
        for depth in depths:
            for count in (1, 2):
                best = best_numbers(tuning.tasks, discount, depth, count)
                weights = without_u(np.tensordot(best.z, basis(count, states), axes=1))
                error = data.error(estimates(weights, gram, depth))
                alpha_beta = [*best.z / states, 0.0][:2]
                for group, errors in enumerate(np.array_split(error, min(GROUPS, len(error)))):
                    measured = *alpha_beta, best.msve, errors.mean(), np.median(errors)
                    rows.append((env, states, discount, depth, count, group, *measured))
    save_table(output, dict(zip(COLUMNS, zip(*rows, strict=True), strict=True)))


def best_numbers(tasks: Tasks, discount: float, depth: int, count: int) -> Minimum:
    """Find the one or two numbers with the lowest mean MSVE."""
    n = tasks.states
    objective = MeanMsve(tasks, discount, depth, without_u(basis(count, n)))
    betas = [beta / (n * (1 - discount)) for beta in BETAS] if count == 2 else [0.0]
    starts = [n * np.array([alpha, beta])[:count] for alpha in ALPHAS for beta in betas]
    with np.errstate(over="ignore", invalid="ignore"):
        errors = np.array([(objective.residuals(start) ** 2).sum() for start in starts])
    order = np.argsort(np.where(np.isnan(errors), np.inf, errors), kind="stable")
    ends = [descend(objective, starts[i], 0.0, MOST_STEPS) for i in order[:STARTS] if errors[i] < np.inf]
    return min(ends, key=lambda end: end.msve)
