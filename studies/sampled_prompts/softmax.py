"""Softmax attention with the parameters u and A of linear attention.

In Theta, a layer does not change the upper 2n rows X of a prompt, and the last row y does not enter the scores.  So the
attention weights are the same in every layer.  With the query columns Xq = [I; 0] and the last entry c of P,

    W = softmax(X' A X),    Wq = softmax(X' A Xq)    over the columns of the context,
    k_0 = u X + c y,    k_{l+1} = k_l (I + c W),    TF_L(s) = -(k_0 + ... + k_{L-1}) Wq[:, s].

The paper has c = 1.  This does not restrict linear attention, because A can have any factor.  The weights of softmax
are positive and sum to one, so c must be negative, and it sets the step size.  If all rewards rise by 1, all estimates
rise by 1 - (1 + c)^L for every A, and values by 1 / (1 - gamma).  So prompts have rewards divided by 1 - gamma.

Equal columns of a context stay equal in every layer.  So a context is stored as its distinct columns with their shares
of the context, and the exponential of a score is multiplied by the share of its column.

For state weights e (n,), sum_s e_s TF_L(s) = -g q with g = k_0 + ... + k_{L-1} and q = Wq e.  The sweeps of
``ictd.engine`` compute the gradient.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np

from ictd.context import Context
from ictd.engine import Engine, adam, batch_errors, clip_gradient, sweep_adjoint, sweep_forward
from ictd.kernels import kernel, size
from ictd.mrp import TaskArrays, Tasks
from ictd.prompt import enumerated_columns
from ictd.small_matrices import add_vector_product
from ictd.transformer import Weights

# The last entry c of P.
CORNER = -0.3


@dataclass(frozen=True)
class Columns(TaskArrays):
    """The distinct columns of N contexts, and the share of each column in its context.

    Parameters
    ----------
    X : (N, 2n, K) array, upper 2n rows of the columns
    y : (N, K) array, rewards divided by 1 - gamma
    shares : (N, K) array, rows sum to one; columns that do not occur in a context have the share 0
    """

    X: np.ndarray
    y: np.ndarray
    shares: np.ndarray

    @classmethod
    def enumerated(cls, tasks: Tasks, discount: float) -> Self:
        """Make the columns of enumerated contexts, one for each state."""
        reward = tasks.reward / (1 - discount)
        X = enumerated_columns(tasks.transition, reward, discount)[:, :-1]
        return cls(np.ascontiguousarray(X), reward, np.full_like(reward, 1 / tasks.states))

    @classmethod
    def sampled(cls, context: Context, reward: np.ndarray, discount: float) -> Self:
        """Make the columns of contexts (N, n) with rewards (N, n), one for each transition of any of the contexts."""
        tasks, states = reward.shape
        state, following = np.nonzero(context.D.any(axis=0))  # (K,) each
        identity = np.eye(states)
        X = np.concatenate([identity[:, state], discount * identity[:, following]])  # (2n, K)
        y = np.ascontiguousarray(reward[:, state] / (1 - discount))
        return cls(np.tile(X, (tasks, 1, 1)), y, np.ascontiguousarray(context.D[:, state, following]))


def estimates(weights: Weights, columns: Columns, depth: int) -> np.ndarray:
    """Compute TF_L (N, n) of every query state on N contexts, for u (2n,) and A (2n, 2n)."""
    X, shares, n = columns.X, columns.shares[..., None], weights.dimension
    queries = np.broadcast_to(np.eye(2 * n, n), (len(X), 2 * n, n))
    scores = X.mT @ (weights.A @ np.concatenate([X, queries], axis=-1))  # (N, K, K+n)
    scores = np.where(shares > 0, scores, -np.inf)
    weight = shares * np.exp(scores - scores.max(axis=-2, keepdims=True))
    weight /= weight.sum(axis=-2, keepdims=True)
    W, Wq = np.split(weight, [X.shape[-1]], axis=-1)
    k = weights.u @ X + CORNER * columns.y
    total = np.zeros_like(k)
    for _ in range(depth):
        total += k
        k = k + CORNER * np.vecmat(k, W)
    return -np.vecmat(total, Wq)


@kernel(noalias=True)
def weigh(n, K, A, X, shares, AX, W):
    """Fill the attention weights W (K, K+n) of one context, softmax of X' A [X, Xq]; AX (2n, K+n) is scratch."""
    columns = len(K)
    AX[:, :columns] = 0.0
    AX[:, columns:] = A[:, : len(n)]
    W[:] = 0.0
    for i in range(len(A)):
        add_vector_product(n + n, K, A[i], X, AX[i])
    for j in range(columns):
        add_vector_product(n + n, K + n, X[:, j], AX, W[j])
    for k in range(columns + len(n)):
        largest, total = -np.inf, 0.0
        for j in range(columns):
            if shares[j] > 0.0:
                largest = max(largest, W[j, k])
        for j in range(columns):
            W[j, k] = shares[j] * np.exp(W[j, k] - largest) if shares[j] > 0.0 else 0.0
            total += W[j, k]
        W[:, k] /= total


