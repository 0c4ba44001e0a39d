"""The fused engine: pretraining in Theta^looped by the collapsed forward pass and its exact gradient.

In Theta the top 2n rows X = [I; gamma p'] of the prompt never change (appendix, proof of Lemma 2), so with attention
divided by the context length n, and with

    B = X' A X / n,    B_q = X' A[:, :n] / n,    h_0 = u X + r',

one layer of eq. (Yl dissection) is h_{l+1} = h_l (I + B), where h_l = u X + Y_l, and

    TF_L(s) = -g B_q[:, s],    g = h_0 + ... + h_{L-1}.

All n queries come at once and a layer costs n^2 multiply-adds.  For state weights e, the gradient of
sum_s e_s TF_L(s) needs one adjoint sweep, with q = B_q e:

    lam_{L-1} = q,    lam_l = q + (I + B) lam_{l+1},
    d/dB = -sum_l h_l' lam_{l+1}',    d/dB_q = -g' e',    d/dh_0 = -lam_0'.

Both algorithms update along (1/b) sum_t delta_t grad TF_L(S_t), which is such a gradient with e_s the sum of the
errors delta_t over the visits to s (Algorithms 1 and 2).

Kernels take n as a ``kernels.size``.  Most matrix products sum into a number in the innermost loop, and the loop around
it goes along a row: so the compiler keeps several sums in registers.  The order of terms does not change.
"""

import numpy as np

from ictd.kernels import kernel, size
from ictd.mrp import Tasks
from ictd.trajectories import Unrolls
from ictd.weights import Weights

# Adam's constants (Kingma and Ba, ICLR 2015), the defaults of torch.optim.Adam.
BETA_1, BETA_2, EPSILON = 0.9, 0.999, 1e-8


@kernel(noalias=True)
def sweep_forward(n, T, h, g):
    """Fill h (L, k) from its first row by h_{l+1} = h_l T, and g (k,) with the sum of its rows."""
    depth, width = len(h), len(n)
    for s in range(width):
        g[s] = h[0, s]
    for layer in range(1, depth):
        for s in range(width):
            h[layer, s] = 0.0
        for j in range(width):
            for s in range(width):
                h[layer, s] += h[layer - 1, j] * T[j, s]
        for s in range(width):
            g[s] += h[layer, s]


@kernel(noalias=True)
def sweep_adjoint(n, T, h, q, lam, following, across, dT):
    """Gradient of sum_l h_l . q: fill lam (k,) with that for h_0, and dT (k, k).

    ``following`` (k,) is work space, and so is ``across`` (k, k), which gets T'.
    """
    depth, width = len(h), len(n)
    for i in range(width):
        lam[i] = q[i]
        for j in range(width):
            dT[i, j] = 0.0
            across[j, i] = T[i, j]
    for layer in range(depth - 2, -1, -1):
        for i in range(width):
            following[i] = lam[i]
        for i in range(width):
            total = q[i]
            for j in range(width):
                total += across[j, i] * following[j]
            lam[i] = total
        for i in range(width):
            for j in range(width):
                dT[i, j] += h[layer, i] * following[j]


@kernel(noalias=True)
def collapse(n, u, A, Y, reward, scale, AX, T, Bq, h0):
    """Fill T = I + B, B_q and h_0 of one task; Y (n, n) = gamma p' is the lower half of X, AX (2n, n) work space."""
    states = len(n)
    for i in range(2 * states):
        for s in range(states):
            total = A[i, s]
            for j in range(states):
                total += A[i, states + j] * Y[j, s]
            AX[i, s] = total
    for i in range(states):
        for s in range(states):
            b, bq = AX[i, s], A[i, s]
            for j in range(states):
                b += Y[j, i] * AX[states + j, s]
                bq += Y[j, i] * A[states + j, s]
            T[i, s] = b * scale
            Bq[i, s] = bq * scale
        T[i, i] += 1.0
    for s in range(states):
        total = u[s] + reward[s]
        for j in range(states):
            total += u[states + j] * Y[j, s]
        h0[s] = total


@kernel(noalias=True)
def expand(n, lam, dB, g, e, Y, Yt, scale, D, du, dA):
    """Chain rule of ``collapse``: from -lam', -dB and -g' e' to the gradient for u and A; Yt is Y', and D (n, 2n) is
    work space.

    dA = -X (dB X' + [g' e', 0]) / n, since B_q takes the left half of A only.
    """
    states = len(n)
    for i in range(states):
        for s in range(states):
            D[i, s] = (dB[i, s] + g[i] * e[s]) * scale
            total = 0.0
            for j in range(states):
                total += dB[i, j] * Yt[j, s]
            D[i, states + s] = total * scale
    for i in range(states):
        du[i] = -lam[i]
        for s in range(2 * states):
            dA[i, s] = -D[i, s]
    for i in range(states):
        total = 0.0
        for j in range(states):
            total -= Y[i, j] * lam[j]
        du[states + i] = total
        for s in range(2 * states):
            total = 0.0
            for j in range(states):
                total -= Y[i, j] * D[j, s]
            dA[states + i, s] = total


@kernel(noalias=True)
def batch_errors(n, estimate, reward, visits, transitions, returns, bootstrap, discount, e):
    """Fill e (n,) with -(1/b) times the sum of the errors delta_t over the visits to each state.

    Descent on the loss is ascent along (1/b) sum_t delta_t grad TF_L(S_t).
    """
    states = len(n)
    batch = 0.0
    for s in range(states):
        batch += visits[s]
        target = returns[s]
        if bootstrap:
            target = visits[s] * reward[s]
            for j in range(states):
                target += discount * transitions[s, j] * estimate[j]
        e[s] = target - visits[s] * estimate[s]
    for s in range(states):
        e[s] /= -batch


