"""The equation of the mean of A: what pretraining does on average, without a run and without a fitted constant.

If the law of tasks does not depend on labels, the mean of A is a point with eight coordinates (``symmetry.classes``),
and the mean of u is zero.  The equation replaces the weights of a run by their mean:

    A_{t+1} = A_t - rate E[m_t / sqrt(v_t)],

where the moments m and v of Adam, with bias corrections, are those of gradients of random tasks at A_0, ..., A_t.  The
expectation is a mean over copies of a run, which have moments of their own: after each update, the A of every copy is
replaced by the mean over copies and labels, and u by zero.  So the equation leaves out that weights fluctuate, which
matters less for small learning rates.  If only some parts of the weights are averaged, we see what the others do.

With ``label_free`` false, the equation has all entries of A, for tasks whose law depends on labels.

With ``confined_from`` above 0, A has two numbers from this update on, alpha and beta, and of the others only a, from
the law of constants (``constants``).
"""

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from ictd.mrp import sample_tasks
from ictd.rng import generator
from ictd.storage import save_arrays
from ictd.transformer import initial_weights
from studies.emergence.constants import eight_numbers, hessian, matrix_of, two_by_law
from studies.emergence.symmetry import Gradient, label_mean, tasks_of

# Tasks for the mean of a Hessian.
TASKS = 200


def main(setting: dict, output: Path) -> None:
    """Write A of the equation (K, 2n, 2n) and of runs (S, K, 2n, 2n) after K numbers of updates, and Hessians.

    ``hessians`` (S, 6, 6) are those at the eight numbers of the runs after the last update (``constants.hessian``).
    The keys of ``setting`` are those of ``symmetry.equation`` in ``config.yaml``.
    """
    env, states, depth, discount = (setting[key] for key in ("env", "states", "depth", "discount"))
    runs = np.stack([run(setting, seed) for seed in range(setting["seeds"])])
    tasks = sample_tasks(env, states, TASKS, generator(0, env, states, "hessian"))
    numbers = eight_numbers(runs[:, -1], discount)
    hessians = np.stack([hessian(row, tasks, discount, depth) for row in numbers])
    save_arrays(output, equation=equation(setting), runs=runs, hessians=hessians)


def start_of(setting: dict) -> np.ndarray:
    """The start B_1 (x) I (2n, 2n) of the equation; ``start_matrix`` is B_1, for attention divided by n."""
    return setting["states"] * np.kron(setting["start_matrix"], np.eye(setting["states"]))


def confined(A: np.ndarray, setting: dict) -> np.ndarray:
    """A (2n, 2n) with alpha and beta, the a of the law of constants (0 if there is none), and no other numbers."""
    states, discount = setting["states"], setting["discount"]
    numbers = two_by_law(eight_numbers(A, discount), states, discount, setting["depth"])
    return matrix_of(np.nan_to_num(numbers), states)


def equation(setting: dict) -> np.ndarray:
    """A (K, 2n, 2n) of the equation from ``start_matrix``, after each of the numbers of updates ``snapshots``.

    ``averaged`` has the parts of the weights of copies that are replaced by their mean: "u", and of A "eight", the mean
    over labels, and "outside", the rest.  The equation averages all.
    """
    wide, copies, averaged = 2 * setting["states"], setting["copies"], setting["averaged"]
    snapshots = setting["snapshots"]
    updates = [update(setting) for _ in range(copies)]
    drawn = tasks_in(setting, copies, 2**32)
    parameters, kept = np.zeros((copies, wide + wide**2)), []
    parameters[:, wide:] = start_of(setting).ravel()
    confined_from = setting["confined_from"] or np.inf
    for count in range(1, snapshots[-1] + 1):
        for i, updated in enumerate(updates):
            parameters[i] = updated(parameters[i], next(drawn))
        A = parameters[:, wide:].reshape(copies, wide, wide)
        mean = A.mean(axis=0)
        mean = label_mean(mean) if setting["label_free"] else mean
        mean = confined(mean, setting) if count >= confined_from else mean
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


def run(setting: dict, seed: int) -> np.ndarray:
    """A (K, 2n, 2n) of a run of ``ictd.pretrain``, or of the same run from another start or with plain gradients."""
    states = setting["states"]
    start = initial_weights(states, setting["initial_gain"], generator(seed, setting["env"], states, "weights"))
    updated = update(setting)
    parameter, kept = np.concatenate([start.u, (start.A + start_of(setting)).ravel()]), []
    for count, task in enumerate(tasks_in(setting, 1, seed), 1):
        parameter = updated(parameter, task)
        if count in setting["snapshots"]:
            kept.append(parameter[2 * states :].reshape(2 * states, -1))
    return np.stack(kept)


def tasks_in(setting: dict, copies: int, seed: int) -> Iterator[tuple]:
    """Draw the tasks of all updates of copies of a run."""
    env, states, algo, discount = (setting[key] for key in ("env", "states", "algo", "discount"))
    return tasks_of(env, states, algo, discount, copies * setting["snapshots"][-1], seed, setting["batch_size"])


def update(setting: dict) -> Callable:
    """A function that makes one update of parameters u, A (2n + 4n^2,) on a task, with moments of its own."""
    learning_rate = setting["learning_rate"]
    gradient = Gradient(*(setting[key] for key in ("states", "depth", "discount")))

    def plain(parameter: np.ndarray, task: tuple) -> np.ndarray:
        return parameter - learning_rate * gradient(parameter, task)

    if setting["optimizer"] == "sgd":
        return plain
    engine = gradient.engine
    engine.learning_rate = learning_rate

    def adam(parameter: np.ndarray, task: tuple) -> np.ndarray:
        engine.parameter[:] = parameter
        engine.steps += engine.train_block(task[0], None, task[1:], gradient.estimates)
        return engine.parameter.copy()

    return adam
