"""Numbers of tasks after which pretraining keeps its weights."""

import numpy as np


def snapshot_counts(tasks: int, number: int) -> np.ndarray:
    """At most ``number`` ascending task counts, log-spaced up to ``tasks``, from 1 if there are several."""
    return np.unique(np.geomspace(tasks, 1, number).round().astype(np.int64))
