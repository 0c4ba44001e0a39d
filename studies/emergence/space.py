"""Pretrain all of P and Q: what do the constraints of Theta^looped and the start of one entry of P decide?

In Theta^looped, only A, a block of Q, and u, in the last row of P, are trained, and P's corner, its last entry, is one.
Here all entries of P and Q are trained, with the same tasks, batches and optimiser.  Initial values are normal as in
``ictd.GramAttention``, except that the corner starts at given values; a seed has the same other values and tasks for
each of them.

A layer adds P Z (Z' Q W) / n to the columns W = [Z, queries] of a prompt, where Z is the context.  (P, Q) and (-P, -Q)
are one function, so cosines to theta^TD are multiplied by the sign of the corner.
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from ictd.algorithms import Targets
from ictd.engine import BETA_1, BETA_2, EPSILON
from ictd.evaluation import draw_unseen_tasks
from ictd.mrp import TaskDistribution, Tasks, msve
from ictd.prompt import enumerated_columns
from ictd.rng import generator
from ictd.storage import long_table, save_table
from ictd.training_data import EnumeratedPrompts, training_blocks
from ictd.transformer import theta_td
from ictd.weight_measures import cosine, squared_norm
from studies.emergence.few_numbers import identifiable


def main(setting: dict, discount: float, updates: int, test_tasks: int, output: Path) -> None:
    """Write a row for each start of the corner and each seed.

    The keys of ``setting`` are those of ``space`` in ``config.yaml``.  Columns are the median MSVE over tasks on
    enumerated prompts ("median"), that of predicting zero, and that with the corner and A alone ("kept"); the signed
    squared cosine of A to theta^TD ("pattern"); the ratio of the coefficients of I in A12 and of -I in A11
    ("bootstrap"); the shares of the corner and of row u in the squared norm of P; and the squared cosine of the changes
    by a layer to TD errors, a mean over layers ("layer").
    """
    env, states, depth = (setting[key] for key in ("env", "states", "depth"))
    P, Q = pretrained(setting, discount, updates)
    data = draw_unseen_tasks(0, states, test_tasks, 1, discount, env, "space")
    layers = estimates_by_layer(P, Q, prompts(data.tasks, discount), depth)
    columns = {
        "median": median_error(layers[-1], data),
        "kept": median_error(estimates_by_layer(*kept(P, Q), prompts(data.tasks, discount), depth)[-1], data),
        "zero": np.full(P.shape[:2], median_error(np.zeros_like(data.value), data)),
        "layer": layer_is_td(layers, data, discount),
        **measures(P, Q, discount),
    }
    axes = {"corner": np.array(setting["corners"]), "seed": np.arange(setting["seeds"])}
    names = {key: setting[key] for key in ("env", "states", "depth", "algo", "learning_rate", "clip")}
    save_table(output, long_table(axes, columns, **names))


def pretrained(setting: dict, discount: float, updates: int) -> tuple[np.ndarray, np.ndarray]:
    """P and Q (C, S, D, D) after pretraining from C corners with S seeds, D = 2n + 1.

    A run whose gradient is not finite keeps its parameters in this update.
    """
    rate, clip = setting["learning_rate"], setting["clip"]
    parameters = initial_parameters(setting["states"], setting["corners"], setting["seeds"])
    mean, square = np.zeros((2, *parameters.shape))
    for count, (columns, targets) in enumerate(drawn(setting, discount, updates), 1):
        with np.errstate(over="ignore", invalid="ignore"):
            gradient = update_direction(parameters, columns, targets, setting["depth"])
            norm = np.sqrt((gradient**2).sum(axis=(0, -2, -1), keepdims=True))
        if clip:
            gradient *= np.minimum(1, clip / np.maximum(norm, clip))
        gradient[:, ~np.isfinite(norm[0, ..., 0, 0])] = 0
        mean += (1 - BETA_1) * (gradient - mean)
        square += (1 - BETA_2) * (gradient**2 - square)
        root = np.sqrt(square / (1 - BETA_2**count))
        parameters -= rate / (1 - BETA_1**count) * mean / (root + EPSILON)
    return tuple(parameters)


def initial_parameters(states: int, corners: list[float], seeds: int) -> np.ndarray:
    """P and Q (2, C, S, D, D): as those of ``ictd.GramAttention``, with other corners of P."""
    height = 2 * states + 1
    streams = [generator(seed, "attention", states, "weights") for seed in range(seeds)]
    start = np.stack([rng.normal(0, 0.1 / np.sqrt(height), (2, height, height)) for rng in streams], axis=1)
    parameters = np.repeat(start[:, None], len(corners), axis=1)
    parameters[0, ..., -1, -1] = np.array(corners)[:, None]
    return parameters


def drawn(setting: dict, discount: float, updates: int) -> Iterator[tuple[np.ndarray, Targets]]:
    """Prompts (S, D, 2n) and targets of S seeds for each update, those of ``ictd.pretrain``."""
    chains, kind = TaskDistribution(setting["env"], states=setting["states"]), EnumeratedPrompts()
    streams = [
        training_blocks(chains, kind, setting["algo"], discount, updates, seed, 64, 200)
        for seed in range(setting["seeds"])
    ]
    for blocks in zip(*streams, strict=True):
        columns = np.stack([prompts(block.tasks, discount) for block in blocks], axis=1)
        arrays = [np.stack(parts, axis=1) for parts in zip(*(vars(b.targets).values() for b in blocks), strict=True)]
        for i in range(len(columns)):
            yield columns[i], Targets(*(array[i] for array in arrays))


def prompts(tasks: Tasks, discount: float) -> np.ndarray:
    """Columns (N, D, 2n) of enumerated contexts, followed by those of all query states."""
    context = enumerated_columns(tasks.transition, tasks.reward, discount)
    queries = np.broadcast_to(np.eye(2 * tasks.states + 1, tasks.states), context.shape)
    return np.concatenate([context, queries], axis=-1)


def forward(P: np.ndarray, Q: np.ndarray, columns: np.ndarray, depth: int) -> list[np.ndarray]:
    """Columns (..., D, 2n) before and after each layer, for P and Q (..., D, D)."""
    n = columns.shape[-1] // 2
    layers = [np.broadcast_to(columns, np.broadcast_shapes(columns.shape, (*P.shape[:-1], 2 * n)))]
    for _ in range(depth):
        W = layers[-1]
        Z = W[..., :n]
        layers.append(W + P @ Z @ (Z.mT @ Q @ W) / n)
    return layers


def update_direction(parameters: np.ndarray, columns: np.ndarray, targets: Targets, depth: int) -> np.ndarray:
    """Minus the update direction of P and Q (2, C, S, D, D) for one task of each seed, by the chain rule."""
    P, Q = parameters
    n = columns.shape[-1] // 2
    layers = forward(P, Q, columns, depth)
    estimate = -layers[-1][..., -1, n:]
    error = targets.sums + np.matvec(targets.bootstrap, estimate) - targets.visits * estimate
    dW = np.zeros_like(layers[-1])
    dW[..., -1, n:] = error / targets.visits.sum(axis=-1, keepdims=True)
    dP, dQ = np.zeros_like(parameters)
    for W in layers[-2::-1]:
        Z = W[..., :n]
        attention = Z.mT @ Q @ W / n  # (..., n, 2n)
        value = P @ Z
        d_attention = value.mT @ dW / n
        d_value = dW @ attention.mT
        dP += d_value @ Z.mT
        dQ += Z @ d_attention @ W.mT
        dW = dW + Q.mT @ Z @ d_attention
        dW[..., :n] += P.mT @ d_value + Q @ W @ d_attention.mT
    return np.stack([dP, dQ])


def estimates_by_layer(P: np.ndarray, Q: np.ndarray, columns: np.ndarray, depth: int) -> np.ndarray:
    """Estimates (L+1, C, S, N, n) on N prompts before the first and after each layer."""
    n = columns.shape[-1] // 2
    with np.errstate(all="ignore"):
        return -np.stack(forward(P[:, :, None], Q[:, :, None], columns, depth))[..., -1, n:]


def median_error(estimate: np.ndarray, data) -> np.ndarray:
    """Median MSVE (...) over tasks of estimates (..., N, n), infinite if it overflows."""
    with np.errstate(all="ignore"):
        errors = msve(data.tasks.stationary, data.value, estimate)
    return np.median(np.where(np.isnan(errors), np.inf, errors), axis=-1)


def layer_is_td(layers: np.ndarray, data, discount: float) -> np.ndarray:
    """Squared cosine (C, S) of changes by a layer and TD errors, over tasks and states, a mean over layers.

    It is that of ``ictd.evaluation.layer_measures``, for estimates (L+1, C, S, N, n).
    """
    tasks, mu, w = data.tasks, data.tasks.stationary, layers[:-1]
    with np.errstate(all="ignore"):
        change = np.diff(layers, axis=0)
        error = tasks.reward + discount * np.matvec(tasks.transition, w) - w
        along, changes, errors = (
            (mu * product).sum(axis=(-2, -1)) for product in (change * error, change**2, error**2)
        )
        return (np.maximum(along, 0) ** 2 / (changes * errors)).mean(axis=0)


def kept(P: np.ndarray, Q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """P with its corner only, and Q with its block A only."""
    corner, A = np.zeros_like(P), np.zeros_like(Q)
    corner[..., -1, -1] = P[..., -1, -1]
    A[..., :-1, :-1] = Q[..., :-1, :-1]
    return corner, A


def measures(P: np.ndarray, Q: np.ndarray, discount: float) -> dict[str, np.ndarray]:
    """Measures (C, S) of P and Q (C, S, D, D)."""
    corner, whole = P[..., -1, -1], squared_norm(P)
    A = identifiable(Q[..., :-1, :-1], discount)
    n = A.shape[-1] // 2
    along = np.sign(corner) * cosine(A, theta_td(n).A)
    first, second = (np.trace(block, axis1=-2, axis2=-1) for block in (A[..., :n, :n], A[..., :n, n:]))
    return {
        "pattern": np.sign(along) * along**2,
        "bootstrap": -second / first,
        "corner_share": corner**2 / whole,
        "u_share": (P[..., -1, :-1] ** 2).sum(axis=-1) / whole,
    }
