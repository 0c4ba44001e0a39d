"""Pretrain on relabelled tasks, and test these weights and those of ordinary tasks on both kinds of tasks."""

from pathlib import Path

import numpy as np

from ictd.context import Context
from ictd.evaluation import UnseenTasks, draw_unseen_tasks
from ictd.mrp import TaskDistribution
from ictd.pretraining import pretrain
from ictd.prompt import ENUMERATED
from ictd.storage import load_arrays, save_arrays
from ictd.transformer import Weights
from ictd.weight_measures import shortest_identifiable
from studies.emergence.constants import eight_numbers, matrix_of, two_by_law
from studies.emergence.few_numbers import without_u
from studies.emergence.questions import estimates_of_runs
from studies.emergence.symmetry import family_part

# Parts of A whose errors are compared.
PARTS = "nothing", "family part", "two numbers", "and a by the law", "eight numbers", "all of A"


def main(
    algo: str,
    env: str,
    states: int,
    depth: int,
    discount: float,
    seeds: int,
    updates: int,
    test_tasks: int,
    context_lengths: list[int],
    weights: list[Path],
    output: Path,
) -> None:
    """Write A and the errors of runs on both kinds of tasks.

    ``weights`` has the paper's runs on ordinary tasks, or no file.  The arrays have the axes: trained on ordinary or
    relabelled tasks, run, and for the MSVE (mean and median over tasks) tested on ordinary or relabelled tasks, and
    format.  Formats are enumerated prompts, each length with a column for each step, and each length grouped.
    ``constants`` and ``constants_family`` are errors for rewards of one, of all weights and of their family part.
    ``parts`` are medians over tasks of the MSVE of ``PARTS`` of A on enumerated prompts of the tasks of pretraining.
    """
    kinds = env, f"relabelled_{env}"
    runs = []
    for kind in kinds:
        if weights and kind == env:
            runs.append(Weights(*load_arrays(weights[0], "u", "A")))
        else:
            chains = TaskDistribution(kind, states=states)
            model = pretrain(chains, depth, discount, target=algo, updates=updates, seeds=range(seeds), progress=False)
            runs.append(model.weights)
    tested = [
        draw_unseen_tasks(0, states, test_tasks, max(context_lengths), discount, kind, "symmetry") for kind in kinds
    ]
    lengths = [ENUMERATED, *context_lengths]
    mean, median = (
        np.stack([np.stack([over(errors(run, data, lengths, depth), axis=-1) for data in tested]) for run in runs])
        for over in (np.mean, np.median)
    )
    A = np.stack([run.A for run in runs])
    family = family_part(shortest_identifiable(A, discount))
    constants, constants_family = (
        np.stack([error_of_constants(*pair, depth) for pair in zip(weights, tested, strict=True)])
        for weights in (runs, map(without_u, family))
    )
    parts = np.stack([errors_of_parts(*pair, depth) for pair in zip(A, tested, strict=True)])
    arrays = {"mean": mean, "median": median, "constants": constants, "constants_family": constants_family}
    save_arrays(output, A=A, parts=parts, **arrays)


def error_of_constants(weights: Weights, data: UnseenTasks, depth: int) -> np.ndarray:
    """Mean relative error (S,) over tasks and states, on enumerated prompts, if each reward is one."""
    context = Context.enumerated(data.tasks.transition, np.ones_like(data.value))
    estimates = estimates_of_runs(weights, context, data.discount, depth)
    return np.abs((1 - data.discount) * estimates - 1).reshape(len(estimates), -1).mean(axis=1)


def errors_of_parts(A: np.ndarray, data: UnseenTasks, depth: int) -> np.ndarray:
    """Median MSVE (parts, S) over tasks of ``PARTS`` of A (S, 2n, 2n), on enumerated prompts."""
    discount, n = data.discount, data.tasks.states
    numbers = eight_numbers(A, discount)
    two, by_law = numbers * [1, 1, 0, 0, 0, 0], two_by_law(numbers, n, discount, depth)
    nothing, two, by_law, eight = (matrix_of(part, n) for part in (0 * numbers, two, by_law, numbers))
    parts = nothing, family_part(shortest_identifiable(A, discount)), two, by_law, eight, A
    return np.stack([np.median(errors(without_u(part), data, [ENUMERATED], depth)[0], axis=-1) for part in parts])


def formats(lengths: list[int]) -> list[str]:
    """Names of the formats of prompts, in the order of ``errors``."""
    return ["enumerated", *(f"{length} {form}" for form in ("steps", "grouped") for length in lengths)]


def errors(weights: Weights, data: UnseenTasks, lengths: list[int], depth: int) -> np.ndarray:
    """MSVE (formats, S, tasks) of S runs."""
    contexts = [data.context(length) for length in lengths]
    contexts += [context.grouped() for context in contexts[1:]]
    return np.stack([data.error(estimates_of_runs(weights, context, data.discount, depth)) for context in contexts])
