"""Find the best few numbers for each discount and number of layers, and evaluate them on other tasks."""

from pathlib import Path

import numpy as np

from ictd.evaluation import UnseenTasks, draw_unseen_tasks
from ictd.prompt import ENUMERATED
from ictd.storage import save_table
from ictd.transformer import estimates
from studies.emergence.few_numbers import SETS, BestNumbers, basis, least_squares, mean_msve, weights_at

# Number of groups of the tasks for evaluation, over which intervals are computed.
GROUPS = 20
# Candidates for alpha and for beta n (1 - gamma), with attention divided by n.  The search starts from the best few.
ALPHAS, BETAS = (0.4, 0.6, 0.7, 0.8, 0.9, 1.1), (0.0, 0.25, 0.5, 1.0, 1.25)
STARTS = 6
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

    The search for each larger set starts from the best two numbers.  Numbers refer to attention divided by n.
    """
    rows = []
    for discount in discounts:
        tuning, data = (
            draw_unseen_tasks(seed, states, size, 1, discount, env, "best numbers", **env_options[env])
            for seed, size in ((0, tuning_tasks), (1, tasks))
        )
        for depth in depths:
            for count, best in best_numbers(tuning, [ENUMERATED], depth, tuple(SETS)).items():
                weights = weights_at(best.numbers, basis(count, states))
                error = data.error(estimates(weights, data.gram_matrix(ENUMERATED), depth))
                alpha_beta = [*best.numbers[:2] / states, 0.0][:2]
                for group, errors in enumerate(np.array_split(error, min(GROUPS, len(error)))):
                    measured = *alpha_beta, best.msve, errors.mean(), np.median(errors)
                    rows.append((env, states, discount, depth, count, group, *measured))
    save_table(output, dict(zip(COLUMNS, zip(*rows, strict=True), strict=True)))


def best_numbers(
    data: UnseenTasks, contexts: list[int] | list, depth: int, sets: tuple[int, ...]
) -> dict[int, BestNumbers]:
    """Find the numbers of each set with the lowest mean MSVE over tasks and contexts.

    Parameters
    ----------
    data : UnseenTasks
    contexts : list of context lengths, or of Contexts, one context for each task
    depth : int, L
    sets : keys of SETS, ascending

    Returns
    -------
    dict of BestNumbers by the key of the set
    """
    n = data.tasks.states
    grams = [(data.context(one) if isinstance(one, int) else one).gram_matrix(data.discount) for one in contexts]
    slow = 1 / (n * (1 - data.discount))
    best = {}
    for count in sets:
        bases = basis(count, n)
        if count == 1:
            starts = [np.array([n * alpha]) for alpha in ALPHAS]
        elif count == 2:
            starts = [n * np.array([alpha, beta * slow]) for alpha in ALPHAS for beta in BETAS]
        else:
            starts = [np.append(best[2].numbers, np.zeros(count - 2))]
        given = bases, grams, data.value, data.tasks.stationary, depth
        starts = sorted(starts, key=lambda start: mean_msve(start, *given))[:STARTS]
        ends = [least_squares(start, *given) for start in starts]
        best[count] = min(ends, key=lambda end: end.msve)
    return best
