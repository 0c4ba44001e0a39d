"""The looped Transformer's error and its exact gradient, on prompts of any number of columns.

A context enters TF_L only through its M and c (``ictd.gram``), and there are X (2n, k) and y (k,) with M = X X' and
c = X y, k at most 2n: whatever its length, it is worth a prompt of k columns, an enumerated one of n.  With
    T = I + X' A X,    B_q = X' A[:, :n],    h_0 = u X + y,    h_{l+1} = h_l T,    TF_L(s) = -w g B_q[:, s],
g = h_0 + ... + h_{L-1} and w a gain of the output, 1 in the paper, the sweeps are those of ``ictd.engine``: for
state weights e, q = w B_q e, and lam' and dT of sum_l h_l q, the gradient of sum_s e_s TF_L(s) is du = -X lam,
dA = -X (dT X' + w [g' e', 0]), dw = -g B_q e.
"""

from dataclasses import dataclass

import numpy as np

from ictd.engine import adam, sweep_adjoint, sweep_forward
from ictd.kernels import kernel
from ictd.prompt import Gram


@dataclass(frozen=True)
class Prompts:
    """N prompts of k columns, X (N, 2n, k) and y (N, k), with values (N, n) and stationary distributions (N, n)."""

    X: np.ndarray
    y: np.ndarray
    target: np.ndarray
    weight: np.ndarray

    def __getitem__(self, tasks: slice) -> "Prompts":
        return Prompts(*(np.ascontiguousarray(array[tasks]) for array in vars(self).values()))


def columns(gram: Gram) -> tuple[np.ndarray, np.ndarray]:
    """X (N, 2n, 2n - 1) and y (N, 2n - 1) with M = X X' and c = X y; no M has a greater rank."""
    values, vectors = (array[..., 1:] for array in np.linalg.eigh(gram.M))
    kept = values > 1e-12 * values[:, -1:]  # Others are rounding.
    root = np.sqrt(np.where(kept, values, 0.0))
    y = np.vecmat(gram.c, vectors) / np.where(kept, root, np.inf)
    return np.ascontiguousarray(vectors * root[:, None]), y


@kernel(noalias=True)
def multiply(rows, inner, columns, left, right, product):
    """Fill ``product`` with left @ right, of sizes known at compile time."""
    for i in range(len(rows)):
        for s in range(len(columns)):
            total = 0.0
            for j in range(len(inner)):
                total += left[i, j] * right[j, s]
            product[i, s] = total


@kernel
def space(n, k, depth):
    """Work space: A X, T, B_q, h, dT, and D (k, 2n); g, q, lam and another (k,), and T'."""
    wide, width = 2 * len(n), len(k)
    T, dT, across = np.empty((width, width)), np.empty((width, width)), np.empty((width, width))
    g, q, lam, following = np.empty(width), np.empty(width), np.empty(width), np.empty(width)
    AX, Bq, h, D = np.empty((wide, width)), np.empty((width, len(n))), np.empty((depth, width)), np.empty((width, wide))
    return AX, T, Bq, h, dT, D, g, q, lam, following, across


@kernel(noalias=True)
def forward(n, k, parameter, X, y, work, estimate):
    """Fill A X, T, B_q, h, g and the estimates TF_L (n,) of one prompt; ``parameter`` has u, A and the gain."""
    wide, one, (AX, T, Bq, h, _, _, g, _, _, _, _) = 2 * len(n), (0,), work
    A = parameter[wide:-1].reshape(wide, wide)
    multiply(n + n, n + n, k, A, X, AX)
    multiply(k, n + n, k, X.T, AX, T)
    multiply(k, n + n, n, X.T, A, Bq)
    multiply(one, n + n, k, parameter[None, :wide], X, h)
    for s in range(len(k)):
        T[s, s] += 1.0
        h[0, s] += y[s]
    sweep_forward(k, T, h, g)
    multiply(one, k, n, g[None, :], Bq, estimate[None, :])
    for s in range(len(n)):
        estimate[s] *= -parameter[-1]


