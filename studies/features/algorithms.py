"""Algorithms for policy evaluation with features, on held-out prompts: TD and LSTD with several test functions.

LSTD solves sum_t c_t z_t delta_t = 0 for the TD errors delta_t of columns with weights c_t, and TD makes updates along
this sum.  The test functions z_t are instrumental variables (Bradtke and Barto, Machine Learning 22, 1996):

    features     z_t = phi_t: TD(0) and LSTD(0)
    second       z_t = phi_t + x gamma phi_{t+1}
    mean         z_t = phi_t + x phibar, with the mean feature phibar = sum_s c_s phi_s
    traces       z_t = phi_t + x gamma z_{t-1}: TD(x) and LSTD(x), with x = lambda

For enumerated prompts, traces have their expected values in long trajectories whose states have the weights of the
columns (Tsitsiklis and Van Roy, IEEE Transactions on Automatic Control 42, 1997).
"""

from dataclasses import dataclass
from typing import Self

import numpy as np

from studies.features.tasks import HeldOut

# Share of the errors, the largest, that trimmed means leave out.
TRIMMED = 0.05
# Candidates of the parameters that are tuned.  Ridges are added to averages over the context; the
# smallest one is practically zero.
STEP_SIZES = np.geomspace(0.05, 20, 30)
RIDGES = np.append(1e-10, np.geomspace(1e-4, 1, 17))
LAMBDAS = np.linspace(0, 1, 11)
ETAS = np.linspace(-1, 4, 26)
MEANS = np.append(0, np.geomspace(0.3, 100, 18))
# Candidates of x for test functions phi + x gamma (second), in the limit of many layers.
LIMIT_ETAS = np.linspace(-2, 4, 61)
# Algorithms that are tuned: their test functions, and the candidates of x and of the ridge or step size.
TUNED = {
    "lstd": ("features", [0.0], RIDGES[:1]),
    "lstd_ridge": ("features", [0.0], RIDGES),
    "lstd_second": ("second", ETAS, RIDGES),
    "lstd_mean": ("mean", MEANS, RIDGES),
    "lstd_lambda": ("traces", LAMBDAS, RIDGES),
    "td_lambda": ("traces", LAMBDAS, STEP_SIZES),
}


@dataclass(frozen=True)
class Averages:
    """Averages over the columns of N prompts with test functions z_t.

    Parameters
    ----------
    C, D : (N, d, d) arrays, means of z_t phi_t' and of z_t phi_{t+1}'
    b : (N, d) array, mean of R_{t+1} z_t
    """

    C: np.ndarray
    D: np.ndarray
    b: np.ndarray

    @classmethod
    def of(cls, data: HeldOut, z: np.ndarray) -> Self:
        """Compute the averages for test functions z (N, m, d) of the columns."""
        weighted = (data.weight[..., None] * z).mT
        return cls(weighted @ data.phi, weighted @ data.phi_next, np.matvec(weighted, data.reward))

    def lstd(self, discount: float, ridge: float) -> np.ndarray:
        """w (N, d) of LSTD, (C - gamma D + ridge I)^{-1} b."""
        matrix = self.C + ridge * np.eye(self.b.shape[-1]) - discount * self.D
        return np.linalg.solve(matrix, self.b[..., None])[..., 0]

    def td(self, discount: float, step_sizes: np.ndarray, updates: int) -> np.ndarray:
        """w (K, N, d) after updates w += alpha (b + gamma D w - C w) with each of K step sizes."""
        w = np.zeros((*self.b.shape, len(step_sizes)))
        for _ in range(updates):
            w += step_sizes * (self.b[..., None] + discount * (self.D @ w) - self.C @ w)
        return np.moveaxis(w, -1, 0)


def functions_of(data: HeldOut, kind: str, x: float) -> np.ndarray:
    """z (N, m, d) of the columns of N prompts, of a kind such as "second"."""
    if kind == "second":
        return data.phi + x * data.discount * data.phi_next
    if kind == "mean":
        return data.phi + x * (data.weight[..., None] * data.phi).sum(axis=1, keepdims=True)
    if kind == "traces":
        return expected_traces(data, x) if data.paths is None else sampled_traces(data, x)
    return data.phi


def sampled_traces(data: HeldOut, decay: float) -> np.ndarray:
    """Eligibility traces z_t = phi_t + lambda gamma z_{t-1} (N, m, d) of trajectories."""
    z = data.phi.copy()
    for t in range(1, z.shape[1]):
        z[:, t] += data.discount * decay * z[:, t - 1]
    return z


def expected_traces(data: HeldOut, decay: float) -> np.ndarray:
    """Expected traces (N, n, d) in the states, (I - lambda gamma P')^{-1} (c phi) / c with weights c of the states."""
    weight = data.weight[..., None]
    identity = np.eye(data.tasks.states)
    return np.linalg.solve(identity - data.discount * decay * data.chain.mT, weight * data.phi) / weight


def limit(data: HeldOut, z: np.ndarray) -> np.ndarray:
    """w (N, d) in the limit of many layers, if the iteration converges: LSTD with test functions z (N, m, d)."""
    return Averages.of(data, z).lstd(data.discount, RIDGES[0])


def limit_error(data: HeldOut, z: np.ndarray) -> float:
    """Trimmed mean of the MSVE in the limit of many layers, for test functions z (N, m, d)."""
    return float(trimmed_mean(data.msve(limit(data, z))))


def best_limit(data: HeldOut, second: np.ndarray) -> float:
    """The x with the least ``limit_error`` of the test functions phi + x gamma (second), for second (N, m, d)."""
    errors = [limit_error(data, data.phi + x * data.discount * second) for x in LIMIT_ETAS]
    return float(LIMIT_ETAS[np.argmin(errors)])


def estimates(name: str, data: HeldOut, x: float, others: np.ndarray, updates: int) -> np.ndarray:
    """w (K, N, d) of an algorithm of TUNED with x and each of K ridges or step sizes, after so many updates of TD."""
    averages = Averages.of(data, functions_of(data, TUNED[name][0], x))
    with np.errstate(over="ignore", invalid="ignore"):
        if name == "td_lambda":
            return averages.td(data.discount, np.asarray(others), updates)
        return np.stack([averages.lstd(data.discount, ridge) for ridge in others])


def tune(name: str, data: HeldOut, updates: int) -> tuple[float, float]:
    """x and the ridge or step size of an algorithm of TUNED with the least trimmed mean of the MSVE."""
    _, xs, others = TUNED[name]
    scores = np.array([trimmed_mean(data.msve(estimates(name, data, x, others, updates))) for x in xs])
    i, j = np.unravel_index(scores.argmin(), scores.shape)
    return float(xs[i]), float(others[j])


def projection(data: HeldOut) -> np.ndarray:
    """w (N, d) of the least MSVE: the projection of the true values; of several w it is the shortest."""
    root = np.sqrt(data.tasks.stationary)
    return np.matvec(np.linalg.pinv(root[..., None] * data.tasks.features), root * data.value)


def trimmed_mean(errors: np.ndarray) -> np.ndarray:
    """Mean (...) of errors (..., N) without the largest share TRIMMED; infinite if one of the others is."""
    kept = int(np.ceil((1 - TRIMMED) * errors.shape[-1]))
    finite = np.where(np.isnan(errors), np.inf, errors)
    return np.sort(finite, axis=-1)[..., :kept].mean(axis=-1)
