"""Algorithms for policy evaluation with features, on held-out prompts: TD and LSTD with several test functions.

LSTD solves sum_t c_t z_t delta_t = 0 for the TD errors delta_t of columns with weights c_t, and TD makes updates along
this sum (``ictd.baselines``).  The test functions z_t are

    features     z_t = phi_t: TD(0) and LSTD(0)
    second       z_t = phi_t + x gamma phi_{t+1}
    mean         z_t = phi_t + x phibar, with the mean feature phibar = sum_s c_s phi_s
    traces       z_t = phi_t + x gamma z_{t-1}: TD(x) and LSTD(x), with x = lambda

For enumerated prompts, traces have their expected values in long trajectories (``ictd.baselines.expected_traces``).
"""

import numpy as np

from ictd.baselines import Instruments, batch_td, eligibility_traces, expected_traces, lstd, project_values
from ictd.prompt import Context
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


def instruments(data: HeldOut, kind: str, x: float) -> Context | Instruments:
    """Averages over the columns of N prompts with test functions of a kind, such as "features"."""
    if kind == "features":
        return data.context
    tasks = data.tasks
    if kind == "traces" and data.paths is not None:
        return eligibility_traces(data.paths, data.reward, data.discount, x, features=tasks.features)
    if kind == "traces":
        return expected_traces(data.chain, data.reward, data.discount, x, tasks.features, data.weight)
    weight = data.weight[..., None]
    if kind == "second":
        z = data.phi + x * data.discount * data.phi_next
    else:
        z = data.phi + x * (weight * data.phi).sum(axis=1, keepdims=True)
    return instruments_of(data, z)


def instruments_of(data: HeldOut, z: np.ndarray) -> Instruments:
    """Averages over the columns of N prompts with test functions z (N, m, d) of the columns."""
    weighted = (data.weight[..., None] * z).mT
    return Instruments(data.context, weighted @ data.phi, weighted @ data.phi_next, np.matvec(weighted, data.reward))


def limit(data: HeldOut, z: np.ndarray) -> np.ndarray:
    """w (N, d) in the limit of many layers, if the iteration converges: LSTD with test functions z (N, m, d)."""
    averages = instruments_of(data, z)
    return lstd(averages, data.discount, RIDGES[0] * averages.length)


def limit_error(data: HeldOut, z: np.ndarray) -> float:
    """Trimmed mean of the MSVE in the limit of many layers, for test functions z (N, m, d)."""
    return float(trimmed_mean(data.msve(limit(data, z))))


def best_limit(data: HeldOut, second: np.ndarray) -> float:
    """The x with the least ``limit_error`` of the test functions phi + x gamma (second), for second (N, m, d)."""
    errors = [limit_error(data, data.phi + x * data.discount * second) for x in LIMIT_ETAS]
    return float(LIMIT_ETAS[np.argmin(errors)])


def estimates(name: str, data: HeldOut, x: float, others: np.ndarray, updates: int) -> np.ndarray:
    """w (K, N, d) of an algorithm of TUNED with x and each of K ridges or step sizes, after so many updates of TD."""
    averages = instruments(data, TUNED[name][0], x)
    with np.errstate(over="ignore", invalid="ignore"):
        if name == "td_lambda":
            return np.moveaxis(batch_td(averages, data.discount, np.asarray(others), updates), -1, 0)
        return np.stack([lstd(averages, data.discount, ridge * averages.length) for ridge in others])


def tune(name: str, data: HeldOut, updates: int) -> tuple[float, float]:
    """x and the ridge or step size of an algorithm of TUNED with the least trimmed mean of the MSVE."""
    _, xs, others = TUNED[name]
    scores = np.array([trimmed_mean(data.msve(estimates(name, data, x, others, updates))) for x in xs])
    i, j = np.unravel_index(scores.argmin(), scores.shape)
    return float(xs[i]), float(others[j])


def projection(data: HeldOut) -> np.ndarray:
    """w (N, d) of the least MSVE."""
    return project_values(data.value, data.tasks.features, data.tasks.stationary)


def trimmed_mean(errors: np.ndarray) -> np.ndarray:
    """Mean (...) of errors (..., N) without the largest share TRIMMED; infinite if one of the others is."""
    kept = int(np.ceil((1 - TRIMMED) * errors.shape[-1]))
    finite = np.where(np.isnan(errors), np.inf, errors)
    return np.sort(finite, axis=-1)[..., :kept].mean(axis=-1)
