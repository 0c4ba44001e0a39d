"""Evaluate pretrained runs on sampled contexts of several environments and discounts."""

from functools import cache
from pathlib import Path

import numpy as np

from ictd.engine import compiled_estimates
from ictd.evaluation import UnseenTasks, draw_unseen_tasks
from ictd.storage import join_arrays, save_arrays
from ictd.transformer import Weights
from studies.sampled_prompts.grid import Run


def main(
    scaled_attention: bool,
    shown_by_tasks: list[str],
    tasks: int,
    test_tasks: int,
    context_lengths: list[int],
    env_options: dict,
    runs: list[Path],
    outputs: list[Path],
) -> None:
    """Write the mean and the median over tasks of the MSVE, for each seed, snapshot and context length.

    Outputs are named RUN/ENV-DISCOUNT.npz, where RUN is the name of a file or folder in ``runs``.  All snapshots are
    evaluated only for outputs RUN/ENV-DISCOUNT in ``shown_by_tasks``; for other outputs, only the snapshot after
    ``tasks`` tasks and the last snapshot are evaluated.  ``msve_by_task`` (lengths, tasks) is the MSVE on each task at
    the last snapshot, averaged over seeds.
    """

    @cache
    def unseen(states: int, env: str, discount: float) -> tuple[UnseenTasks, list[np.ndarray]]:
        options = env_options[env]
        data = draw_unseen_tasks(0, states, test_tasks, max(context_lengths), discount, env, "beyond", **options)
        return data, [data.gram_matrix(length, scaled_attention) for length in context_lengths]

    for output in outputs:
        name, place = output.parent.name, output.stem
        run = Run.parse(name)
        env, discount = place.split("-")
        paths = [path for path in runs if name in (path.stem, path.parent.name)]
        seeds, tasks_seen, u, A = join_arrays(paths, "seeds", "tasks_seen", "history_u", "history_A")
        tasks_seen = tasks_seen[: u.shape[1]]
        if f"{name}/{place}" not in shown_by_tasks:
            kept = (tasks_seen == tasks) | (tasks_seen == tasks_seen[-1])
            tasks_seen, u, A = tasks_seen[kept], u[:, kept], A[:, kept]
        weights = Weights(u, A)  # Leading axes: seeds, snapshots.
        msve = compiled_msve(weights, *unseen(run.states, env, float(discount)), run.depth)
        save_arrays(
            output, seeds=seeds, tasks_seen=tasks_seen, context_lengths=np.array(context_lengths),
            mean=msve.mean(axis=-1), median=np.median(msve, axis=-1), msve_by_task=msve[:, -1].mean(axis=0),
        )  # fmt: skip


def compiled_msve(weights: Weights, data: UnseenTasks, grams: list[np.ndarray], depth: int) -> np.ndarray:
    """Compute the MSVE of R Transformers on k unseen tasks, as ``ictd.evaluation.weights_msve``, by compiled kernels.

    Kernels take half the time for the many snapshots of this study.  Numbers differ by rounding.

    Parameters
    ----------
    weights : Weights, u (R, 2n) and A (R, 2n, 2n); any leading axes in place of R
    data : UnseenTasks, k of them
    grams : list of K arrays (k, 2n+1, 2n+1), ``Context.gram_matrix`` of their contexts
    depth : int, number of layers L

    Returns
    -------
    msve : (R, K, k) array
    """
    lead = weights.u.shape[:-1]
    msve = np.empty((*lead, len(grams), len(data.tasks)))
    with np.errstate(over="ignore", invalid="ignore"):
        for i in np.ndindex(lead):
            estimates = [compiled_estimates(weights[i][None], G, depth) for G in grams]
            msve[i] = data.error(np.stack(estimates))
    return msve
