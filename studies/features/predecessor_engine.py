"""Semi-gradient TD for linear attention with any P and Q, on prompts whose columns have d features.

A context is given by its Gram matrix G = (1/m) X X' (D, D), where the m columns of X are [phi; gamma phi'; R] and
D = 2d + 1.  A layer multiplies all columns, those of the context and the query q, by the same matrix (section "Linear
Attention", eq. (embedding evolution)), so that

    T_l = I + P G_l Q,    G_{l+1} = T_l G_l T_l',    q_{l+1} = T_l q_l.

The estimate is minus the last entry of q_L.  It is linear in the query, with *implicit weights* a_0:

    a_L = -[0, ..., 0, 1],    a_l = T_l' a_{l+1},    TF_L(q) = a_0' q.

**Gradient** of TF_L(q) for a symmetric derivative Lambda_l by G_l, with V = Lambda_{l+1} T_l:

    dT_l = 2 V G_l + a_{l+1} q_l',    N = dT_l Q',    dP += N G_l,    dQ += (P G_l)' dT_l,
    Lambda_l = T_l' V + (P' N + N' P) / 2.

The last layer needs no products of matrices: only the last row of T_{L-1} has an effect, and G_L has none.

Kernels take the height D as a ``kernels.size`` tuple, which the compiler knows.
"""

import numpy as np

from ictd.engine import adam, clip_gradient
from ictd.kernels import kernel, size
from ictd.small_matrices import add_product, multiply, transpose


@kernel(noalias=True)
def forward(n, P, Q, G, M, T, a, across):
    """Fill G (L, D, D) from its first matrix, P G and T (L, D, D) of all layers but the last, and a (L, D).

    P and Q are (K, D, D), of K = 1 or L layers.  Returns nothing: the implicit weights are a[0].
    """
    last = len(G) - 1
    bottom = len(n) - 1
    for layer in range(last):
        own = layer % len(P)
        multiply(n, n, P[own], G[layer], M[layer])
        multiply(n, n, M[layer], Q[own], T[layer])
        for i in range(len(n)):
            T[layer, i, i] += 1.0
        # G_{l+1} = T (T G)', as G is symmetric.
        multiply(n, n, T[layer], G[layer], G[layer + 1])
        transpose(G[layer + 1], across)
        multiply(n, n, T[layer], across, G[layer + 1])
    own = last % len(P)
    for j in range(len(n)):
        total = 0.0
        for i in range(len(n)):
            total += P[own, bottom, i] * G[last, i, j]
        M[last, bottom, j] = total
    for j in range(len(n)):
        total = -1.0 if j == bottom else 0.0
        for i in range(len(n)):
            total -= M[last, bottom, i] * Q[own, i, j]
        a[last, j] = total
    for layer in range(last - 1, -1, -1):
        for j in range(len(n)):
            total = 0.0
            for i in range(len(n)):
                total += a[layer + 1, i] * T[layer, i, j]
            a[layer, j] = total


@kernel(noalias=True)
def backward(n, P, Q, Qt, G, M, T, a, q, q_layers, Lambda, V, N, dT, across, dP, dQ):
    """Add the gradients of a_0' q for P and Q (K, D, D) to dP and dQ; arguments as of ``forward``.

    ``Qt`` has the transposes of Q, q (D,) is the query, and the others are scratch.
    """
    last = len(G) - 1
    bottom = len(n) - 1
    for i in range(len(n)):
        q_layers[0, i] = q[i]
    for layer in range(last):
        for i in range(len(n)):
            total = 0.0
            for j in range(len(n)):
                total += T[layer, i, j] * q_layers[layer, j]
            q_layers[layer + 1, i] = total
    # The last layer, with k = Q q: the estimate is -q[D] - P[D] G k.
    own = last % len(P)
    k = across[0]
    for i in range(len(n)):
        total = 0.0
        for j in range(len(n)):
            total += Q[own, i, j] * q_layers[last, j]
        k[i] = total
    for i in range(len(n)):
        total = 0.0
        for j in range(len(n)):
            total += G[last, i, j] * k[j]
            dQ[own, i, j] -= M[last, bottom, i] * q_layers[last, j]
        dP[own, bottom, i] -= total
        for j in range(len(n)):
            Lambda[i, j] = -0.5 * (P[own, bottom, i] * k[j] + k[i] * P[own, bottom, j])
    for layer in range(last - 1, -1, -1):
        own = layer % len(P)
        multiply(n, n, Lambda, T[layer], V)
        multiply(n, n, V, G[layer], dT)
        for i in range(len(n)):
            for j in range(len(n)):
                dT[i, j] = 2.0 * dT[i, j] + a[layer + 1, i] * q_layers[layer, j]
        multiply(n, n, dT, Qt[own], N)
        add_product(n, n, N, G[layer], dP[own])
        add_product(n, n, M[layer].T, dT, dQ[own])
        if layer > 0:
            multiply(n, n, T[layer].T, V, Lambda)
            multiply(n, n, P[own].T, N, across)
            for i in range(len(n)):
                for j in range(len(n)):
                    Lambda[i, j] += 0.5 * (across[i, j] + across[j, i])


