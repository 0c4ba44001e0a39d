"""Random number streams: one per (seed, environment, states, purpose), independent of everything else that runs."""

import numpy as np


def generator(seed: int, env: str, states: int, purpose: str) -> np.random.Generator:
    """Generator for one purpose of one run.

    The stream depends on these four values alone, so a run's result does not change with the other cells of the grid,
    the order of jobs, or how seeds are grouped.

    Parameters
    ----------
    seed : int, non-negative
    env : str, name of the environment
    states : int
    purpose : str, such as "tasks", "unrolls", "weights", "validation"
    """
    name = int.from_bytes(f"{env}/{purpose}".encode(), "little")
    return np.random.Generator(np.random.SFC64(np.random.SeedSequence((seed, states, name))))
