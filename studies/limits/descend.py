"""Minimisers of the mean MSVE on enumerated prompts, for one environment, number of states and depth.

Descents start from theta^TD with its best step size, from random weights, and from pretrained weights.  They move along
all identifiable directions, or stay in the family A = K [-I, I], u = 0.
"""

from dataclasses import replace
from pathlib import Path

import numpy as np

from ictd.baselines import theta_preconditioned_td
from ictd.mrp import Tasks, sample_tasks
from ictd.pipeline.grid import Cell
from ictd.rng import generator
from ictd.statistics import log_spaced
from ictd.storage import load_arrays, save_arrays, save_table
from ictd.transformer import Weights, initial_weights
from ictd.weight_measures import decomposition_measures
from studies.limits.engine import Prompts, enumerated_prompts, parameters_of, weights_of
from studies.limits.minimise import MeanMsve, family_basis, identifiable_basis, minimise

# Step sizes of theta^TD.  Descents start from the best of these.
STEP_SIZES = log_spaced(0.2, 10, 40)
# Gain of random starts.
GAIN = 0.3
# A direction is flat if its curvature is below this share of the greatest curvature.
FLAT = 1e-9


def main(
    weights: list[Path],
    env: str,
    states: int,
    depth: int,
    discount: float,
    fixed_tasks: int,
    starts: int,
    pretrained: int,
    tolerance: float,
    most_steps: int,
    newton_steps: int,
    env_options: dict,
    output: Path,
) -> None:
    """Write a row for each descent, the weights at the ends of all descents, and the curvatures at the first end.

    The first descent starts from theta^TD.  ``weights`` are files of pretrained weights, of which those of other cells
    are ignored.
    """
    tasks = sample_tasks(env, states, fixed_tasks, generator(0, env, states, "limits"), **env_options[env])
    test_tasks = sample_tasks(
        env, states, fixed_tasks, generator(0, env, states, "limits held out"), **env_options[env]
    )
    prompts = enumerated_prompts(tasks, discount)
    test_prompts = enumerated_prompts(test_tasks, discount)
    whole = identifiable_basis(states, discount)
    family = family_basis(states, discount)
    random = [initial_weights(states, GAIN, generator(seed, env, states, "limits start")) for seed in range(starts)]
    pretrained_weights = load_pretrained(weights, env, states, depth, pretrained)
    starting_points = starting_weights(best_theta_td(prompts, depth, whole), random, pretrained_weights)

    rows, ends = [], []
    spectrum = first = None
    for (start, seed), start_weights in starting_points.items():
        basis = family if start == "family" else whole
        objective = MeanMsve([(prompts, basis)], depth)
        z_before = basis.T @ parameters_of(start_weights)
        minimum = minimise(objective, z_before, tolerance, most_steps, newton_steps)
        parameters = basis @ minimum.z + objective.offset
        hessian = objective.hessian(minimum.z)
        curvatures = np.linalg.eigvalsh(hessian)[::-1]
        whole_z = whole.T @ (basis @ minimum.z)
        if first is None:
            first = whole_z
            spectrum = {"number": np.arange(1, len(first) + 1), "curvature": curvatures}
        ends.append(weights_of(parameters, states))
        measures = decomposition_measures(ends[-1], discount)
        updates_before = expected_updates(test_tasks, basis @ z_before + objective.offset, depth, discount)
        rows.append(
            {
                "start": start,
                "seed": seed,
                "msve_before": objective.value_and_gradient(z_before)[0],
                "msve": minimum.value,
                "gradient_norm": minimum.gradient_norm,
                "steps": minimum.steps,
                **{name: float(measures[name]) for name in ("alpha", "outside", "H", "u")},
                "test_msve": MeanMsve([(test_prompts, whole)], depth).value_and_gradient(whole_z)[0],
                "distance": np.linalg.norm(whole_z - first) / np.linalg.norm(first),
                **curvature_measures(hessian, curvatures, basis.T @ family),
                **expected_updates(test_tasks, parameters, depth, discount),
                **{f"{name}_before": update for name, update in updates_before.items()},
            }
        )
    save_arrays(output / "ends.npz", u=np.stack([end.u for end in ends]), A=np.stack([end.A for end in ends]))
    descents = {name: [row[name] for row in rows] for name in rows[0]}
    for name, table in (("rows", descents), ("spectrum", spectrum)):
        setting = {"env": env, "states": states, "depth": depth}
        number = len(next(iter(table.values())))
        save_table(output / f"{name}.csv", table | {key: [value] * number for key, value in setting.items()})


