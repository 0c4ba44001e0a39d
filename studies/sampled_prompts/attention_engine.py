"""Softmax and ReLU attention in the same parameters as linear attention, collapsed as exactly.

Weights in Theta leave the upper 2n rows X of a prompt as they are, and its last row y does not enter the scores.  So
what becomes of the scores is the same in every layer, whatever it is.  With Xq = [I; 0] for the n queries and c for the
last entry of P,

    W = weigh(X' A X),  Wq = weigh(X' A Xq),  k_0 = u X + c y,  k_{l+1} = k_l (I + c W),
    TF_L(s) = -(k_0 + ... + k_{L-1}) Wq[:, s].

The paper has c = 1, without loss for linear attention, as A takes up any factor.  Weights that cannot be negative need
c below 0 for estimates that grow with rewards, and those of softmax, which sum to one, leave c to set the step size.

Columns of a context that are alike stay alike, so each pair (S_t, S_{t+1}) is one column whose weight is multiplied by
its share of the context.  That is attention divided by the context length; softmax is a mean already.

All this has the query masked out before weights are made of scores.  It may be masked after (``softmax_with_query``):
then the query's own score is among those that softmax divides by, whose column k has for query s the sum rho_sk in
place of one,

    rho_sk = Z_k / (Z_k + exp(x_s^q' A x_k) / m),    Z_k = sum_j share_j exp(x_j' A x_k),

and W^s = W diag(rho_s) is another for each query.

For state weights e, sum_s e_s TF_L(s) = -g q with g = k_0 + ... + k_{L-1} and q = Wq e, so the sweeps of the fused
engine give the gradient, as in ``ictd.engine``.
"""

from dataclasses import dataclass

import numpy as np

from ictd.engine import Engine, adam, batch_errors, clip_gradient, sweep_adjoint, sweep_forward
from ictd.kernels import kernel, size
from ictd.mrp import Tasks
from ictd.prompt import Context, enumerated_columns
from ictd.transformer import Weights

KINDS = ("linear", "relu", "softmax", "softmax_with_query")


@dataclass(frozen=True)
class Attention:
    """A kind of attention, with what else it needs; ValueError for an unknown kind.

    Parameters
    ----------
    kind : str, one of KINDS
    corner : float, last entry c of P
    scaled_rewards : bool
        Whether prompts show rewards divided by 1 - gamma, so that they are as large as values.
    """

    kind: str = "linear"
    corner: float = 1.0
    scaled_rewards: bool = False

    def __post_init__(self):
        if self.kind not in KINDS:
            raise ValueError(f"Attention is of kind {self.kind!r}; give one of {', '.join(KINDS)}.")

    def shown(self, reward: np.ndarray, discount: float) -> np.ndarray:
        """Rewards as prompts show them."""
        return reward / (1 - discount) if self.scaled_rewards else reward

    def of_constant(self, discount: float, depth: int) -> float:
        """What softmax makes of rewards that are all one, beside what it makes of none; v is 1 / (1 - gamma).

        Columns of W and Wq sum to one, so (1, ..., 1) (I + c W) = (1 + c) (1, ..., 1), and of k_0 = c (1, ..., 1)
        there remains -sum_l c (1 + c)^l = 1 - (1 + c)^L, whatever A is.
        """
        return float(self.shown(1 - (1 + self.corner) ** depth, discount))


@dataclass(frozen=True)
class Columns:
    """Different columns of contexts: ``X`` (N, 2n, K), rewards ``y`` (N, K), ``shares`` (N, K) that sum to one, and
    ``length`` (N,), how many columns each context has."""

    X: np.ndarray
    y: np.ndarray
    shares: np.ndarray
    length: np.ndarray

    def __getitem__(self, index) -> "Columns":
        return Columns(self.X[index], self.y[index], self.shares[index], self.length[index])


def columns_of(tasks: Tasks, discount: float, reward: np.ndarray, context: Context | None = None) -> Columns:
    """Of N sampled contexts a column for each pair of states that follow one another in any of them, or of enumerated
    prompts, eq. (Z0 redef), one for each state.

    Parameters
    ----------
    tasks : Tasks, N of them with n states
    discount : float, gamma
    reward : (N, n) array, rewards as prompts show them
    context : Context of (N, n), None for enumerated prompts
    """
    if context is None:
        X = enumerated_columns(tasks.transition, reward, discount)[:, :-1]
        length = np.full(len(tasks), float(tasks.states))
        return Columns(np.ascontiguousarray(X), reward, np.full_like(reward, 1 / tasks.states), length)
    state, following = np.nonzero(context.D.any(axis=0))
    identity = np.eye(tasks.states)
    X = np.concatenate([identity[:, state], discount * identity[:, following]])
    y, shares = reward[:, state], context.D[:, state, following]
    length = np.broadcast_to(np.asarray(context.length, dtype=float), len(tasks)).copy()
    return Columns(np.tile(X, (len(tasks), 1, 1)), np.ascontiguousarray(y), np.ascontiguousarray(shares), length)


