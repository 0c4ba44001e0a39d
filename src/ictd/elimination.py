"""Stationary distributions of Markov chains, by the elimination of Grassmann, Taksar and Heyman.

The elimination adds, multiplies and divides non-negative numbers only, so each entry has full relative precision
(Grassmann, Taksar and Heyman, Operations Research 33(5), 1985).  It removes the states n-1, ..., 1 one by one: the
chain that is watched only in the states below k goes from i to j with the probability

    p(i, j) + p(i, k) p(k, j) / sum_{l < k} p(k, l).

A chain with transient states is reduced to its closed class, a set of states that all reach each other and no others.
"""

import math

import numpy as np

from ictd.checks import abbreviated


def stationary_rows(transition: np.ndarray, name: str, masses: np.ndarray | None = None) -> np.ndarray:
    """Compute the stationary distributions of chains, which are 0 for transient states.

    Parameters
    ----------
    transition : (..., n, n) array, row-stochastic
    name : str, what a message calls the array
    masses : (..., n) array, optional
        For chains with several closed classes: distributions that give each class its probability.

    Returns
    -------
    stationary : (..., n) array

    Raises
    ------
    ValueError
        If a chain has several closed classes, and there are no masses.  The message names the classes.
    """
    lead, states = transition.shape[:-2], transition.shape[-1]
    chains, stationary = transition.reshape(-1, states, states), np.empty((math.prod(lead), states))
    pending = [(0, len(chains))]
    while pending:
        first, last = pending.pop()
        try:
            stationary[first:last] = _eliminated(chains[first:last])
        except FloatingPointError:  # In at least one of the chains.
            middle = (first + last) // 2
            if first < middle:
                pending += [(middle, last), (first, middle)]
            else:
                place = [int(index) for index in np.unravel_index(first, lead)]
                given = None if masses is None else masses.reshape(-1, states)[first]
                stationary[first] = _of_classes(chains[first], f"{name}{place or ''}", given)
    return stationary.reshape(transition.shape[:-1])


def _of_classes(transition: np.ndarray, name: str, masses: np.ndarray | None) -> np.ndarray:
    """Stationary distribution (n,) of a chain (n, n); several classes have the probabilities of ``masses`` (n,)."""
    classes = closed_classes(transition)
    if len(classes) > 1 and masses is None:
        named = ", ".join(abbreviated(states.tolist()) for states in classes[:3])
        raise ValueError(
            f"{name} has {len(classes)} closed classes of states, {named}{', ...' * (len(classes) > 3)}, so that its"
            " stationary distribution is not unique."
        )
    stationary = np.zeros(len(transition))
    for states in classes:
        try:
            stationary[states] = _eliminated(transition[None][:, states[:, None], states])[0]
        except FloatingPointError:
            raise ValueError(
                f"{name} visits states with probabilities that differ by more than a factor of 1e308."
            ) from None
        stationary[states] *= 1 if len(classes) == 1 else masses[states].sum()
    return stationary


def _eliminated(transition: np.ndarray) -> np.ndarray:
    """Stationary distributions (N, n) of chains (N, n, n).

    Raises a FloatingPointError if a chain is reducible, or a number is too large or too small for a float.
    """
    states = transition.shape[-1]
    # (n, n, chains): NumPy is fast along the last axis if it is long.  Python's sum adds the rows in order, so that the
    # rounding of one chain does not depend on the number of chains.
    work = np.array(transition.transpose(1, 2, 0), order="C")
    with np.errstate(all="raise"):
        for k in range(states - 1, 0, -1):
            work[:k, k] /= sum(work[k, :k])
            (to,), (origin,) = work[k, :k].any(axis=-1).nonzero(), work[:k, k].any(axis=-1).nonzero()
            if 4 * len(to) * len(origin) > k**2:
                work[:k, :k] += work[:k, k, None] * work[k, None, :k]
            else:  # The same sums without products that are 0.
                work[np.ix_(origin, to)] += work[origin, k][:, None] * work[k, to]
        mu = np.ones((states, work.shape[-1]))
        for k in range(1, states):
            mu[k] = sum(mu[:k] * work[:k, k])
        mu /= sum(mu)
    if not (mu > 0).all():
        raise FloatingPointError("a state is transient")
    return mu.T


def closed_classes(transition: np.ndarray) -> list[np.ndarray]:
    """Find the closed classes of a chain (n, n): the sets of states that all reach each other and no other states."""
    leads = transition > 0
    settled = np.zeros(len(leads), bool)  # States that reach a class that was found.
    classes = []
    while not settled.all():
        state = np.argmin(settled)
        while True:
            steps, origins = steps_from(leads, state), steps_from(leads.T, state)
            beyond = np.where(origins < 0, steps, -1)  # States that are reached, and do not lead back.
            if (beyond < 0).all():
                break
            state = np.argmax(beyond)
        classes.append(np.flatnonzero(steps >= 0))
        settled |= origins >= 0
    return classes


def never_reach(ends: np.ndarray, leads: np.ndarray) -> np.ndarray:
    """Find the states (..., n) from which no steps lead to one of ``ends`` (..., n), if ``leads`` has the steps."""
    never = np.empty(ends.shape, bool)
    for place in np.ndindex(ends.shape[:-1]):
        never[place] = steps_from(leads[place].T, np.flatnonzero(ends[place])) < 0
    return never


def steps_from(leads: np.ndarray, start: np.ndarray | int) -> np.ndarray:
    """Least numbers of steps (n,) to all states from one or more states, or -1, if ``leads`` (n, n) has the steps."""
    steps = np.full(len(leads), -1)
    frontier, count = np.atleast_1d(start), 0
    while len(frontier):
        steps[frontier] = count
        count += 1
        frontier = np.flatnonzero(leads[frontier].any(axis=0) & (steps < 0))
    return steps
