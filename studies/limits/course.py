"""Pretraining with expected updates, and the part of A outside the family K [-I, I] during pretraining.

The updates are the paper's for an infinite batch: only tasks are random.  The target of TD is r + gamma p TF_L, and the
target of MC is v.  Each run of ``RUNS`` changes one setting.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ictd.kernels import size
from ictd.mrp import Tasks, sample_tasks
from ictd.rng import generator
from ictd.storage import save_table
from ictd.transformer import Weights, initial_weights, theta_td
from ictd.weight_measures import decomposition_measures, project_identifiable, squared_norm
from studies.limits.engine import Prompts, enumerated_prompts, parameters_of, train_block, weights_of
from studies.limits.minimise import msve_of_parameters


@dataclass(frozen=True)
class Run:
    """A way of pretraining.

    Parameters
    ----------
    algo : "td" or "mc"
    in_family : bool
        Whether A is projected on K [-I, I], and u on zero, after each update.
    train_gain : bool
        Whether the factor of the output, which is 1 in the paper, is trained.
    step_size : float
        Step size alpha of a theta^TD that is added to the random start.
    """

    algo: str
    in_family: bool = False
    train_gain: bool = False
    step_size: float = 0


RUNS = {
    "td": Run("td"),
    "mc": Run("mc"),
    "in_family": Run("td", in_family=True),
    "gain": Run("td", train_gain=True),
    "start": Run("td", step_size=1),
}


def main(
    env: str,
    states: int,
    seed: int,
    discounts: list[float],
    depths: list[int],
    marks: list[int],
    test_tasks: int,
    learning_rate: float,
    initial_gain: float,
    env_options: dict,
    output: Path,
) -> None:
    """Write a row for each run, discount, depth and number of tasks in ``marks``, for one seed."""
    tasks = sample_tasks(env, states, marks[-1], generator(seed, env, states, "limits course"), **env_options[env])
    test = sample_tasks(env, states, test_tasks, generator(0, env, states, "limits held out"), **env_options[env])
    random = initial_weights(states, initial_gain, generator(seed, env, states, "weights"))
    tables = []
    for discount in discounts:
        prompts = enumerated_prompts(tasks, discount)
        test_prompts = enumerated_prompts(test, discount)
        for depth in depths:
            for name, run in RUNS.items():
                start = parameters_of(Weights(random.u, random.A + run.step_size * states * theta_td(states).A))
                snapshots = train(
                    start[None],
                    np.ones((len(tasks), 1)),
                    tasks,
                    prompts,
                    run.algo,
                    depth,
                    discount,
                    learning_rate,
                    marks,
                    in_family=run.in_family,
                    train_gain=run.train_gain,
                )
                columns = measures(snapshots[:, 0], states, depth, discount, test_prompts)
                setting = {"run": name, "discount": discount, "depth": depth, "seed": seed}
                setting = {key: [value] * len(marks) for key, value in setting.items()}
                tables.append(setting | {"tasks": marks} | columns)
    save_table(output, *tables)


def measures(
    snapshots: np.ndarray, states: int, depth: int, discount: float, test_prompts: Prompts
) -> dict[str, np.ndarray]:
    """Parts of A and the MSVE on unseen tasks, at each snapshot.

    Parameters
    ----------
    snapshots : (marks, 2n + 4n^2 + 1) array of parameters
    states : int, n
    depth : int, L
    discount : float, gamma
    test_prompts : Prompts of unseen tasks

    Returns
    -------
    dict of (marks,) arrays
        alpha, theta, preconditioner, outside : of ``ictd.weight_measures.decomposition_measures``
        outside_norm : norm of the part of A outside K [-I, I]
        gain : factor of the output
        msve : mean MSVE on the unseen tasks
        zero : mean MSVE of predicting zero on the unseen tasks
    """
    weights = weights_of(snapshots, states)
    shares = decomposition_measures(weights, discount)
    columns = {name: shares[name] for name in ("alpha", "theta", "preconditioner", "outside")}
    columns["outside_norm"] = np.sqrt(shares["outside"] * squared_norm(project_identifiable(weights, discount).A))
    columns["gain"] = snapshots[:, -1]
    test_msve = msve_of_parameters(test_prompts, depth)
    zero = test_msve.value_and_gradient(0 * snapshots[0])[0]
    columns["zero"] = np.full(len(snapshots), zero)
    columns["msve"] = np.array([test_msve.value_and_gradient(parameters)[0] for parameters in snapshots])
    return columns


def train(
    start: np.ndarray,
    shares: np.ndarray,
    tasks: Tasks,
    prompts: Prompts,
    algo: str,
    depth: int,
    discount: float,
    learning_rate: float,
    marks: list[int],
    clip: float = 0.0,
    in_family: bool = False,
    train_gain: bool = False,
) -> np.ndarray:
    """Pretrain with expected updates, one for each task.

    Parameters
    ----------
    start : (heads, 2n + 4n^2 + 1) array of parameters
    shares : (N, heads) array
        Weights of the heads in the output on each prompt.
    tasks : Tasks, N of them with n states
    prompts : Prompts of these tasks, with the true values as targets
    algo : "td" or "mc"
    depth : int, number of layers L
    discount : float, gamma
    learning_rate : float, of Adam
    marks : list of int
        Ascending numbers of tasks after which snapshots are taken.
    clip : float
        Largest norm of a gradient; 0 means no limit.
    in_family : bool
        Whether the first head is projected on K [-I, I], with u = 0, after each update.
    train_gain : bool
        Whether the factor of the output is trained.

    Returns
    -------
    snapshots : (marks, heads, 2n + 4n^2 + 1) array, NaN after a divergence
    """
    parameter = start.copy()
    mean = np.zeros_like(start)
    square = np.zeros_like(start)
    snapshots = np.full((len(marks), *start.shape), np.nan)
    done = 0
    for i, mark in enumerate(marks):
        block = slice(done, mark)
        some_tasks, some_prompts = tasks[block], prompts[block]
        done += train_block(
            size(tasks.states), size(prompts.y.shape[1]), some_prompts.X, some_prompts.y, some_tasks.transition,
            some_tasks.reward, some_prompts.target, some_prompts.weight, shares[block], algo == "td", depth, discount,
            learning_rate, clip or None, in_family, train_gain, parameter, mean, square, done,
        )  # fmt: skip
        if done < mark:
            break
        snapshots[i] = parameter
    return snapshots