def estimates(weights: Weights, columns: Columns, attention: Attention, depth: int) -> np.ndarray:
    """TF_L (N, n) of every query state of N contexts, for weights u (2n,) and A (2n, 2n)."""
    X, shares, n = columns.X, columns.shares[..., None], weights.states
    queries = np.broadcast_to(np.eye(2 * n, n), (len(X), 2 * n, n))
    scores = X.mT @ (weights.A @ np.concatenate([X, queries], axis=-1))
    if attention.kind.startswith("softmax"):
        scores = np.where(shares > 0, scores, -np.inf)
        largest = scores.max(axis=-2, keepdims=True)
        weight = shares * np.exp(scores - largest)
        total = weight.sum(axis=-2, keepdims=True)
        weight /= total
    else:
        weight = shares * (scores.clip(min=0) if attention.kind == "relu" else scores)
    W, Wq = np.split(weight, [X.shape[-1]], axis=-1)
    first = weights.u @ X + attention.corner * columns.y
    if attention.kind == "softmax_with_query":
        own = weights.A[:n] @ np.concatenate([X, queries], axis=-1) - np.log(columns.length)[:, None, None]
        rho = 1 / (1 + np.exp(own - largest - np.log(total)))
        answers = [
            _answers(first, attention.corner, depth, W * rho[:, [s], : X.shape[-1]], Wq[..., [s]])
            * rho[:, s, X.shape[-1] + s, None]
            for s in range(n)
        ]
        return np.concatenate(answers, axis=-1)
    return _answers(first, attention.corner, depth, W, Wq)


def _answers(k: np.ndarray, corner: float, depth: int, W: np.ndarray, Wq: np.ndarray) -> np.ndarray:
    """-(k_0 + ... + k_{L-1}) Wq from k_0, (N, queries)."""
    total = np.zeros_like(k)
    for _ in range(depth):
        total += k
        k = k + corner * np.vecmat(k, W)
    return -np.vecmat(total, Wq)


@kernel(noalias=True)
def score(n, K, A, X, AX, S):
    """Fill S = X' A [X, Xq], (K, K+n), with Xq = [I; 0]; AX (2n, K+n) is work space."""
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
    """Fill W (K, K+n) from scores S of one context; ``kind`` is an index of KINDS.

    Of softmax, Z (2, K+n) gets each column's largest score and the sum of its exponentials over that one's.
    """
    columns = len(K)
    for k in range(columns + len(n)):
        if kind >= 2:
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
                W[j, k] = shares[j] * (max(S[j, k], 0.0) if kind == 1 else S[j, k])


@kernel(noalias=True)
def weigh_adjoint(n, K, kind, S, shares, W, dW):
    """Chain rule of ``weigh``: dW becomes dS, in place."""
    columns = len(K)
    for k in range(columns + len(n)):
        mean = 0.0
        if kind >= 2:
            for j in range(columns):
                mean += W[j, k] * dW[j, k]
        for j in range(columns):
            if kind >= 2:
                dW[j, k] = W[j, k] * (dW[j, k] - mean)
            elif kind == 1 and S[j, k] <= 0.0:
                dW[j, k] = 0.0
            else:
                dW[j, k] *= shares[j]


@kernel(noalias=True)
def score_adjoint(n, K, dS, X, dSX, dA):
    """Chain rule of ``score``: fill dA = X dS [X, Xq]'; dSX (K, 2n) is work space."""
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
    """As ``ictd.engine.train_block``, on contexts given by their columns."""
    tasks, states = len(reward), len(n)
    wide, columns = 2 * states, len(K)
    u, A = parameter[:wide], parameter[wide:].reshape(wide, wide)
    gradient = np.empty_like(parameter)
    du, dA = gradient[:wide], gradient[wide:].reshape(wide, wide)
    shape = (columns, columns + states)
    S, W, dW = np.empty(shape), np.empty(shape), np.empty(shape)
    AX, dSX, Z = np.empty((wide, columns + states)), np.empty((columns, wide)), np.empty((2, columns + states))
    T, dT, across = np.empty((columns, columns)), np.empty((columns, columns)), np.empty((columns, columns))
    h = np.empty((depth, columns))
    g, q, lam, following = np.empty(columns), np.empty(columns), np.empty(columns), np.empty(columns)
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
        sweep_forward(K, T, h, g)
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
        if clip > 0.0:
            clip_gradient(gradient, clip)
        steps += 1
        adam(parameter, gradient, mean, square, learning_rate, steps)
    return tasks


