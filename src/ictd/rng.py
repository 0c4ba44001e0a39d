"""Random number generators: one independent stream for each (seed, environment, states, purpose)."""

from typing import Annotated

import numpy as np

from ictd.checks import Count, integer, validate


@validate
def generator(
    seed: Annotated[int, integer(0, 2**64 - 1)], env: str, states: Count, purpose: str
) -> np.random.Generator:
    """Make the random number generator for one purpose of one run.

    The stream depends on these four values alone.  So the result of a run does not depend on the other cells of the
    grid, the order of jobs, or the grouping of seeds.

    Parameters
    ----------
    seed : int, from 0 to 2^64 - 1
    env : str, name of the environment
    states : int, n
    purpose : str, such as "tasks", "batches", "weights" or "validation"

    Returns
    -------
    numpy.random.Generator

    Raises
    ------
    ValueError
        If an argument has the wrong type or is out of range.

    Examples
    --------
    >>> from ictd import generator
    >>> generator(0, "boyan", 5, "tasks").random() == generator(0, "boyan", 5, "tasks").random()
    True
    """
    name = int.from_bytes(f"{env}/{purpose}".encode(), "little")
    return np.random.Generator(np.random.SFC64(np.random.SeedSequence((seed, states, name))))
