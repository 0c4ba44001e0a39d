"""The gradient of TF_L for each query state by torch and by the appendix; ``ictd.fused`` has it by the engine."""

import numpy as np
import torch

from ictd.mrp import Tasks
from ictd.prompts import enumerated_context, prompts_of
from ictd.theory.embeddings import embeddings, gradients
from ictd.transformer import LinearTransformer
from ictd.weights import Weights


def by_autograd(weights: Weights, tasks: Tasks, task: int, discount: float, depth: int) -> np.ndarray:
    """Gradients (n, 2n + 4n^2) of TF_L on the whole prompt of each query state, u before A, by torch."""
    model = LinearTransformer(weights, depth, scaled=False)
    context = enumerated_context(tasks.transition[task], tasks.reward[task], discount)
    rows = []
    for prompt in torch.from_numpy(prompts_of(context)):
        parts = torch.autograd.grad(model(prompt), [model.u, model.A])
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
