"""Softmax and ReLU attention, with the parameters u and A of linear attention.

In Theta, a layer does not change the upper 2n rows X of a prompt, and the last row y does not enter the scores.  So the
attention weights are the same in every layer.  With the query columns Xq = [I; 0], the last entry c of P, and a
function ``weigh`` from scores to attention weights,

    W = weigh(X' A X),    Wq = weigh(X' A Xq),
    k_0 = u X + c y,    k_{l+1} = k_l (I + c W),    TF_L(s) = -(k_0 + ... + k_{L-1}) Wq[:, s].

The paper has c = 1.  This does not restrict linear attention, because A can have any factor.  Non-negative attention
weights need a negative c; otherwise estimates fall when rewards rise.  The attention weights of softmax sum to one, so
c sets the step size.

Equal columns of a context stay equal in every layer.  So a context is stored as its distinct columns with their shares
of the context (``WeightedColumns``), and the attention weight of a column is multiplied by its share.  For linear and
ReLU attention this is the division by the context length.  Softmax is already a mean.

All kinds except "softmax_with_query" mask the query column before they compute attention weights.  The kind
"softmax_with_query" masks it afterwards.  Then softmax also divides by the exponential of the query's score, so the
attention weights of column k for query s sum to

    rho_sk = Z_k / (Z_k + exp(x_s^q' A x_k) / m),    Z_k = sum_j share_j exp(x_j' A x_k),

and W is replaced by W diag(rho_s) for each query s.

For state weights e (n,), sum_s e_s TF_L(s) = -g q with g = k_0 + ... + k_{L-1} and q = Wq e.  The sweeps of
``ictd.engine`` compute the gradient.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np

from ictd.engine import Engine, adam, batch_errors, clip_gradient, sweep_adjoint, sweep_forward
from ictd.kernels import kernel, size
from ictd.prompt import Context, enumerated_columns
from ictd.transformer import Weights

KINDS = ("linear", "relu", "softmax", "softmax_with_query")
# Positions in KINDS, which kernels take as the kind.  Both kinds of softmax come last.
RELU, SOFTMAX = 1, 2


@dataclass(frozen=True)
class Attention:
    """A kind of attention, and the quantities that it needs.

    Parameters
    ----------
    kind : str, one of KINDS
    corner : float
        Last entry c of P.
    scaled_rewards : bool
        Whether rewards in prompts are divided by 1 - gamma, so that rewards are as large as values.

    Raises
    ------
    ValueError
        If the kind is unknown.
    """

    kind: str = "linear"
    corner: float = 1.0
    scaled_rewards: bool = False

    def __post_init__(self):
        if self.kind not in KINDS:
            raise ValueError(f"Attention is of kind {self.kind!r}; give one of {', '.join(KINDS)}.")

    def prompt_rewards(self, reward: np.ndarray, discount: float) -> np.ndarray:
        """Rewards (...) as they are in prompts, scaled if ``scaled_rewards``."""
        return reward / (1 - discount) if self.scaled_rewards else reward


@dataclass(frozen=True)
class WeightedColumns:
    """The distinct columns of N contexts, and the share of each column in its context.

    Linear attention depends on a context through its Gram matrix (``Context.gram_matrix``).  Softmax and ReLU are not
    linear in the scores of columns, so they need the columns.  A context of any length has at most as many distinct
    columns as there are transitions.

    Parameters
    ----------
    X : (N, 2n, K) array, upper 2n rows of the columns
    y : (N, K) array, rewards
    shares : (N, K) array, rows sum to one; columns that do not occur in a context have the share 0
    length : (N,) array, numbers of columns of the contexts
    """

    X: np.ndarray
    y: np.ndarray
    shares: np.ndarray
    length: np.ndarray

    def __getitem__(self, index) -> Self:
        return WeightedColumns(self.X[index], self.y[index], self.shares[index], self.length[index])

    @classmethod
    def enumerated(cls, transition: np.ndarray, reward: np.ndarray, discount: float) -> Self:
        """Make the columns of enumerated contexts, eq. (Z0 redef), one for each state.

        Parameters
        ----------
        transition : (N, n, n) array, row-stochastic
        reward : (N, n) array, as prompts have them
        discount : float, gamma
        """
        tasks, states = reward.shape
        X = enumerated_columns(transition, reward, discount)[:, :-1]
        shares = np.full_like(reward, 1 / states)
        return cls(np.ascontiguousarray(X), reward, shares, np.full(tasks, float(states)))

    @classmethod
    def sampled(cls, context: Context, reward: np.ndarray, discount: float) -> Self:
        """Make the columns of sampled contexts, one for each transition that occurs in any of the contexts.

        Parameters
        ----------
        context : Context of (N, n)
        reward : (N, n) array, as prompts have them
        discount : float, gamma
        """
        tasks, states = reward.shape
        state, following = np.nonzero(context.D.any(axis=0))  # (K,) each
        identity = np.eye(states)
        X = np.concatenate([identity[:, state], discount * identity[:, following]])  # (2n, K)
        y = np.ascontiguousarray(reward[:, state])
        shares = np.ascontiguousarray(context.D[:, state, following])
        length = np.broadcast_to(np.asarray(context.length, dtype=float), tasks).copy()
        return cls(np.tile(X, (tasks, 1, 1)), y, shares, length)


def estimates(
    weights: Weights, columns: WeightedColumns, attention: Attention, depth: int, unit_reward: float
) -> tuple[np.ndarray, np.ndarray]:
    """Compute TF_L of every query state on N contexts, and its response to the rewards.

    If all rewards increase by c, TF_L changes by TF_L with u = 0 and all rewards equal to c.  The response is this
    change, for c = ``unit_reward``.

    Parameters
    ----------
    weights : Weights, u (2n,) and A (2n, 2n)
    columns : WeightedColumns of N contexts
    attention : Attention
    depth : int, number of layers L
    unit_reward : float
        Increase of the rewards in the prompts.

    Returns
    -------
    estimates : (N, n) array
    responses : (N, n) array
    """
    X, shares, n = columns.X, columns.shares[..., None], weights.dimension
    width = X.shape[-1]
    queries = np.broadcast_to(np.eye(2 * n, n), (len(X), 2 * n, n))
    both = np.concatenate([X, queries], axis=-1)  # (N, 2n, K+n)
    scores = X.mT @ (weights.A @ both)  # (N, K, K+n)
    if attention.kind.startswith("softmax"):
        scores = np.where(shares > 0, scores, -np.inf)
        largest = scores.max(axis=-2, keepdims=True)
        weight = shares * np.exp(scores - largest)
        total = weight.sum(axis=-2, keepdims=True)
        weight /= total
    else:
        weight = shares * (scores.clip(min=0) if attention.kind == "relu" else scores)
    W, Wq = np.split(weight, [width], axis=-1)
    rewards = np.stack([columns.y, np.full_like(columns.y, unit_reward)], axis=1)
    k = attention.corner * rewards  # (N, 2, K)
    k[:, 0] += weights.u @ X
    if attention.kind != "softmax_with_query":
        answers = _apply_layers(k, attention.corner, depth, W, Wq)
        return answers[:, 0], answers[:, 1]
    query_scores = weights.A[:n] @ both - np.log(columns.length)[:, None, None]
    rho = 1 / (1 + np.exp(query_scores - largest - np.log(total)))  # (N, n, K+n)
    answers = np.empty((len(X), 2, n))
    for s in range(n):
        answer = _apply_layers(k, attention.corner, depth, W * rho[:, [s], :width], Wq[..., [s]])
        answers[..., s] = answer[..., 0] * rho[:, [s], width + s]
    return answers[:, 0], answers[:, 1]


def _apply_layers(k: np.ndarray, corner: float, depth: int, W: np.ndarray, Wq: np.ndarray) -> np.ndarray:
    """Compute -(k_0 + ... + k_{L-1}) Wq, (N, 2, queries), from two rows k_0 (N, 2, K)."""
    total = np.zeros_like(k)
    for _ in range(depth):
        total += k
        k = k + corner * (k @ W)
    return -total @ Wq


@kernel(noalias=True)
def score(n, K, A, X, AX, S):
    """Fill S = X' A [X, Xq], (K, K+n), with Xq = [I; 0]; AX (2n, K+n) is a scratch array."""
    wide, columns = 2 * len(n), len(K)
    for i in range(wide):
        for k in range(columns):
            AX[i, k] = 0.0
            for j in range(wide):
                AX[i, k] += A[i, j] * X[j, k]
        for s in range(len(n)):
            AX[i, columns + s] = A[i, s]
    for j in range(columns):
        for k in range(columns + len(n)):
            S[j, k] = 0.0
        for i in range(wide):
            if X[i, j] != 0.0:
                for k in range(columns + len(n)):
                    S[j, k] += X[i, j] * AX[i, k]


