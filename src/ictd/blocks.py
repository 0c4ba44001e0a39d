"""Pretraining on more tasks than fit in memory at once."""

import logging
from collections.abc import Callable

import numpy as np

from ictd.weights import Weights

# Tasks that are in memory together; a run's tasks are drawn in blocks of this size.
BLOCK = 10_000
logger = logging.getLogger(__name__)


def pretrain_in_blocks(engine, draw: Callable[[int], tuple], seen: np.ndarray) -> Weights:
    """Pretrain on tasks that are drawn on the way.

    Parameters
    ----------
    engine : FusedEngine, GramEngine or AttentionEngine
    draw : function
        From a number of tasks to what ``engine.train`` takes, task by task: tasks, unrolls, and what else it needs.
    seen : (K,) int array, ascending task counts at which weights are kept, the last one the number of tasks N

    Returns
    -------
    Weights with a leading axis of K, NaN from a divergence on
    """
    tasks, width = int(seen[-1]), 2 * engine.states
    weights = Weights(np.full((len(seen), width), np.nan), np.full((len(seen), width, width), np.nan))
    for first in range(0, tasks, BLOCK):
        size = min(BLOCK, tasks - first)
        block, at = draw(size), 0
        for stop in sorted({*(seen[(seen > first) & (seen <= first + size)] - first), size}):
            _, done = engine.train(*(part[at:stop] for part in block))
            if done < stop - at:
                logger.warning("diverged at task %d", first + at + done + 1)
                return weights
            at = stop
            weights.u[seen == first + stop], weights.A[seen == first + stop] = engine.weights()
    return weights
