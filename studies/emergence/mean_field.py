"""The equation of the mean of A: what pretraining does on average, without a run and without a fitted constant.

If the law of tasks does not depend on labels, the mean of A is a point with eight coordinates (``symmetry.classes``),
and the mean of u is zero.  The equation replaces the weights of a run by their mean:

    A_{t+1} = A_t - rate E[m_t / sqrt(v_t)],

where the moments m and v of Adam, with bias corrections, are those of gradients of random tasks at A_0, ..., A_t.  The
expectation is a mean over copies of a run, which have moments of their own: after each update, the A of every copy is
replaced by the mean over copies and labels, and u by zero.  So the equation leaves out that weights fluctuate, which
matters less for small learning rates.  If only some parts of the weights are averaged, we see what the others do.

With ``label_free`` false, the equation has all entries of A, for tasks whose law depends on labels.
"""

from collections.abc import Callable
from pathlib import Path

import numpy as np

from ictd.engine import Engine
from ictd.rng import generator
from ictd.storage import save_arrays
from ictd.transformer import initial_weights
from studies.emergence.symmetry import Gradient, label_mean, no_weights, tasks_of


def main(setting: dict, output: Path) -> None:
    """Write A of the equation (K, 2n, 2n) and of runs (S, K, 2n, 2n) after K numbers of updates.

    ``setting`` has the arguments of ``equation`` and ``run``, and the number of ``seeds``.
    """
    setting = dict(setting)
    of_runs = {"initial_gain": setting.pop("initial_gain")}
    seeds = setting.pop("seeds")
    of_equation = {key: setting.pop(key) for key in ("label_free", "copies", "averaged")}
    runs = np.stack([run(**setting, **of_runs, seed=seed) for seed in range(seeds)])
    save_arrays(output, equation=equation(**setting, **of_equation), runs=runs)


def equation(
    algo, env, states, depth, discount, optimizer, learning_rate, batch_size, snapshots, label_free, copies, averaged
):
    """A (K, 2n, 2n) of the equation from A = 0, after each of the numbers of updates ``snapshots``.

    ``averaged`` has the parts of the weights of copies that are replaced by their mean: "u", and of A "eight", the mean
    over labels, and "outside", the rest.  The equation averages all.
    """
    wide = 2 * states
    updates = [update(states, algo, depth, discount, optimizer, learning_rate) for _ in range(copies)]
    drawn = tasks_of(env, states, algo, discount, copies * snapshots[-1], 2**32, batch_size)
    parameters, kept = np.zeros((copies, wide + wide**2)), []
    for count in range(1, snapshots[-1] + 1):
        for i, updated in enumerate(updates):
            parameters[i] = updated(parameters[i], next(drawn))
        A = parameters[:, wide:].reshape(copies, wide, wide)
        mean = A.mean(axis=0)
        mean = label_mean(mean) if label_free else mean
        if count in snapshots:
            kept.append(mean)
        deviations = np.zeros_like(A)
        if "eight" not in averaged:
            deviations += label_mean(A) - mean
        if "outside" not in averaged:
            deviations += A - label_mean(A)
        parameters[:, wide:] = (mean + deviations).reshape(copies, -1)
        if "u" in averaged:
            parameters[:, :wide] = 0.0
    return np.stack(kept)


def run(
    algo, env, states, depth, discount, optimizer, learning_rate, batch_size, snapshots, initial_gain, seed
) -> np.ndarray:
    """A (K, 2n, 2n) of a run of ``ictd.pretrain``, or of the same run with plain gradients."""
    start = initial_weights(states, initial_gain, generator(seed, env, states, "weights"))
    updated = update(states, algo, depth, discount, optimizer, learning_rate)
    parameter, kept = np.concatenate([start.u, start.A.ravel()]), []
    for count, task in enumerate(tasks_of(env, states, algo, discount, snapshots[-1], seed, batch_size), 1):
        parameter = updated(parameter, task)
        if count in snapshots:
            kept.append(parameter[2 * states :].reshape(2 * states, -1))
    return np.stack(kept)


def update(states, algo, depth, discount, optimizer, learning_rate) -> Callable:
    """A function that makes one update of parameters u, A (2n + 4n^2,) on a task, with moments of its own."""
    gradient = Gradient(states, algo, depth, discount)
    engine, estimates = Engine(no_weights(states), algo, depth, discount, learning_rate), np.empty((1, states))

    def plain(parameter: np.ndarray, task: tuple) -> np.ndarray:
        return parameter - learning_rate * gradient(parameter, task)

    def adam(parameter: np.ndarray, task: tuple) -> np.ndarray:
        engine.parameter[:] = parameter
        engine.steps += engine.train_block(task[0], None, task[1:], estimates)
        return engine.parameter.copy()

    return adam if optimizer == "adam" else plain
