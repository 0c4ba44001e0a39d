"""Minimisers of the mean MSVE over fixed prompts, by the Levenberg-Marquardt method and Newton's method.

The mean MSVE is a mean of squared residuals r = sqrt(mu_i) (TF_L - v_i), with the Jacobian J.  A step is

    -(|H| + lam max |H|)^{-1} f',

where |H| has the absolute values of the eigenvalues of H.  H is first 2 J'J / N, and after several steps with little
decrease, the Hessian.  The product J'J loses eigenvalues below 1e-16 times the greatest.  Where they matter, because
lam is as small, the eigenvalues of 2 J'J / N are computed from the singular values of J.  For these, the Jacobian
along the axes of the previous step, scaled to columns of similar norms, is multiplied with itself.  A step that does
not lower f, or makes it infinite, is discarded, and lam grows.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from ictd.kernels import size
from ictd.weight_measures import unidentifiable_direction
from studies.limits.engine import Prompts, add_hessian, estimates_and_jacobian, msve_and_gradient
from studies.limits.grid import LEAST_MSVE

# Number of prompts whose Jacobians are in memory at once.
PROMPTS_AT_ONCE = 2000
# Below this mean MSVE, H is always 2 J'J / N.
SMALL = 1e-8
# A step is slow if its relative decrease is below LITTLE.  After PATIENCE successive slow steps, H is the Hessian.
LITTLE = 1e-3
PATIENCE = 3
# Step of finite differences.
DIFFERENCE = 1e-5
# Eigenvalues of the product J'J are accurate enough if each of them, or lam, is above this share of the greatest.
ACCURATE = 1e-12
# Most products of scaled Jacobians for one step; nearly always one is enough.
MOST_SCALINGS = 3
# Factor lam: the first value, the smallest value, and the number of values that a step tries.
FIRST_DAMPING = 1e-3
LEAST_DAMPING = 1e-28
TRIES = 25


class QuadraticModel(NamedTuple):
    """Eigenvectors (k, k) of H, its eigenvalues (k,), and the coordinates (k,) of the gradient along them."""

    axes: np.ndarray
    curvature: np.ndarray
    slope: np.ndarray


class SumOfSquares:
    """A function f(z) = |r(z)|^2 / N of parameters z (k,).

    Subclasses have the number ``count``, N, and the methods ``value_and_gradient`` and ``jacobians``.  Newton's method
    also needs a method ``hessian``.
    """

    count: int

    def value_and_gradient(self, z: np.ndarray) -> tuple[float, np.ndarray]:
        """Compute f and its gradient (k,)."""
        raise NotImplementedError

    def jacobians(self, z: np.ndarray, directions: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield blocks of rows of J @ directions (rows, d) and of r (rows,), for directions (k, d)."""
        raise NotImplementedError

    def product(self, z: np.ndarray) -> np.ndarray:
        """Compute J'J / N (k, k)."""
        return sum(jacobian.T @ jacobian for jacobian, _ in self.jacobians(z, np.eye(len(z)))) / self.count

    def singular_model(self, z: np.ndarray, previous: QuadraticModel) -> QuadraticModel:
        """Diagonalise 2 J'J / N by the singular values of J.

        The product J'J would lose the small singular values.  So let P have the axes of the model ``previous``, each
        divided by the root of its curvature.  The singular values of J P are similar, so the product (J P)'J P / N =
        Q m Q' keeps them, and J / sqrt(N) has the singular values of sqrt(m) Q' P^{-1}.  If the singular values of J P
        are not similar, the computation is repeated with the result in place of ``previous``.  After ``MOST_SCALINGS``
        computations the last result is returned, whether it is accurate or not.
        """
        model = previous
        for _ in range(MOST_SCALINGS):
            curvature = np.abs(model.curvature)
            root = np.sqrt(np.maximum(curvature, LEAST_DAMPING * curvature.max()))
            product = np.zeros((len(z), len(z)))
            slope = np.zeros(len(z))
            for scaled, residuals in self.jacobians(z, model.axes / root):
                product += scaled.T @ scaled
                slope += scaled.T @ residuals
            m, Q = np.linalg.eigh(product / self.count)
            accurate = m[0] > ACCURATE * m[-1]
            m = np.maximum(m, np.finfo(float).eps * m[-1])
            R = np.sqrt(m)[:, None] * (Q.T * root) @ model.axes.T
            left, singular, axes = np.linalg.svd(R)
            slope = left.T @ (Q.T @ slope / np.sqrt(m)) / self.count
            model = QuadraticModel(axes.T, 2 * singular**2, 2 * singular * slope)
            if accurate:
                break
        return model