@kernel(noalias=True)
def weigh(n, K, kind, S, shares, Z, W):
    """Fill the attention weights W (K, K+n) of one context from its scores S (K, K+n); ``kind`` is a position in KINDS.

    For softmax, Z (2, K+n) gets the largest score of each column, and the weighted sum of the exponentials of the
    scores minus the largest.
    """
    columns = len(K)
    for k in range(columns + len(n)):
        if kind >= SOFTMAX:
            largest, total = -np.inf, 0.0
            for j in range(columns):
                if shares[j] > 0.0:
                    largest = max(largest, S[j, k])
            for j in range(columns):
                W[j, k] = shares[j] * np.exp(S[j, k] - largest) if shares[j] > 0.0 else 0.0
                total += W[j, k]
            for j in range(columns):
                W[j, k] /= total
            Z[0, k], Z[1, k] = largest, total
        else:
            for j in range(columns):
                W[j, k] = shares[j] * (max(S[j, k], 0.0) if kind == RELU else S[j, k])


@kernel(noalias=True)
def weigh_adjoint(n, K, kind, S, shares, W, dW):
    """Chain rule of ``weigh``: turn dW (K, K+n) into dS, in place."""
    columns = len(K)
    for k in range(columns + len(n)):
        mean = 0.0
        if kind >= SOFTMAX:
            for j in range(columns):
                mean += W[j, k] * dW[j, k]
        for j in range(columns):
            if kind >= SOFTMAX:
                dW[j, k] = W[j, k] * (dW[j, k] - mean)
            elif kind == RELU and S[j, k] <= 0.0:
                dW[j, k] = 0.0
            else:
                dW[j, k] *= shares[j]


