"""The equation of the mean of A: what pretraining does on average, without a run and without a fitted constant.

If the law of tasks does not depend on labels, the mean of A is a point with eight coordinates (``symmetry.classes``),
and the mean of u is zero.  The equation replaces the run by its mean:

    m <- 0.9 m + 0.1 E[g],    v <- 0.999 v + 0.001 E[g^2],    A <- A - rate m / sqrt(v)

with Adam's bias corrections, where g is the gradient of one update at A, and both expectations are means over tasks,
batches and the entries of a class.  It leaves out that A, m and v fluctuate, which matters less for small learning
rates.  Expectations are held for a few updates.  They must be few: with many layers, the equation oscillates along
stiff directions if A moves by 0.01 between expectations, and alpha is a tenth too small.

With ``label_free`` false, the equation has all entries of A, for tasks whose law depends on labels.
"""

from itertools import islice
from pathlib import Path

import numpy as np

from ictd.engine import BETA_1, BETA_2, EPSILON, Engine
from ictd.rng import generator
from ictd.storage import save_arrays
from ictd.transformer import initial_weights
from studies.emergence.symmetry import Gradient, label_mean, tasks_of


def main(setting: dict, output: Path) -> None:
    """Write A of the equation (K, 2n, 2n) and of runs (S, K, 2n, 2n) after K numbers of updates.

    ``setting`` has the arguments of ``equation`` and ``run``, and the number of ``seeds``.
    """
    setting = dict(setting)
    of_runs = {"initial_gain": setting.pop("initial_gain")}
    seeds = setting.pop("seeds")
    of_equation = {key: setting.pop(key) for key in ("label_free", "tasks", "held")}
    runs = np.stack([run(**setting, **of_runs, seed=seed) for seed in range(seeds)])
    save_arrays(output, equation=equation(**setting, **of_equation), runs=runs)


def equation(algo, env, states, depth, discount, optimizer, learning_rate, snapshots, label_free, tasks, held):
    """A (K, 2n, 2n) of the equation from A = 0, after each of the numbers of updates ``snapshots``.

    ``tasks`` is the number of tasks of an expectation, and ``held`` the number of updates with the same expectations.
    """
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


def run(algo, env, states, depth, discount, optimizer, learning_rate, snapshots, initial_gain, seed):
    """A (K, 2n, 2n) of a run of ``ictd.pretrain``, or of the same run with plain gradients."""
    start = initial_weights(states, initial_gain, generator(seed, env, states, "weights"))
    engine = Engine(start, algo, depth, discount, learning_rate)
    gradient = Gradient(states, algo, depth, discount)
    kept, estimates = [], np.empty((1, states))
    for updates, task in enumerate(tasks_of(env, states, algo, discount, snapshots[-1], seed), 1):
        if optimizer == "adam":
            engine.train_block(task[0], None, task[1:], estimates)
            engine.steps += 1
        else:
            engine.parameter -= learning_rate * gradient(engine.parameter, task)
        if updates in snapshots:
            kept.append(engine.weights().A)
    return np.stack(kept)
