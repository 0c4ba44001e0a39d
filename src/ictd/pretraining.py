"""Pretraining by multi-task TD (Algorithm 1) and multi-task MC (Algorithm 2).

One update is made for each task.  With the batch S_0, R_1, ..., S_b of a task, and with estimates TF_L on its
enumerated prompt, the parameters theta = (u, A) move along

    (1/b) sum_t delta_t grad TF_L(S_t),

by Adam, where delta_t is R_{t+1} + gamma TF_L(S_{t+1}) - TF_L(S_t) for TD and G_t - TF_L(S_t) for MC.

``ictd.engine`` carries out the updates with compiled kernels, ``ictd.literal`` with automatic differentiation on whole
prompts.
"""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ictd.checks import DISCOUNT, FLAG, POSITIVE, choice, instance, integer, integers, optional, refuse, validate
from ictd.engine import Engine
from ictd.mrp import Tasks
from ictd.sampling import BatchStatistics
from ictd.transformer import Weights

ENGINES = ("fused", "autograd")
# Number of tasks that ``pretrain_in_blocks`` draws at once.
BLOCK = 10_000
# Seconds between progress messages.
PROGRESS_SECONDS = 10
logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class History:
    """Snapshots and estimates of one pretraining run.

    Parameters
    ----------
    tasks_seen : (K,) int array
        Numbers of tasks after which snapshots were taken, ascending; the last is the number of all tasks.
    weights : Weights with a leading axis of K snapshots
    estimates : (N, n) array
        Value estimates for each task just before its update.
    """

    tasks_seen: np.ndarray
    weights: Weights
    estimates: np.ndarray


class Divergence(ArithmeticError):
    """A parameter or a value estimate is not finite.

    Attributes
    ----------
    task : int
        Number, from 1, of the first task whose estimates or update are not finite.
    history : History
        Snapshots and estimates before that task; later entries are NaN.
    """

    def __init__(self, task: int, history: History):
        super().__init__(f"parameters or values stop being finite at task {task} of {len(history.estimates)}")
        self.task, self.history = task, history


@validate(
    tasks=instance(Tasks, reward="N, n"),
    batches=instance(BatchStatistics, visits="N, n"),
    algo=choice(("td", "mc")),
    depth=integer(1),
    discount=DISCOUNT,
    learning_rate=POSITIVE,
    start=instance(Weights, u="2n", A="2n, 2n"),
    engine=choice(ENGINES),
    tasks_seen=optional(integers("K", 1)),
    scaled=FLAG,
)
def pretrain_history(
    tasks: Tasks,
    batches: BatchStatistics,
    algo: str,
    depth: int,
    discount: float,
    learning_rate: float,
    start: Weights,
    engine: str = "fused",
    tasks_seen: np.ndarray | None = None,
    scaled: bool = True,
) -> History:
    """Pretrain with one update for each task, and keep snapshots of the weights and all estimates.

    Parameters
    ----------
    tasks : Tasks, N of them with n states, in the order of the updates
    batches : BatchStatistics of these tasks
    algo : "td" (Algorithm 1) or "mc" (Algorithm 2)
    depth : int, number of layers L
    discount : float, gamma in [0, 1), the one that the batches were drawn with
    learning_rate : float, Adam's alpha
    start : Weights of n states, the initial parameters
    engine : "fused" (compiled) or "autograd" (on whole prompts)
    tasks_seen : ascending int array that ends with N, optional
        Numbers of tasks after which to take snapshots.  By default there is one snapshot, after N tasks.
    scaled : bool
        Whether attention is divided by the context length n.

    Returns
    -------
    History

    Raises
    ------
    ValueError
        If a name is unknown, shapes do not match, or a number is out of range.
    Divergence
        If a parameter or an estimate is not finite.  It has the history up to that task.
    """
    for name in ("u", "A"):
        refuse(f"start.{name}", ~np.isfinite(getattr(start, name)), "is not finite")
    refuse("batches.transitions", (batches.transitions > 0) & (tasks.transition == 0), "counts steps that cannot be")
    stops = _ascending("tasks_seen", [len(tasks)] if tasks_seen is None else tasks_seen, len(tasks))
    make = Engine
    if engine == "autograd":
        from ictd.literal import AutogradEngine as make  # Importing torch takes seconds.
    run = make(start, algo, depth, discount, learning_rate, scaled)
    history = History(
        stops,
        Weights(np.full((len(stops), *start.u.shape), np.nan), np.full((len(stops), *start.A.shape), np.nan)),
        np.full_like(tasks.reward, np.nan),
    )
    said = time.monotonic()
    for k, (first, stop) in enumerate(zip([0, *stops[:-1]], stops, strict=True)):
        part = tasks[first:stop]
        history.estimates[first:stop], done = run.train(part.reward, batches[first:stop], part.transition)
        weights = run.weights()
        finite = np.isfinite(weights.u).all() and np.isfinite(weights.A).all()
        if done < stop - first or not finite:
            history.estimates[first + done :] = np.nan
            raise Divergence(int(first + done + finite), history)
        history.weights.u[k], history.weights.A[k] = weights.u, weights.A
        if time.monotonic() - said > PROGRESS_SECONDS:
            said = time.monotonic()
            logger.info("%d of %d tasks", stop, len(tasks))
    return history


