"""The compiled engine: updates of Algorithms 1 and 2 in Theta^looped, with the exact gradient.

In Theta^looped the top 2n rows X of a prompt do not change from layer to layer (appendix, proof of Lemma 2), so all
layers apply the same matrix T to a row vector h.  All n query states are evaluated at once:

    h_{l+1} = h_l T,    g = h_0 + ... + h_{L-1},    TF_L(s) = -g R[:, s].

Two kinds of prompts are given by two choices of h_0, T and R:

- Enumerated prompts have X = [I; gamma p'] and rewards r.  With attention divided by the context length n,

      h_0 = u X + r',    T = I + X' A X / n,    R = X' A[:, :n] / n,    h_l = u X + Y_l (n,),

  where Y_l is the last row of the prompt in layer l (eq. (Yl dissection)).  A layer costs n^2 multiplications.
- Prompts of any length are given by the blocks M and c of a matrix G = [M, c; c', .] (``Context.gram_matrix``):

      h_0 = u M + c,    T = I + A M,    R = A[:, :n],    h_l = k_l (2n,) of ``ictd.transformer``.

  Enumerated prompts are the case M = X X' / n, c = X r / n.

For state weights e (n,), the gradient of sum_s e_s TF_L(s) = -g q with q = R e needs one backward sweep:

    lam_{L-1} = q,    lam_l = q + T lam_{l+1},
    d/dT = -sum_l h_l' lam_{l+1}',    d/dR = -g' e',    d/dh_0 = -lam_0'.

Algorithms update along (1/b) sum_t delta_t grad TF_L(S_t), which is such a gradient: e_s is 1/b times the sum of the
errors delta_t over the visits to s (``ictd.algorithms``).  The code stores -e, because Adam descends.

With d features in place of n one-hot ones, the second kind of prompts has vectors of 2d numbers and R = A[:, :d].  The
features Phi (n, d) of the query states enter only at the end: TF_L(s) = w phi(s) with w = -g R (d,), and in the
gradient Phi' e (d,) takes the place of e.  So the cost of a layer does not grow with n.

Kernels take the numbers of features d and of columns k as a ``kernels.size``, a tuple of that length, so that the
compiler knows them.  ``small_matrices.add_vector_product`` chooses the order of the loops of a product.  The sweeps
write out the product of a short row, which is faster than a call.
"""

import numpy as np

from ictd.algorithms import Targets
from ictd.kernels import LONGEST, kernel, size
from ictd.small_matrices import UNROLLED, add_outer_products, add_vector_product
from ictd.transformer import Weights

# Adam's constants (Kingma and Ba, ICLR 2015), the defaults of torch.optim.Adam.
BETA_1, BETA_2, EPSILON = 0.9, 0.999, 1e-8


@kernel(noalias=True)
def sweep_forward(n, T, h, row, g):
    """Fill h (L, k) from its first row by h_{l+1} = h_l T, and g (k,) with the sum of its rows.

    ``row`` (k,) is scratch, a copy of h_l: the compiler cannot know that two rows of h do not overlap, and without the
    copy it would store each sum after each of its terms.  The copy is made at the end of a layer, from registers.
    """
    depth, width = len(h), len(n)
    for s in range(width):
        g[s] = row[s] = h[0, s]
    for layer in range(1, depth):
        if width > UNROLLED:
            for s in range(width):
                h[layer, s] = 0.0
            add_vector_product(n, n, h[layer - 1], T, h[layer])
            for s in range(width):
                g[s] += h[layer, s]
        else:
            for s in range(width):
                total = 0.0
                for j in range(width):
                    total += row[j] * T[j, s]
                h[layer, s] = total
                g[s] += total
            for s in range(width):
                row[s] = h[layer, s]


@kernel(noalias=True)
def sweep_adjoint(n, T, h, q, lam, following, across, dT):
    """Fill the gradient of sum_l h_l q: lam (k,) for h_0, and dT (k, k) for T.

    ``following`` (L, k) and ``across`` (k, k), which gets T', are scratch.  With more than ``UNROLLED`` columns, row l
    of ``following`` keeps lam_{l+1}; otherwise the first row keeps the last one.
    """
    depth, width = len(h), len(n)
    for i in range(width):
        lam[i] = q[i]
        for j in range(width):
            dT[i, j] = 0.0
            across[j, i] = T[i, j]
    for layer in range(depth - 2, -1, -1):
        if width > UNROLLED:
            for i in range(width):
                following[layer, i] = lam[i]
                lam[i] = q[i]
            add_vector_product(n, n, following[layer], across, lam)
        else:
            for i in range(width):
                following[0, i] = lam[i]
            for i in range(width):
                total = q[i]
                for j in range(width):
                    total += across[j, i] * following[0, j]
                lam[i] = total
            for i in range(width):
                for j in range(width):
                    dT[i, j] += h[layer, i] * following[0, j]
    if width > UNROLLED:
        add_outer_products(n, h[: depth - 1], following[: depth - 1], dT)