@kernel(noalias=True)
def backward(n, k, gain, X, work, e, gradient):
    """Fill ``gradient`` (2n + 4n^2 + 1,) with that of sum_s e_s TF_L(s) for u, A and the gain, after ``forward``."""
    wide, one, (_, T, Bq, h, dT, D, g, q, lam, following, across) = 2 * len(n), (0,), work
    multiply(k, n, one, Bq, e[:, None], q[:, None])
    gradient[-1] = 0.0
    for s in range(len(k)):
        gradient[-1] -= g[s] * q[s]
        q[s] *= gain
    sweep_adjoint(k, T, h, q, lam, following, across, dT)
    multiply(k, k, n + n, dT, X.T, D)
    for i in range(len(k)):
        for s in range(len(n)):
            D[i, s] += gain * g[i] * e[s]
    multiply(n + n, k, one, X, lam[:, None], gradient[:wide, None])
    multiply(n + n, k, n + n, X, D, gradient[wide:-1].reshape(wide, wide))
    for j in range(wide + wide * wide):
        gradient[j] = -gradient[j]


@kernel(noalias=True)
def errors_and_gradient(n, k, X, y, target, weight, parameter, depth, estimates, gradient, jacobian):
    """Fill estimates, the gradient of the mean MSVE and, if it has rows, the Jacobian of sqrt(mu) TF_L."""
    work, one = space(n, k, depth), np.empty_like(parameter)
    e, gain, loss = np.empty(len(n)), parameter[-1], 0.0
    gradient[:] = 0.0
    for i in range(len(y)):
        forward(n, k, parameter, X[i], y[i], work, estimates[i])
        for s in range(len(jacobian[:1]) * len(n)):
            e[:] = 0.0
            e[s] = np.sqrt(weight[i, s])
            backward(n, k, gain, X[i], work, e, jacobian[i, s])
        for s in range(len(n)):
            off = estimates[i, s] - target[i, s]
            loss += weight[i, s] * off * off
            e[s] = 2.0 * weight[i, s] * off
        if not np.isfinite(loss):
            return np.inf
        backward(n, k, gain, X[i], work, e, one)
        for j in range(len(parameter)):
            gradient[j] += one[j] / len(y)
    return loss / len(y)


@kernel(noalias=True)
def train_block(
    n, k, X, y, transition, reward, target, weight, shares, bootstrap, depth, discount, rate, clip, inside, gain,
    parameter, mean, square, steps,
):  # fmt: skip
    """Expected updates, e = mu (TF_L - target) with r + gamma p TF_L or v, by Adam, clipped to ``clip`` > 0, of heads
    (h, 2n + 4n^2 + 1) whose sum with weights ``shares`` (N, h) is (u, A, gain) of a prompt; ``inside`` puts A of the
    first on K [-I, I] and u on 0; returns how many are made before estimates stop being finite."""
    states, wide, work, one = len(n), 2 * len(n), space(n, k, depth), np.empty_like(parameter[0])
    e, estimate, gradient = np.empty(states), np.empty(states), np.empty_like(parameter)
    for i in range(len(y)):
        share = shares[i : i + 1].T
        whole = np.sum(share * parameter, axis=0)
        forward(n, k, whole, X[i], y[i], work, estimate)
        for s in range(states):
            wanted = target[i, s]
            if bootstrap:
                wanted = reward[i, s]
                for j in range(states):
                    wanted += discount * transition[i, s, j] * estimate[j]
            e[s] = weight[i, s] * (estimate[s] - wanted)
        if not np.isfinite(np.sum(e)):
            return i
        backward(n, k, whole[-1], X[i], work, e, one)
        one[-1] *= gain
        gradient[:] = share * one
        norm = np.sqrt(np.sum(gradient * gradient))
        if clip > 0.0 and norm > clip:
            gradient *= clip / norm
        adam(parameter.ravel(), gradient.ravel(), mean.ravel(), square.ravel(), rate, steps + i + 1)
        if inside:
            A = parameter[0, wide:-1].reshape(wide, wide)
            parameter[0, :wide] = 0.0
            A[:, states:] = (A[:, states:] - A[:, :states]) / 2.0
            A[:, :states] = -A[:, states:]
    return len(y)