def pretrain(tasks, batches, algo, depth, discount, learning_rate, start, engine="fused", scaled=True) -> Weights:
    """Pretrain, and return the weights at the end.

    Parameters and errors are those of ``pretrain_history``, without snapshots.

    Examples
    --------
    >>> import ictd
    >>> tasks = ictd.sample_tasks("boyan", 3, 2000, ictd.generator(0, "boyan", 3, "tasks"))
    >>> batches = ictd.unroll(tasks, 64, 0.9, 200, ictd.generator(0, "boyan", 3, "unrolls"))
    >>> start = ictd.initial_weights(3, 0.1, ictd.generator(0, "boyan", 3, "weights"))
    >>> weights = ictd.pretrain(tasks, batches, "td", 10, 0.9, 0.001, start)
    >>> weights.A.shape
    (6, 6)
    """
    history = pretrain_history(tasks, batches, algo, depth, discount, learning_rate, start, engine, scaled=scaled)
    return history.weights[-1]


def pretrain_in_blocks(
    engines: list, draw: Callable[[int, list[int]], list[tuple]], seen: list[np.ndarray]
) -> list[Weights]:
    """Pretrain on tasks that are drawn in blocks, so that memory does not grow with their number.

    Several runs share the draws: run i trains on the first ``seen[i][-1]`` tasks.

    Parameters
    ----------
    engines : list of Engines, one for each run, or of objects with their methods
    draw : function
        Takes a number of tasks and the indices of the runs that go on, and returns for each of these the arguments of
        ``Engine.train`` for the next tasks.
    seen : list of (K,) int arrays
        For each run, ascending numbers of tasks after which to take snapshots; the last one is the number of its tasks.

    Returns
    -------
    list of Weights, for each run with a leading axis of K snapshots, NaN after a divergence
    """
    seen = [_ascending("seen", of_run, of_run[-1]) for of_run in seen]
    weights = []
    for engine, of_run in zip(engines, seen, strict=True):
        snapshots, width = len(of_run), 2 * engine.states
        weights.append(Weights(np.full((snapshots, width), np.nan), np.full((snapshots, width, width), np.nan)))
    tasks = max(int(of_run[-1]) for of_run in seen)
    running = list(range(len(engines)))
    for first in range(0, tasks, BLOCK):
        size = min(BLOCK, tasks - first)
        running = [run for run in running if seen[run][-1] > first]
        blocks = draw(size, running) if running else []
        diverged = []
        for run, block in zip(running, blocks, strict=True):
            if len(block[0]) != size:
                raise ValueError(f"draw returned {len(block[0])} tasks in place of {size}.")
            if not _train_on_block(engines[run], block, first, seen[run], weights[run]):
                diverged.append(run)
        running = [run for run in running if run not in diverged]
    return weights


def _train_on_block(engine, block: tuple, first: int, seen: np.ndarray, weights: Weights) -> bool:
    """Train on a block whose first task has number ``first``, and fill the snapshots; False after a divergence."""
    size = min(len(block[0]), seen[-1] - first)
    start = 0
    for stop in sorted({*(seen[(seen > first) & (seen <= first + size)] - first), size}):
        _, done = engine.train(*(part[start:stop] for part in block))
        if done < stop - start:
            logger.warning("diverged at task %d", first + start + done + 1)
            return False
        start = stop
        current, snapshot = engine.weights(), seen == first + stop
        weights.u[snapshot], weights.A[snapshot] = current.u, current.A
    return True


def _ascending(name: str, counts, tasks: int) -> np.ndarray:
    counts = np.asarray(counts, np.int64)
    if counts[-1] != tasks or (np.diff(counts, prepend=0) <= 0).any():
        raise ValueError(f"{name} must ascend from at least 1 to the number of tasks, {tasks}.")
    return counts
