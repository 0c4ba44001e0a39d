"""Compiled gradients for weights that depend on K numbers and for expected updates, and estimates for the best numbers.

Let A = sum_k theta_k B_k and u = 0.  An update is the same as in ``ictd.engine``, but by the chain rule, the derivative
with respect to theta_k is the sum of the products of the entries of B_k and of dA.  Adam acts on the K numbers.
"""

from typing import NamedTuple

import numpy as np

from ictd.engine import adam, batch_errors, collapse, expand, sweep_adjoint, sweep_forward
from ictd.kernels import kernel, size
from ictd.sampling import BatchStatistics
from ictd.small_matrices import add_product


class Scratch(NamedTuple):
    """Arrays that ``gradient`` fills for one task, in the notation of ``ictd.engine``; it allocates nothing.

    Parameters
    ----------
    Y : (n, n) array, gamma p', the lower half of X
    Yt : (n, n) array, Y'
    AX : (2n, n) array, A X
    T : (n, n) array, I + X'A X, with the scale of attention
    R : (n, n) array, the left half of X'A, with the scale of attention
    h : (L, n) array, h_0, ..., h_{L-1}
    row : (n,) array, scratch of ``sweep_forward``
    g : (n,) array, the sum of the rows of h
    e : (n,) array, the weights of the states in the gradient
    q : (n,) array, R e
    lam : (n,) array, lam_0
    following : (L, n) array, scratch of ``sweep_adjoint``
    across : (n, n) array, scratch of ``sweep_adjoint``
    dT : (n, n) array, minus the derivative for T
    """

    Y: np.ndarray
    Yt: np.ndarray
    AX: np.ndarray
    T: np.ndarray
    R: np.ndarray
    h: np.ndarray
    row: np.ndarray
    g: np.ndarray
    e: np.ndarray
    q: np.ndarray
    lam: np.ndarray
    following: np.ndarray
    across: np.ndarray
    dT: np.ndarray


@kernel
def scratch_arrays(n, depth):
    """Allocate the ``Scratch`` of n states and L layers."""
    states, wide = len(n), 2 * len(n)
    return Scratch(
        Y=np.empty((states, states)),
        Yt=np.empty((states, states)),
        AX=np.empty((wide, states)),
        T=np.empty((states, states)),
        R=np.empty((states, states)),
        h=np.empty((depth, states)),
        row=np.empty(states),
        g=np.empty(states),
        e=np.empty(states),
        q=np.empty(states),
        lam=np.empty(states),
        following=np.empty((depth, states)),
        across=np.empty((states, states)),
        dT=np.empty((states, states)),
    )


@kernel(noalias=True)
def gradient(
    n, u, A, transition, reward, visits, transitions, return_sums, bootstrap, discount, scale, scratch, estimate, du,
    dA,
):  # fmt: skip
    """Fill the gradient du (2n,) and dA (2n, 2n) of one task, and its estimates (n,), as ``ictd.engine.train_block``.

    ``scratch`` is a ``Scratch``.
    """
    states = len(n)
    Y, Yt, T, R = scratch.Y, scratch.Yt, scratch.T, scratch.R
    h, g, e, q = scratch.h, scratch.g, scratch.e, scratch.q
    lam, dT = scratch.lam, scratch.dT
    for s in range(states):
        for j in range(states):
            Yt[s, j] = Y[j, s] = discount * transition[s, j]
    collapse(n, u, A, Y, Yt, reward, scale, scratch.AX, T, R, h[0])
    sweep_forward(n, T, h, scratch.row, g)
    for s in range(states):
        total = 0.0
        for j in range(states):
            total -= g[j] * R[j, s]
        estimate[s] = total
    batch_errors(n, estimate, reward, visits, transitions, return_sums, bootstrap, discount, e)
    for j in range(states):
        q[j] = 0.0
        for s in range(states):
            q[j] += R[j, s] * e[s]
    sweep_adjoint(n, T, h, q, lam, scratch.following, scratch.across, dT)
    expand(n, lam, dT, g, e, Y, Yt, scale, du, dA)


