"""The tails of Lemmas 1 and 4, and the terms of J and J', in decimal arithmetic, where float64 ends.

At L = 500 and gamma = 0.9 a value is 1e-23 from its limit, far below the rounding of a difference of two float64
numbers.  Numbers here are Python's ``decimal`` ones, with 30 digits beyond gamma^L; the inputs are the float64 numbers
of a task, taken as exact.
"""

import math
from decimal import Decimal, localcontext
from pathlib import Path

import numpy as np

from ictd.mrp import Tasks, sample_tasks
from ictd.rng import generator
from ictd.storage import save_json
from ictd.theory.embeddings import embeddings
from ictd.theory.statements import descent
from ictd.transformer import theta_td

# Digits beyond those that a difference loses.
DIGITS = 30
_exact = np.vectorize(Decimal, otypes=[object])
TASKS = 2
# Layers between two rows of the tails.
EVERY = 10


def main(
    env: str, states: list[int], update_states: list[int], depth: int, update_depth: int, discount: float,
    env_options: dict, output: Path,
) -> None:  # fmt: skip
    """Write, for each number of states and task, both sides of the lemmas at every tenth layer; and at the greatest
    depth the norm of the task's expected update, with its relative difference from float64."""
    rows = []
    layers = list(range(0, depth + 1, EVERY))
    for n in sorted({*states, *update_states}):
        tasks = sample_tasks(env, n, TASKS, generator(0, env, n, "theory"), **env_options)
        for task in range(TASKS):
            one = {"env": env, "states": n, "task": task}
            if n in states:
                for quantity, sides in exact_tails(tasks, task, discount, layers).items():
                    for layer, (exact, bound, ratio) in zip(layers, sides, strict=True):
                        numbers = {"layer": layer, "exact": exact, "bound": bound, "ratio": ratio}
                        rows.append({"quantity": quantity, **one, **numbers})
            if n in update_states:
                updates = descent(embeddings(theta_td(n), tasks[task : task + 1], discount, update_depth)).updates
                for algo, quantity in (("td", "theorem_2"), ("mc", "corollary_1")):
                    exact, found = exact_update(tasks, task, algo, discount, update_depth), updates[algo][0, -1]
                    norm, off = np.abs(exact).sum(), np.abs(exact - found).sum()
                    numbers = {"layer": update_depth, "exact": norm, "difference": off / norm if norm else off}
                    rows.append({"quantity": quantity, **one, **numbers})
    save_json(output, rows)


def exact_tails(tasks: Tasks, task: int, discount: float, layers: list[int]) -> dict[str, np.ndarray]:
    """Both sides of Lemmas 1 and 4 at some layers l, in ascending order, the left ones the largest over query states.

    ``lemma_1`` and ``lemma_4`` are (K, 3): a row a layer with error, bound, and error / bound or 0 where both are 0.
    """
    with _precision(discount, layers[-1]):
        gamma, P, r, v = _task(tasks, task, discount)
        _, f, g = _attention(gamma, P)
        k, total, power = r, 0 * r, Decimal(1)
        rows = {"lemma_1": [], "lemma_4": []}
        for layer in range(layers[-1] + 1):
            if layer in layers:
                TF = -total @ g
                for name, error, scale in (("lemma_1", r + gamma * (P @ TF) - TF, r), ("lemma_4", v - TF, v)):
                    left, right = max(abs(error)), max(abs(scale)) * power
                    rows[name].append((left, right, left / right if right else left))
            total, k, power = total + k, k @ f, power * gamma
        return {name: np.array(sides, dtype=np.float64) for name, sides in rows.items()}


def exact_update(tasks: Tasks, task: int, algo: str, discount: float, depth: int) -> np.ndarray:
    """Expected update of one task at theta_L^TD, in Theta^looped, from the errors as differences: (2n + 4n^2,)."""
    with _precision(discount, depth):
        gamma, P, r, v = _task(tasks, task, discount)
        X, f, g = _attention(gamma, P)
        k = [r]
        for _ in range(depth - 1):
            k.append(k[-1] @ f)
        TF = -sum(k) @ g
        error = r + gamma * (P @ TF) - TF if algo == "td" else v - TF
        e = _exact(tasks.stationary[task]) * error
        lam, du, dA = 0 * r, 0, 0
        padded = np.concatenate([e, 0 * e])
        for layer in reversed(range(depth)):
            dA = dA - np.outer(X @ k[layer], padded + X @ lam)
            following, lam = lam, g @ e + f @ lam
            du = du - X @ (lam - following)
        return np.concatenate([du, dA.ravel()]).astype(np.float64)


def _precision(discount: float, depth: int):
    """A context with DIGITS digits beyond gamma^L."""
    lost = -depth * math.log10(discount) if discount else 0
    return localcontext(prec=DIGITS + math.ceil(lost))


def _task(tasks: Tasks, task: int, discount: float) -> tuple[Decimal, np.ndarray, np.ndarray, np.ndarray]:
    """gamma, P, r, and v by Gauss-Jordan elimination; I - gamma P is diagonally dominant and needs no pivots."""
    gamma, P, r = Decimal(discount), _exact(tasks.transition[task]), _exact(tasks.reward[task])
    states = len(r)
    rows = np.concatenate([np.eye(states, dtype=int) - gamma * P, r[:, None]], axis=1)
    for i in range(states):
        rows[i] = rows[i] / rows[i, i]
        others = np.arange(states) != i
        rows[others] = rows[others] - np.outer(rows[others, i], rows[i])
    return gamma, P, r, rows[:, -1]


def _attention(gamma: Decimal, P: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """X, f = I + X'AX, and g = X'Ax^q for all q, at theta^TD."""
    states = len(P)
    identity = np.eye(states, dtype=int).astype(object)
    X = np.concatenate([identity, gamma * P.T])
    XA = X.T @ theta_td(states).A.astype(int).astype(object)
    return X, identity + XA @ X, XA[:, :states]