@kernel(noalias=True)
def score_adjoint(n, K, dS, X, dSX, dA):
    """Chain rule of ``score``: fill dA = X dS [X, Xq]'; dSX (K, 2n) is a scratch array."""
    wide, columns = 2 * len(n), len(K)
    for j in range(columns):
        for i in range(wide):
            dSX[j, i] = dS[j, columns + i] if i < len(n) else 0.0
            for k in range(columns):
                dSX[j, i] += dS[j, k] * X[i, k]
    for i in range(wide):
        for s in range(wide):
            dA[i, s] = 0.0
        for j in range(columns):
            if X[i, j] != 0.0:
                for s in range(wide):
                    dA[i, s] += X[i, j] * dSX[j, s]


@kernel(noalias=True)
def train_columns_block(
    n, K, kind, corner, X, y, shares, reward, visits, transitions, return_sums, bootstrap, depth, discount,
    learning_rate, clip, parameter, mean, square, steps, estimates,
):  # fmt: skip
    """Make one update for each of N tasks, as ``ictd.engine.train_block``, on contexts given by their columns."""
    tasks, states = len(reward), len(n)
    wide, columns = 2 * states, len(K)
    u, A = parameter[:wide], parameter[wide:].reshape(wide, wide)
    gradient = np.empty_like(parameter)
    du, dA = gradient[:wide], gradient[wide:].reshape(wide, wide)
    shape = (columns, columns + states)
    S, W, dW = np.empty(shape), np.empty(shape), np.empty(shape)
    AX, dSX, Z = np.empty((wide, columns + states)), np.empty((columns, wide)), np.empty((2, columns + states))
    T, dT, across = np.empty((columns, columns)), np.empty((columns, columns)), np.empty((columns, columns))
    h, following = np.empty((depth, columns)), np.empty((depth, columns))
    row, g, q, lam = np.empty(columns), np.empty(columns), np.empty(columns), np.empty(columns)
    e = np.empty(states)
    for i in range(tasks):
        score(n, K, A, X[i], AX, S)
        weigh(n, K, kind, S, shares[i], Z, W)
        for j in range(columns):
            for k in range(columns):
                T[j, k] = corner * W[j, k]
            T[j, j] += 1.0
            h[0, j] = corner * y[i, j]
            for s in range(wide):
                h[0, j] += u[s] * X[i, s, j]
        sweep_forward(K, T, h, row, g)
        estimate = estimates[i]
        for s in range(states):
            estimate[s] = 0.0
        for j in range(columns):
            for s in range(states):
                estimate[s] -= g[j] * W[j, columns + s]
        for s in range(states):
            if not np.isfinite(estimate[s]):
                return i
        batch_errors(n, estimate, reward[i], visits[i], transitions[i], return_sums[i], bootstrap, discount, e)
        for j in range(columns):
            q[j] = 0.0
            for s in range(states):
                q[j] += W[j, columns + s] * e[s]
        sweep_adjoint(K, T, h, q, lam, following, across, dT)
        for j in range(columns):
            for k in range(columns):
                dW[j, k] = -corner * dT[j, k]
            for s in range(states):
                dW[j, columns + s] = -g[j] * e[s]
        weigh_adjoint(n, K, kind, S, shares[i], W, dW)
        score_adjoint(n, K, dW, X[i], dSX, dA)
        for s in range(wide):
            du[s] = 0.0
            for j in range(columns):
                du[s] -= lam[j] * X[i, s, j]
        if clip is not None:
            clip_gradient(gradient, clip)
        steps += 1
        adam(parameter, gradient, mean, square, learning_rate, steps)
    return tasks


