"""Train the first tasks of each cell again with the other engine, evaluate a run on whole prompts, and compare."""

from copy import deepcopy
from functools import cache
from pathlib import Path

import numpy as np

from ictd.evaluation import UnseenTasks, draw_unseen_tasks, weights_msve
from ictd.literal import LinearTransformer, literal_estimates
from ictd.pipeline.grid import Cell
from ictd.pretraining import ENGINES, Divergence, pretrain_history
from ictd.prompt import ENUMERATED
from ictd.steps.training_data import stored_runs
from ictd.storage import load_arrays, save_json
from ictd.transformer import Weights

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
    unrolls: list[Path],
    trained: list[Path],
    output: Path,
) -> None:
    """Write two differences for the first seed of each cell, over the largest of what is compared.

    One is that of the weights at the snapshots within the first tasks.  The other is that of the MSVE at the end of
    pretraining, at any one context length: from Gram matrices, and as the paper's Transformer has it on whole prompts.
    Cells are those that the folders of ``trained`` are named after, in whose order ``task_sets`` and ``unrolls`` are.
    ValueError names the cells with a difference above the tolerance.
    """
    other, scaled = next(name for name in ENGINES if name != engine), scaled_attention
    lengths, rows, faults = [ENUMERATED, *context_lengths], [], []
    cells = [Cell.parse(path.parent.name) for path in trained]
    for cell, of_tasks, of_unrolls, path in zip(cells, task_sets, unrolls, trained, strict=True):
        seed, task_set, batches, start = first_tasks(cell.env, cell.states, initial_gain, tasks, of_tasks, of_unrolls)
        tasks_seen, u, A = (array[0] for array in load_arrays(path, "tasks_seen", "u", "A"))
        seen = tasks_seen[tasks_seen <= tasks]
        try:
            history = pretrain_history(
                task_set[: seen[-1]], batches[: seen[-1]], cell.algo, cell.depth, discount, learning_rate,
                start.u, start.A, other, seen, scaled=scaled,
            )  # fmt: skip
        except Divergence as divergence:
            history = divergence.history
        kept, again = flat(u[: len(seen)], A[: len(seen)]), flat(history.weights.u, history.weights.A)
        last, difference = largest_difference(seen, kept, again)
        place = max(context_lengths), discount, evaluation_env
        data = draw_unseen_tasks(seed, cell.states, unseen_tasks, *place, **env_options)
        evaluated = evaluation_difference(Weights(u[-1], A[-1]), data, lengths, cell.depth, scaled)
        differences = {"difference": difference, "evaluation_difference": evaluated}
        rows.append({**cell._asdict(), "seed": seed, "tasks": last, **differences})
        for what, found in (f"weights after {last} tasks", difference), ("MSVE", evaluated):
            if not found <= tolerance:
                faults.append(f"{cell}, seed {seed}, {what} by {found:.2g} of the largest")
    if faults:
        raise ValueError(
            f"The fused engine and the definition differ by more than audit.tolerance, {tolerance:g}: "
            f"{'; '.join(faults)}; do not use these runs before you know why."
        )
    save_json(output, rows)


@cache
def first_tasks(env: str, states: int, initial_gain: float, size: int, tasks: Path, unrolls: Path) -> tuple:
    """As ``stored_runs``, the first run that two files hold the material of, with its first tasks only."""
    seed, task_set, batches, start = next(stored_runs(env, states, initial_gain, tasks, unrolls))
    # Copies, so that the rest can go.
    return seed, deepcopy(task_set[:size]), deepcopy(batches[:size]), start


def flat(u: np.ndarray, A: np.ndarray) -> np.ndarray:
    """The parameters u (S, 2n) and A (S, 2n, 2n) at S snapshots as rows, (S, 2n + 4n^2)."""
    return np.concatenate([u, A.reshape(len(A), -1)], axis=1)


def evaluation_difference(weights: Weights, data: UnseenTasks, lengths: list[int], depth: int, scaled: bool) -> float:
    """Largest difference of the MSVE on unseen tasks from Gram matrices and from whole prompts, over the largest at the
    same context length, for weights u (2n,) and A (2n, 2n)."""
    model = LinearTransformer(weights, depth, scaled)
    whole = [data.error(literal_estimates(model, data.columns(length))) for length in lengths]
    pairs = zip(weights_msve(weights, data, lengths, depth, scaled), whole, strict=True)
    return max(largest_difference(np.ones(1, int), fast[None], slow[None])[1] for fast, slow in pairs)


def largest_difference(tasks_seen: np.ndarray, kept: np.ndarray, again: np.ndarray) -> tuple[int, float]:
    """Number of tasks up to which two courses of the parameters are compared, and their largest relative difference.

    A run that diverges is compared up to there, and has to diverge with both engines.  ``tasks_seen`` is (S,), the
    courses are rows of parameters at S snapshots.
    """
    finite = np.isfinite(again).all(axis=1)
    same = (np.isfinite(kept).all(axis=1) == finite).all()
    largest = np.max(np.abs(again[finite]), initial=SMALLEST)
    difference = float(np.max(np.abs(kept - again)[finite], initial=0) / largest) if same else np.inf
    return int(np.max(tasks_seen[finite], initial=0)), difference
