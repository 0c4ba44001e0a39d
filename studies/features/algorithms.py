"""Algorithms for policy evaluation with features: TD and LSTD with several test functions.

With TD errors delta(s) and weights c(s) of the columns of a prompt, LSTD solves sum_s c(s) delta(s) z(s) = 0, and TD
makes updates along this sum.  The test functions z are instrumental variables (Bradtke and Barto, Machine Learning 22,
1996):

    features    z = phi: TD(0) and LSTD(0)
    mean        z = phi + x phibar, with the mean feature phibar = sum_s c(s) phi(s)
    traces      z = expected eligibility traces: LSTD(lambda), with x = lambda

A layer of a Transformer makes an update of TD with test functions phi + eta gamma P phi (``measures``).
"""

import numpy as np

from studies.features.tasks import HeldOut

# Share of the errors, the largest, that trimmed means leave out.
TRIMMED = 0.05
# Candidates of the parameters that are tuned.  Ridges are added to averages over the columns; the smallest one is
# practically zero.
RIDGES = np.append(1e-10, np.geomspace(1e-4, 1, 17))
LAMBDAS = np.linspace(0, 1, 11)
MEANS = np.append(0, np.geomspace(0.3, 100, 18))
# Variants of LSTD: test functions, and the candidates of x and of the ridge.
LSTD = {
    "lstd": ("features", [0.0], RIDGES[:1]),
    "lstd_ridge": ("features", [0.0], RIDGES),
    "lstd_mean": ("mean", MEANS, RIDGES),
    "lstd_lambda": ("traces", LAMBDAS, RIDGES),
}
# Test functions of updates: multiples of phi, of gamma m and of gamma (P phi - m), which are free in a fit.
DIRECTIONS = {
    "td": np.array([[1, 0, 0]]),
    "eta": np.array([[1, 0, 0], [0, 1, 1]]),
    "mean": np.array([[1, 0, 0], [0, 1, 0]]),
    "rest": np.array([[1, 0, 0], [0, 0, 1]]),
    "split": np.eye(3),
}
# Step sizes from which descents start, the first damping, its factors, its largest value, the number of steps, and the
# relative change of the loss that ends a descent.
STEP_SIZES, DAMPING, LOWER, HIGHER, LARGEST, STEPS, TOLERANCE = (0.3, 1.5), 1e-3, 0.3, 10.0, 1e8, 60, 1e-7