@kernel(noalias=True)
def query_shares(n, K, AX, Z, length, rho):
    """Fill rho (n, K+n), the sums of the columns of W for each query; AX (2n, K+n) is A [X, Xq], Z as of ``weigh``."""
    for k in range(len(K) + len(n)):
        for s in range(len(n)):
            rho[s, k] = 1.0 / (1.0 + np.exp(AX[s, k] - Z[0, k] - np.log(length * Z[1, k])))


@kernel(noalias=True)
def train_with_query_block(
    n, K, kind, corner, X, y, shares, length, reward, visits, transitions, return_sums, bootstrap, depth, discount,
    learning_rate, clip, parameter, mean, square, steps, estimates,
):  # fmt: skip
    """As ``train_columns_block`` where softmax has the query among its columns, so that each query has layers of its
    own."""
    tasks, states = len(reward), len(n)
    wide, columns = 2 * states, len(K)
    u, A = parameter[:wide], parameter[wide:].reshape(wide, wide)
    gradient = np.empty_like(parameter)
    du, dA = gradient[:wide], gradient[wide:].reshape(wide, wide)
    shape = (columns, columns + states)
    S, W, dW = np.empty(shape), np.empty(shape), np.empty(shape)
    AX, dSX, Z = np.empty((wide, columns + states)), np.empty((columns, wide)), np.empty((2, columns + states))
    rho, own = np.empty((states, columns + states)), np.empty((states, columns + states))
    dT, across = np.empty((columns, columns)), np.empty((columns, columns))
    T, h, g = np.empty((states, columns, columns)), np.empty((states, depth, columns)), np.empty((states, columns))
    first, q, lam, following = np.empty(columns), np.empty(columns), np.empty(columns), np.empty(columns)
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
            sweep_forward(K, T[s], h[s], g[s])
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
            # From here on own (n, K+n) has the gradients for the queries' scores, of rho = 1 / (1 + exp(own - ...)).
            for k in range(columns + states):
                own[s, k] = 0.0
            for j in range(columns):
                for k in range(columns):
                    dW[j, k] -= corner * dT[j, k] * rho[s, k]
                    own[s, k] -= corner * dT[j, k] * W[j, k]
                dW[j, columns + s] -= g[s, j] * e[s] * rho[s, columns + s]
                own[s, columns + s] -= g[s, j] * e[s] * W[j, columns + s]
            for k in range(columns + states):
                own[s, k] *= -rho[s, k] * (1.0 - rho[s, k])
        weigh_adjoint(n, K, kind, S, shares[i], W, dW)
        for s in range(states):
            for j in range(columns):
                for k in range(columns + states):
                    dW[j, k] -= own[s, k] * W[j, k]
        score_adjoint(n, K, dW, X[i], dSX, dA)
        for s in range(states):
            for r in range(wide):
                for k in range(columns):
                    dA[s, r] += own[s, k] * X[i, r, k]
            for r in range(states):
                dA[s, r] += own[s, columns + r]
        if clip > 0.0:
            clip_gradient(gradient, clip)
        steps += 1
        adam(parameter, gradient, mean, square, learning_rate, steps)
    return tasks


class AttentionEngine(Engine):
    """Training state for any kind of attention; what is not softmax is divided by the context length.

    All parameters but ``attention`` are those of ``Engine``.
    """

    def __init__(self, weights: Weights, algo, depth, discount, learning_rate, clip, attention: Attention):
        super().__init__(weights, algo, depth, discount, learning_rate, clip=clip)
        self.kind, self.corner = KINDS.index(attention.kind), float(attention.corner)

    def train_block(self, prompts: Columns, batch: tuple[np.ndarray, ...], estimates: np.ndarray) -> int:
        """Run the kernel of this kind of attention, and return the number of updates made."""
        sizes = size(self.states), size(prompts.X.shape[-1])
        contexts = (*sizes, self.kind, self.corner, prompts.X, prompts.y, prompts.shares)
        block = train_columns_block
        if KINDS[self.kind] == "softmax_with_query":
            block = train_with_query_block
            contexts = (*contexts, prompts.length)
        return block(
            *contexts, *batch, self.bootstrap, self.depth, self.discount, self.learning_rate, self.clip,
            self.parameter, self.mean, self.square, self.steps, estimates,
        )  # fmt: skip
