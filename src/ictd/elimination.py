"""Stationary distributions of Markov chains, by the elimination of Grassmann, Taksar and Heyman.

The elimination adds, multiplies and divides non-negative numbers only, so each entry has full relative precision
(Grassmann, Taksar and Heyman, Operations Research 33(5), 1985).  It removes the states n-1, ..., 1 one by one: the
chain that is watched only in the states below k goes from i to j with the probability

    p(i, j) + p(i, k) p(k, j) / sum_{l < k} p(k, l).

A chain with transient states is reduced to its closed class, a set of states that all reach each other and no others.
"""

import numpy as np

from ictd.checks import abbreviated

# States that are removed before the matrix of the others changes, by one product of matrices.
BLOCK = 64


def stationary_rows(transition: np.ndarray, name: str, masses: np.ndarray | None = None) -> np.ndarray:
    """Compute the stationary distributions of chains, which are 0 for transient states, and below 2.3e-308.

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
        If a chain has several closed classes, and there are no masses.  The message names the classes.  If an entry
        is too small for a float of 80 bits, or of 64 bits on processors without it.
    """
    stationary = np.empty(transition.shape[:-1])
    try:
        stationary[:] = _eliminated(transition.reshape(-1, *transition.shape[-2:])).reshape(stationary.shape)
    except FloatingPointError:  # In at least one of the chains.
        for place in np.ndindex(transition.shape[:-2]):
            given = None if masses is None else masses[place]
            stationary[place] = _of_classes(transition[place], f"{name}{[*place] or ''}", given)
    stationary[stationary < np.finfo(float).tiny] = 0  # Fewer digits than other numbers.
    return stationary


def _of_classes(transition: np.ndarray, name: str, masses: np.ndarray | None) -> np.ndarray:
    """Stationary distribution (n,) of a chain (n, n); several classes have the probabilities of ``masses`` (n,)."""
    classes = closed_classes(transition)
    if len(classes) > 1 and masses is None:
        raise ValueError(
            f"{name} has {len(classes)} closed classes of states, {abbreviated(classes)}, so that its"
            " stationary distribution is not unique."
        )
    stationary = np.zeros(len(transition))
    for states in classes:
        within = transition[None][:, *np.ix_(states, states)]
        try:
            stationary[states] = _eliminated(within)[0]
        except FloatingPointError:
            try:  # Numbers from 1e-4932, if the processor has them.
                stationary[states] = _eliminated(within.astype(np.longdouble))[0]
            except FloatingPointError:
                raise ValueError(
                    f"{name} visits states with probabilities whose ratio is beyond the range of floats."
                ) from None
        stationary[states] *= 1 if len(classes) == 1 else masses[states].sum()
    return stationary


def _eliminated(transition: np.ndarray) -> np.ndarray:
    """Stationary distributions (N, n) of chains (N, n, n).

    Raises a FloatingPointError if a chain is reducible, or a number is too large or too small for a float.
    """
    states = transition.shape[-1]
    # (n, n, chains): NumPy is fast along the last axis if it is long.
    work = np.array(transition.transpose(1, 2, 0), order="C")
    with np.errstate(all="raise"):
        for high in range(states, 1, -BLOCK):
            low = max(high - BLOCK, 0)
            for k in range(high - 1, max(low - 1, 0), -1):
                work[:k, k] /= _total(work[k, :k])
                work[low:k, :k] += work[low:k, k, None] * work[k, None, :k]
                work[:low, low:k] += work[:low, k, None] * work[k, None, low:k]
            if low:  # The paths through the states from low to high.
                parts = work[:low, low:high], work[low:high, :low]
                into, out = (np.moveaxis(part, 2, 0).copy() for part in parts)
                # The threads of a product of matrices do not report products that are too small.
                np.multiply(*(part.min(where=part > 0, initial=1.0) for part in parts))
                with np.errstate(all="ignore"):
                    work[:low, :low] += np.moveaxis(into @ out, 0, 2)
        mu = np.ones((states, work.shape[-1]), work.dtype)
        for k in range(1, states):
            mu[k] = _total(mu[:k] * work[:k, k])
        mu /= _total(mu)
    if not (mu > 0).all():
        raise FloatingPointError("a state is transient")
    return mu.T


def _total(rows: np.ndarray) -> np.ndarray:
    """Sum of rows (k, N) in their order, so that the rounding of one chain does not depend on the number of chains."""
    return np.add.accumulate(rows)[-1]


def closed_classes(transition: np.ndarray) -> list[list[int]]:
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
        classes.append(np.flatnonzero(steps >= 0).tolist())
        settled |= origins >= 0
    return sorted(classes)


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
