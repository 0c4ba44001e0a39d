"""Multi-task TD and multi-task MC pretraining (Algorithms 1 and 2), by either engine."""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ictd.checks import DISCOUNT, FLAG, POSITIVE, array, choice, instance, integer, integers, optional, refuse, validate
from ictd.fused_engine import FusedEngine
from ictd.mrp import Tasks
from ictd.trajectories import Unrolls
from ictd.weights import Weights

ENGINES = ("fused", "autograd")
# Tasks that are in memory together where they are drawn on the way; a run's are drawn in blocks of this size.
BLOCK = 10_000
# A long run says how far it is, no more often than this.
PROGRESS_SECONDS = 10
logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class History:
    """One pretraining run.

    Parameters
    ----------
    tasks_seen : (K,) int array
        Task counts at which the weights were kept, ascending; the last is the whole set.
    weights : Weights with a leading axis of K
    estimates : (N, n) array
        The value estimates of each task made just before its update, on a task never seen before.
    """

    tasks_seen: np.ndarray
    weights: Weights
    estimates: np.ndarray


class Divergence(ArithmeticError):
    """Parameters or value estimates stopped being finite.

    ``task`` is the number of the first task, from 1, on which an estimate or the update was not finite; ``history`` has
    NaN from there on.
    """

    def __init__(self, task: int, history: History):
        super().__init__(f"parameters or values stop being finite at task {task} of {len(history.estimates)}")
        self.task, self.history = task, history


@validate(
    tasks=instance(Tasks, reward="N, n"),
    unrolls=instance(Unrolls, visits="N, n"),
    algo=choice(("td", "mc")),
    depth=integer(1),
    discount=DISCOUNT,
    learning_rate=POSITIVE,
    u=array("2n"),
    A=array("2n, 2n"),
    engine=choice(ENGINES),
    tasks_seen=optional(integers("K", 1)),
    scaled=FLAG,
)
def pretrain_history(
    tasks: Tasks,
    unrolls: Unrolls,
    algo: str,
    depth: int,
    discount: float,
    learning_rate: float,
    u: np.ndarray,
    A: np.ndarray,
    engine: str = "fused",
    tasks_seen: np.ndarray | None = None,
    scaled: bool = True,
) -> History:
    """Pretrain, and keep snapshots of the weights and the estimates made on the way.

    Unknown names, shapes that do not fit, or numbers out of range raise a ValueError.  Parameters or values that stop
    being finite raise a Divergence, which has the history up to there.

    Parameters
    ----------
    tasks : Tasks, N of them with n states, taken in order, one update each
    unrolls : Unrolls of these tasks
    algo : "td" (Algorithm 1) or "mc" (Algorithm 2)
    depth : int, number of layers L
    discount : float, gamma in [0, 1); use that of the unrolls
    learning_rate : float, Adam's alpha
    u, A : (2n,) and (2n, 2n) arrays, the initial parameters
    engine : "fused" or "autograd"
    tasks_seen : ascending int array ending with N, optional
        Task counts at which weights are kept; N alone by default.
    scaled : bool
        Whether attention is divided by the context length n.
    """
    refuse("unrolls.transitions", (unrolls.transitions > 0) & (tasks.transition == 0), "counts steps that cannot be")
    stops = _ascending("tasks_seen", [len(tasks)] if tasks_seen is None else tasks_seen, len(tasks))
    make = FusedEngine
    if engine == "autograd":
        from ictd.autograd_engine import AutogradEngine as make  # With torch, which takes seconds to import.
    run = make(Weights(u, A), algo, depth, discount, learning_rate, scaled)
    history = History(
        stops,
        Weights(np.full((len(stops), *u.shape), np.nan), np.full((len(stops), *A.shape), np.nan)),
        np.full_like(tasks.reward, np.nan),
    )
    said = time.monotonic()
    for k, (first, stop) in enumerate(zip([0, *stops[:-1]], stops, strict=True)):
        history.estimates[first:stop], done = run.train(tasks[first:stop], unrolls[first:stop])
        weights = run.weights()
        finite = all(np.isfinite(part).all() for part in weights)
        if done < stop - first or not finite:
            history.estimates[first + done :] = np.nan
            raise Divergence(int(first + done + finite), history)
        history.weights.u[k], history.weights.A[k] = weights
        if time.monotonic() - said > PROGRESS_SECONDS:
            said = time.monotonic()
            logger.info("%d of %d tasks", stop, len(tasks))
    return history


def pretrain(tasks, unrolls, algo, depth, discount, learning_rate, u, A, engine="fused") -> Weights:
    """Weights after one pass over a task set; parameters as in ``pretrain_history``."""
    return pretrain_history(tasks, unrolls, algo, depth, discount, learning_rate, u, A, engine).weights[-1]


def pretrain_in_blocks(engine, draw: Callable[[int], tuple], seen: np.ndarray) -> Weights:
    """Pretrain on more tasks than fit in memory at once, drawn on the way.

    The weights have a leading axis of K, and are NaN from a divergence on.

    Parameters
    ----------
    engine : FusedEngine, or one with its methods
    draw : function
        From a number of tasks to what ``engine.train`` takes, task by task: tasks, unrolls, and what else it needs.
    seen : (K,) int array, ascending task counts at which weights are kept, the last one the number of tasks N
    """
    seen, tasks, width = _ascending("seen", seen, seen[-1]), int(seen[-1]), 2 * engine.states
    weights = Weights(np.full((len(seen), width), np.nan), np.full((len(seen), width, width), np.nan))
    for first in range(0, tasks, BLOCK):
        size = min(BLOCK, tasks - first)
        block, at = draw(size), 0
        if len(block[0]) != size:
            raise ValueError(f"draw gives {len(block[0])} tasks where {size} are asked for.")
        for stop in sorted({*(seen[(seen > first) & (seen <= first + size)] - first), size}):
            _, done = engine.train(*(part[at:stop] for part in block))
            if done < stop - at:
                logger.warning("diverged at task %d", first + at + done + 1)
                return weights
            at = stop
            weights.u[seen == first + stop], weights.A[seen == first + stop] = engine.weights()
    return weights


def _ascending(name: str, counts, tasks: int) -> np.ndarray:
    counts = np.asarray(counts, np.int64)
    if counts[-1] != tasks or (np.diff(counts, prepend=0) <= 0).any():
        raise ValueError(f"{name} must ascend from at least 1 to the number of tasks, {tasks}.")
    return counts