@kernel(noalias=True)
def adam(parameter, gradient, mean, square, learning_rate, steps):
    """Descent step number ``steps`` of Adam, in place, on flat arrays, in the order that needs one division."""
    root = np.sqrt(1.0 - BETA_2**steps)
    rate, epsilon = learning_rate * root / (1.0 - BETA_1**steps), EPSILON * root
    for i in range(parameter.shape[0]):
        mean[i] += (1.0 - BETA_1) * (gradient[i] - mean[i])
        square[i] = BETA_2 * square[i] + (1.0 - BETA_2) * gradient[i] * gradient[i]
        parameter[i] -= rate * mean[i] / (np.sqrt(square[i]) + epsilon)


@kernel(noalias=True)
def train_block(
    n, transition, reward, visits, transitions, returns, bootstrap, depth, discount, scale, learning_rate,
    parameter, mean, square, steps, estimates,
):  # fmt: skip
    """One pass over a block of tasks, one update a task; parameter, mean and square (2n + 4n^2,) change in place.

    Stops at a task whose estimates are not finite, before its update, and returns the number of updates made.
    """
    tasks, states = len(reward), len(n)
    wide = 2 * states
    u, A = parameter[:wide], parameter[wide:].reshape(wide, wide)
    gradient = np.empty_like(parameter)
    du, dA = gradient[:wide], gradient[wide:].reshape(wide, wide)
    shape = (states, states)
    Y, Yt, T, Bq = np.empty(shape), np.empty(shape), np.empty(shape), np.empty(shape)
    dT, across = np.empty(shape), np.empty(shape)
    AX, D = np.empty((wide, states)), np.empty((states, wide))
    h = np.empty((depth, states))
    g, e, q, lam, following = np.empty(states), np.empty(states), np.empty(states), np.empty(states), np.empty(states)
    for i in range(tasks):
        for s in range(states):
            for j in range(states):
                Yt[s, j] = Y[j, s] = discount * transition[i, s, j]
        collapse(n, u, A, Y, reward[i], scale, AX, T, Bq, h[0])
        sweep_forward(n, T, h, g)
        estimate = estimates[i]
        for s in range(states):
            total = 0.0
            for j in range(states):
                total -= g[j] * Bq[j, s]
            estimate[s] = total
        for s in range(states):
            if not np.isfinite(estimate[s]):
                return i
        batch_errors(n, estimate, reward[i], visits[i], transitions[i], returns[i], bootstrap, discount, e)
        for j in range(states):
            q[j] = 0.0
            for s in range(states):
                q[j] += Bq[j, s] * e[s]
        sweep_adjoint(n, T, h, q, lam, following, across, dT)
        expand(n, lam, dT, g, e, Y, Yt, scale, D, du, dA)
        steps += 1
        adam(parameter, gradient, mean, square, learning_rate, steps)
    return tasks


class FusedEngine:
    """Training state: parameters and Adam's moments, in flat arrays that the kernel changes in place."""

    def __init__(self, weights, algo, depth, discount, learning_rate, scaled):
        self.parameter = np.concatenate([weights.u, weights.A.ravel()])
        self.mean = np.zeros_like(self.parameter)
        self.square = np.zeros_like(self.parameter)
        self.steps = 0
        self.states = weights.states
        self.scale = 1 / weights.states if scaled else 1.0
        self.bootstrap = algo == "td"
        self.depth, self.discount, self.learning_rate = depth, float(discount), float(learning_rate)

    def train(self, tasks: Tasks, unrolls: Unrolls) -> tuple[np.ndarray, int]:
        """One update per task, as long as estimates are finite; returns those made just before each update, (N, n) with
        NaN in the rows of tasks not reached, and the number of updates."""
        estimates = np.full_like(tasks.reward, np.nan)
        done = train_block(
            size(self.states), tasks.transition, tasks.reward, unrolls.visits, unrolls.transitions, unrolls.returns,
            self.bootstrap, self.depth, self.discount, self.scale, self.learning_rate,
            self.parameter, self.mean, self.square, self.steps, estimates,
        )  # fmt: skip
        self.steps += done
        return estimates, done

    def weights(self) -> tuple[np.ndarray, np.ndarray]:
        """Copies of u and A."""
        u, A = np.split(self.parameter, [2 * self.states])
        return u.copy(), A.reshape(2 * self.states, 2 * self.states).copy()


def value_gradients(weights: Weights, tasks: Tasks, task: int, discount: float, depth: int) -> np.ndarray:
    """Gradients (n, 2n + 4n^2) of TF_L for each query state of one task, u before A; attention is not divided by n.

    Parameters
    ----------
    weights : Weights, u (2n,) and A (2n, 2n)
    tasks : Tasks
    task : int, its index
    discount : float, gamma
    depth : int, L
    """
    states, n = tasks.states, size(tasks.states)
    Yt = discount * tasks.transition[task]
    Y, (T, Bq, dT, across) = np.ascontiguousarray(Yt.T), np.empty((4, states, states))
    AX, D, h = np.empty((2 * states, states)), np.empty((states, 2 * states)), np.empty((depth, states))
    g, lam, following = np.empty((3, states))
    collapse(n, weights.u, weights.A, Y, tasks.reward[task], 1.0, AX, T, Bq, h[0])
    sweep_forward(n, T, h, g)
    rows = np.empty((states, 2 * states + 4 * states**2))
    for row, e in zip(rows, np.eye(states), strict=True):
        sweep_adjoint(n, T, h, Bq @ e, lam, following, across, dT)
        du, dA = row[: 2 * states], row[2 * states :].reshape(2 * states, 2 * states)
        expand(n, lam, dT, g, e, Y, Yt, 1.0, D, du, dA)
    return rows