@kernel(noalias=True)
def collapse(n, u, A, Y, Yt, reward, scale, AX, T, R, h0):
    """Fill T, R and h_0 of an enumerated prompt, whose X = [I; Y] has Y (n, n) = gamma p'; AX (2n, n) is scratch."""
    states = len(n)
    for i in range(2 * states):
        for s in range(states):
            AX[i, s] = A[i, s]
        add_vector_product(n, n, A[i, states:], Y, AX[i])
    for i in range(states):
        for s in range(states):
            T[i, s], R[i, s] = AX[i, s], A[i, s]
        add_vector_product(n, n, Yt[i], AX[states:], T[i])
        add_vector_product(n, n, Yt[i], A[states:], R[i])
        for s in range(states):
            T[i, s] *= scale
            R[i, s] *= scale
        T[i, i] += 1.0
        h0[i] = u[i] + reward[i]
    add_vector_product(n, n, u[states:], Y, h0)


@kernel(noalias=True)
def expand(n, lam, dT, g, e, Y, Yt, scale, du, dA):
    """Chain rule of ``collapse``: from -lam', -dT and -g' e' to the gradient for u and A.

    dA = -X (dT X' + [g' e', 0]) / n, because R depends on the left half of A only.
    """
    states = len(n)
    for i in range(states):
        for s in range(states):
            dA[i, s] = dT[i, s] + g[i] * e[s]
            dA[i, states + s] = 0.0
        add_vector_product(n, n, dT[i], Yt, dA[i, states:])
        for s in range(2 * states):
            dA[i, s] *= -scale
        du[i] = -lam[i]
        du[states + i] = 0.0
    add_vector_product(n, n, du[:states], Yt, du[states:])
    for i in range(states):
        for s in range(2 * states):
            dA[states + i, s] = 0.0
        add_vector_product(n, n + n, Y[i], dA[:states], dA[states + i])


@kernel(noalias=True)
def collapse_gram(d, u, A, M, c, T, R, h0):
    """Fill T = I + A M, R = A[:, :d] and h_0 = u M + c of one context."""
    for i in range(2 * len(d)):
        for s in range(2 * len(d)):
            T[i, s] = 0.0
        add_vector_product(d + d, d + d, A[i], M, T[i])
        T[i, i] += 1.0
        for s in range(len(d)):
            R[i, s] = A[i, s]
        h0[i] = c[i]
    add_vector_product(d + d, d + d, u, M, h0)


@kernel(noalias=True)
def expand_gram(d, lam, dT, g, e, M, du, dA):
    """Chain rule of ``collapse_gram``, with a symmetric M: dA = -dT M - [g' e', 0] and du = -lam' M."""
    for i in range(2 * len(d)):
        for s in range(2 * len(d)):
            dA[i, s] = g[i] * e[s] if s < len(d) else 0.0
        add_vector_product(d + d, d + d, dT[i], M, dA[i])
        for s in range(2 * len(d)):
            dA[i, s] = -dA[i, s]
        du[i] = 0.0
    add_vector_product(d + d, d + d, lam, M, du)
    for i in range(2 * len(d)):
        du[i] = -du[i]


@kernel(noalias=True)
def estimates_block(d, k, u, A, M, c, depth, estimates):
    """Fill w (S K, d) with TF_L(s) = w phi(s) for S weights u, A, each on its K contexts M, c, one after the other."""
    wide, width = len(k), len(d)
    T, R = np.empty((wide, wide)), np.empty((wide, width))
    h, row, g = np.empty((depth, wide)), np.empty(wide), np.empty(wide)
    contexts = len(c) // len(u)
    for t in range(len(c)):
        run = t // contexts
        collapse_gram(d, u[run], A[run], M[t], c[t], T, R, h[0])
        sweep_forward(k, T, h, row, g)
        for s in range(width):
            total = 0.0
            for j in range(wide):
                total -= g[j] * R[j, s]
            estimates[t, s] = total


@kernel(noalias=True)
def read_out(features, w, estimate):
    """Fill estimate (n,) with Phi w, for features Phi (n, d)."""
    for s in range(len(estimate)):
        total = 0.0
        for j in range(len(w)):
            total += features[s, j] * w[j]
        estimate[s] = total


@kernel(noalias=True)
def read_out_adjoint(features, e, f):
    """Fill f (d,) with Phi' e, for features Phi (n, d)."""
    for j in range(len(f)):
        f[j] = 0.0
    for s in range(len(e)):
        for j in range(len(f)):
            f[j] += features[s, j] * e[s]


