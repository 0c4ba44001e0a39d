"""Find the best few numbers for each discount and number of layers, and evaluate them on other tasks."""

from pathlib import Path

import numpy as np

from ictd.evaluation import UnseenTasks, draw_unseen_tasks
from ictd.prompt import ENUMERATED
from ictd.storage import save_table
from ictd.transformer import estimates
from studies.emergence.few_numbers import SETS, basis, least_squares, mean_msve, weights_at

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
            draw_unseen_tasks(seed, states, size, 1, discount, env, "best numbers", **env_options)
            for seed, size in ((0, tuning_tasks), (1, tasks))
        )
        for depth in depths:
            for number, (found, tuning_msve) in best_numbers(tuning, [ENUMERATED], depth, tuple(SETS)).items():
                bases = basis(number, states)
                error = data.error(estimates(weights_at(found, bases), data.gram(ENUMERATED), depth))
                numbers = [*found[:2] / states, 0.0][:2]
                for group, errors in enumerate(np.array_split(error, min(GROUPS, len(error)))):
                    measured = *numbers, tuning_msve, errors.mean(), np.median(errors)
                    rows.append((env, states, discount, depth, number, group, *measured))
    save_table(output, dict(zip(COLUMNS, zip(*rows, strict=True), strict=True)))


def best_numbers(
    data: UnseenTasks, contexts: list[int] | list, depth: int, sets: tuple[int, ...]
) -> dict[int, tuple[np.ndarray, float]]:
    """Find the numbers of each set with the lowest mean MSVE over tasks and contexts.

    Parameters
    ----------
    data : UnseenTasks
    contexts : list of context lengths, or of Contexts, one context for each task
    depth : int, L
    sets : keys of SETS, ascending

    Returns
    -------
    dict of (coefficients (K,), MSVE) by the key of the set
    """
    n = data.tasks.states
    grams = [data.gram(one) if isinstance(one, int) else one.gram(data.discount) for one in contexts]
    slow = 1 / (n * (1 - data.discount))
    found = {}
    for number in sets:
        bases = basis(number, n)
        if number == 1:
            starts = [np.array([n * alpha]) for alpha in ALPHAS]
        elif number == 2:
            starts = [n * np.array([alpha, beta * slow]) for alpha in ALPHAS for beta in BETAS]
        else:
            starts = [np.append(found[2][0], np.zeros(len(bases) - 2))]
        given = bases, grams, data.value, data.tasks.stationary, depth
        starts = sorted(starts, key=lambda start: mean_msve(start, *given))[:STARTS]
        ends = [least_squares(start, *given) for start in starts]
        found[number] = min(ends, key=lambda end: end[1])
    return found
