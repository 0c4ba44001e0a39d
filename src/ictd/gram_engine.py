"""The fused engine on prompts of any length: pretraining on what an agent sees, in place of enumerated prompts.

A context enters only through its Gram matrix (``ictd.gram``).  With T = I + A M, k_0 = u M + c and g = k_0 + ... +
k_{L-1}, and for state weights e,

    TF_L(s) = -g A[:, s],    q = A[:, :n] e,    sum_s e_s TF_L(s) = -g q,

so the sweeps of the fused engine give its gradient: with lam' and dT those of sum_l k_l q for k_0 and T,

    d/dA = -dT M' - [g' e', 0],    d/du = -lam' M'.

The enumerated prompt is the case M = XX' / n, c = X r' / n.
"""

import numpy as np

from ictd.fused_engine import FusedEngine, adam, batch_errors, sweep_adjoint, sweep_forward
from ictd.gram import Gram
from ictd.kernels import kernel, size
from ictd.trajectories import Unrolls
from ictd.weights import Weights


@kernel(noalias=True)
def collapse_gram(n, u, A, M, c, T, h0):
    """Fill T = I + A M and k_0 = u M + c of one context."""
    wide = 2 * len(n)
    for i in range(wide):
        for s in range(wide):
            total = 0.0
            for j in range(wide):
                total += A[i, j] * M[j, s]
            T[i, s] = total
        T[i, i] += 1.0
    for s in range(wide):
        total = c[s]
        for j in range(wide):
            total += u[j] * M[j, s]
        h0[s] = total


@kernel(noalias=True)
def expand_gram(n, lam, dT, g, e, M, du, dA):
    """Chain rule of ``collapse_gram``: from -lam', -dT and -g' e' to the gradient for u and A; M is symmetric."""
    wide, states = 2 * len(n), len(n)
    for s in range(wide):
        total = 0.0
        for j in range(wide):
            total -= lam[j] * M[j, s]
        du[s] = total
    for i in range(wide):
        for s in range(wide):
            dA[i, s] = -g[i] * e[s] if s < states else 0.0
        for s in range(wide):
            total = dA[i, s]
            for j in range(wide):
                total -= dT[i, j] * M[j, s]
            dA[i, s] = total


@kernel(noalias=True)
def clip_gradient(gradient, largest):
    """Shorten a gradient to a norm, in place, if it is longer."""
    total = 0.0
    for i in range(gradient.shape[0]):
        total += gradient[i] * gradient[i]
    if total > largest * largest:
        factor = largest / np.sqrt(total)
        for i in range(gradient.shape[0]):
            gradient[i] *= factor


@kernel(noalias=True)
def train_gram_block(
    n, M, c, reward, visits, transitions, returns, bootstrap, depth, discount, learning_rate, clip,
    parameter, mean, square, steps, estimates,
):  # fmt: skip
    """As ``fused_engine.train_block``, on contexts given by M (N, 2n, 2n) and c (N, 2n), with gradients clipped."""
    tasks, states = len(reward), len(n)
    wide = 2 * states
    u, A = parameter[:wide], parameter[wide:].reshape(wide, wide)
    gradient = np.empty_like(parameter)
    du, dA = gradient[:wide], gradient[wide:].reshape(wide, wide)
    T, dT, across = np.empty((wide, wide)), np.empty((wide, wide)), np.empty((wide, wide))
    h = np.empty((depth, wide))
    g, q, lam, following = np.empty(wide), np.empty(wide), np.empty(wide), np.empty(wide)
    e = np.empty(states)
    for i in range(tasks):
        collapse_gram(n, u, A, M[i], c[i], T, h[0])
        sweep_forward(n + n, T, h, g)
        estimate = estimates[i]
        for s in range(states):
            estimate[s] = 0.0
        for j in range(wide):
            for s in range(states):
                estimate[s] -= g[j] * A[j, s]
        for s in range(states):
            if not np.isfinite(estimate[s]):
                return i
        batch_errors(n, estimate, reward[i], visits[i], transitions[i], returns[i], bootstrap, discount, e)
        for j in range(wide):
            q[j] = 0.0
            for s in range(states):
                q[j] += A[j, s] * e[s]
        sweep_adjoint(n + n, T, h, q, lam, following, across, dT)
        expand_gram(n, lam, dT, g, e, M[i], du, dA)
        if clip > 0.0:
            clip_gradient(gradient, clip)
        steps += 1
        adam(parameter, gradient, mean, square, learning_rate, steps)
    return tasks


class GramEngine(FusedEngine):
    """Training state for sampled contexts; attention is divided by the context length."""

    def __init__(self, weights: Weights, algo: str, depth: int, discount: float, learning_rate: float, clip: float):
        super().__init__(weights, algo, depth, discount, learning_rate, scaled=True)
        self.clip = float(clip)

    def train(self, reward: np.ndarray, unrolls: Unrolls, given) -> tuple[np.ndarray, int]:
        """As ``FusedEngine.train``, with rewards (N, n) and what ``kernel`` takes for each task; shares may stand for
        counts."""
        estimates = np.full_like(reward, np.nan)
        train_block, leading = self.kernel(given)
        visits, transitions = unrolls.visits.astype(float), unrolls.transitions.astype(float)
        done = train_block(
            *leading, reward, visits, transitions, unrolls.returns, self.bootstrap,
            self.depth, self.discount, self.learning_rate, self.clip,
            self.parameter, self.mean, self.square, self.steps, estimates,
        )  # fmt: skip
        self.steps += done
        return estimates, done

    def kernel(self, gram: Gram):
        """The block of updates for these contexts, and its first arguments."""
        return train_gram_block, (size(self.states), gram.M, gram.c)