@kernel(noalias=True)
def batch_errors(n, estimate, visits, sums, bootstrap, e):
    """Fill e (n,) with -(sums + bootstrap V - visits V) / b, for estimates V, as in ``ictd.algorithms``.

    The sign is minus because Adam descends, and the update ascends along (1/b) sum_t delta_t grad TF_L(S_t).
    """
    states = len(n)
    batch = 0.0
    for s in range(states):
        batch += visits[s]
        target = sums[s]
        for j in range(states):
            target += bootstrap[s, j] * estimate[j]
        e[s] = target - visits[s] * estimate[s]
    for s in range(states):
        e[s] /= -batch


@kernel(noalias=True)
def clip_gradient(gradient, largest):
    """Scale a gradient in place to a norm of ``largest``, if its norm is larger."""
    total = 0.0
    for i in range(gradient.shape[0]):
        total += gradient[i] * gradient[i]
    if total > largest * largest:
        factor = largest / np.sqrt(total)
        for i in range(gradient.shape[0]):
            gradient[i] *= factor


@kernel(noalias=True)
def adam(parameter, gradient, mean, square, learning_rate, steps):
    """Make one step of Adam in place, on flat arrays, with one division per entry; ``steps`` counts steps from 1."""
    root = np.sqrt(1.0 - BETA_2**steps)
    rate, epsilon = learning_rate * root / (1.0 - BETA_1**steps), EPSILON * root
    for i in range(parameter.shape[0]):
        mean[i] += (1.0 - BETA_1) * (gradient[i] - mean[i])
        square[i] = BETA_2 * square[i] + (1.0 - BETA_2) * gradient[i] * gradient[i]
        parameter[i] -= rate * mean[i] / (np.sqrt(square[i]) + epsilon)


@kernel(noalias=True)
def train_block(
    n, d, k, transition, M, c, features, reward, visits, sums, bootstrap, depth, discount, scale, learning_rate, clip,
    parameter, mean, square, steps, estimates,
):  # fmt: skip
    """Make one update for each of N tasks; parameter, mean and square (2d + 4d^2,) change in place.

    Enumerated prompts have k = n columns, of tasks with ``transition`` (N, n, n) and one-hot features; ``scale`` is
    1/n, or 1 if attention is not divided by the context length.  For other prompts ``transition`` is None and k is 2d.
    They have c (N, 2d), and M (N, 2d+1, 2d+1), which is G: its last row and column are not read.  ``features`` are
    (N, n, d), or None for one-hot features.  ``clip`` is None for no limit.  The compiler knows d, k and which
    arguments are None.

    Stops at a task whose estimates are not finite, before its update, and returns the number of updates made.
    """
    tasks, states, dimension, width = len(reward), len(n), len(d), len(k)
    wide = 2 * dimension
    u, A = parameter[:wide], parameter[wide:].reshape(wide, wide)
    gradient = np.empty(len(parameter))
    du, dA = gradient[:wide], gradient[wide:].reshape(wide, wide)
    Y, Yt = np.empty((states, states)), np.empty((states, states))
    AX = np.empty((wide, dimension))
    T, dT, across = np.empty((width, width)), np.empty((width, width)), np.empty((width, width))
    R, h, following = np.empty((width, dimension)), np.empty((depth, width)), np.empty((depth, width))
    row, g, q, lam = np.empty(width), np.empty(width), np.empty(width), np.empty(width)
    e, readout_w, readout_e = np.empty(states), np.empty(dimension), np.empty(dimension)
    for i in range(tasks):
        # The compiler leaves out a branch only if its argument is None, so there is no else.
        if transition is not None:
            for s in range(states):
                for j in range(states):
                    Yt[s, j] = Y[j, s] = discount * transition[i, s, j]
            collapse(n, u, A, Y, Yt, reward[i], scale, AX, T, R, h[0])
        if M is not None:
            collapse_gram(d, u, A, M[i], c[i], T, R, h[0])
        sweep_forward(k, T, h, row, g)
        estimate = estimates[i]
        w = estimate if features is None else readout_w
        for s in range(dimension):
            total = 0.0
            for j in range(width):
                total -= g[j] * R[j, s]
            w[s] = total
        if features is not None:
            read_out(features[i], w, estimate)
        for s in range(states):
            if not np.isfinite(estimate[s]):
                return i
        batch_errors(n, estimate, visits[i], sums[i], bootstrap[i], e)
        f = e if features is None else readout_e
        if features is not None:
            read_out_adjoint(features[i], e, f)
        for j in range(width):
            q[j] = 0.0
            for s in range(dimension):
                q[j] += R[j, s] * f[s]
        sweep_adjoint(k, T, h, q, lam, following, across, dT)
        if transition is not None:
            expand(n, lam, dT, g, e, Y, Yt, scale, du, dA)
        if M is not None:
            expand_gram(d, lam, dT, g, f, M[i], du, dA)
        if clip is not None:
            clip_gradient(gradient, clip)
        steps += 1
        adam(parameter, gradient, mean, square, learning_rate, steps)
    return tasks


