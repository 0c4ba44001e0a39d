"""The lowest mean MSVE on enumerated prompts in growing sets of weights, for one number of states and of layers.

The sets are one, two, four and eight numbers (``few_numbers``), the family A = K [-I, I] with u = 0, and all weights.
"""

from pathlib import Path

import numpy as np

from ictd.mrp import sample_tasks
from ictd.rng import generator
from ictd.storage import long_table, save_table
from ictd.transformer import Weights, initial_weights, preconditioned_td
from ictd.weight_measures import share_outside, shortest_identifiable, unidentifiable_direction
from studies.emergence.best_numbers import best_numbers
from studies.emergence.few_numbers import SETS, basis, without_u
from studies.emergence.minimise import MeanMsve, Minimum, descend

# Gain of random starts.
GAIN = 0.3
# Descents end below this MSVE, as smaller values are not distinguished.
LEAST_MSVE = 1e-20
# Curvatures are computed above this MSVE.  Below it, rounding hides the smallest.
RESOLVED = 1e-9
# Ends at a smaller relative distance are one point.
SAME = 1e-3


def main(
    env: str,
    states: int,
    depth: int,
    discount: float,
    fixed_tasks: int,
    starts: int,
    tolerance: float,
    most_steps: int,
    env_options: dict,
    output: Path,
) -> None:
    """Write a row for each set of weights and start.

    Descents start from the best smaller set, and in the family and in all weights from the best step size and from
    random weights.  ``test_msve`` is the mean MSVE on other tasks, and ``outside`` the share of A outside the family.
    """
    tasks, other_tasks = (
        sample_tasks(env, states, fixed_tasks, generator(0, env, states, stream), **env_options[env])
        for stream in ("limits", "limits held out")
    )
    theta, two = (best_numbers(tasks, discount, depth, count).z for count in (1, 2))
    seeds = [generator(seed, env, states, "limits start") for seed in range(starts)]
    weights = [at(theta, without_u(basis(1, states))), *(initial_weights(states, GAIN, rng) for rng in seeds)]
    rows, ends = [], []
    for name, directions in sets(states, discount).items():
        objective = MeanMsve(tasks, discount, depth, directions)
        test = MeanMsve(other_tasks, discount, depth, directions)
        if name in ("1", "2"):
            first = [theta if name == "1" else two]
        elif name in ("4", "8"):
            first = [np.append(ends[0].z, [0.0, 0.0])]
        else:
            first = [coordinates(one, directions) for one in weights]
        ends = [descend(objective, z, tolerance, most_steps, LEAST_MSVE) for z in first]
        for start, (end, point) in enumerate(zip(ends, points(objective, ends, tolerance), strict=True)):
            A = shortest_identifiable(at(end.z, directions).A, discount)
            found = {
                "msve": end.msve,
                "test_msve": (test.residuals(end.z) ** 2).sum(),
                "gradient_norm": end.gradient_norm,
                "steps": end.steps,
                "outside": max(share_outside(A), 0.0),
            }
            rows.append(long_table({}, found | point, env=env, states=states, depth=depth, set=name, start=start))
    save_table(output, *rows)


def sets(states: int, discount: float) -> dict[str, Weights]:
    """Directions of each set of weights, by its name: u (K, 2n) and A (K, 2n, 2n).

    Those of the family and of all weights are orthonormal, without directions that change no output.
    """
    n, wide = states, 2 * states
    columns = np.linalg.svd(unidentifiable_direction(n, discount)[None])[2][1:]  # (2n - 1, 2n)
    K = np.einsum("ki,jl->kjil", columns, np.eye(n)).reshape(-1, wide, n)
    A = np.einsum("ki,jl->kjil", columns, np.eye(wide)).reshape(-1, wide, wide)
    u = np.concatenate([columns, np.zeros((len(A), wide))])
    return {
        **{str(count): without_u(basis(count, n)) for count in SETS},
        "family": without_u(preconditioned_td(K) / np.sqrt(2)),
        "all": Weights(u, np.concatenate([np.zeros((wide - 1, wide, wide)), A])),
    }


def at(z: np.ndarray, directions: Weights) -> Weights:
    """The weights with coordinates z (K,)."""
    return Weights(z @ directions.u, np.tensordot(z, directions.A, axes=1))


def coordinates(weights: Weights, directions: Weights) -> np.ndarray:
    """Coordinates (K,) of the projection of weights on orthonormal directions."""
    return directions.u @ weights.u + np.tensordot(directions.A, weights.A, axes=2)


def points(objective: MeanMsve, ends: list[Minimum], tolerance: float) -> list[dict[str, float]]:
    """Compare the ends of descents.

    Returns
    -------
    list of dicts
        point : number of the point at which the descent ended
        least_curvature : that of the Hessian, if the gradient is below the tolerance, else NaN
            A positive one means a strict local minimum of the set.
    """
    found, curvatures, compared = [], [], []
    for end in ends:
        distances = [np.linalg.norm(end.z - other) / np.linalg.norm(other) for other in found]
        point = next((i for i, distance in enumerate(distances) if distance < SAME), len(found))
        if point == len(found):
            found.append(end.z)
            resolved = end.gradient_norm < tolerance and end.msve > RESOLVED
            curvatures.append(least_curvature(objective.hessian(end.z)) if resolved else np.nan)
        compared.append({"point": point, "least_curvature": curvatures[point]})
    return compared


def least_curvature(hessian: np.ndarray) -> float:
    """The least eigenvalue of a Hessian (K, K); NaN if it may be rounding.

    An error of the entries changes eigenvalues by at most K times its largest entry.  A Hessian without rounding is
    symmetric, so its largest difference from its transpose measures this error; the eigenvalues round, too.
    """
    curvatures = np.linalg.eigvalsh(hessian)
    error = np.abs(hessian - hessian.T).max() + 2.0**-53 * np.abs(curvatures).max()
    return curvatures[0] if abs(curvatures[0]) > len(hessian) * error else np.nan
