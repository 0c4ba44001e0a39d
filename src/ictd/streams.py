"""Random number streams: one per (seed, environment, states, purpose), independent of everything else that runs."""

import re

import numpy as np

from ictd.checks import TEXT, integer, validate


@validate(seed=integer(0, 2**64 - 1), env=TEXT, states=integer(1), purpose=TEXT)
def generator(seed: int, env: str, states: int, purpose: str) -> np.random.Generator:
    """Generator for one purpose of one run.

    The stream depends on these four values alone, so a run's result does not change with the other cells of the grid,
    the order of jobs, or how seeds are grouped.  The seed is non-negative, ``env`` is the name of the environment, and
    a purpose is "tasks", "unrolls", "weights", "validation" or the like.  ValueError for arguments of other types, or
    numbers out of range.
    """
    name = int.from_bytes(f"{env}/{purpose}".encode(), "little")
    return np.random.Generator(np.random.SFC64(np.random.SeedSequence((seed, states, name))))


def seeds_of(text: str) -> range:
    """Seeds of a range "first-last"; ValueError if it is none."""
    first, last = map(int, text.split("-")) if re.fullmatch(r"\d+-\d+", text) else (1, 0)
    if first > last or last >= 2**63:
        raise ValueError(f"seeds is {text!r}; give first-last, such as 0-19.")
    return range(first, last + 1)
