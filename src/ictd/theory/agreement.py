"""The gradient of TF_L for each query state in three ways: torch's, the fused engine's and the appendix's."""

import numpy as np
import torch

from ictd.fused import collapse, expand, sweep_adjoint, sweep_forward
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


def by_fused_engine(weights: Weights, tasks: Tasks, task: int, discount: float, depth: int) -> np.ndarray:
    """The same by the collapsed forward pass and adjoint sweep of ``ictd.fused``."""
    n = tasks.states
    Y = discount * np.ascontiguousarray(tasks.transition[task].T)
    T, Bq, dT = np.empty((3, n, n))
    AX, D, h = np.empty((2 * n, n)), np.empty((n, 2 * n)), np.empty((depth, n))
    g, lam, following = np.empty((3, n))
    collapse(weights.u, weights.A, Y, tasks.reward[task], 1.0, AX, T, Bq, h[0])
    sweep_forward(T, h, g)
    rows = np.empty((n, 2 * n + 4 * n * n))
    for row, e in zip(rows, np.eye(n), strict=True):
        sweep_adjoint(T, h, Bq @ e, lam, following, dT)
        expand(lam, dT, g, e, Y, 1.0, D, row[: 2 * n], row[2 * n :].reshape(2 * n, 2 * n))
    return rows


def by_appendix(weights: Weights, tasks: Tasks, task: int, discount: float, depth: int) -> np.ndarray:
    """The same by the recursions of the proof of Lemma 3."""
    *_, last = gradients(embeddings(weights, tasks[task : task + 1], discount, depth))
    du, dA = last.V[0].T, last.query_A()[0]
    return -np.concatenate([du, dA.reshape(len(dA), -1)], axis=1)


def largest_difference(found: np.ndarray, reference: np.ndarray) -> float:
    """Largest difference of an entry over the largest entry of the reference."""
    return float(np.abs(found - reference).max() / np.abs(reference).max())
