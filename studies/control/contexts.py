"""Transitions as a prompt shows them, for any policy, and the engine that pretrains on such prompts.

A transition (s, a, r, s') is the column [phi(s, a); gamma sum_a' pi(a' | s') phi(s', a'); r], so that transitions of
any behaviour serve every policy pi.  It enters only through its Gram matrix M and c (``ictd.gram``).  With T = I + A M,
k_0 = u M + c, g = k_0 + ... + k_{L-1}, weights e of pairs, and lam and dT the gradients of sum_l k_l q for k_0 and T,

    TF_L(x) = -g A[:, x],    q = A[:, :d] e,    sum_x e_x TF_L(x) = -g q,
    d/dA = -dT M' - [g' e', 0],    d/du = -lam M.
"""

import numpy as np

from ictd.fused_engine import FusedEngine, adam, batch_errors, sweep_adjoint, sweep_forward
from ictd.kernels import kernel, size
from ictd.prompts import Context
from studies.control.processes import pair_transitions


def context_of(counts: np.ndarray, reward: np.ndarray, policy: np.ndarray) -> Context:
    """What a prompt shows of counts (N, S, A, S), which need not be whole, for policies and rewards (N, S, A)."""
    length = counts.sum(axis=(1, 2, 3))
    shares = counts / length[:, None, None, None]
    visits, rewards = (one.reshape(len(counts), -1) for one in (shares.sum(axis=-1), reward))
    successors = pair_transitions(shares, policy)
    # Next features of a state are one vector, the policy's row: E has a block for each state.
    E = np.einsum("nsaj,ji,njb,nic->njbic", shares, np.eye(policy.shape[1]), policy, policy).reshape(successors.shape)
    return Context(np.rint(length).astype(int), visits, successors, visits * rewards, np.vecmat(rewards, successors), E)


@kernel(apart=True)
def train_block(n, M, c, reward, visits, transitions, returns, bootstrap, depth, discount, learning_rate, clip,
                parameter, mean, square, steps, estimates):  # fmt: skip
    """As ``fused_engine.train_block``, on prompts given by M (N, 2d, 2d) and c (N, 2d), gradients cut to a length."""
    tasks, pairs = len(reward), len(n)
    wide = 2 * pairs
    u, A = parameter[:wide], parameter[wide:].reshape(wide, wide)
    gradient = np.empty_like(parameter)
    du, dA = gradient[:wide], gradient[wide:].reshape(wide, wide)
    T, dT = np.empty((2, wide, wide))
    k, e = np.empty((depth, wide)), np.empty(pairs)
    g, q, lam, following = np.empty((4, wide))
    for i in range(tasks):
        k[0] = c[i]
        for j in range(wide):
            for s in range(wide):
                k[0, s] += u[j] * M[i, j, s]
                T[j, s] = 0.0
            for h in range(wide):
                for s in range(wide):
                    T[j, s] += A[j, h] * M[i, h, s]
            T[j, j] += 1.0
        sweep_forward(n + n, T, k, g)
        estimates[i] = 0.0
        for j in range(wide):
            for x in range(pairs):
                estimates[i, x] -= g[j] * A[j, x]
        if not np.isfinite(estimates[i]).all():
            return i
        batch_errors(n, estimates[i], reward[i], visits[i], transitions[i], returns[i], bootstrap, discount, e)
        for j in range(wide):
            q[j] = du[j] = 0.0
            for x in range(pairs):
                q[j] += A[j, x] * e[x]
        sweep_adjoint(n + n, T, k, q, lam, following, dT)
        for j in range(wide):
            for s in range(wide):
                dA[j, s] = -g[j] * e[s] if s < pairs else 0.0
                du[s] -= lam[j] * M[i, j, s]
            for h in range(wide):
                for s in range(wide):
                    dA[j, s] -= dT[j, h] * M[i, h, s]
        length = np.sqrt((gradient * gradient).sum())
        if length > clip:
            gradient *= clip / length
        steps += 1
        adam(parameter, gradient, mean, square, learning_rate, steps)
    return tasks


class PromptEngine(FusedEngine):
    """Training state; attention is divided by the number of columns."""

    def __init__(self, weights, algo: str, depth: int, discount: float, learning_rate: float, clip: float):
        super().__init__(weights, algo, depth, discount, learning_rate, scaled=True)
        self.clip = float(clip)

    def train(self, M, c, reward, visits, transitions, returns) -> tuple[np.ndarray, int]:
        """As ``FusedEngine.train``, with what prompts and batches of pairs show of each task."""
        estimates = np.full_like(reward, np.nan)
        done = train_block(
            size(self.states), M, c, reward, visits, transitions, returns, self.bootstrap, self.depth, self.discount,
            self.learning_rate, self.clip, self.parameter, self.mean, self.square, self.steps, estimates,
        )  # fmt: skip
        self.steps += done
        return estimates, done