@kernel(noalias=True)
def weigh_adjoint(n, K, X, W, dW, dSX, dA):
    """Chain rule of ``weigh``: from dW (K, K+n), which changes in place, to dA; dSX (K, 2n) is scratch."""
    dW[:] = W * (dW - (W * dW).sum(axis=0))
    dSX[:, : len(n)] = dW[:, len(K) :]
    dSX[:, len(n) :] = 0.0
    dA[:] = 0.0
    for j in range(len(K)):
        add_vector_product(K, n + n, dW[j], X.T, dSX[j])
    for i in range(len(dA)):
        add_vector_product(K, n + n, X[i], dSX, dA[i])


@kernel(noalias=True)
def train_softmax_block(
    n, K, X, y, shares, reward, visits, sums, bootstrap, depth, learning_rate, clip, parameter,
    mean, square, steps, estimates,
):  # fmt: skip
    """Make one update for each of N tasks, as ``ictd.engine.train_block``, on contexts given by their columns."""
    tasks, states = len(reward), len(n)
    wide, columns = 2 * states, len(K)
    u, A = parameter[:wide], parameter[wide:].reshape(wide, wide)
    gradient = np.empty_like(parameter)
    du, dA = gradient[:wide], gradient[wide:].reshape(wide, wide)
    W, dW = np.empty((columns, columns + states)), np.empty((columns, columns + states))
    AX, dSX = np.empty((wide, columns + states)), np.empty((columns, wide))
    T, dT, across = np.empty((columns, columns)), np.empty((columns, columns)), np.empty((columns, columns))
    h, following = np.empty((depth, columns)), np.empty((depth, columns))
    row, g, q, lam = np.empty(columns), np.empty(columns), np.empty(columns), np.empty(columns)
    e = np.empty(states)
    for i in range(tasks):
        weigh(n, K, A, X[i], shares[i], AX, W)
        Wq, estimate = W[:, columns:], estimates[i]
        T[:] = CORNER * W[:, :columns]
        for j in range(columns):
            T[j, j] += 1.0
        h[0] = CORNER * y[i]
        add_vector_product(n + n, K, u, X[i], h[0])
        sweep_forward(K, T, h, row, g)
        g *= -1.0
        estimate[:] = 0.0
        add_vector_product(K, n, g, Wq, estimate)
        if not np.isfinite(estimate).all():
            return i
        batch_errors(n, estimate, visits[i], sums[i], bootstrap[i], e)
        q[:] = 0.0
        add_vector_product(n, K, e, Wq.T, q)
        sweep_adjoint(K, T, h, q, lam, following, across, dT)
        dW[:, :columns] = -CORNER * dT
        dW[:, columns:] = np.outer(g, e)
        weigh_adjoint(n, K, X[i], W, dW, dSX, dA)
        du[:] = 0.0
        add_vector_product(K, n + n, -lam, X[i].T, du)
        if clip is not None:
            clip_gradient(gradient, clip)
        steps += 1
        adam(parameter, gradient, mean, square, learning_rate, steps)
    return tasks


class SoftmaxEngine(Engine):
    """Training state for softmax attention.  The method ``train`` takes prompts as ``Columns``."""

    def train_block(self, prompts: Columns, queries: None, batch: tuple[np.ndarray, ...], estimates: np.ndarray) -> int:
        """Run the kernel on all tasks, fill their estimates, and return the number of updates made."""
        return train_softmax_block(
            size(self.dimension), size(prompts.X.shape[-1]), prompts.X, prompts.y, prompts.shares, *batch,
            self.depth, self.learning_rate, self.clip, self.parameter, self.mean,
            self.square, self.steps, estimates,
        )  # fmt: skip
