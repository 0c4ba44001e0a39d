"""Errors and exact gradients of the looped Transformer on prompts of any number of columns.

TF_L depends on a context only through its averages M and c (``Context.gram_matrix``).  For X (2n, k) and y (k,) with

    M = X X',    c = X y,

TF_L is the same as on a prompt of the k columns of X with rewards y, if attention is not divided by a length.  An
enumerated prompt of n states needs k = n columns, and a context of any length needs at most 2n - 1.  Let w be a factor
of the output, the ``gain``, which is 1 in the paper.  Then

    h_0 = u X + y,    T = I + X' A X,    R = X' A[:, :n],    TF_L(s) = -w g R[:, s],

where g = h_0 + ... + h_{L-1}, as in ``ictd.engine``.  For state weights e (n,) and q = w R e, the backward sweep of
``ictd.engine`` gives lam and dT, and the gradient of sum_s e_s TF_L(s) is

    du = -X lam,    dA = -X (dT X' + w [g' e', 0]),    dw = -g R e.

Second derivatives are first those for h_0, T and R, whose entries form an array (k, 1 + k + n) with the columns
[h_0', T, R].  With S_l = I + T + ... + T^l and mu_l = S_l R e, the second derivatives of g R e are

    h_0[i], R_js:  S_{L-1}[i, j] e_s,                   T_ij, R_ms:  sum_l h_l[i] S_{L-2-l}[j, m] e_s,
    h_0[m], T_ij:  sum_l T^l[m, i] mu_{L-2-l}[j],       T_ij, T_mq:  sum_abc h_a[i] T^b[j, m] mu_c[q] + ...,

over all a + b + c = L - 3, where the dots stand for the same sum with the two entries of T exchanged.  The Hessian of
the mean of mu e^2 with errors e is the mean of 2 mu (grad e grad e' + e hess e).

Parameters are vectors (2n + 4n^2 + 1,) of u, the rows of A, and w.  Kernels take n and k as a ``kernels.size``.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ictd.engine import adam, clip_gradient, sweep_adjoint, sweep_forward
from ictd.kernels import kernel
from ictd.mrp import Tasks, value_function
from ictd.prompt import enumerated_columns
from ictd.small_matrices import multiply, transpose
from ictd.transformer import Weights

# Eigenvalues of M below this share of the greatest eigenvalue are zero up to rounding.
RANK_TOLERANCE = 1e-12


@dataclass(frozen=True)
class Prompts:
    """N prompts of k columns, with the values to estimate and the weights of their errors.

    ``prompts[a:b]`` selects prompts.

    Parameters
    ----------
    X : (N, 2n, k) array, upper rows of the columns
    y : (N, k) array, rewards of the columns
    target : (N, n) array, values to estimate
    weight : (N, n) array
        Weights of the squared errors, the stationary distribution mu for the MSVE.
    """

    X: np.ndarray
    y: np.ndarray
    target: np.ndarray
    weight: np.ndarray

    def __len__(self) -> int:
        return len(self.y)

    def __getitem__(self, index: slice) -> "Prompts":
        return Prompts(*(np.ascontiguousarray(array[index]) for array in vars(self).values()))


def enumerated_prompts(tasks: Tasks, discount: float) -> Prompts:
    """Enumerated prompts of tasks, eq. (Z0 redef), with attention divided by n.

    Parameters
    ----------
    tasks : Tasks, N of them with n states
    discount : float, gamma

    Returns
    -------
    Prompts with X (N, 2n, n) and y (N, n), both divided by the square root of n
    """
    root = np.sqrt(tasks.states)
    X = enumerated_columns(tasks.transition, tasks.reward, discount)[:, :-1]
    value = value_function(tasks.transition, tasks.reward, discount)
    return Prompts(np.ascontiguousarray(X / root), tasks.reward / root, value, tasks.stationary)


def sampled_prompts(G: np.ndarray, target: np.ndarray, weight: np.ndarray) -> Prompts:
    """Make prompts of 2n - 1 columns with the averages of given contexts.

    Parameters
    ----------
    G : (N, 2n+1, 2n+1) array, ``Context.gram_matrix`` of N contexts
        The rank of M is at most 2n - 1, because all columns are orthogonal to one direction (``ictd.weight_measures``).
    target, weight : (N, n) arrays of ``Prompts``

    Returns
    -------
    Prompts with X (N, 2n, 2n-1) and y (N, 2n-1)
    """
    eigenvalues, eigenvectors = np.linalg.eigh(G[:, :-1, :-1])
    eigenvalues = eigenvalues[..., 1:]
    eigenvectors = eigenvectors[..., 1:]
    nonzero = eigenvalues > RANK_TOLERANCE * eigenvalues[:, -1:]
    roots = np.sqrt(np.where(nonzero, eigenvalues, 0.0))
    X = np.ascontiguousarray(eigenvectors * roots[:, None])
    y = np.vecmat(G[:, -1, :-1], eigenvectors) / np.where(nonzero, roots, np.inf)
    return Prompts(X, y, target, weight)


def parameters_of(weights: Weights) -> np.ndarray:
    """Parameters (2n + 4n^2 + 1,) of weights: u, the rows of A, and a gain of one."""
    return np.concatenate([weights.u, weights.A.ravel(), [1.0]])


def weights_of(parameters: np.ndarray, states: int) -> Weights:
    """Weights u (..., 2n) and A (..., 2n, 2n) of parameters (..., 2n + 4n^2 + 1), without the gain."""
    wide = 2 * states
    A = parameters[..., wide:-1].reshape(*parameters.shape[:-1], wide, wide)
    return Weights(parameters[..., :wide], A)


class ForwardArrays(NamedTuple):
    """Arrays of one prompt of k columns that ``forward`` fills.

    Parameters
    ----------
    AX : (2n, k) array, A X
    T : (k, k) array, I + X' A X
    R : (k, n) array, X' A[:, :n]
    h : (L, k) array, h_0, ..., h_{L-1}
    row : (k,) array, scratch of ``sweep_forward``
    g : (k,) array, the sum of the rows of h
    """

    AX: np.ndarray
    T: np.ndarray
    R: np.ndarray
    h: np.ndarray
    row: np.ndarray
    g: np.ndarray


@kernel
def forward_arrays(n, k, depth):
    """Allocate ``ForwardArrays``."""
    states, width = len(n), len(k)
    return ForwardArrays(
        AX=np.empty((2 * states, width)),
        T=np.empty((width, width)),
        R=np.empty((width, states)),
        h=np.empty((depth, width)),
        row=np.empty(width),
        g=np.empty(width),
    )


class BackwardArrays(NamedTuple):
    """Arrays of one prompt of k columns that ``backward`` fills.

    Parameters
    ----------
    q : (k,) array, w R e
    lam : (k,) array, minus the derivative for h_0
    dT : (k, k) array, minus the derivative for T
    D : (k, 2n) array, dT X' + w [g' e', 0]
    following : (L, k) array, scratch of ``sweep_adjoint``
    across : (k, k) array, scratch of ``sweep_adjoint``
    """

    q: np.ndarray
    lam: np.ndarray
    dT: np.ndarray
    D: np.ndarray
    following: np.ndarray
    across: np.ndarray


@kernel
def backward_arrays(n, k, depth):
    """Allocate ``BackwardArrays``."""
    wide, width = 2 * len(n), len(k)
    return BackwardArrays(
        q=np.empty(width),
        lam=np.empty(width),
        dT=np.empty((width, width)),
        D=np.empty((width, wide)),
        following=np.empty((depth, width)),
        across=np.empty((width, width)),
    )


@kernel(noalias=True)
def times_columns(n, k, left, X, product):
    """Fill ``product`` with left @ X.  In an enumerated prompt, with k = n, the upper half of X is diagonal."""
    if len(k) != len(n):
        multiply(n + n, k, left, X, product)
        return
    for i in range(product.shape[0]):
        for s in range(len(n)):
            total = left[i, s] * X[s, s]
            for j in range(len(n), 2 * len(n)):
                total += left[i, j] * X[j, s]
            product[i, s] = total


@kernel(noalias=True)
def columns_times(n, k, columns, X, right, product):
    """Fill ``product`` with X @ right, as in ``times_columns``."""
    if len(k) != len(n):
        multiply(k, columns, X, right, product)
        return
    for i in range(len(n)):
        for s in range(len(columns)):
            product[i, s] = X[i, i] * right[i, s]
    multiply(n, columns, X[len(n) :], right, product[len(n) :])


@kernel(noalias=True)
def forward(n, k, parameter, X, y, arrays, estimate):
    """Fill the estimates TF_L (n,) of one prompt, and its ``ForwardArrays``."""
    AX, T, R, h, row, g = arrays
    wide = 2 * len(n)
    A = parameter[wide:-1].reshape(wide, wide)
    times_columns(n, k, A, X, AX)
    times_columns(n, k, AX.T, X, T.T)
    times_columns(n, k, A[:, : len(n)].T, X, R.T)
    times_columns(n, k, parameter[None, :wide], X, h[:1])
    for s in range(len(k)):
        T[s, s] += 1.0
        h[0, s] += y[s]
    sweep_forward(k, T, h, row, g)
    multiply(k, n, g[None, :], R, estimate[None, :])
    for s in range(len(n)):
        estimate[s] *= -parameter[-1]


@kernel(noalias=True)
def backward(n, k, gain, X, arrays, scratch, e, gradient):
    """Fill ``gradient`` (2n + 4n^2 + 1,) with the gradient of sum_s e_s TF_L(s).

    ``arrays`` are the ``ForwardArrays`` that ``forward`` has filled, and ``scratch`` are ``BackwardArrays``.
    """
    single = (0,)  # The size 1.
    g = arrays.g
    q, lam, dT, D, following, across = scratch
    wide = 2 * len(n)
    multiply(n, single, arrays.R, e[:, None], q[:, None])
    gradient[-1] = 0.0
    for s in range(len(k)):
        gradient[-1] -= g[s] * q[s]
        q[s] *= gain
    sweep_adjoint(k, arrays.T, arrays.h, q, lam, following, across, dT)
    columns_times(n, k, k, X, dT.T, D.T)
    for i in range(len(k)):
        for s in range(len(n)):
            D[i, s] += gain * g[i] * e[s]
    columns_times(n, k, single, X, lam[:, None], gradient[:wide, None])
    columns_times(n, k, n + n, X, D, gradient[wide:-1].reshape(wide, wide))
    for j in range(wide + wide * wide):
        gradient[j] = -gradient[j]


@kernel(noalias=True)
def msve_and_gradient(n, k, X, y, target, weight, parameter, depth, estimates, gradient):
    """Fill the estimates (N, n) and the gradient of the mean MSVE over N prompts, and return the mean MSVE.

    The kernel stops at a prompt whose error is not finite, and returns infinity.
    """
    states, tasks, gain = len(n), len(y), parameter[-1]
    arrays, scratch = forward_arrays(n, k, depth), backward_arrays(n, k, depth)
    e, task_gradient = np.empty(states), np.empty_like(parameter)
    loss = 0.0
    gradient[:] = 0.0
    for i in range(tasks):
        forward(n, k, parameter, X[i], y[i], arrays, estimates[i])
        for s in range(states):
            error = estimates[i, s] - target[i, s]
            loss += weight[i, s] * error * error
            e[s] = 2.0 * weight[i, s] * error
        if not np.isfinite(loss):
            return np.inf
        backward(n, k, gain, X[i], arrays, scratch, e, task_gradient)
        for j in range(len(parameter)):
            gradient[j] += task_gradient[j] / tasks
    return loss / tasks


@kernel(noalias=True)
def estimates_and_jacobian(n, k, X, y, weight, parameter, depth, estimates, jacobian):
    """Fill the estimates (N, n) on N prompts, and the derivatives (N, n, 2n + 4n^2 + 1) of sqrt(mu) TF_L."""
    states, gain = len(n), parameter[-1]
    arrays, scratch = forward_arrays(n, k, depth), backward_arrays(n, k, depth)
    e = np.empty(states)
    for i in range(len(y)):
        forward(n, k, parameter, X[i], y[i], arrays, estimates[i])
        for s in range(states):
            e[:] = 0.0
            e[s] = np.sqrt(weight[i, s])
            backward(n, k, gain, X[i], arrays, scratch, e, jacobian[i, s])


@kernel(noalias=True)
def add_columns_times(X, right, product):
    """Add X @ right to ``product``.  Zeros of X, which are most entries in enumerated prompts, are skipped."""
    for i in range(X.shape[0]):
        for j in range(X.shape[1]):
            if X[i, j] != 0.0:
                for s in range(right.shape[1]):
                    product[i, s] += X[i, j] * right[j, s]


@kernel(noalias=True)
def chain_rule(X, derivatives, rows, product):
    """Fill derivatives for u and A, ``product`` (2n, 1 + 2n, .) with the columns [u', A], from those for [h_0', T, R].

    ``derivatives`` is (k, 1 + k + n, .), and ``rows`` (k, 1 + 2n, .) is scratch.
    """
    wide, width = X.shape
    rows[:] = 0.0
    product[:] = 0.0
    for i in range(width):
        for j in range(rows.shape[2]):
            rows[i, 0, j] = derivatives[i, 0, j]
            for s in range(wide // 2):
                rows[i, 1 + s, j] = derivatives[i, 1 + width + s, j]
        add_columns_times(X, derivatives[i, 1:], rows[i, 1:])
    add_columns_times(X, rows.reshape(width, -1), product.reshape(wide, -1))


class HessianArrays(NamedTuple):
    """Arrays of one prompt of k columns that ``collapsed_hessian`` fills.

    Parameters
    ----------
    powers : (L, k, k) array, T^l
    S : (L, k, k) array, S_l
    mu : (L, k) array, mu_l
    ends : (k, k) array, the sum of h_a[i] mu_c[q] over a + c = l
    before : (k, k) array, the same for l - 1
    T_to_g : (k, k, k) array, the derivatives of g for T
    gradients : (n, k (1 + k + n)) array, the derivatives of TF_L for [h_0', T, R]
    half : (k, 1 + k + n, k, 1 + k + n) array, half of the Hessian of g R e
    """

    powers: np.ndarray
    S: np.ndarray
    mu: np.ndarray
    ends: np.ndarray
    before: np.ndarray
    T_to_g: np.ndarray
    gradients: np.ndarray
    half: np.ndarray


@kernel
def hessian_arrays(n, k, depth):
    """Allocate ``HessianArrays``."""
    states, width = len(n), len(k)
    columns = 1 + width + states
    return HessianArrays(
        powers=np.empty((depth, width, width)),
        S=np.empty((depth, width, width)),
        mu=np.empty((depth, width)),
        ends=np.empty((width, width)),
        before=np.empty((width, width)),
        T_to_g=np.empty((width, width, width)),
        gradients=np.empty((states, width * columns)),
        half=np.empty((width, columns, width, columns)),
    )


@kernel(noalias=True)
def collapsed_hessian(gain, weight, e, arrays, scratch, hessian):
    """Fill the Hessian, (k (1 + k + n)) squared, of sum_s weight_s error_s^2 for [h_0', T, R].

    ``e`` is 2 weight error, ``arrays`` are the ``ForwardArrays`` that ``forward`` has filled, and ``scratch`` are
    ``HessianArrays``.
    """
    T, R, h, g = arrays.T, arrays.R, arrays.h, arrays.g
    powers, S, mu, ends, before = scratch.powers, scratch.S, scratch.mu, scratch.ends, scratch.before
    T_to_g, gradients, half = scratch.T_to_g, scratch.gradients, scratch.half
    depth, (width, states) = len(h), R.shape
    first_of_R = 1 + width
    powers[:] = 0.0
    for layer in range(depth):
        if layer > 0:
            add_columns_times(powers[layer - 1], T, powers[layer])
        for i in range(width):
            if layer == 0:
                powers[0, i, i] = 1.0
            mu[layer, i] = 0.0
            for j in range(width):
                S[layer, i, j] = powers[layer, i, j]
                if layer > 0:
                    S[layer, i, j] += S[layer - 1, i, j]
                for s in range(states):
                    mu[layer, i] += S[layer, i, j] * R[j, s] * e[s]

    half[:] = 0.0
    T_to_g[:] = 0.0
    ends[:] = 0.0
    for layer in range(depth - 1):
        rest = depth - 2 - layer
        for i in range(width):
            for j in range(width):
                for m in range(width):
                    T_to_g[i, j, m] += h[layer, i] * S[rest, j, m]
                    half[m, 0, i, 1 + j] += powers[layer, m, i] * mu[rest, j]
    for layer in range(depth - 2):
        for i in range(width):
            for q in range(width):
                before[i, q] = ends[i, q]
                ends[i, q] = h[0, i] * mu[layer, q]
        add_columns_times(T.T, before, ends)
        for i in range(width):
            for j in range(width):
                for m in range(width):
                    for q in range(width):
                        half[i, 1 + j, m, 1 + q] += ends[i, q] * powers[depth - 3 - layer, j, m]

    gradients[:] = 0.0
    for s in range(states):
        for i in range(width):
            first = i * half.shape[1]
            gradients[s, first + first_of_R + s] = -gain * g[i]
            for m in range(width):
                half[i, 0, m, first_of_R + s] = S[depth - 1, i, m] * e[s]
                gradients[s, first] -= gain * S[depth - 1, i, m] * R[m, s]
                for j in range(width):
                    half[i, 1 + j, m, first_of_R + s] = T_to_g[i, j, m] * e[s]
                    gradients[s, first + 1 + j] -= gain * T_to_g[i, j, m] * R[m, s]
    half_rows = half.reshape(hessian.shape)
    for i in range(len(hessian)):
        for j in range(len(hessian)):
            hessian[i, j] = -gain * (half_rows[i, j] + half_rows[j, i])
        for s in range(states):
            factor = 2.0 * weight[s] * gradients[s, i]
            for j in range(len(hessian)):
                hessian[i, j] += factor * gradients[s, j]


@kernel(noalias=True)
def add_hessian(n, k, X, y, target, weight, parameter, depth, hessian):
    """Add the Hessian of the sum of the MSVE over N prompts to ``hessian``.

    ``hessian`` is (2n (1 + 2n)) squared, for the columns [u', A].  The gain is held constant.
    """
    states, width, tasks, gain = len(n), len(k), len(y), parameter[-1]
    before, after = 1 + width + states, 1 + 2 * states
    arrays, scratch = forward_arrays(n, k, depth), hessian_arrays(n, k, depth)
    e, estimate = np.empty(states), np.empty(states)
    collapsed = np.empty((width * before, width * before))
    rows = np.empty((width, after, width * before))
    product = np.empty((2 * states, after, width * before))
    across = np.empty((width * before, len(hessian)))
    across_rows = np.empty((width, after, len(hessian)))
    of_task = np.empty((2 * states, after, len(hessian)))
    for i in range(tasks):
        forward(n, k, parameter, X[i], y[i], arrays, estimate)
        for s in range(states):
            e[s] = 2.0 * weight[i, s] * (estimate[s] - target[i, s])
        collapsed_hessian(gain, weight[i], e, arrays, scratch, collapsed)
        chain_rule(X[i], collapsed.reshape(width, before, -1), rows, product)
        transpose(product.reshape(len(hessian), -1), across)
        chain_rule(X[i], across.reshape(width, before, -1), across_rows, of_task)
        of_task_rows = of_task.reshape(hessian.shape)
        for j in range(len(hessian)):
            for m in range(len(hessian)):
                hessian[j, m] += of_task_rows[j, m]


@kernel(noalias=True)
def project_on_family(n, parameter):
    """Replace A by the nearest matrix K [-I, I], and u by zero, in place."""
    states, wide = len(n), 2 * len(n)
    A = parameter[wide:-1].reshape(wide, wide)
    parameter[:wide] = 0.0
    A[:, states:] = (A[:, states:] - A[:, :states]) / 2.0
    A[:, :states] = -A[:, states:]


@kernel(noalias=True)
def train_block(
    n, k, X, y, transition, reward, target, weight, shares, bootstrap, depth, discount, learning_rate, clip, in_family,
    train_gain, parameter, mean, square, steps,
):  # fmt: skip
    """Make one expected update for each of N prompts, in place.

    parameter, mean and square (heads, 2n + 4n^2 + 1) are the parameters of the heads and the moments of Adam.  A prompt
    is evaluated with the sum of the heads, weighted by its ``shares`` (N, heads).  The update descends along
    sum_s e_s grad TF_L(s) with

        e = mu (TF_L - r - gamma p TF_L)  with ``bootstrap`` (TD),    e = mu (TF_L - v)  without (MC),

    by Adam, after clipping to the norm ``clip`` if it is not None.  ``in_family`` projects the first head on the
    family K [-I, I], u = 0, after each update.  Without ``train_gain`` the gain keeps its value.

    The kernel stops at a prompt whose estimates are not finite, before its update, and returns the number of updates.
    """
    states, tasks = len(n), len(y)
    arrays, scratch = forward_arrays(n, k, depth), backward_arrays(n, k, depth)
    e, estimate = np.empty(states), np.empty(states)
    heads, parameters = parameter.shape
    gradient, sum_gradient, weighted_sum = np.empty_like(parameter), np.empty(parameters), np.empty(parameters)
    for i in range(tasks):
        # Loops, because array expressions allocate memory for each prompt, which takes longer than the sweeps.
        weighted_sum[:] = 0.0
        for head in range(heads):
            for j in range(parameters):
                weighted_sum[j] += shares[i, head] * parameter[head, j]
        forward(n, k, weighted_sum, X[i], y[i], arrays, estimate)
        for s in range(states):
            wanted = target[i, s]
            if bootstrap:
                wanted = reward[i, s]
                for j in range(states):
                    wanted += discount * transition[i, s, j] * estimate[j]
            e[s] = weight[i, s] * (estimate[s] - wanted)
        if not np.isfinite(np.sum(e)):
            return i
        backward(n, k, weighted_sum[-1], X[i], arrays, scratch, e, sum_gradient)
        if not train_gain:
            sum_gradient[-1] = 0.0
        for head in range(heads):
            for j in range(parameters):
                gradient[head, j] = shares[i, head] * sum_gradient[j]
        if clip is not None:
            clip_gradient(gradient.ravel(), clip)
        adam(parameter.ravel(), gradient.ravel(), mean.ravel(), square.ravel(), learning_rate, steps + i + 1)
        if in_family:
            project_on_family(n, parameter[0])
    return tasks
