"""Minimisers of the mean MSVE over fixed prompts: Levenberg and Marquardt's steps, finished by Newton's.

A step is -(H + lam |H| I)^{-1} f', where H is 2 J'J / N with J the Jacobian of residuals r = sqrt(mu_i) (TF_L - v_i),
by its singular values, as J'J has none below a 1e-16th of its greatest; and once it gains little the Hessian.  A step
that does not lower f, or makes it infinite, is taken back, and lam grows.
"""

from collections.abc import Callable, Iterator

import numpy as np

from ictd.anatomy import unidentifiable_direction
from ictd.kernels import size
from ictd.transformer import Weights
from studies.limits.engine import Prompts, errors_and_gradient
from studies.limits.grid import LEAST

AT_ONCE, FINE = 2000, 1e-8  # Prompts whose Jacobians are in memory together, and a mean MSVE that is small.
LITTLE, PATIENCE = 1e-3, 3  # Relative decrease that is little, and steps that gain no more before Newton's take over.
DIFFERENCE = 1e-5  # Differences are taken over this share of the largest parameter.
FIRST_DAMPING, LEAST_DAMPING, TRIES = 1e-3, 1e-28, 25


class Objective:
    """The mean MSVE at depth L of parts: prompts, and a basis by which (u, A, gain) = basis @ z + offset there."""

    def __init__(self, parts: list[tuple[Prompts, np.ndarray]], depth: int, offset: np.ndarray | None = None):
        self.parts, self.depth, self.count = parts, depth, sum(len(prompts.y) for prompts, _ in parts)
        self.offset = np.eye(len(parts[0][1]))[-1] if offset is None else offset

    def _sweep(self, one: Prompts, basis: np.ndarray, z: np.ndarray, jacobian: bool = False):
        """Mean MSVE of some prompts, its gradient for all parameters, their estimates, and gradients of these."""
        (tasks, n), parameters = one.target.shape, len(self.offset)
        estimates, gradient = np.empty((tasks, n)), np.empty(parameters)
        rows, sizes = np.empty((tasks * jacobian, n, parameters)), (size(n), size(one.y.shape[1]))
        value = errors_and_gradient(
            *sizes, one.X, one.y, one.target, one.weight, basis @ z + self.offset, self.depth, estimates, gradient, rows
        )
        return value, gradient, estimates, rows

    def value_and_gradient(self, z: np.ndarray) -> tuple[float, np.ndarray]:
        """f and its gradient (k,); infinity where estimates are."""
        value, total = 0.0, np.zeros(len(z))
        for prompts, basis in self.parts:
            found, gradient, *_ = self._sweep(prompts, basis, z)
            share = len(prompts.y) / self.count
            value, total = value + share * found, total + share * (gradient @ basis)
        return value, total

    def estimates(self, z: np.ndarray) -> list[np.ndarray]:
        """TF_L (N, n) on the prompts of each part."""
        return [self._sweep(prompts, basis, z)[2] for prompts, basis in self.parts]

    def _jacobians(self, z: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """J (rows, k) and r (rows,), of some prompts at a time."""
        for prompts, basis in self.parts:
            for first in range(0, len(prompts.y), AT_ONCE):
                some = prompts[first : first + AT_ONCE]
                *_, estimates, rows = self._sweep(some, basis, z, jacobian=True)
                residuals = np.sqrt(some.weight) * (estimates - some.target)
                yield rows.reshape(-1, len(self.offset)) @ basis, residuals.ravel()

    def factor(self, z: np.ndarray) -> np.ndarray:
        """The triangle R, of k + 1 columns, of [J, r] / sqrt(N) = Q R."""
        both = (np.column_stack(of) for of in self._jacobians(z))
        rows = [np.linalg.qr(one, mode="r") for J in both for one in np.array_split(J, 1 + len(J) // 1000)]
        return np.linalg.qr(np.vstack(rows) / np.sqrt(self.count), mode="r")

    def hessian(self, z: np.ndarray) -> np.ndarray:
        """By central differences of the gradient, (k, k); where f is small 2 J'J / N, as these round more."""
        if self.value_and_gradient(z)[0] < FINE:
            R = self.factor(z)[:, :-1]
            return 2 * R.T @ R
        step = DIFFERENCE * max(1.0, np.abs(z).max())
        rows = [self.value_and_gradient(z + d)[1] - self.value_and_gradient(z - d)[1] for d in step * np.eye(len(z))]
        H = np.array(rows) / (2 * step)
        return (H + H.T) / 2


class Residuals(Objective):
    """The sum of squares of residuals, a function of parameters z (k,), with derivatives by differences."""

    def __init__(self, residuals: Callable[[np.ndarray], np.ndarray]):
        self.residuals, self.count = residuals, 1

    def value_and_gradient(self, z: np.ndarray) -> tuple[float, np.ndarray]:
        """f and its gradient (k,)."""
        ((J, r),) = self._jacobians(z)
        return float(r @ r), 2 * J.T @ r

    def _jacobians(self, z: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        sides = [self.residuals(z + d) - self.residuals(z - d) for d in DIFFERENCE * np.eye(len(z))]
        yield np.stack(sides, axis=1) / (2 * DIFFERENCE), self.residuals(z)


def minimise(
    objective: Objective, z: np.ndarray, tolerance: float, most: int, newton: int = 0, held: Callable | None = None
) -> tuple[np.ndarray, float, float, int]:
    """Descend until the gradient is below ``tolerance`` and f, if small, falls no more, or f is below ``LEAST``, in so
    many steps, ``newton`` with Hessians; returns z, f, the gradient's norm and the step, or those of least ``held``."""
    (value, gradient), damping, slow, hessians = objective.value_and_gradient(z), FIRST_DAMPING, 0, 0
    best, least = (z, value, np.nan, 0), np.inf
    for step in range((most + 1) * bool(np.isfinite(value))):
        norm = float(np.linalg.norm(gradient))
        judged = held(z) if held else -step
        if judged < least or not step:
            best, least = (z, value, norm, step), judged
        fine = value < FINE
        if value < LEAST or (norm < tolerance and (slow >= PATIENCE or not fine)) or step == most:
            break
        exact = not fine and slow >= PATIENCE and hessians < newton
        hessians += exact
        if exact:
            curvature, axes = np.linalg.eigh(objective.hessian(z))
            along = axes.T @ gradient
        else:
            left, singular, axes = np.linalg.svd((R := objective.factor(z))[:, :-1], full_matrices=False)
            axes, curvature, along = axes.T, 2 * singular**2, 2 * singular * (left.T @ R[:, -1])
        largest = np.abs(curvature).max()
        for _ in range(TRIES):
            trial = z - axes @ (along / (np.abs(curvature) + damping * largest))
            lower, slope = objective.value_and_gradient(trial)
            if lower < value or (lower == value and np.linalg.norm(slope) < norm):
                slow = slow + 1 if value - lower < LITTLE * value else 0
                z, value, gradient, damping = trial, lower, slope, max(damping / 5, LEAST_DAMPING)
                break
            damping = max(4 * damping, LEAST_DAMPING)
        else:
            if fine or exact or not newton:
                break
            slow, damping = PATIENCE, FIRST_DAMPING
    return best


def flat(weights: Weights) -> np.ndarray:
    """u, A and a gain of 1 as one vector (2n + 4n^2 + 1,)."""
    return np.concatenate([weights.u, weights.A.ravel(), [1.0]])


def unflat(parameter: np.ndarray, states: int) -> Weights:
    """u and A of such vectors, (..., 2n + 4n^2 + 1)."""
    wide, lead = 2 * states, parameter.shape[:-1]
    return Weights(parameter[..., :wide], parameter[..., wide:-1].reshape(*lead, wide, wide))


def seen_basis(states: int, discount: float, family: bool = False) -> np.ndarray:
    """Orthonormal columns: the 4n^2 - 1 directions of u and A that prompts see, or the (2n - 1) n of K [-I, I]."""
    others, one = np.linalg.svd(unidentifiable_direction(states, discount)[None])[2][1:].T, np.eye(states)
    of_A = np.kron(others, np.vstack([-one, one]) / np.sqrt(2) if family else np.eye(2 * states))
    of_u = np.pad(others * (not family), ((0, len(of_A) + 1), (0, 0)))
    whole = np.pad(of_A, ((2 * states, 1), (0, 0)))
    return whole if family else np.hstack([of_u, whole])