@kernel(noalias=True)
def query_shares(n, K, AX, Z, length, rho):
    """Fill rho (n, K+n), the sums of the attention weights of each column for each query.

    AX (2n, K+n) is A [X, Xq], Z (2, K+n) comes from ``weigh``, and ``length`` is m.
    """
    for k in range(len(K) + len(n)):
        for s in range(len(n)):
            rho[s, k] = 1.0 / (1.0 + np.exp(AX[s, k] - Z[0, k] - np.log(length * Z[1, k])))


@kernel(noalias=True)
def train_with_query_block(
    n, K, kind, corner, X, y, shares, length, reward, visits, transitions, return_sums, bootstrap, depth, discount,
    learning_rate, clip, parameter, mean, square, steps, estimates,
):  # fmt: skip
    """Make one update for each of N tasks, as ``train_columns_block``, for attention that masks the query afterwards.

    The layers depend on the query, so there is one sweep for each query.
    """
    tasks, states = len(reward), len(n)
    wide, columns = 2 * states, len(K)
    u, A = parameter[:wide], parameter[wide:].reshape(wide, wide)
    gradient = np.empty_like(parameter)
    du, dA = gradient[:wide], gradient[wide:].reshape(wide, wide)
    shape = (columns, columns + states)
    S, W, dW = np.empty(shape), np.empty(shape), np.empty(shape)
    AX, dSX, Z = np.empty((wide, columns + states)), np.empty((columns, wide)), np.empty((2, columns + states))
    rho, drho = np.empty((states, columns + states)), np.empty((states, columns + states))
    dT, across = np.empty((columns, columns)), np.empty((columns, columns))
    T, h, g = np.empty((states, columns, columns)), np.empty((states, depth, columns)), np.empty((states, columns))
    first, row, q, lam = np.empty(columns), np.empty(columns), np.empty(columns), np.empty(columns)
    following = np.empty((depth, columns))
    e = np.empty(states)
    for i in range(tasks):
        score(n, K, A, X[i], AX, S)
        weigh(n, K, kind, S, shares[i], Z, W)
        query_shares(n, K, AX, Z, length[i], rho)
        for j in range(columns):
            first[j] = corner * y[i, j]
            for r in range(wide):
                first[j] += u[r] * X[i, r, j]
        estimate = estimates[i]
        for s in range(states):
            for j in range(columns):
                for k in range(columns):
                    T[s, j, k] = corner * W[j, k] * rho[s, k]
                T[s, j, j] += 1.0
                h[s, 0, j] = first[j]
            sweep_forward(K, T[s], h[s], row, g[s])
            estimate[s] = 0.0
            for j in range(columns):
                estimate[s] -= g[s, j] * W[j, columns + s] * rho[s, columns + s]
        for s in range(states):
            if not np.isfinite(estimate[s]):
                return i
        batch_errors(n, estimate, reward[i], visits[i], transitions[i], return_sums[i], bootstrap, discount, e)
        for j in range(columns):
            for k in range(columns + states):
                dW[j, k] = 0.0
        for r in range(wide):
            du[r] = 0.0
        for s in range(states):
            for j in range(columns):
                q[j] = W[j, columns + s] * rho[s, columns + s] * e[s]
            sweep_adjoint(K, T[s], h[s], q, lam, following, across, dT)
            for r in range(wide):
                for j in range(columns):
                    du[r] -= lam[j] * X[i, r, j]
            # drho (n, K+n) gets the gradient for rho, and then the gradient for the score in rho = 1 / (1 + exp(score -
            # ...)).
            for k in range(columns + states):
                drho[s, k] = 0.0
            for j in range(columns):
                for k in range(columns):
                    dW[j, k] -= corner * dT[j, k] * rho[s, k]
                    drho[s, k] -= corner * dT[j, k] * W[j, k]
                dW[j, columns + s] -= g[s, j] * e[s] * rho[s, columns + s]
                drho[s, columns + s] -= g[s, j] * e[s] * W[j, columns + s]
            for k in range(columns + states):
                drho[s, k] *= -rho[s, k] * (1.0 - rho[s, k])
        weigh_adjoint(n, K, kind, S, shares[i], W, dW)
        for s in range(states):
            for j in range(columns):
                for k in range(columns + states):
                    dW[j, k] -= drho[s, k] * W[j, k]
        score_adjoint(n, K, dW, X[i], dSX, dA)
        for s in range(states):
            for r in range(wide):
                for k in range(columns):
                    dA[s, r] += drho[s, k] * X[i, r, k]
            for r in range(states):
                dA[s, r] += drho[s, columns + r]
        if clip is not None:
            clip_gradient(gradient, clip)
        steps += 1
        adam(parameter, gradient, mean, square, learning_rate, steps)
    return tasks


