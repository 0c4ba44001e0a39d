"""Algorithms for policy evaluation with features, on held-out prompts: TD and LSTD with several test functions.

With columns phi_t, phi'_t, R_t of weight c_t and test functions z_t (d,),

    M = sum_t c_t z_t (phi_t - gamma phi'_t)',    q = sum_t c_t R_t z_t,

LSTD solves M w = q, and TD iterates w <- w + a (q - M w).  The test functions are

    features     z_t = phi_t: TD(0) and LSTD(0)
    second       z_t = phi_t + x gamma phi'_t
    mean         z_t = phi_t + x m, with the mean m = sum_t c_t phi_t
    traces       z_t = phi_t + x gamma z_{t-1}: TD(x) and LSTD(x), with x = lambda

For enumerated prompts, which are chains and not trajectories, traces have the expected values of a long trajectory
whose states are distributed by the weights: sum_t c_t z_t f_t' = Phi' C (I - x gamma p)^{-1} F.
"""

import numpy as np

from studies.features.tasks import HeldOut

# Shares of the errors, the largest, that trimmed means leave out.
TRIMMED = 0.05
# Candidates of the parameters that are tuned.
STEPS = np.geomspace(0.05, 20, 30)
RIDGES = np.append(0, np.geomspace(1e-4, 1, 17))
LAMBDAS = np.linspace(0, 1, 11)
SECONDS = np.linspace(-1, 4, 26)
MEANS = np.append(0, np.geomspace(0.3, 100, 18))


def moments(data: HeldOut, tests: str = "features", x: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    """M (N, d, d) and q (N, d) for test functions "features", "second", "mean" or "traces" with a parameter x."""
    if tests == "traces" and data.chain is not None:
        difference = data.phi - data.discount * data.phi_next
        n = data.reward.shape[-1]
        rows = np.eye(n) - x * data.discount * data.chain
        columns = np.concatenate([difference, data.reward[..., None]], axis=-1)
        both = (data.weight[..., None] * data.phi).mT @ np.linalg.solve(rows, columns)
        return both[..., :-1], both[..., -1]
    z = data.phi
    if tests == "second":
        z = data.phi + x * data.discount * data.phi_next
    elif tests == "mean":
        z = data.phi + x * (data.weight[..., None] * data.phi).sum(axis=1, keepdims=True)
    elif tests == "traces":
        z = data.phi.copy()
        for t in range(1, z.shape[1]):
            z[:, t] += x * data.discount * z[:, t - 1]
    return moments_of(data, z)


def moments_of(data: HeldOut, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """M (N, d, d) and q (N, d) for test functions z (N, m, d) of the columns."""
    weighted = (data.weight[..., None] * z).mT
    return weighted @ (data.phi - data.discount * data.phi_next), np.matvec(weighted, data.reward)


def solved(M: np.ndarray, q: np.ndarray, ridge: float) -> np.ndarray:
    """w (N, d) with (M + ridge I) w = q; NaN where the matrix is singular."""
    matrix = M + ridge * np.eye(q.shape[-1])
    try:
        return np.linalg.solve(matrix, q[..., None])[..., 0]
    except np.linalg.LinAlgError:
        singular = np.linalg.matrix_rank(matrix) < q.shape[-1]
        w = np.full_like(q, np.nan)
        w[~singular] = np.linalg.solve(matrix[~singular], q[~singular, :, None])[..., 0]
        return w


def iterated(M: np.ndarray, q: np.ndarray, step: float, updates: int) -> np.ndarray:
    """w (N, d) after some updates w <- w + step (q - M w) from zero."""
    w = np.zeros_like(q)
    with np.errstate(over="ignore", invalid="ignore"):
        for _ in range(updates):
            w = w + step * (q - np.matvec(M, w))
    return w


def projection(data: HeldOut) -> np.ndarray:
    """w (N, d) of the least MSVE; a direction that no feature has is left at zero."""
    weighted = (data.tasks.stationary[..., None] * data.tasks.features).mT
    return np.matvec(np.linalg.pinv(weighted @ data.tasks.features, hermitian=True), np.matvec(weighted, data.value))


def trimmed_mean(errors: np.ndarray) -> np.ndarray:
    """Mean (...) of errors (..., N) without the largest share TRIMMED; infinite if one of the others is."""
    kept = int(np.ceil((1 - TRIMMED) * errors.shape[-1]))
    finite = np.where(np.isnan(errors), np.inf, errors)
    return np.sort(finite, axis=-1)[..., :kept].mean(axis=-1)


# Algorithms that are tuned: how w is computed from two parameters, and the candidates of each.
TUNED = {
    "lstd": ("features", [0.0], [0.0]),
    "lstd_ridge": ("features", [0.0], RIDGES),
    "lstd_second": ("second", SECONDS, RIDGES),
    "lstd_mean": ("mean", MEANS, RIDGES),
    "lstd_lambda": ("traces", LAMBDAS, RIDGES),
    "td_lambda": ("traces", LAMBDAS, STEPS),
}


def estimate(name: str, data: HeldOut, x: float, other: float, updates: int) -> np.ndarray:
    """w (N, d) of an algorithm of TUNED with its two parameters; ``updates`` is the number of updates of TD."""
    tests = TUNED[name][0]
    M, q = moments(data, tests, x)
    return iterated(M, q, other, updates) if name.startswith("td") else solved(M, q, other)


def tune(name: str, data: HeldOut, updates: int) -> tuple[float, float]:
    """The two parameters of an algorithm of TUNED with the least trimmed mean of the MSVE."""
    tests, xs, others = TUNED[name]
    scores = np.empty((len(xs), len(others)))
    for i, x in enumerate(xs):
        M, q = moments(data, tests, x)
        for j, other in enumerate(others):
            w = iterated(M, q, other, updates) if name.startswith("td") else solved(M, q, other)
            scores[i, j] = trimmed_mean(data.msve(w))
    i, j = np.unravel_index(scores.argmin(), scores.shape)
    return float(xs[i]), float(others[j])