@kernel(noalias=True)
def first_gram(n, columns, length, G):
    """Fill G (D, D) with the mean of x x' over the first ``length`` columns (., D)."""
    for i in range(len(n)):
        for j in range(len(n)):
            G[i, j] = 0.0
    for t in range(length):
        for i in range(len(n)):
            for j in range(len(n)):
                G[i, j] += columns[t, i] * columns[t, j] / length


@kernel(noalias=True)
def next_gram(n, columns, first, length, previous, G):
    """Fill G (D, D) with the mean over ``length`` columns from ``first`` on, from the mean one column before."""
    old, new = columns[first - 1], columns[first - 1 + length]
    for i in range(len(n)):
        for j in range(len(n)):
            G[i, j] = previous[i, j] + (new[i] * new[j] - old[i] * old[j]) / length


@kernel(noalias=True)
def train_block(
    n, columns, queries, targets, length, bootstrap, depth, discount, learning_rate, decay, clip, trained, parameter,
    mean, square, steps,
):  # fmt: skip
    """Make one update for each of N batches; parameter, mean and square, flat with P before Q, change in place.

    ``columns`` (N, w, D), ``queries`` (N, b+1, d) and ``targets`` (N, b) are those of ``Engine.train``.  Stops before
    the update of a batch with an estimate that is not finite, and returns the number of updates made.
    """
    width, batch, features = len(n), targets.shape[1], queries.shape[2]
    sliding = columns.shape[1] > length
    shape = (len(parameter) // (2 * width**2), width, width)
    half = len(parameter) // 2
    P, Q = parameter[:half].reshape(shape), parameter[half:].reshape(shape)
    gradient, Qt = np.empty_like(parameter), np.empty(shape)
    dP, dQ = gradient[:half].reshape(shape), gradient[half:].reshape(shape)
    # Two windows are held at once: the target of one needs the estimate of the next.
    G, M, T = np.empty((2, depth, width, width)), np.empty((2, depth, width, width)), np.empty((2, depth, width, width))
    a, q_layers, q = np.empty((2, depth, width)), np.empty((depth, width)), np.zeros(width)
    Lambda, V, N = np.empty((width, width)), np.empty((width, width)), np.empty((width, width))
    dT, across = np.empty((width, width)), np.empty((width, width))
    for i in range(len(targets)):
        for layer in range(len(P)):
            transpose(Q[layer], Qt[layer])
        gradient[:] = 0.0
        estimate = 0.0
        q[:] = 0.0
        for t in range(batch + 1):
            own = t % 2 if sliding else 0
            if t == 0:
                first_gram(n, columns[i], length, G[0, 0])
            elif sliding:
                next_gram(n, columns[i], t, length, G[1 - own, 0], G[own, 0])
            if sliding or t == 0:
                forward(n, P, Q, G[own], M[own], T[own], a[own], across)
            previous, estimate = estimate, 0.0
            for j in range(features):
                estimate += a[own, 0, j] * queries[i, t, j]
            if not np.isfinite(estimate):
                return i
            if t == 0:
                continue
            error = targets[i, t - 1] - previous
            if bootstrap:
                error += discount * estimate
            for j in range(features):
                if sliding:
                    q[j] = 0.0
                q[j] -= 2.0 / batch * error * queries[i, t - 1, j]
            if sliding or t == batch:
                one = (t - 1) % 2 if sliding else 0
                backward(
                    n, P, Q, Qt, G[one], M[one], T[one], a[one], q, q_layers, Lambda, V, N, dT, across, dP, dQ
                )  # fmt: skip
        for j in range(len(gradient)):
            gradient[j] = (gradient[j] + decay * parameter[j]) * trained[j]
        if clip is not None:
            clip_gradient(gradient, clip)
        steps += 1
        adam(parameter, gradient, mean, square, learning_rate, steps)
    return len(targets)


@kernel(noalias=True)
def weights_block(n, grams, P, Q, depth, weights):
    """Fill the implicit weights (N, D) of contexts with Gram matrices (N, D, D)."""
    width = len(n)
    G, M, T = np.empty((depth, width, width)), np.empty((depth, width, width)), np.empty((depth, width, width))
    a, across = np.empty((depth, width)), np.empty((width, width))
    for i in range(len(grams)):
        G[0] = grams[i]
        forward(n, P, Q, G, M, T, a, across)
        weights[i] = a[0]


def implicit_weights(P: np.ndarray, Q: np.ndarray, grams: np.ndarray, depth: int) -> np.ndarray:
    """Compute w with TF_L([phi; 0; 0]) = w' phi for all features phi.

    Parameters
    ----------
    P, Q : (K, D, D) arrays, of K = 1 or L layers, with D = 2d + 1
    grams : (N, D, D) array, Gram matrices of contexts divided by their lengths
    depth : int, number of layers L

    Returns
    -------
    w : (N, d) array
    """
    weights = np.empty(grams.shape[:2])
    P, Q, grams = (np.ascontiguousarray(array, float) for array in (P, Q, grams))
    weights_block(size(grams.shape[-1]), grams, P, Q, depth, weights)
    return weights[:, : grams.shape[-1] // 2]


class Engine:
    """Training state of a Transformer: P, Q and Adam's moments, which updates change in place.

    An update descends the mean squared error of b estimates, whose targets have no gradient.

    Parameters
    ----------
    P, Q : (K, D, D) arrays, of K = 1 or L layers
    depth : int, number of layers L
    length : int, number m of columns of a context
    discount : float, gamma
    learning_rate : float, Adam's alpha
    decay : float
        This multiple of a parameter is added to its gradient.
    clip : float
        Largest norm of a gradient; longer ones are shortened to it.  0 means no limit.
    trained : array that broadcasts to (2, K, D, D)
        1 for entries of P and Q that are trained, 0 for others.
    bootstrap : bool
        Whether gamma times the next estimate is added to each target.
    """

    def __init__(
        self,
        P: np.ndarray,
        Q: np.ndarray,
        depth: int,
        length: int,
        discount: float,
        learning_rate: float,
        decay: float = 0.0,
        clip: float = 0.0,
        trained: np.ndarray | float = 1.0,
        bootstrap: bool = True,
    ):
        self.shape = 2, *P.shape
        self.parameter = np.stack([P, Q]).ravel()
        self.mean, self.square = np.zeros_like(self.parameter), np.zeros_like(self.parameter)
        self.trained = np.broadcast_to(trained, self.shape).astype(float).ravel()
        self.steps = 0
        self.depth, self.length, self.bootstrap = depth, length, bootstrap
        self.discount, self.learning_rate = float(discount), float(learning_rate)
        self.decay, self.clip = float(decay), float(clip) or None

    def train(self, columns: np.ndarray, queries: np.ndarray, targets: np.ndarray) -> int:
        """Make one update for each of N batches, in order, until an estimate is not finite.

        Parameters
        ----------
        columns : (N, m, D) or (N, m+b, D) array
            Columns of contexts as rows.  With m + b of them, query t has the context of the m columns from t on.
        queries : (N, b+1, d) array
            Features of the queries; the last one is only a target.
        targets : (N, b) array
            Targets of the first b queries: with ``bootstrap`` the rewards, otherwise all of the targets.

        Returns
        -------
        updates : int, number of updates made
        """
        updates = train_block(
            size(self.shape[-1]), columns, queries, targets, self.length, self.bootstrap, self.depth, self.discount,
            self.learning_rate, self.decay, self.clip, self.trained, self.parameter, self.mean, self.square, self.steps,
        )  # fmt: skip
        self.steps += updates
        return updates

    def matrices(self) -> np.ndarray:
        """A copy of P and Q, (2, K, D, D)."""
        return self.parameter.reshape(self.shape).copy()


@kernel(noalias=True)
def td_weights_block(n, gram, step_size, depth, w, dw, change, dchange):
    """Fill w (d,) with ``depth`` steps of batch TD from zero, and dw (d,) with the derivative by the step size.

    With averages of phi phi', gamma phi phi'' and R phi over the context, a step is
    w += step_size (mean R phi - (mean phi phi' - gamma mean phi phi'') w).
    """
    features = len(n) // 2
    for i in range(features):
        w[i], dw[i] = 0.0, 0.0
    for _ in range(depth):
        for i in range(features):
            change[i], dchange[i] = gram[i, len(n) - 1], 0.0
            for j in range(features):
                entry = gram[i, features + j] - gram[i, j]
                change[i] += entry * w[j]
                dchange[i] += entry * dw[j]
        for i in range(features):
            dw[i] += change[i] + step_size * dchange[i]
            w[i] += step_size * change[i]


@kernel(noalias=True)
def train_step_size_block(
    n, columns, queries, targets, length, depth, discount, learning_rate, decay, parameter, mean, square, steps
):
    """Train the step size (1,) of batch TD on batches, with arguments as of ``train_block``."""
    width, batch, features = len(n), targets.shape[1], queries.shape[2]
    sliding = columns.shape[1] > length
    grams, gradient = np.empty((2, width, width)), np.empty(1)
    w, dw, change, dchange = np.empty(features), np.empty(features), np.empty(features), np.empty(features)
    for i in range(len(targets)):
        gradient[0] = decay * parameter[0]
        estimate, slope = 0.0, 0.0
        for t in range(batch + 1):
            gram = grams[t % 2]
            if t == 0:
                first_gram(n, columns[i], length, gram)
            elif sliding:
                next_gram(n, columns[i], t, length, grams[1 - t % 2], gram)
            if sliding or t == 0:
                td_weights_block(n, gram, parameter[0], depth, w, dw, change, dchange)
            previous, previous_slope, estimate, slope = estimate, slope, 0.0, 0.0
            for j in range(features):
                estimate += w[j] * queries[i, t, j]
                slope += dw[j] * queries[i, t, j]
            if t > 0:
                error = targets[i, t - 1] + discount * estimate - previous
                gradient[0] -= 2.0 / batch * error * previous_slope
        adam(parameter, gradient, mean, square, learning_rate, steps + i + 1)


class StepSize:
    """The step size of batch TD, trained as the Transformer is; parameters are those of ``Engine``."""

    def __init__(self, dimension: int, depth: int, length: int, discount: float, learning_rate: float, decay: float):
        self.parameter, self.mean, self.square = np.ones(1), np.zeros(1), np.zeros(1)
        self.steps = 0
        self.dimension, self.depth, self.length = dimension, depth, length
        self.discount, self.learning_rate, self.decay = float(discount), float(learning_rate), float(decay)

    def train(self, columns: np.ndarray, queries: np.ndarray, rewards: np.ndarray) -> None:
        """Make one update for each of N batches, with arguments of ``Engine.train``."""
        train_step_size_block(
            size(2 * self.dimension + 1), columns, queries, rewards, self.length, self.depth, self.discount,
            self.learning_rate, self.decay, self.parameter, self.mean, self.square, self.steps,
        )  # fmt: skip
        self.steps += len(rewards)

    def value(self) -> float:
        """The step size."""
        return float(self.parameter[0])
