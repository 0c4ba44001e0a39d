"""Newton's method in decimal arithmetic, for minimisers whose MSVE is below the resolution of float64.

The mean MSVE of N enumerated prompts is a function of u and A.  With a = [-gamma 1; 1], adding a z' to A, or a multiple
of a' to u, changes no output (``ictd.weight_measures``).  So the last row of A and the last entry of u are fixed at
zero, and the coordinates are the other entries: the first 2n - 1 entries of u, then the first 2n - 1 rows of A.

Numbers are those of Python's ``decimal`` in arrays of objects.  The active context determines their precision.
"""

from decimal import Decimal
from typing import NamedTuple

import numpy as np

from ictd.mrp import Tasks
from ictd.theory.decimals import exact, exact_values
from ictd.transformer import Weights
from ictd.weight_measures import unidentifiable_direction

# The first damping, relative to the largest diagonal entry of the Hessian, and the factor by which it changes.
FIRST_DAMPING = Decimal("1e-18")
FACTOR = 10
# Number of dampings that a step tries.
TRIES = 30


class DecimalMsve:
    """The mean MSVE of TF_L on the enumerated prompts of N tasks, with attention divided by n.

    Parameters
    ----------
    tasks : Tasks
        N tasks of n states, whose float64 numbers are taken as exact.
    discount : float, gamma
    depth : int, number of layers L
    """

    def __init__(self, tasks: Tasks, discount: float, depth: int):
        self.depth = depth
        self.states = tasks.states
        self.identity = exact(np.eye(self.states))
        gamma = Decimal(discount)
        p = exact(tasks.transition)
        upper = np.broadcast_to(self.identity, p.shape)
        self.X = np.concatenate([upper, gamma * p.swapaxes(1, 2)], axis=1)  # (N, 2n, n)
        self.reward = exact(tasks.reward)[:, None]  # (N, 1, n), as the next two arrays
        self.value = exact_values(gamma, p, exact(tasks.reward))[:, None]
        self.weight = exact(tasks.stationary)[:, None] / len(tasks)

    def value_and_gradient(self, z: np.ndarray) -> tuple[Decimal, np.ndarray]:
        """Compute the mean MSVE and its gradient (k,) at coordinates z (k,), by the sweeps of ``ictd.engine``."""
        n = self.states
        u, A = self._parameters(z)
        X, Xt = self.X, self.X.swapaxes(1, 2)
        XA = Xt @ A / n
        T = self.identity + XA @ X
        R = XA[:, :, :n]
        h = [u @ X + self.reward]
        for _ in range(self.depth - 1):
            h.append(h[-1] @ T)
        g = sum(h)
        error = -g @ R - self.value
        e = 2 * self.weight * error
        # The gradient of sum_s e_s TF_L(s), with e held constant.
        q = R @ e.swapaxes(1, 2)
        lam = q
        dT = 0 * T
        for layer in reversed(range(self.depth - 1)):
            dT = dT - (lam @ h[layer]).swapaxes(1, 2)
            lam = q + T @ lam
        D = dT @ Xt
        D[:, :, :n] -= (e.swapaxes(1, 2) @ g).swapaxes(1, 2)
        du = -(X @ lam)[:, :, 0].sum(axis=0)
        dA = (X @ D).sum(axis=0) / n
        return (self.weight * error**2).sum(), np.concatenate([du[:-1], dA[:-1].ravel()])

    def hessian(self, z: np.ndarray) -> np.ndarray:
        """Compute the Hessian (k, k) by the formulas of ``studies.limits.engine``."""
        n, L = self.states, self.depth
        u, A = self._parameters(z)
        X, Xt = self.X, self.X.swapaxes(1, 2)
        XA = Xt @ A / n
        T = self.identity + XA @ X
        R = XA[:, :, :n]
        zero = 0 * T
        powers = [zero + self.identity]
        S = [powers[0]]
        for _ in range(L - 1):
            powers.append(powers[-1] @ T)
            S.append(S[-1] + powers[-1])
        h_0 = u @ X + self.reward
        h = [(h_0 @ power)[:, 0] for power in powers]
        g = sum(h)
        error = -g[:, None] @ R - self.value
        e = (2 * self.weight * error)[:, 0]
        Re = np.matvec(R, e)
        mu = [np.matvec(S_l, Re) for S_l in S]

        # Sums over layers: from T_ij to g[k], from T_ij and h_0[k] to g R e, and from T_ij and T_kl to g R e.
        T_to_g, of_h_T = 2 * [np.zeros((len(T), n, n, n), dtype=object)]
        of_T_T = np.zeros((len(T), n, n, n, n), dtype=object)
        for layer in range(L - 1):
            rest = L - 2 - layer
            T_to_g = T_to_g + h[layer][:, :, None, None] * S[rest][:, None]
            of_h_T = of_h_T + powers[layer][..., None] * mu[rest][:, None, None]
        ends = zero  # The sum over a + c of h_a[i] mu_c[l].
        for layer in range(L - 2):
            ends = T.swapaxes(1, 2) @ ends + h[0][:, :, None] * mu[layer][:, None]
            of_T_T = of_T_T + ends[:, :, None, None] * powers[L - 3 - layer][:, None, :, :, None]

        # Hessian of sum_s e_s TF_L(s), with e held constant, over the columns [h_0', T, R].
        first, of_T, of_R = 0, slice(1, n + 1), slice(n + 1, None)
        half = np.zeros((len(T), n, 2 * n + 1, n, 2 * n + 1), dtype=object)
        half[:, :, first, :, of_T] = -of_h_T
        half[:, :, first, :, of_R] = -S[-1][..., None] * e[:, None, None]
        half[:, :, of_T, :, of_T] = -of_T_T
        half[:, :, of_T, :, of_R] = -T_to_g[..., None] * e[:, None, None, None]
        hessian = half + half.transpose(0, 3, 4, 1, 2)
        gradients = np.zeros((len(T), n, 2 * n + 1, n), dtype=object)
        gradients[:, :, first] = -S[-1] @ R
        gradients[:, :, of_T] = -T_to_g @ R[:, None]
        gradients[:, :, of_R] = -g[:, :, None, None] * self.identity
        gradients = gradients.reshape(len(T), -1, n)
        hessian = hessian.reshape(len(T), gradients.shape[1], -1)
        hessian = hessian + 2 * (gradients * self.weight) @ gradients.swapaxes(1, 2)
        return self._chain_rule(self._chain_rule(hessian).swapaxes(1, 2)).sum(axis=0)

    def _chain_rule(self, derivatives: np.ndarray) -> np.ndarray:
        """Derivatives (N, k, K) for coordinates of derivatives (N, n (1 + 2n), K) for the columns [h_0', T, R]."""
        n, tasks = self.states, len(derivatives)
        lower = self.X[:, n:]
        rows = derivatives.reshape(tasks, n, -1)
        rows = np.concatenate([rows, lower[:, :-1] @ rows], axis=1).reshape(tasks, 2 * n - 1, 2 * n + 1, -1)
        of_T, of_R = rows[:, :, 1 : n + 1], rows[:, :, n + 1 :]
        of_A = np.concatenate([of_T + of_R, lower[:, None] @ of_T], axis=2) / n
        return np.concatenate([rows[:, :, 0], of_A.reshape(tasks, -1, derivatives.shape[-1])], axis=1)

    def _parameters(self, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        wide = 2 * self.states
        zero = Decimal(0)
        u = np.append(z[: wide - 1], zero)[None]
        A = np.append(z[wide - 1 :], [zero] * wide).reshape(wide, wide)
        return u, A


def coordinates(weights: Weights, discount: float) -> np.ndarray:
    """Coordinates (k,) of weights of n states; k = 4n^2 - 1."""
    a = unidentifiable_direction(weights.dimension, discount)
    u = weights.u - weights.u[-1] * a
    A = weights.A - np.outer(a, weights.A[-1])
    return exact(np.concatenate([u[:-1], A[:-1].ravel()]))


def weights_of_coordinates(z: np.ndarray, states: int) -> Weights:
    """Weights, in float64, of coordinates (k,)."""
    wide = 2 * states
    z = z.astype(np.float64)
    return Weights(np.append(z[: wide - 1], 0.0), np.append(z[wide - 1 :], np.zeros(wide)).reshape(wide, wide))


def solve(matrix: np.ndarray, right: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Solve a symmetric system by the factorisation L D L' without pivoting.

    Parameters
    ----------
    matrix : (k, k) array of Decimal
    right : (k,) array of Decimal

    Returns
    -------
    solution : (k,) array
    D : (k,) array
        All entries are above zero if and only if the matrix is positive definite.
    """
    system = np.concatenate([matrix, right[:, None]], axis=1)
    k = len(matrix)
    for i in range(k):
        ratio = system[i + 1 :, i] / system[i, i]
        system[i + 1 :, i + 1 :] = system[i + 1 :, i + 1 :] - np.outer(ratio, system[i, i + 1 :])
    solution = system[:, -1].copy()
    for i in reversed(range(k)):
        solution[i] = solution[i] / system[i, i]
        solution[:i] = solution[:i] - system[:i, i] * solution[i]
    return solution, np.diag(system)


class DecimalMinimum(NamedTuple):
    """End of a descent: coordinates z (k,), the MSVE, the largest gradient entry, and whether it is a minimum.

    ``strict`` is true if the last step was a Newton step without damping, the Hessian was positive definite, and the
    step changed the MSVE by less than the tolerance.
    """

    z: np.ndarray
    msve: Decimal
    gradient: Decimal
    steps: int
    strict: bool


def minimise_in_decimals(objective: DecimalMsve, z: np.ndarray, tolerance: Decimal, most_steps: int) -> DecimalMinimum:
    """Minimise the mean MSVE by Newton's method with damping.

    A step solves (H + damping max(diag H) I) s = -f' with the Hessian H.  Dampings are tried in ascending order, zero
    first, until the matrix is positive definite and the step lowers f.

    Parameters
    ----------
    objective : DecimalMsve
    z : (k,) array of Decimal, starting point
    tolerance : Decimal
        Relative change of f at which a descent ends.
    most_steps : int
    """
    damping = FIRST_DAMPING
    value, gradient = objective.value_and_gradient(z)
    for step in range(1, most_steps + 1):
        hessian = objective.hessian(z)
        largest = np.diag(hessian).max()
        tried = [Decimal(0), *(damping * Decimal(FACTOR) ** power for power in range(-1, TRIES))]
        for damping_tried in tried:
            s, D = solve(hessian + damping_tried * largest * exact(np.eye(len(z))), -gradient)
            if D.min() <= 0:
                continue
            new_value, new_gradient = objective.value_and_gradient(z + s)
            if new_value < value:
                break
        else:
            return DecimalMinimum(z, value, abs(gradient).max(), step, False)
        change = (value - new_value) / value
        z, value, gradient = z + s, new_value, new_gradient
        if damping_tried > 0:
            damping = damping_tried
        elif change < tolerance:
            return DecimalMinimum(z, value, abs(gradient).max(), step, True)
    return DecimalMinimum(z, value, abs(gradient).max(), most_steps, False)
