"""Pretrain a few numbers by the paper's algorithms, and compare them with all of A and with algorithms."""

from pathlib import Path

import numpy as np

from ictd.baselines import lstd
from ictd.evaluation import UnseenTasks, draw_unseen_tasks
from ictd.pipeline.grid import Cell
from ictd.rng import generator
from ictd.statistics import standard_error
from ictd.steps.tasks import stored_runs
from ictd.storage import load_arrays, save_table
from ictd.transformer import Weights, estimates, initial_weights
from studies.emergence.few_numbers import SETS, basis, nearest_numbers, number_measures, weights_at
from studies.emergence.numbers_engine import pretrain_numbers
from studies.emergence.runs import SEED, load_finite_runs
from studies.emergence.tuned_numbers import ALGORITHMS, formats

COLUMNS = (
    "algo", "env", "states", "depth", "method", "format", "context_length", "seed", "identity", "ones", "mean", "error",
    "median",
)  # fmt: skip


def main(
    algo: str,
    env: str,
    states: int,
    depth: int,
    discount: float,
    learning_rate: float,
    initial_gain: float,
    lstd_ridge: float,
    scaled_attention: bool,
    evaluation_env: str,
    env_options: dict,
    test_tasks: int,
    context_lengths: list[int],
    tasks: list[Path],
    returns: list[Path],
    weights: Path,
    tuned: Path,
    output: Path,
) -> None:
    """Write a row for each method, format of the prompt, context length and seed.

    Numbers are trained on the same tasks and batches as all of A, and start from the projection of its initial weights.
    The algorithms ``td`` and ``deflated_td`` make as many updates as there are layers, with the step sizes of the file
    ``tuned``.  Methods without seeds have seed -1.  ``error`` is the standard error of the mean over tasks.
    """
    scaled = scaled_attention
    place = {"steps": max(context_lengths), "discount": discount, "env": evaluation_env}
    place |= env_options[evaluation_env]
    data = draw_unseen_tasks(SEED, states, test_tasks, stream="ablation", **place)
    models = {"all": load_finite_runs([weights])}
    for count in SETS:
        bases = basis(count, states)
        trained = []
        for tasks_file, returns_file in zip(tasks, returns, strict=True):
            for seed, task_set, batches in stored_runs(tasks_file, returns_file):
                start = initial_weights(states, initial_gain, generator(seed, env, states, "weights"))
                initial = nearest_numbers(start.A, bases, discount)
                given = task_set.reward, task_set.transition, batches, algo, depth, discount, learning_rate, scaled
                trained.append((seed, pretrain_numbers(initial, bases, *given)))
        kept = [(seed, numbers) for seed, numbers in trained if np.isfinite(numbers).all()]
        if kept:
            seeds, numbers = zip(*kept, strict=True)
            models[f"numbers_{count}"] = seeds, weights_at(np.array(numbers), bases)
    step_sizes = load_arrays(tuned, *ALGORITHMS.values())
    rows = []

    def add(method, name, length, seed, alpha_beta, errors):
        measured = *alpha_beta, errors.mean(), standard_error(errors), np.median(errors)
        rows.append((*Cell(algo, env, states, depth), method, name, length, seed, *measured))

    for index, (name, contexts) in enumerate(formats(data, context_lengths).items()):
        for length, context in contexts.items():
            G, attended = context.gram_matrix(discount), context.gram_matrix(discount, scaled)
            for method, (seeds, runs) in models.items():
                measures = number_measures(runs, discount, scaled)
                for i, seed in enumerate(seeds):
                    alpha_beta = measures["identity"][i], measures["ones"][i]
                    add(method, name, length, seed, alpha_beta, msve(runs[i], data, attended, depth))
            for (count, method), best in zip(ALGORITHMS.items(), step_sizes, strict=True):
                algorithm = weights_at(best[index], basis(count, states))
                alpha_beta = [*best[index] / states, 0.0][:2]
                add(method, name, length, -1, alpha_beta, msve(algorithm, data, G, depth))
            if name == "steps":
                add("lstd", name, length, -1, (np.nan, np.nan), data.error(lstd(context, discount, lstd_ridge)))
    save_table(output, dict(zip(COLUMNS, zip(*rows, strict=True), strict=True)))


def msve(weights: Weights, data: UnseenTasks, G: np.ndarray, depth: int) -> np.ndarray:
    """MSVE (tasks,) of one Transformer on one context of each task; values that overflow give infinite errors."""
    with np.errstate(over="ignore", invalid="ignore"):
        errors = data.error(estimates(weights, G, depth))
    return np.where(np.isnan(errors), np.inf, errors)
