"""Distributions over Markov reward processes, and the registry that names them.

To add an environment, write a function ``f(states, size, rng, **options) -> (transition, reward)`` with arrays of shape
(size, states, states) and (size, states), and give it a line in ``ENVIRONMENTS``.
"""

import math

import numpy as np

from ictd.checks import GENERATOR, choice, integer, number, validate
from ictd.mrp import Tasks


def boyan(states: int, size: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Random Boyan's chains (Algorithm 3): each state leads to the next two, the last one to all."""
    reward = rng.uniform(-1, 1, (size, states))
    transition = np.zeros((size, states, states))
    epsilon = rng.uniform(0, 1, (size, states - 2))
    inner = np.arange(states - 2)
    transition[:, inner, inner + 1] = epsilon
    transition[:, inner, inner + 2] = 1 - epsilon
    transition[:, states - 2, states - 1] = 1
    transition[:, states - 1] = _normalise(rng.uniform(0, 1, (size, states)))
    return transition, reward


@validate(threshold=number(math.nextafter(0, 1), math.nextafter(1, 0), "between 0 and 1, both excluded"))
def loop(states: int, size: int, rng: np.random.Generator, threshold: float = 0.5) -> tuple[np.ndarray, np.ndarray]:
    """Random Loops (Algorithm 4): a cycle through all states with random chords.

    A chord from i to j, other than the cycle's own step and a self-loop, is there with probability 1 - ``threshold``.
    """
    reward = rng.uniform(-1, 1, (size, states))
    connected = rng.uniform(0, 1, (size, states, states)) > threshold
    state = np.arange(states)
    connected[:, state, state] = False
    connected[:, state, (state + 1) % states] = True
    return _normalise(rng.uniform(0, 1, (size, states, states)) * connected), reward


def _normalise(rows: np.ndarray) -> np.ndarray:
    return rows / rows.sum(axis=-1, keepdims=True)


ENVIRONMENTS = {
    "boyan": boyan,
    "loop": loop,
}


@validate(env=choice(ENVIRONMENTS), states=integer(2), size=integer(1), rng=GENERATOR)
def sample_tasks(env: str, states: int, size: int, rng: np.random.Generator, **env_options) -> Tasks:
    """Draw a task set, with its stationary distributions, from an environment's distribution.

    The environment is a key of ``ENVIRONMENTS``, and ``env_options`` are its options, such as Loop's ``threshold``.
    ``states`` is n, at least 2, and ``size`` the number of tasks N, at least 1.  An unknown environment or option, or
    numbers out of range, raise a ValueError.
    """
    try:
        transition, reward = ENVIRONMENTS[env](states, size, rng, **env_options)
    except TypeError as error:
        if env_options and "argument" in str(error):
            raise ValueError(f"environment {env!r} does not take the options {sorted(env_options)}: {error}.") from None
        raise
    return Tasks(transition, reward)