def equations(data: HeldOut, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Matrix M (N, d, d) and side b (N, d) with sum_s c(s) delta(s) z(s) = b - M w, for test functions z (N, n, d)."""
    weighted = (data.weight[..., None] * z).mT
    return weighted @ (data.phi - data.following), np.matvec(weighted, data.tasks.reward)


def functions_of(data: HeldOut, kind: str, x: float) -> np.ndarray:
    """Test functions z (N, n, d) of a kind such as "mean".

    Expected traces in long trajectories whose states have the weights c of the columns are
    (I - lambda gamma P')^{-1} (c phi) / c (Tsitsiklis and Van Roy, IEEE Transactions on Automatic Control 42, 1997).
    """
    if kind == "mean":
        return data.phi + x * data.mean(data.phi)
    if kind == "traces":
        weight, chain = data.weight[..., None], data.tasks.transition
        return np.linalg.solve(np.eye(data.tasks.states) - data.discount * x * chain.mT, weight * data.phi) / weight
    return data.phi


def blocks_of(data: HeldOut, method: str) -> np.ndarray:
    """Blocks (K, N, n, d) whose multiples add up to the test functions of a method of ``DIRECTIONS``.

    Next features P phi are their mean m over the columns of a prompt and a rest.  With test functions phi + eta_m gamma
    m + eta_r gamma (P phi - m), an update is

        w <- w + alpha (mean of delta phi) + alpha gamma (eta_m (mean of delta) m + eta_r cov(delta, P phi)),

    with means and the covariance over the columns: eta_m weighs the mean TD error and nothing else, and eta_r weighs
    only deviations from it.
    """
    mean = np.broadcast_to(data.mean(data.following), data.phi.shape)
    return np.tensordot(DIRECTIONS[method], np.stack([data.phi, mean, data.following - mean]), axes=1)


def lstd(data: HeldOut, kind: str, x: float, ridges: np.ndarray) -> np.ndarray:
    """w (K, N, d) of LSTD with each of K ridges."""
    M, b = equations(data, functions_of(data, kind, x))
    identity = np.eye(b.shape[-1])
    return np.stack([np.linalg.solve(M + ridge * identity, b[..., None])[..., 0] for ridge in ridges])


def tuned_lstd(method: str, data: HeldOut) -> tuple[float, float]:
    """x and the ridge of a variant of LSTD with the least trimmed mean of the MSVE."""
    kind, xs, ridges = LSTD[method]
    scores = np.array([trimmed_mean(data.msve(lstd(data, kind, x, ridges))) for x in xs])
    i, j = np.unravel_index(scores.argmin(), scores.shape)
    return float(xs[i]), float(ridges[j])


def td(data: HeldOut, blocks: np.ndarray, numbers: np.ndarray, depth: int) -> tuple[np.ndarray, np.ndarray]:
    """Updates of TD from w = 0 with the test functions sum_k numbers_k blocks_k, and their derivatives.

    Parameters
    ----------
    data : HeldOut, N tasks
    blocks : (K, N, n, d) array
    numbers : (K,) array
    depth : int, number of updates L

    Returns
    -------
    w : (N, d) array
    dw : (K, N, d) array, derivatives of w by the numbers
    """
    Ms, bs = (np.stack(parts) for parts in zip(*(equations(data, z) for z in blocks), strict=True))
    M, b = np.tensordot(numbers, Ms, axes=1), np.tensordot(numbers, bs, axes=1)
    w, dw = np.zeros_like(b), np.zeros_like(bs)
    for _ in range(depth):
        w, dw = w + b - np.matvec(M, w), dw + bs - np.matvec(Ms, w) - np.matvec(M, dw)
    return w, dw


def fit(data: HeldOut, blocks: np.ndarray, depth: int) -> np.ndarray:
    """Numbers (K,) of ``td`` with the least mean MSVE, by Levenberg and Marquardt's method from several step sizes."""
    ends = [_descend(data, blocks, np.pad([alpha], (0, len(blocks) - 1)), depth) for alpha in STEP_SIZES]
    return min(ends, key=lambda end: end[1])[0]


def _descend(data: HeldOut, blocks: np.ndarray, start: np.ndarray, depth: int) -> tuple[np.ndarray, float]:
    """Numbers (K,) at which a descent from a start ends, and their mean MSVE."""
    mu = data.tasks.stationary

    def measured(numbers):
        with np.errstate(over="ignore", invalid="ignore"):
            w, dw = td(data, blocks, numbers, depth)
            error = data.value - np.matvec(data.phi, w)
            return (mu * error**2).sum(axis=-1).mean(), error, np.matvec(data.phi, dw)

    numbers, damping = start, DAMPING
    loss, error, slopes = measured(numbers)
    for _ in range(STEPS):
        hessian = np.tensordot(mu * slopes, slopes, axes=((1, 2), (1, 2)))
        side = (mu * slopes * error).sum(axis=(1, 2))
        step = np.linalg.solve(hessian + damping * np.diag(np.diag(hessian)), side)
        new_loss, new_error, new_slopes = measured(numbers + step)
        if new_loss < loss:
            is_small = loss - new_loss < TOLERANCE * loss
            numbers, loss, error, slopes = numbers + step, new_loss, new_error, new_slopes
            damping *= LOWER
            if is_small:
                break
        else:
            damping *= HIGHER
            if damping > LARGEST:
                break
    return numbers, float(loss)


def projection(data: HeldOut) -> np.ndarray:
    """w (N, d) of the least MSVE: the projection of the true values."""
    root = np.sqrt(data.tasks.stationary)
    return np.matvec(np.linalg.pinv(root[..., None] * data.phi), root * data.value)


def trimmed_mean(errors: np.ndarray) -> np.ndarray:
    """Mean (...) of errors (..., N) without the largest share TRIMMED."""
    kept = int(np.ceil((1 - TRIMMED) * errors.shape[-1]))
    return np.sort(errors, axis=-1)[..., :kept].mean(axis=-1)