@kernel(noalias=True)
def train_numbers(
    n, bases, transition, reward, visits, transitions, return_sums, bootstrap, depth, discount, scale, learning_rate,
    numbers, mean, square,
):  # fmt: skip
    """Make one update of numbers (K,) for each of N tasks, in place, from the first step of Adam on.

    Arguments are those of ``ictd.engine.train_block`` for enumerated prompts; ``bases`` is (K, 2n, 2n), and ``mean``
    and ``square`` (K,) are zero.  The kernel stops at a task whose estimates are not finite, and returns the number of
    updates.
    """
    tasks, states, wide = len(reward), len(n), 2 * len(n)
    u, A, du, dA = np.zeros(wide), np.empty((wide, wide)), np.empty(wide), np.empty((wide, wide))
    scratch, estimate = scratch_arrays(n, depth), np.empty(states)
    slope = np.empty_like(numbers)
    for task in range(tasks):
        for i in range(wide):
            for j in range(wide):
                A[i, j] = 0.0
                for k in range(len(numbers)):
                    A[i, j] += numbers[k] * bases[k, i, j]
        gradient(
            n, u, A, transition[task], reward[task], visits[task], transitions[task], return_sums[task], bootstrap,
            discount, scale, scratch, estimate, du, dA,
        )  # fmt: skip
        for s in range(states):
            if not np.isfinite(estimate[s]):
                return task
        for k in range(len(numbers)):
            slope[k] = 0.0
            for i in range(wide):
                for j in range(wide):
                    slope[k] += bases[k, i, j] * dA[i, j]
        adam(numbers, slope, mean, square, learning_rate, task + 1)
    return tasks


@kernel(noalias=True)
def gradient_moments(
    n, A, transition, reward, visits, transitions, return_sums, bootstrap, depth, discount, scale, mean, square
):
    """Fill the means over N tasks of the gradient dA (2n, 2n) and of the squares of its entries, at u = 0.

    Arguments are those of ``train_numbers``.
    """
    tasks, states, wide = len(reward), len(n), 2 * len(n)
    u, du, dA = np.zeros(wide), np.empty(wide), np.empty((wide, wide))
    scratch, estimate = scratch_arrays(n, depth), np.empty(states)
    for i in range(wide):
        for j in range(wide):
            mean[i, j] = square[i, j] = 0.0
    for task in range(tasks):
        gradient(
            n, u, A, transition[task], reward[task], visits[task], transitions[task], return_sums[task], bootstrap,
            discount, scale, scratch, estimate, du, dA,
        )  # fmt: skip
        for i in range(wide):
            for j in range(wide):
                mean[i, j] += dA[i, j] / tasks
                square[i, j] += dA[i, j] * dA[i, j] / tasks


@kernel(noalias=True)
def repeat_updates(terms, p, numbers, matrices, depth, y):
    """Fill y (1 + K, T, p) with y_L of T contexts and its derivatives with respect to K numbers theta.

    An update is y_{l+1} = y_l + [y_l, 1] sum_k theta_k U_k from y_0 = 0, with ``matrices`` U (T, K, p+1, p).
    """
    count, width = len(numbers), len(p)
    U, rows, change = np.empty((width + 1, width)), np.empty((1 + count, width + 1)), np.empty((1 + count, width))
    for t in range(y.shape[1]):
        own = matrices[t]
        U[:] = 0.0
        for k in range(count):
            U += numbers[k] * own[k]
        rows[:] = 0.0
        rows[0, width] = 1.0
        for _ in range(depth):
            change[:] = 0.0
            add_product(terms, p, rows, U, change)
            for k in range(count):
                add_product(terms, p, rows[:1], own[k], change[1 + k : 2 + k])
            for k in range(1 + count):
                for j in range(width):
                    rows[k, j] += change[k, j]
        y[:, t] = rows[:, :width]


def pretrain_numbers(
    start: np.ndarray,
    bases: np.ndarray,
    reward: np.ndarray,
    transition: np.ndarray,
    batches: BatchStatistics,
    algo: str,
    depth: int,
    discount: float,
    learning_rate: float,
    scaled: bool = True,
) -> np.ndarray:
    """Pretrain K numbers by Algorithm 1 or 2, with one update for each task.

    Parameters
    ----------
    start : (K,) array, initial numbers
    bases : (K, 2n, 2n) array
    reward : (N, n) array
    transition : (N, n, n) array
    batches : BatchStatistics of these N tasks
    algo : "td" (Algorithm 1) or "mc" (Algorithm 2)
    depth : int, number of layers L
    discount : float, gamma
    learning_rate : float, Adam's alpha
    scaled : bool
        Whether attention is divided by the context length n.

    Returns
    -------
    numbers : (K,) array, NaN after a divergence
    """
    numbers = np.array(start, dtype=float)
    states = reward.shape[-1]
    updates = train_numbers(
        size(states), bases, transition, reward, batches.visits, batches.transitions, batches.return_sums,
        algo == "td", depth, float(discount), 1 / states if scaled else 1.0, float(learning_rate), numbers,
        np.zeros_like(numbers), np.zeros_like(numbers),
    )  # fmt: skip
    return numbers if updates == len(reward) else np.full_like(numbers, np.nan)