class Engine:
    """Training state of the compiled engine: parameters and Adam's moments, which updates change in place.

    Parameters
    ----------
    weights : Weights of d features, u (2d,) and A (2d, 2d)
    depth : int, number of layers L
    discount : float, gamma
    learning_rate : float, Adam's alpha
    scaled : bool
        Whether attention is divided by the context length; prompts given by G have it in G.
    clip : float
        Largest norm of a gradient; longer ones are shortened to it.  0 means no limit.
    """

    def __init__(
        self,
        weights: Weights,
        depth: int,
        discount: float,
        learning_rate: float,
        scaled: bool = True,
        clip: float = 0.0,
    ):
        self.dimension = weights.dimension
        self.parameter = np.concatenate([weights.u, weights.A.ravel()])
        self.mean = np.zeros_like(self.parameter)
        self.square = np.zeros_like(self.parameter)
        self.steps = 0
        self.scale = 1 / weights.dimension if scaled else 1.0
        self.depth = depth
        self.discount = float(discount)
        self.learning_rate = float(learning_rate)
        self.clip = float(clip) or None

    def train(
        self, reward: np.ndarray, targets: Targets, prompts: np.ndarray, queries: np.ndarray | None = None
    ) -> tuple[np.ndarray, int]:
        """Make one update for each task, in order, until an estimate is not finite.

        Parameters
        ----------
        reward : (N, n) array
        targets : Targets of N tasks, of an algorithm
        prompts : (N, n, n) array of transitions, for enumerated prompts with one-hot features, or (N, 2d+1, 2d+1)
            array, ``Context.gram_matrix`` of N contexts
        queries : (N, n, d) array, optional
            Features of the query states; one-hot by default.

        Returns
        -------
        estimates : (N, n) array
            Estimates just before each update; NaN for tasks that were not reached.
        updates : int, number of updates made
        """
        estimates = np.full_like(reward, np.nan)
        batch = reward, targets.visits, targets.sums, targets.bootstrap
        updates = self.train_block(prompts, queries, batch, estimates)
        self.steps += updates
        return estimates, updates

    def train_block(
        self, prompts: np.ndarray, queries: np.ndarray | None, batch: tuple[np.ndarray, ...], estimates: np.ndarray
    ) -> int:
        """Run the kernel on all tasks, fill their estimates, and return the number of updates made."""
        if estimates.shape[1] > LONGEST or 2 * self.dimension > LONGEST:
            raise ValueError(
                f"tasks have {estimates.shape[1]} states and {self.dimension} features; pretraining takes at most"
                f" {LONGEST} states and {LONGEST // 2} features, so give TaskDistribution fewer (features=4)."
            )
        n, d = size(estimates.shape[1]), size(self.dimension)
        transition, M, c, features, k = prompts, None, None, None, d
        if prompts.shape[-1] == 2 * len(d) + 1:
            transition, M, c, k = None, prompts, np.ascontiguousarray(prompts[:, -1, :-1]), d + d
        if queries is not None:
            features = np.ascontiguousarray(queries)
        return train_block(
            n, d, k, transition, M, c, features, *batch, self.depth, self.discount, self.scale, self.learning_rate,
            self.clip, self.parameter, self.mean, self.square, self.steps, estimates,
        )  # fmt: skip

    def weights(self) -> Weights:
        """A copy of the parameters."""
        d = self.dimension
        u, A = np.split(self.parameter, [2 * d])
        return Weights(u, A.reshape(2 * d, 2 * d))


def compiled_estimates(weights: Weights, G: np.ndarray, depth: int) -> np.ndarray:
    """Compute w with TF_L(s) = w phi(s) for S Transformers, each on contexts of its own.

    The formula is that of ``ictd.transformer.estimates``.

    Parameters
    ----------
    weights : Weights, u (S, 2d) and A (S, 2d, 2d)
    G : (S K, 2d+1, 2d+1) array, of S K contexts, those of each Transformer after one another
    depth : int, number of layers L

    Returns
    -------
    w : (S K, d) array
    """
    d = size(weights.dimension)
    estimates = np.empty((len(G), weights.dimension))
    c = np.ascontiguousarray(G[:, -1, :-1])
    estimates_block(d, d + d, weights.u, weights.A, G, c, depth, estimates)
    return estimates
