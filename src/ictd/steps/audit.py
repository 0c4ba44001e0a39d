"""Check a run of each cell: train its first tasks with the other engine, and evaluate it on whole prompts."""

from copy import deepcopy
from functools import cache
from pathlib import Path

import numpy as np

from ictd.evaluation import UnseenTasks, draw_unseen_tasks, weights_msve
from ictd.mrp import Tasks
from ictd.pipeline.grid import Cell
from ictd.pretraining import ENGINES, Divergence, pretrain_history
from ictd.prompt import ENUMERATED, joint_prompt
from ictd.rng import generator
from ictd.sampling import BatchStatistics
from ictd.steps.tasks import stored_runs, with_paths
from ictd.storage import load_arrays, save_table
from ictd.transformer import Weights, initial_weights, transformer_output

SMALLEST = np.finfo(np.float64).tiny


def main(
    discount: float,
    learning_rate: float,
    initial_gain: float,
    scaled_attention: bool,
    engine: str,
    tasks: int,
    tolerance: float,
    evaluation_env: str,
    env_options: dict,
    unseen_tasks: int,
    context_lengths: list[int],
    task_sets: list[Path],
    returns: list[Path],
    trained: list[Path],
    output: Path,
) -> None:
    """Write two relative differences for the first seed of each cell.

    ``difference`` compares the weights at the snapshots within the first tasks.  ``evaluation_difference`` compares the
    MSVE at the end of pretraining, computed from Gram matrices and by the paper's Transformer on whole prompts. Both
    are divided by the largest compared entry.  The folders of ``trained`` are named after the cells, and those of
    ``task_sets`` and ``returns`` after environment and number of states.  ValueError names the cells with a difference
    above the tolerance.
    """
    other_engine = next(name for name in ENGINES if name != engine)
    lengths = [ENUMERATED, *context_lengths]
    options = env_options[evaluation_env]
    records, faults = [], []
    files = {path.parent.name: [path] for path in task_sets}
    for path in returns:
        files[path.parent.name].append(path)
    for run_file in trained:
        cell = Cell.parse(run_file.parent.name)
        seed, task_set, batches = first_tasks(tasks, *files[f"{cell.env}-{cell.states}"])
        start = initial_weights(cell.states, initial_gain, generator(seed, cell.env, cell.states, "weights"))
        tasks_seen, u, A = (array[0] for array in load_arrays(run_file, "tasks_seen", "u", "A"))
        snapshots = tasks_seen[tasks_seen <= tasks]
        number = snapshots[-1]
        own = with_paths(cell.algo, cell.env, seed, task_set[:number], batches[:number])
        try:
            history = pretrain_history(
                task_set[:number], own, cell.algo, cell.depth, discount, learning_rate,
                start, other_engine, snapshots, scaled=scaled_attention,
            )  # fmt: skip
        except Divergence as divergence:
            history = divergence.history
        stored = flat(u[: len(snapshots)], A[: len(snapshots)])
        again = flat(history.weights.u, history.weights.A)
        compared_tasks, difference = largest_difference(snapshots, stored, again)
        data = draw_unseen_tasks(
            seed, cell.states, unseen_tasks, max(context_lengths), discount, evaluation_env, **options
        )
        of_msve = evaluation_difference(Weights(u[-1], A[-1]), data, lengths, cell.depth, scaled_attention)
        records.append(
            {
                **cell._asdict(),
                "seed": seed,
                "tasks": compared_tasks,
                "difference": difference,
                "evaluation_difference": of_msve,
            }
        )
        for name, value in (f"weights after {compared_tasks} tasks", difference), ("MSVE", of_msve):
            if not value <= tolerance:
                faults.append(f"{cell}, seed {seed}, {name} by {value:.2g} of the largest")
    if faults:
        raise ValueError(
            f"The compiled engine and the definition differ by more than audit.tolerance, {tolerance:g}: "
            f"{'; '.join(faults)}; do not use these runs before you know why."
        )
    save_table(output, {name: [record[name] for record in records] for name in records[0]})


@cache
def first_tasks(size: int, *files: Path) -> tuple[int, Tasks, BatchStatistics]:
    """Seed, tasks and batches of the first run of ``stored_runs``, for its first tasks only."""
    seed, task_set, batches = next(stored_runs(*files))
    # Copy the arrays, so that the memory of the other tasks is freed.
    return seed, deepcopy(task_set[:size]), deepcopy(batches[:size])


def flat(u: np.ndarray, A: np.ndarray) -> np.ndarray:
    """The parameters u (S, 2n) and A (S, 2n, 2n) at S snapshots as rows, (S, 2n + 4n^2)."""
    return np.concatenate([u, A.reshape(len(A), -1)], axis=1)


def evaluation_difference(weights: Weights, data: UnseenTasks, lengths: list[int], depth: int, scaled: bool) -> float:
    """Largest relative difference, over context lengths, of the MSVE from Gram matrices and from whole prompts.

    Parameters
    ----------
    weights : Weights, u (2n,) and A (2n, 2n)
    data : UnseenTasks
    lengths : list of ints
    depth : int, number of layers
    scaled : bool
        Whether attention is divided by the context length.
    """
    P, Q, prompts = weights.P()[None], weights.Q()[None], (joint_prompt(data.columns(length)) for length in lengths)
    from_prompts = [data.error(transformer_output(Z, P, Q, depth, weights.dimension, scaled)) for Z in prompts]
    pairs = zip(weights_msve(weights, data, lengths, depth, scaled), from_prompts, strict=True)
    return max(largest_difference(np.ones(1, int), fast[None], slow[None])[1] for fast, slow in pairs)


def largest_difference(tasks_seen: np.ndarray, stored: np.ndarray, again: np.ndarray) -> tuple[int, float]:
    """Compare the parameters of two trainings at S snapshots.

    Both trainings must have the same snapshots that are not finite.  These snapshots are not compared.

    Parameters
    ----------
    tasks_seen : (S,) int array
    stored, again : (S, p) arrays, parameters at each snapshot

    Returns
    -------
    tasks : int, number of tasks at the last compared snapshot
    difference : float
        Largest difference, divided by the largest parameter; infinite if only one of the trainings diverged.
    """
    finite = np.isfinite(again).all(axis=1)
    same_divergence = (np.isfinite(stored).all(axis=1) == finite).all()
    largest = np.max(np.abs(again[finite]), initial=SMALLEST)
    tasks = int(np.max(tasks_seen[finite], initial=0))
    if not same_divergence:
        return tasks, np.inf
    return tasks, float(np.max(np.abs(stored - again)[finite], initial=0) / largest)
