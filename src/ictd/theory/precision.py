"""The same quantities in decimal arithmetic, as their definitions have them, where float64 ends.

At L = 500 and gamma = 0.9 a value is 1e-23 from its limit, far below the rounding of a difference of two float64
numbers.  Numbers here are Python's ``decimal`` ones; the inputs are the float64 numbers of a task, taken as exact.
"""

from decimal import Decimal, localcontext

import numpy as np

from ictd.mrp import Tasks
from ictd.weights import theta_td

DIGITS = 60
_exact = np.vectorize(Decimal, otypes=[object])


def exact_tails(tasks: Tasks, task: int, discount: float, depth: int) -> tuple[np.ndarray, np.ndarray]:
    """|v(s_q) - TF_l(Z_0; theta_l^TD)| and ||v||_inf gamma^l, for l = 0, ..., L: (L+1, n) and (L+1,).

    The first has an entry for each query state q.
    """
    with localcontext(prec=DIGITS):
        gamma, P, r, v = _task(tasks, task, discount)
        _, f, g = _attention(gamma, P)
        k, total, errors, bounds = r, 0 * r, [abs(v)], [max(abs(v))]
        for _ in range(depth):
            total = total + k
            errors.append(abs(v + total @ g))
            bounds.append(bounds[-1] * gamma)
            k = k @ f
        return np.array(errors, dtype=np.float64), np.array(bounds, dtype=np.float64)


def exact_update(tasks: Tasks, task: int, algo: str, discount: float, depth: int) -> np.ndarray:
    """Expected update of one task at theta_L^TD, in Theta^looped, from the errors as differences: (2n + 4n^2,)."""
    with localcontext(prec=DIGITS):
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
