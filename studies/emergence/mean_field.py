"""The equation of the mean of A: what pretraining does on average, without a run and without a fitted constant.

If the law of tasks does not depend on labels, the mean of A is a point with eight coordinates (``symmetry.classes``),
and the mean of u is zero.  The equation replaces the run by its mean:

    m <- 0.9 m + 0.1 E[g],    v <- 0.999 v + 0.001 E[g^2],    A <- A - rate m / sqrt(v)

with Adam's bias corrections, where g is the gradient of one update at A, and both expectations are means over tasks,
batches and the entries of a class.  It leaves out that A, m and v fluctuate.  In ``projected`` runs, A is replaced by
its mean over permutations after each update, so only its eight numbers, m and v fluctuate.

Expectations are held for a few updates.  They must be few: with many layers, the equation oscillates along stiff
directions if A moves by 0.01 between expectations, and alpha is a tenth too small.

With ``label_free`` false, the equation has all entries of A, for tasks whose law depends on labels.
"""

from itertools import islice
from pathlib import Path

import numpy as np

from ictd.engine import BETA_1, BETA_2, EPSILON, Engine
from ictd.rng import generator
from ictd.storage import save_arrays
from ictd.transformer import initial_weights
from studies.emergence.symmetry import Gradient, label_mean, no_weights, tasks_of


def main(setting: dict, output: Path) -> None:
    """Write A of the equation (K, 2n, 2n), of runs and of projected runs (S, K, 2n, 2n) after K numbers of updates.

    ``setting`` has the keys of ``equation`` and ``run``, the numbers of ``seeds`` and of ``projected_seeds``,
    ``label_free``, ``tasks``, the number of tasks of an expectation, and ``held``, the number of updates with the same
    expectations.
    """
    setting = dict(setting)
    counts = setting.pop("seeds"), setting.pop("projected_seeds")
    of_equation = {key: setting.pop(key) for key in ("label_free", "tasks", "held")}
    gain = setting.pop("initial_gain")
    runs, projected = (
        np.array([run(**setting, initial_gain=gain, seed=seed, projected=kind) for seed in range(count)])
        for count, kind in zip(counts, (False, True), strict=True)
    )
    save_arrays(output, equation=equation(**setting, **of_equation), runs=runs, projected=projected)


def equation(algo, env, states, depth, discount, optimizer, learning_rate, snapshots, label_free, tasks, held):
    """A (K, 2n, 2n) of the equation from A = 0, after each of the numbers of updates ``snapshots``."""
    gradient, wide = Gradient(states, algo, depth, discount), 2 * states
    average = label_mean if label_free else np.asarray
    drawn = tasks_of(env, states, algo, discount, tasks * -(-snapshots[-1] // held), seed=2**32)
    A, mean, square = np.zeros((3, wide, wide))
    parameter, kept, updates = np.zeros(wide + wide**2), [], 0
    while updates < snapshots[-1]:
        parameter[wide:] = A.ravel()
        found = np.stack([gradient(parameter, task)[wide:] for task in islice(drawn, tasks)])
        moments = found.mean(axis=0), (found**2).mean(axis=0)
        expected, expected_square = (average(moment.reshape(wide, wide)) for moment in moments)
        for _ in range(held):
            updates += 1
            mean = BETA_1 * mean + (1 - BETA_1) * expected
            square = BETA_2 * square + (1 - BETA_2) * expected_square
            if optimizer == "adam":
                root = np.sqrt(square / (1 - BETA_2**updates)) + EPSILON
                A = A - learning_rate * mean / (1 - BETA_1**updates) / root
            else:
                A = A - learning_rate * expected
            if updates in snapshots:
                kept.append(A)
    return np.stack(kept)


def run(algo, env, states, depth, discount, optimizer, learning_rate, snapshots, initial_gain, seed, projected):
    """A (K, 2n, 2n) of a run of ``ictd.pretrain``, or with plain gradients, or projected after each update."""
    wide = 2 * states
    start = initial_weights(states, initial_gain, generator(seed, env, states, "weights"))
    engine = Engine(no_weights(states) if projected else start, algo, depth, discount, learning_rate)
    gradient = Gradient(states, algo, depth, discount)
    kept, estimates = [], np.empty((1, states))
    for updates, task in enumerate(tasks_of(env, states, algo, discount, snapshots[-1], seed), 1):
        if optimizer == "adam":
            engine.train_block(task[0], None, task[1:], estimates)
            engine.steps += 1
        else:
            engine.parameter -= learning_rate * gradient(engine.parameter, task)
        if projected:
            engine.parameter[:wide] = 0
            engine.parameter[wide:] = label_mean(engine.parameter[wide:].reshape(wide, wide)).ravel()
        if updates in snapshots:
            kept.append(engine.weights().A)
    return np.stack(kept)
