"""Minimisers of the mean MSVE on enumerated prompts, in a linear space of weights.

Let u = sum_k z_k u_k and A = sum_k z_k B_k.  On an enumerated prompt with columns [X; y], divided by sqrt(n),

    h_0 = u X + y,    T = I + X'A X,    R = X'A[:, :n],    TF_L(s) = -(h_0 + ... + h_{L-1}) R[:, s],

where h_{l+1} = h_l T (``ictd.engine``).  So h_0, T and R are linear in z.  For weights e (n,) of the states, let
lam_{L-1} = R e and lam_l = R e + T lam_{l+1}.  The gradient of sum_s e_s TF_L(s) is minus

    lam_0 for h_0,    sum_{l < L-1} h_l' lam_{l+1}' for T,    sum_l h_l' e' for R.
"""

from typing import NamedTuple

import numpy as np

from ictd.mrp import Tasks, value_function
from ictd.prompt import enumerated_columns
from ictd.transformer import Weights

# Damping of the first step, relative to the largest curvature, its least value, and the number of values a step tries.
FIRST_DAMPING, LEAST_DAMPING, TRIES = 1e-3, 1e-28, 25
# A step is slow if its relative decrease is below LITTLE.  A descent ends only after PATIENCE successive slow steps.
LITTLE, PATIENCE = 1e-3, 3
# Step of complex differentiation, which has no difference that rounding could spoil.
IMAGINARY = 1e-30


class MeanMsve:
    """The mean MSVE over tasks as a function of coordinates z (K,).

    Parameters
    ----------
    tasks : Tasks, N of them with n states
    discount : float, gamma
    depth : int, number of layers L
    directions : Weights, u (K, 2n) and A (K, 2n, 2n)
    """

    def __init__(self, tasks: Tasks, discount: float, depth: int, directions: Weights):
        n, size = tasks.states, len(tasks)
        self.depth = depth
        self.root = np.sqrt(tasks.stationary / size)
        self.value = value_function(tasks.transition, tasks.reward, discount)
        self.y = tasks.reward / np.sqrt(n)
        X = enumerated_columns(tasks.transition, tasks.reward, discount)[:, None, :-1] / np.sqrt(n)
        XA = X.mT @ directions.A  # (N, K, n, 2n)
        self.of_h = np.matvec(X.mT, directions.u)  # (N, K, n)
        self.of_T = (XA @ X).reshape(size, -1, n * n)
        self.of_R = XA[..., :n].reshape(size, -1, n * n)

    def residuals(self, z: np.ndarray) -> np.ndarray:
        """Compute sqrt(mu / N) times the error of each state, (N, n).  The sum of squares is the mean MSVE."""
        h, _, R = self._sweep(z)
        return self.root * (-np.matvec(R.mT, sum(h)) - self.value)

    def jacobian(self, z: np.ndarray) -> np.ndarray:
        """Compute the derivatives (N n, K) of the residuals."""
        weights = self.root[:, None] * np.eye(self.y.shape[1])
        return self._derivatives(z, weights).reshape(self.y.size, -1)

    def gradient(self, z: np.ndarray) -> np.ndarray:
        """Compute the gradient (K,) of the mean MSVE."""
        weights = 2 * self.root * self.residuals(z)
        return self._derivatives(z, weights[..., None]).sum(axis=(0, 1))

    def hessian(self, z: np.ndarray) -> np.ndarray:
        """Compute the Hessian (K, K) of the mean MSVE from the gradient at complex coordinates."""
        steps = z + 1j * IMAGINARY * np.eye(len(z))
        return np.array([self.gradient(step).imag / IMAGINARY for step in steps])

    def _sweep(self, z: np.ndarray) -> tuple[list[np.ndarray], np.ndarray, np.ndarray]:
        """Compute h_0, ..., h_{L-1} (N, n), T and R (N, n, n)."""
        size, n = self.y.shape
        T = np.eye(n) + (z @ self.of_T).reshape(size, n, n)
        R = (z @ self.of_R).reshape(size, n, n)
        h = [self.y + z @ self.of_h]
        for _ in range(self.depth - 1):
            h.append(np.matvec(T.mT, h[-1]))
        return h, T, R

    def _derivatives(self, z: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """Compute the derivatives (N, k, K) of sum_s e_s TF_L(s), for k columns e of weights (N, n, k)."""
        h, T, R = self._sweep(z)
        across = weights.mT[:, :, None]  # (N, k, 1, n)
        lam = of_last = R @ weights
        of_T = np.zeros((*across.shape[:2], *T.shape[1:]), dtype=lam.dtype)
        for row in h[-2::-1]:
            of_T += row[:, None, :, None] * lam.mT[:, :, None]
            lam = of_last + T @ lam
        of_R = sum(h)[:, None, :, None] * across
        flat = (*across.shape[:2], -1)
        return -(lam.mT @ self.of_h.mT + of_T.reshape(flat) @ self.of_T.mT + of_R.reshape(flat) @ self.of_R.mT)


class Minimum(NamedTuple):
    """End of a descent: coordinates z (K,), the mean MSVE, the norm of its gradient, and the number of steps."""

    z: np.ndarray
    msve: float
    gradient_norm: float
    steps: int


def descend(objective: MeanMsve, z: np.ndarray, tolerance: float, most_steps: int, least: float = 0.0) -> Minimum:
    """Minimise the mean MSVE by the Levenberg-Marquardt method.

    A step is -(J'J + damping s^2 I)^{-1} J'r with the residuals r, their Jacobian J and its largest singular value s.
    It is computed from the triangular factor of [J, r], because J'J would lose small singular values.

    Parameters
    ----------
    objective : MeanMsve
    z : (K,) array, starting point, with a finite MSVE
    tolerance : float
        Norm of the gradient at which a descent ends, after slow steps.
    most_steps : int
    least : float, MSVE at which a descent ends
    """
    r = objective.residuals(z).ravel()
    damping, slow = FIRST_DAMPING, 0
    for step in range(most_steps + 1):
        R = np.linalg.qr(np.column_stack([objective.jacobian(z), r]), mode="r")
        left, singular, axes = np.linalg.svd(R[:, :-1], full_matrices=False)
        slope = singular * (R[:, -1] @ left)
        norm = 2 * float(np.linalg.norm(slope))
        ended = norm < tolerance and slow >= PATIENCE
        if ended or r @ r < least or step == most_steps:
            break
        for _ in range(TRIES):
            trial = z - (slope / (singular**2 + damping * singular[0] ** 2)) @ axes
            with np.errstate(over="ignore", invalid="ignore"):
                trial_r = objective.residuals(trial).ravel()
                lower = trial_r @ trial_r < r @ r
            if lower:
                break
            damping = max(4 * damping, LEAST_DAMPING)
        else:
            break
        slow = slow + 1 if r @ r - trial_r @ trial_r < LITTLE * (r @ r) else 0
        z, r, damping = trial, trial_r, max(damping / 5, LEAST_DAMPING)
    return Minimum(z, float(r @ r), norm, step)
