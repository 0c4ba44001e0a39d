"""theta^TD in decimal arithmetic: both sides of Lemmas 1 and 4, and the expected update, for deep Transformers.

At L = 500 and gamma = 0.9 a value differs from its limit by 1e-23, far less than the rounding error of a difference of
two float64 numbers.  This module uses Python's ``decimal``, with 30 digits more than gamma^L needs.  It takes the
float64 numbers of a task as exact.
"""

import math
from contextlib import AbstractContextManager
from decimal import Decimal, localcontext

import numpy as np

from ictd.mrp import Tasks
from ictd.transformer import theta_td

# Number of digits that remain after a difference.
DIGITS = 30
exact = np.vectorize(Decimal, otypes=[object])


def exact_sides(tasks: Tasks, task: int, discount: float, layers: list[int]) -> dict[str, np.ndarray]:
    """Compute both sides of Lemmas 1 and 4 for one task.

    Parameters
    ----------
    tasks : Tasks
    task : int, index of the task
    discount : float, gamma
    layers : list of K ints, in ascending order

    Returns
    -------
    dict of (K, 3) arrays by "lemma_1" and "lemma_4"
        For each layer the left side (the largest over query states), the right side, and left / right, or 0 where
        both are 0.
    """
    with _precision(discount, layers[-1]):
        gamma, P, r, v = _exact_task(tasks, task, discount)
        _, f, g = _exact_attention(gamma, P)
        k, k_sum, power = r, 0 * r, Decimal(1)
        sides = {"lemma_1": [], "lemma_4": []}
        for layer in range(layers[-1] + 1):
            if layer in layers:
                TF = -k_sum @ g
                for name, error, scale in (("lemma_1", _td_error(gamma, P, r, TF), r), ("lemma_4", v - TF, v)):
                    left = max(abs(error))
                    right = max(abs(scale)) * power
                    sides[name].append((left, right, left / right if right else left))
            k_sum, k, power = k_sum + k, k @ f, power * gamma
        return {name: np.array(of_layers, dtype=np.float64) for name, of_layers in sides.items()}


def exact_update(tasks: Tasks, task: int, algo: str, discount: float, depth: int) -> np.ndarray:
    """Compute the expected update of one task at theta_L^TD, in Theta^looped.

    The recursions are the same as in ``ictd.theory.updates.layer_updates``.  Errors are differences, as in their
    definitions.

    Parameters
    ----------
    tasks : Tasks
    task : int, index of the task
    algo : str, "td" or "mc"
    discount : float, gamma
    depth : int, L

    Returns
    -------
    update : (2n + 4n^2,) array, u before A
    """
    with _precision(discount, depth):
        gamma, P, r, v = _exact_task(tasks, task, discount)
        X, f, g = _exact_attention(gamma, P)
        k = [r]
        for _ in range(depth - 1):
            k.append(k[-1] @ f)
        TF = -sum(k) @ g
        error = _td_error(gamma, P, r, TF) if algo == "td" else v - TF
        e = exact(tasks.stationary[task]) * error
        e_query = np.concatenate([e, 0 * e])  # sum_q e_q x^q
        lam, du, dA = 0 * r, 0, 0
        for layer in reversed(range(depth)):
            dA = dA - np.outer(X @ k[layer], e_query + X @ lam)
            next_lam, lam = lam, g @ e + f @ lam
            du = du - X @ (lam - next_lam)
        return np.concatenate([du, dA.ravel()]).astype(np.float64)


def _td_error(gamma: Decimal, P: np.ndarray, r: np.ndarray, w: np.ndarray) -> np.ndarray:
    """r + gamma P w - w."""
    return r + gamma * (P @ w) - w


def _precision(discount: float, depth: int) -> AbstractContextManager:
    """A context of decimal arithmetic with DIGITS digits beyond gamma^L."""
    cancelled = -depth * math.log10(discount) if discount else 0
    return localcontext(prec=DIGITS + math.ceil(cancelled))


def _exact_task(tasks: Tasks, task: int, discount: float) -> tuple[Decimal, np.ndarray, np.ndarray, np.ndarray]:
    """gamma, P, r and v."""
    gamma, P, r = Decimal(discount), exact(tasks.transition[task]), exact(tasks.reward[task])
    return gamma, P, r, exact_values(gamma, P, r)


def exact_values(gamma: Decimal, P: np.ndarray, r: np.ndarray) -> np.ndarray:
    """Compute v (..., n) = (I - gamma P)^-1 r by Gauss-Jordan elimination.

    Elimination needs no pivots, because I - gamma P is diagonally dominant.

    Parameters
    ----------
    gamma : Decimal
    P : (..., n, n) array of Decimal
    r : (..., n) array of Decimal
    """
    states = r.shape[-1]
    system = np.concatenate([np.eye(states, dtype=int) - gamma * P, r[..., None]], axis=-1)
    for i in range(states):
        system[..., i, :] = system[..., i, :] / system[..., i, i, None]
        others = np.arange(states) != i
        rows = system[..., others, :]
        system[..., others, :] = rows - rows[..., i, None] * system[..., None, i, :]
    return system[..., -1]


def _exact_attention(gamma: Decimal, P: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """X, f = I + X'AX and g with the columns X'A x^q at theta^TD."""
    states = len(P)
    identity = np.eye(states, dtype=int).astype(object)
    X = np.concatenate([identity, gamma * P.T])
    XA = X.T @ theta_td(states).A.astype(int).astype(object)
    return X, identity + XA @ X, XA[:, :states]