class AttentionEngine(Engine):
    """Training state for any kind of attention; linear and ReLU attention are divided by the context length.

    The parameters are those of ``ictd.engine.Engine``, and ``attention``.  The method ``train`` takes prompts as
    WeightedColumns.
    """

    def __init__(
        self,
        weights: Weights,
        algo: str,
        depth: int,
        discount: float,
        learning_rate: float,
        clip: float,
        attention: Attention,
    ):
        super().__init__(weights, algo, depth, discount, learning_rate, clip=clip)
        self.kind = KINDS.index(attention.kind)
        self.corner = float(attention.corner)

    def train_block(
        self, prompts: WeightedColumns, queries: None, batch: tuple[np.ndarray, ...], estimates: np.ndarray
    ) -> int:
        """Run the kernel of this kind of attention on all tasks, and return the number of updates made."""
        n, K = size(self.dimension), size(prompts.X.shape[-1])
        contexts = (n, K, self.kind, self.corner, prompts.X, prompts.y, prompts.shares)
        block = train_columns_block
        if KINDS[self.kind] == "softmax_with_query":
            block = train_with_query_block
            contexts = (*contexts, prompts.length)
        return block(
            *contexts, *batch, self.bootstrap, self.depth, self.discount, self.learning_rate, self.clip,
            self.parameter, self.mean, self.square, self.steps, estimates,
        )  # fmt: skip
