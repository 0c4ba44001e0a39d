"""Pretrain on tasks whose slow mode is not constant, and measure the leading direction of the weights.

For a stochastic matrix P the slow mode of TD is constant: P 1 = 1.  With a discount gamma c(s) that depends on the
state, the slow mode is the right Perron vector x of C P, with C = diag(c).  For A = [G; 0] [-I, I], an update is
w <- w + G' (mean TD errors).  To shrink errors along x, G needs a term y x', where y weighs TD errors.  So x belongs on
the right of G.
"""

from pathlib import Path

import numpy as np

from ictd.algorithms import ALGORITHMS
from ictd.engine import Engine
from ictd.mrp import Tasks, boyan
from ictd.rng import generator
from ictd.sampling import BatchStatistics, unroll
from ictd.storage import save_table
from ictd.transformer import initial_weights
from ictd.weight_measures import preconditioner, project_identifiable

# Ends of c, along the states.
DESIGNS = {"falling": (1.0, 0.5), "rising": (0.5, 1.0)}
# Number of tasks for the mean Perron vector.
MEASURED_ON = 500
COLUMNS = ("design", "seed", "identity", "slow", "ones")


def main(
    design: str,
    states: int,
    depth: int,
    seeds: int,
    tasks: int,
    discount: float,
    batch_size: int,
    learning_rate: float,
    initial_gain: float,
    output: Path,
) -> None:
    """Write a row for each seed of TD.

    ``slow`` and ``ones`` are the absolute cosines of the right singular vector of the rank-one part of G - alpha I to
    the slow mode and to constants.
    """
    c = np.linspace(*DESIGNS[design], states)
    measured = Tasks(*boyan(states, MEASURED_ON, generator(0, "boyan", states, f"slow mode {design} best")))
    slow = perron_vectors(c[:, None] * measured.transition).mean(axis=0)
    rows = []
    for seed in range(seeds):
        rng = generator(seed, "boyan", states, f"slow mode {design}")
        task_set = Tasks(*boyan(states, tasks, rng))
        batches = unroll(task_set, batch_size, discount, 1, rng)
        batches = BatchStatistics.unchecked(visits=batches.visits, transitions=c[:, None] * batches.transitions)
        start = initial_weights(states, initial_gain, generator(seed, "boyan", states, "weights"))
        engine = Engine(start, depth, discount, learning_rate)
        targets = ALGORITHMS["td"].targets(task_set, batches, discount)
        _, done = engine.train(task_set.reward, targets, c[:, None] * task_set.transition)
        if done < tasks:
            raise ValueError(f"The run on the design {design} with seed {seed} diverged; choose other settings.")
        A = project_identifiable(engine.weights(), discount * c).A
        alpha, right = rank_one_part(preconditioner(A)[:states])
        cosines = [abs(right @ vector) / np.linalg.norm(vector) for vector in (slow, np.ones(states))]
        rows.append((design, seed, alpha / states, *cosines))
    save_table(output, dict(zip(COLUMNS, zip(*rows, strict=True), strict=True)))


def perron_vectors(matrices: np.ndarray) -> np.ndarray:
    """Right Perron vectors (N, n) of non-negative matrices (N, n, n), of norm 1."""
    eigenvalues, vectors = np.linalg.eig(matrices)
    greatest = eigenvalues.real.argmax(axis=-1)
    perron = np.abs(np.take_along_axis(vectors, greatest[:, None, None], axis=-1)[..., 0])
    return perron / np.linalg.norm(perron, axis=-1, keepdims=True)


def rank_one_part(G: np.ndarray, iterations: int = 200) -> tuple[float, np.ndarray]:
    """Fit alpha I and a matrix of rank one to G (n, n).

    The algorithm alternates between the best alpha for a given matrix of rank one, and the best matrix of rank one for
    a given alpha.  Both steps lower the sum of squares of the residual.

    Returns
    -------
    alpha : float
    right : (n,) array, the leading right singular vector of G - alpha I
    """
    n = len(G)
    alpha = np.trace(G) / n
    for _ in range(iterations):
        left, size, right = np.linalg.svd(G - alpha * np.eye(n))
        alpha = np.trace(G - size[0] * np.outer(left[:, 0], right[0])) / n
    return alpha, right[0]
