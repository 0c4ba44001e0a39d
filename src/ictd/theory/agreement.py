"""Gradients of TF_L by the fused engine and by the appendix's recursions, compared with torch's on whole prompts."""

from pathlib import Path

import numpy as np
import torch

from ictd.engine import value_gradients
from ictd.literal import LinearTransformer
from ictd.mrp import Tasks, sample_tasks
from ictd.prompt import enumerated_columns, prompts_of
from ictd.rng import generator
from ictd.storage import save_json
from ictd.theory.embeddings import embeddings, gradients
from ictd.transformer import Weights, theta_td

TASKS = 2
# Standard deviation of random weights' entries times sqrt(2n), which keeps 60 layers from growing much.
SPREAD = 0.2


def main(settings: list[str], discount: float, env_options: dict, output: Path) -> None:
    """Write the largest differences for each setting "env-states-depth", at theta^TD and at random weights."""
    rows = []
    for setting in settings:
        env, states, depth = setting.split("-")
        n, L = int(states), int(depth)
        rng = generator(0, env, n, "agreement")
        tasks = sample_tasks(env, n, TASKS, rng, **env_options.get(env, {}))
        deviation = SPREAD / np.sqrt(2 * n)
        random = Weights(rng.normal(0, deviation, 2 * n), rng.normal(0, deviation, (2 * n, 2 * n)))
        for name, weights in (("theta_td", theta_td(n)), ("random", random)):
            cases = [(weights, tasks, task, discount, L) for task in range(TASKS)]
            references = [by_autograd(*case) for case in cases]
            row = {"env": env, "states": n, "depth": L, "weights": name}
            for way, function in (("fused", value_gradients), ("appendix", by_appendix)):
                pairs = zip(cases, references, strict=True)
                row[way] = float(np.max([largest_difference(function(*case), wanted) for case, wanted in pairs]))
            rows.append(row)
    save_json(output, rows)


def by_autograd(weights: Weights, tasks: Tasks, task: int, discount: float, depth: int) -> np.ndarray:
    """Gradients (n, 2n + 4n^2) of TF_L on the whole prompt of each query state, u before A, by torch."""
    model = LinearTransformer(weights, depth, scaled=False)
    context = enumerated_columns(tasks.transition[task], tasks.reward[task], discount)
    rows = []
    for prompt in torch.from_numpy(prompts_of(context)):
        parts = torch.autograd.grad(model(prompt, queries=1), [model.u, model.A])
        rows.append(np.concatenate([part.numpy().ravel() for part in parts]))
    return np.stack(rows)


def by_appendix(weights: Weights, tasks: Tasks, task: int, discount: float, depth: int) -> np.ndarray:
    """The same by the recursions of the proof of Lemma 3."""
    *_, last = gradients(embeddings(weights, tasks[task : task + 1], discount, depth))
    du, dA = last.V[0].T, last.query_A()[0]
    return -np.concatenate([du, dA.reshape(len(dA), -1)], axis=1)


def largest_difference(found: np.ndarray, reference: np.ndarray) -> float:
    """Largest difference of an entry over the largest entry of the reference."""
    return float(np.abs(found - reference).max() / np.abs(reference).max())