def diagonalise(H: np.ndarray, gradient: np.ndarray) -> QuadraticModel:
    """Diagonalise a symmetric matrix (k, k), and compute the coordinates of the gradient (k,)."""
    curvature, axes = np.linalg.eigh(H)
    return QuadraticModel(axes, curvature, axes.T @ gradient)


class MeanMsve(SumOfSquares):
    """The mean MSVE of TF_L over several sets of prompts, as a function of coordinates z (k,).

    Parameters
    ----------
    parts : list of (Prompts, basis)
        On the prompts of a part, the parameters are basis @ z + offset, with a basis (2n + 4n^2 + 1, k).
    depth : int, number of layers L
    offset : (2n + 4n^2 + 1,) array, optional
        By default a gain of one.
    """

    def __init__(self, parts: list[tuple[Prompts, np.ndarray]], depth: int, offset: np.ndarray | None = None):
        parameters = len(parts[0][1])
        self.parts = parts
        self.depth = depth
        self.count = sum(len(prompts) for prompts, _ in parts)
        self.offset = np.eye(parameters)[-1] if offset is None else offset

    def value_and_gradient(self, z: np.ndarray) -> tuple[float, np.ndarray]:
        """Compute f and its gradient (k,).  f is infinite if an estimate is not finite."""
        total = 0.0
        total_gradient = np.zeros(len(z))
        for prompts, basis in self.parts:
            msve, gradient, _ = self._evaluate(prompts, basis, z)
            share = len(prompts) / self.count
            total = total + share * msve
            total_gradient = total_gradient + share * (gradient @ basis)
        return total, total_gradient

    def estimates(self, z: np.ndarray) -> list[np.ndarray]:
        """Compute TF_L (N, n) on the prompts of each part."""
        evaluations = [self._evaluate(prompts, basis, z) for prompts, basis in self.parts]
        return [estimates for _, _, estimates in evaluations]

    def jacobians(self, z: np.ndarray, directions: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield blocks of rows of J @ directions (rows, d) and of r (rows,), for directions (k, d)."""
        for jacobian, residuals, basis in self._jacobians(z):
            yield jacobian @ (basis @ directions), residuals

    def product(self, z: np.ndarray) -> np.ndarray:
        """Compute J'J / N (k, k).

        With many coordinates, the product for all parameters comes first, because it costs less than J for all
        coordinates.  With few, J comes first, because derivatives for other parameters may be so much larger that the
        product would lose those for the coordinates.
        """
        total = np.zeros((len(z), len(z)))
        for jacobian, _, basis in self._jacobians(z):
            if len(z) > len(basis) / 2:
                total += basis.T @ (jacobian.T @ jacobian) @ basis
            else:
                jacobian = jacobian @ basis
                total += jacobian.T @ jacobian
        return total / self.count

    def hessian(self, z: np.ndarray) -> np.ndarray:
        """Compute the Hessian (k, k), or 2 J'J / N if f is small; the coordinates do not change the gain."""
        if self.value_and_gradient(z)[0] < SMALL:
            return 2 * self.product(z)
        total = np.zeros((len(z), len(z)))
        for prompts, basis in self.parts:
            states = prompts.target.shape[1]
            wide = 2 * states
            of_columns = np.zeros((wide * (1 + wide), wide * (1 + wide)))
            add_hessian(
                size(states), size(prompts.y.shape[1]), prompts.X, prompts.y, prompts.target, prompts.weight,
                basis @ z + self.offset, self.depth, of_columns,
            )  # fmt: skip
            # The kernel has the entries of u between those of the rows of A.
            numbers = np.arange(len(of_columns)).reshape(wide, 1 + wide)
            order = np.concatenate([numbers[:, 0], numbers[:, 1:].ravel()])
            total += basis[:-1].T @ of_columns[np.ix_(order, order)] @ basis[:-1]
        return total / self.count

    def _jacobians(self, z: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """Yield blocks of rows of the derivatives of r for all parameters, and of r, and their basis."""
        for prompts, basis in self.parts:
            parameters = basis @ z + self.offset
            for first in range(0, len(prompts), PROMPTS_AT_ONCE):
                block = prompts[first : first + PROMPTS_AT_ONCE]
                estimates = np.empty(block.target.shape)
                jacobian = np.empty((*block.target.shape, len(parameters)))
                estimates_and_jacobian(
                    size(block.target.shape[1]), size(block.y.shape[1]), block.X, block.y, block.weight, parameters,
                    self.depth, estimates, jacobian,
                )  # fmt: skip
                residuals = np.sqrt(block.weight) * (estimates - block.target)
                yield jacobian.reshape(-1, len(parameters)), residuals.ravel(), basis

    def _evaluate(self, prompts: Prompts, basis: np.ndarray, z: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        """Compute the mean MSVE of a part, its gradient for all parameters, and the estimates (N, n)."""
        parameters = basis @ z + self.offset
        estimates = np.empty(prompts.target.shape)
        gradient = np.empty(len(parameters))
        msve = msve_and_gradient(
            size(prompts.target.shape[1]), size(prompts.y.shape[1]), prompts.X, prompts.y, prompts.target,
            prompts.weight, parameters, self.depth, estimates, gradient,
        )  # fmt: skip
        return msve, gradient, estimates


def msve_of_parameters(prompts: Prompts, depth: int) -> MeanMsve:
    """The mean MSVE as a function of the parameters (2n + 4n^2 + 1,) themselves, gain included."""
    wide = prompts.X.shape[1]
    parameters = wide + wide**2 + 1
    return MeanMsve([(prompts, np.eye(parameters))], depth, np.zeros(parameters))


class Residuals(SumOfSquares):
    """The sum of squares of a function r(z), (rows,), of parameters z (k,), with derivatives by central differences."""

    def __init__(self, residuals: Callable[[np.ndarray], np.ndarray]):
        self.residuals = residuals
        self.count = 1
        self._last = None

    def value_and_gradient(self, z: np.ndarray) -> tuple[float, np.ndarray]:
        """Compute f and its gradient (k,)."""
        jacobian, residuals = self._derivatives(z)
        return float(residuals @ residuals), 2 * jacobian.T @ residuals

    def jacobians(self, z: np.ndarray, directions: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield all rows of J @ directions (rows, d) and of r (rows,), for directions (k, d)."""
        jacobian, residuals = self._derivatives(z)
        yield jacobian @ directions, residuals

    def _derivatives(self, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Compute J (rows, k) and r (rows,).

        A step needs them at the point at which the last trial needed them, so those of the last point are kept.
        """
        if self._last is None or not np.array_equal(z, self._last[0]):
            columns = []
            for change in DIFFERENCE * np.eye(len(z)):
                columns.append(self.residuals(z + change) - self.residuals(z - change))
            self._last = z, np.stack(columns, axis=1) / (2 * DIFFERENCE), self.residuals(z)
        return self._last[1:]


class Minimum(NamedTuple):
    """End of a descent: z (k,), f, the norm of the gradient, and the number of steps."""

    z: np.ndarray
    value: float
    gradient_norm: float
    steps: int


def minimise(
    objective: SumOfSquares,
    z: np.ndarray,
    tolerance: float,
    most_steps: int,
    newton_steps: int = 0,
    validation: Callable[[np.ndarray], float] | None = None,
) -> Minimum:
    """Minimise a function from a starting point.

    A descent ends when the gradient is below the tolerance (if f is below ``SMALL``, only after slow steps), when f is
    below ``LEAST_MSVE``, after ``most_steps`` steps, or when no step lowers f.

    Parameters
    ----------
    objective : SumOfSquares
    z : (k,) array, starting point
    tolerance : float, norm of the gradient
    most_steps : int, greatest number of steps
    newton_steps : int, greatest number of steps with the Hessian
    validation : function of z, optional
        If given, the point with the smallest value of this function is returned, instead of the last point.

    Returns
    -------
    Minimum
    """
    value, gradient = objective.value_and_gradient(z)
    best = Minimum(z, value, np.nan, 0)
    if not np.isfinite(value):
        return best
    best_score = np.inf
    damping = FIRST_DAMPING
    least_curvature = 0.0  # Of the last model, divided by the greatest.
    slow_steps = 0
    hessians = 0
    for step in range(most_steps + 1):
        norm = float(np.linalg.norm(gradient))
        score = validation(z) if validation else -step
        if score < best_score or step == 0:
            best = Minimum(z, value, norm, step)
            best_score = score
        small = value < SMALL
        slow = slow_steps >= PATIENCE
        converged = norm < tolerance and (slow or not small)
        if value < LEAST_MSVE or converged or step == most_steps:
            break
        newton = slow and not small and hessians < newton_steps
        hessians += newton
        if newton:
            model = diagonalise(objective.hessian(z), gradient)
        elif max(damping, least_curvature) > ACCURATE:
            model = diagonalise(2 * objective.product(z), gradient)
        else:
            model = objective.singular_model(z, model)
        if not newton:
            least_curvature = model.curvature.min() / model.curvature.max()
        lower = _lower_point(objective, z, value, norm, model, damping)
        if lower is not None:
            little = value - lower.value < LITTLE * value
            slow_steps = slow_steps + 1 if little else 0
            z, value, gradient, damping = lower
        elif small or newton or newton_steps == 0:
            break
        else:
            slow_steps = PATIENCE
            damping = FIRST_DAMPING
    return best


class LowerPoint(NamedTuple):
    """A point z (k,) with a lower f, its f and gradient (k,), and the next factor lam."""

    z: np.ndarray
    value: float
    gradient: np.ndarray
    damping: float


def _lower_point(
    objective: SumOfSquares, z: np.ndarray, value: float, norm: float, model: QuadraticModel, damping: float
) -> LowerPoint | None:
    """Try steps with growing factors lam until one lowers f, or keeps f and lowers the norm of the gradient."""
    size_of_curvature = np.abs(model.curvature)
    largest = size_of_curvature.max()
    for _ in range(TRIES):
        trial = z - model.axes @ (model.slope / (size_of_curvature + damping * largest))
        trial_value, trial_gradient = objective.value_and_gradient(trial)
        if trial_value < value or (trial_value == value and np.linalg.norm(trial_gradient) < norm):
            return LowerPoint(trial, trial_value, trial_gradient, max(damping / 5, LEAST_DAMPING))
        damping = max(4 * damping, LEAST_DAMPING)
    return None


def identifiable_basis(states: int, discount: float) -> np.ndarray:
    """Orthonormal basis (2n + 4n^2 + 1, 4n^2 - 1) of the directions of u and A that change outputs."""
    identifiable = _identifiable_columns(states, discount)
    basis_of_A = np.kron(identifiable, np.eye(2 * states))
    basis_of_u = np.pad(identifiable, ((0, len(basis_of_A) + 1), (0, 0)))
    return np.hstack([basis_of_u, np.pad(basis_of_A, ((2 * states, 1), (0, 0)))])


def family_basis(states: int, discount: float) -> np.ndarray:
    """Orthonormal basis (2n + 4n^2 + 1, (2n - 1) n) of the identifiable part of the family A = K [-I, I], u = 0."""
    identity = np.eye(states)
    rows = np.vstack([-identity, identity]) / np.sqrt(2)
    basis_of_A = np.kron(_identifiable_columns(states, discount), rows)
    return np.pad(basis_of_A, ((2 * states, 1), (0, 0)))


def _identifiable_columns(states: int, discount: float) -> np.ndarray:
    """Orthonormal basis (2n, 2n - 1) of the complement of the direction orthogonal to every column of a context."""
    direction = unidentifiable_direction(states, discount)
    return np.linalg.svd(direction[None])[2][1:].T