def curvature_measures(hessian: np.ndarray, curvatures: np.ndarray, along_family: np.ndarray) -> dict[str, float]:
    """Count and compare the curvatures at the end of a descent.

    Parameters
    ----------
    hessian : (k, k) array
    curvatures : (k,) array, its eigenvalues in descending order
    along_family : (k, (2n - 1) n) array, directions of the family

    Returns
    -------
    dict
        directions : k
        curved_directions : number of directions that are not flat
        family_curvature : greatest curvature within the family, divided by the greatest of all
        least_curvature : least curvature, divided by the greatest
    """
    within_family = np.linalg.eigvalsh(along_family.T @ hessian @ along_family)[::-1]
    return {
        "directions": len(curvatures),
        "curved_directions": (curvatures > FLAT * curvatures[0]).sum(),
        "family_curvature": within_family[0] / curvatures[0],
        "least_curvature": curvatures[-1] / curvatures[0],
    }


def best_theta_td(prompts: Prompts, depth: int, basis: np.ndarray) -> Weights:
    """theta^TD with the step size of ``STEP_SIZES`` that has the lowest mean MSVE."""
    objective = MeanMsve([(prompts, basis)], depth)
    identity = np.eye(prompts.target.shape[-1])
    candidates = [theta_preconditioned_td(step_size * identity) for step_size in STEP_SIZES]
    return min(candidates, key=lambda weights: objective.value_and_gradient(basis.T @ parameters_of(weights))[0])


def load_pretrained(
    files: list[Path], env: str, states: int, depth: int, number: int
) -> dict[tuple[str, int], Weights]:
    """Load the first trials of the cells with these settings, by algorithm and number of the trial."""
    pretrained = {}
    for path in files:
        cell = Cell.parse(path.stem)
        if (cell.env, cell.states, cell.depth) == (env, states, depth):
            u, A = load_arrays(path, "u", "A")
            for trial in range(min(number, len(u))):
                pretrained[cell.algo, trial] = Weights(u[trial], A[trial])
    return pretrained


def starting_weights(
    theta: Weights, random: list[Weights], pretrained: dict[tuple[str, int], Weights]
) -> dict[tuple[str, int], Weights]:
    """Starting points of descents, by the name and the number of the start.

    Descents within the family start from theta^TD (number 0) and from the family parts of the random weights.
    """
    starts = {("theta_td", 0): theta, ("family", 0): theta}
    for seed, weights in enumerate(random):
        starts["random", seed] = weights
        starts["family", 1 + seed] = weights
    return starts | pretrained


def expected_updates(tasks: Tasks, parameters: np.ndarray, depth: int, discount: float) -> dict[str, float]:
    """Sums of the absolute entries of the expected updates of TD and MC, "J_td" and "J_mc".

    The update is half the gradient of the mean MSVE to fixed targets, r + gamma p TF_L for TD and v for MC, on
    enumerated prompts of N tasks.  ``parameters`` is a vector (2n + 4n^2 + 1,) with a gain of one.
    """
    prompts = enumerated_prompts(tasks, discount)
    basis = np.eye(len(parameters))[:, :-1]
    z = parameters[:-1]
    (estimate,) = MeanMsve([(prompts, basis)], depth).estimates(z)
    td_target = tasks.reward + discount * np.matvec(tasks.transition, estimate)
    sums = {}
    for name, target in (("J_td", td_target), ("J_mc", prompts.target)):
        _, gradient = MeanMsve([(replace(prompts, target=target), basis)], depth).value_and_gradient(z)
        sums[name] = np.abs(gradient).sum() / 2
    return sums
