"""Is there only one minimum?  Descents in decimal arithmetic from several starts, for one environment and depth.

A descent in float64 (``studies.limits.descend``) is continued by Newton's method with ``digits`` decimal digits.
"""

from decimal import Decimal, localcontext
from pathlib import Path

import numpy as np

from ictd.mrp import sample_tasks
from ictd.rng import generator
from ictd.storage import save_arrays, save_table
from ictd.transformer import initial_weights
from ictd.weight_measures import decomposition_measures, project_identifiable
from studies.limits.decimal_newton import DecimalMsve, coordinates, minimise_in_decimals, weights_of_coordinates
from studies.limits.descend import GAIN, best_theta_td
from studies.limits.engine import enumerated_prompts, parameters_of, weights_of
from studies.limits.minimise import MeanMsve, identifiable_basis, minimise

# Relative change of the MSVE at which Newton's method ends.
TOLERANCE = Decimal("1e-20")


def main(
    env: str,
    states: int,
    depth: int,
    discount: float,
    fixed_tasks: int,
    test_tasks: int,
    starts: int,
    digits: int,
    tolerance: float,
    most_steps: int,
    newton_steps: int,
    env_options: dict,
    table: Path,
    ends: Path,
) -> None:
    """Write a row for the descent from each start, and the weights at its end, rounded to float64.

    The starts are theta^TD with its best step size, and random weights.
    """
    tasks = sample_tasks(env, states, fixed_tasks, generator(0, env, states, "limits"), **env_options[env])
    other_tasks = sample_tasks(
        env, states, test_tasks, generator(0, env, states, "limits held out"), **env_options[env]
    )
    basis = identifiable_basis(states, discount)
    objective = MeanMsve([(enumerated_prompts(tasks, discount), basis)], depth)
    test_objective = MeanMsve([(enumerated_prompts(other_tasks, discount), basis)], depth)
    random = [initial_weights(states, GAIN, generator(seed, env, states, "limits start")) for seed in range(starts)]
    theta = best_theta_td(enumerated_prompts(tasks, discount), depth, basis)
    points, rows, end_weights = [], [], []
    for number, weights in enumerate([theta, *random]):
        in_floats = minimise(objective, basis.T @ parameters_of(weights), tolerance, most_steps, newton_steps)
        end_in_floats = weights_of(basis @ in_floats.z + objective.offset, states)
        with localcontext(prec=digits):
            in_decimals = DecimalMsve(tasks, discount, depth)
            minimum = minimise_in_decimals(in_decimals, coordinates(end_in_floats, discount), TOLERANCE, most_steps)
            end = weights_of_coordinates(minimum.z, states)
            msve, gradient = float(minimum.msve), float(minimum.gradient)
        end_weights.append(end)
        measures = decomposition_measures(end, discount)
        points.append(basis.T @ parameters_of(project_identifiable(end, discount)))
        distances = [np.linalg.norm(points[-1] - earlier) / np.linalg.norm(earlier) for earlier in points]
        rows.append(
            {
                "env": env,
                "states": states,
                "depth": depth,
                "start": "theta_td" if number == 0 else "random",
                "seed": max(number - 1, 0),
                "msve_in_floats": in_floats.value,
                "msve": msve,
                "gradient": gradient,
                "steps": minimum.steps,
                "strict": minimum.strict,
                "point": next(i for i, distance in enumerate(distances) if distance < 1e-6),
                "alpha": float(measures["alpha"]),
                "outside": float(measures["outside"]),
                "test_msve": test_objective.value_and_gradient(points[-1])[0],
            }
        )
    save_table(table, {name: [row[name] for row in rows] for name in rows[0]})
    save_arrays(ends, u=np.stack([end.u for end in end_weights]), A=np.stack([end.A for end in end_weights]))
