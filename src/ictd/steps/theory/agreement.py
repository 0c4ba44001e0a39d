"""Compare gradients of TF_L from the engine and from the appendix's recursions with torch's on whole prompts."""

from pathlib import Path

import numpy as np
import torch

from ictd.engine import collapse, expand, sweep_adjoint, sweep_forward
from ictd.kernels import size
from ictd.mrp import Tasks, sample_tasks
from ictd.pipeline.grid import parse_name
from ictd.prompt import enumerated_columns, prompts_of
from ictd.rng import generator
from ictd.storage import save_table
from ictd.theory.recursion import evolve, gradients
from ictd.torch_twin import LinearTransformer
from ictd.transformer import Weights, theta_td

TASKS = 2
# Standard deviation of the entries of random weights, times sqrt(2n).  With it, outputs grow little over 60 layers.
SPREAD = 0.2


def main(settings: list[str], discount: float, env_options: dict, output: Path) -> None:
    """Write the largest differences for each setting "env-states-depth", at theta^TD and at random weights."""
    tables = []
    for setting in settings:
        env, n, L = parse_name(setting)
        rng = generator(0, env, n, "agreement")
        tasks = sample_tasks(env, n, TASKS, rng, **env_options[env])
        deviation = SPREAD / np.sqrt(2 * n)
        random = Weights(rng.normal(0, deviation, 2 * n), rng.normal(0, deviation, (2 * n, 2 * n)))
        for name, weights in (("theta_td", theta_td(n)), ("random", random)):
            columns = {"env": [env], "states": [n], "depth": [L], "weights": [name]}
            cases = [(weights, tasks.transition[i], tasks.reward[i], discount, L) for i in range(TASKS)]
            references = [gradients_by_torch(*case) for case in cases]
            for way, function in (("compiled", gradients_by_engine), ("appendix", gradients_by_appendix)):
                differences = [
                    largest_difference(function(*case), reference)
                    for case, reference in zip(cases, references, strict=True)
                ]
                # NumPy's max is NaN if one of the differences is NaN; Python's max is not.
                columns[way] = [float(np.max(differences))]
            tables.append(columns)
    save_table(output, *tables)


def gradients_by_torch(
    weights: Weights, transition: np.ndarray, reward: np.ndarray, discount: float, depth: int
) -> np.ndarray:
    """Compute gradients of TF_L on the whole prompt of each query state by automatic differentiation.

    Returns
    -------
    gradients : (n, 2n + 4n^2) array, u before A
    """
    model = LinearTransformer(weights, depth, scaled=False)
    columns = enumerated_columns(transition, reward, discount)
    of_queries = []
    for prompt in torch.from_numpy(prompts_of(columns)):
        du, dA = torch.autograd.grad(model(prompt, queries=1), [model.u, model.A])
        of_queries.append(np.concatenate([du.numpy().ravel(), dA.numpy().ravel()]))
    return np.stack(of_queries)


def gradients_by_appendix(
    weights: Weights, transition: np.ndarray, reward: np.ndarray, discount: float, depth: int
) -> np.ndarray:
    """Compute the same (n, 2n + 4n^2) array by the recursions of the proof of Lemma 3."""
    *_, last = gradients(evolve(weights, Tasks(transition, reward), discount, depth))
    du, dA = last.V[0].T, last.query_A()[0]
    return -np.concatenate([du, dA.reshape(len(dA), -1)], axis=1)


def gradients_by_engine(
    weights: Weights, transition: np.ndarray, reward: np.ndarray, discount: float, depth: int
) -> np.ndarray:
    """Compute the same (n, 2n + 4n^2) array by the compiled kernels."""
    states, n = len(reward), size(len(reward))
    Yt = discount * transition
    Y, (T, R, dT, across) = np.ascontiguousarray(Yt.T), np.empty((4, states, states))
    AX = np.empty((2 * states, states))
    h, following = np.empty((2, depth, states))
    row, g, lam = np.empty((3, states))
    collapse(n, weights.u, weights.A, Y, Yt, reward, 1.0, AX, T, R, h[0])
    sweep_forward(n, T, h, row, g)
    rows = np.empty((states, 2 * states + 4 * states**2))
    for gradient, e in zip(rows, np.eye(states), strict=True):
        sweep_adjoint(n, T, h, R @ e, lam, following, across, dT)
        du, dA = gradient[: 2 * states], gradient[2 * states :].reshape(2 * states, 2 * states)
        expand(n, lam, dT, g, e, Y, Yt, 1.0, du, dA)
    return rows


def largest_difference(gradient: np.ndarray, reference: np.ndarray) -> float:
    """Largest difference of an entry, relative to the largest entry of the reference."""
    return float(np.abs(gradient - reference).max() / np.abs(reference).max())
