"""Minimisers of the MSVE on enumerated prompts, at one depth, from several starts."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from ictd.anatomy import decomposition_measures
from ictd.mrp import Tasks, sample_tasks, value_function
from ictd.pipeline.grid import Cell
from ictd.prompt import enumerated_columns
from ictd.rng import generator
from ictd.statistics import log_spaced
from ictd.storage import load_arrays, save_tables
from ictd.transformer import Weights, initial_weights, theta_td
from studies.limits.engine import Prompts
from studies.limits.minimise import Objective, flat, minimise, seen_basis, unflat

STEPS, GAIN = log_spaced(0.2, 10, 40), 0.3  # Step sizes of theta^TD to start from, and the gain of random starts.
FLAT = 1e-9  # Curvatures below this share of the greatest count as none.


def main(
    weights: list[Path], env: str, states: int, depth: int, discount: float, fixed_tasks: int, starts: int,
    pretrained: int, tolerance: float, most_steps: int, newton_steps: int, env_options: dict, output: Path,
) -> None:  # fmt: skip
    """Write a row a start, and the curvatures where that from theta^TD ends; ``weights`` of other cells are passed."""
    fixed, held = (
        sample_tasks(env, states, fixed_tasks, generator(0, env, states, stream), **env_options)
        for stream in ("limits", "limits held out")
    )
    whole, family = (seen_basis(states, discount, only) for only in (False, True))
    free, within = (Objective([(enumerated(fixed, discount), basis)], depth) for basis in (whole, family))
    beside, theta = Objective([(enumerated(held, discount), whole)], depth), theta_td(states).A
    steps = [flat(Weights(np.zeros(2 * states), step * theta)) for step in STEPS]
    best = min(steps, key=lambda one: free.value_and_gradient(whole.T @ one)[0])
    begins = {("theta_td", 0): best, ("family", 0): best}
    for seed in range(starts):
        drawn = flat(initial_weights(states, GAIN, generator(seed, env, states, "limits start")))
        begins |= {("random", seed): drawn, ("family", 1 + seed): drawn}
    for path in weights:
        cell = Cell.parse(path.stem)
        if (cell.env, cell.states, cell.depth) == (env, states, depth):
            u, A = load_arrays(path, "u", "A")
            begins |= {(cell.algo, i): flat(Weights(u[i], A[i])) for i in range(min(pretrained, len(u)))}
    rows, spectrum, first = [], None, None
    for (start, seed), parameter in begins.items():
        objective, basis = (within, family) if start == "family" else (free, whole)
        begin = basis.T @ parameter
        end, value, gradient, taken = minimise(objective, begin, tolerance, most_steps, newton_steps)
        z = whole.T @ (basis @ end)
        hessian, inside = objective.hessian(end), basis.T @ family
        curvatures, along = (np.linalg.eigvalsh(H)[::-1] for H in (hessian, inside.T @ hessian @ inside))
        if first is None:
            first, spectrum = z, pd.DataFrame({"number": range(1, len(z) + 1), "curvature": curvatures})
        before, after = (expected_updates(held, basis @ one + free.offset, depth, discount) for one in (begin, end))
        of = decomposition_measures(unflat(basis @ end + free.offset, states), discount)
        rows.append(
            {
                "start": start, "seed": seed, "begin": objective.value_and_gradient(begin)[0],
                "value": value, "gradient": gradient, "steps": taken,
                **{name: float(of[name]) for name in ("alpha", "outside", "H", "u")},
                "held": beside.value_and_gradient(z)[0], "distance": np.linalg.norm(z - first) / np.linalg.norm(first),
                "dimension": len(end), "rank": (curvatures > FLAT * curvatures[0]).sum(),
                "along": along[0] / curvatures[0], "lowest": curvatures[-1] / curvatures[0],
                **after, **{f"{name}_begin": of for name, of in before.items()},
            }
        )  # fmt: skip
    place = {"env": env, "states": states, "depth": depth}
    save_tables(output, {"rows": pd.DataFrame(rows).assign(**place), "spectrum": spectrum.assign(**place)})


def enumerated(tasks: Tasks, discount: float) -> Prompts:
    """Enumerated prompts of tasks, eq. (Z0 redef), with attention divided by n."""
    root, n = np.sqrt(tasks.states), tasks.states
    X = enumerated_columns(tasks.transition, tasks.reward, discount)[:, : 2 * n]
    value = value_function(tasks.transition, tasks.reward, discount)
    return Prompts(np.ascontiguousarray(X / root), tasks.reward / root, value, tasks.stationary)


def expected_updates(tasks: Tasks, parameter: np.ndarray, depth: int, discount: float) -> dict[str, float]:
    """J and J': sums of absolute entries of half the gradient of the MSVE to fixed targets r + gamma p TF_L, or v."""
    of_values, basis = enumerated(tasks, discount), np.eye(len(parameter))[:, :-1]
    (estimate,) = Objective([(of_values, basis)], depth).estimates(parameter[:-1])
    of_targets = replace(of_values, target=tasks.reward + discount * np.matvec(tasks.transition, estimate))
    of = {"J": of_targets, "J_mc": of_values}.items()
    gradients = {name: Objective([(one, basis)], depth).value_and_gradient(parameter[:-1])[1] for name, one in of}
    return {name: np.abs(gradient).sum() / 2 for name, gradient in gradients.items()}
