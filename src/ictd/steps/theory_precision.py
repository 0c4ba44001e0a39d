"""Compute the tails of Theorem 1, Theorem 2 and Corollary 1 with 60 digits, beside float64."""

from pathlib import Path

import numpy as np

from ictd.environments import sample_tasks
from ictd.steps import run
from ictd.storage import save_json
from ictd.streams import generator
from ictd.theory.embeddings import embeddings
from ictd.theory.precision import exact_tails, exact_update
from ictd.theory.statements import descent
from ictd.weights import theta_td

TASKS = 2
# Layers between two rows of the tails of Theorem 1.
EVERY = 10


def main(
    env: str, states: list[int], update_states: list[int], depth: int, update_depth: int, discount: float,
    env_options: dict, output: Path,
) -> None:  # fmt: skip
    """Write, for each number of states and task, errors at every tenth layer, and J's terms at the greatest depth."""
    rows = []
    for n in sorted({*states, *update_states}):
        tasks = sample_tasks(env, n, TASKS, generator(0, env, n, "theory"), **env_options)
        for task in range(TASKS):
            one = {"env": env, "states": n, "task": task}
            part = tasks[task : task + 1]
            if n in states:
                exact, bound = exact_tails(tasks, task, discount, depth)
                found = np.abs(embeddings(theta_td(n), part, discount, depth).expected_errors("mc")[0])
                for layer in range(0, depth + 1, EVERY):
                    numbers = {"exact": exact[layer].max(), "float64": found[layer].max(), "bound": bound[layer]}
                    difference = np.abs(exact[layer] - found[layer]).max()
                    rows.append({"quantity": "theorem_1", **one, "layer": layer, **numbers, "difference": difference})
            if n in update_states:
                updates = descent(embeddings(theta_td(n), part, discount, update_depth)).updates
                for algo, quantity in (("td", "theorem_2"), ("mc", "corollary_1")):
                    exact = exact_update(tasks, task, algo, discount, update_depth)
                    found = updates[algo][update_depth]
                    numbers = {"exact": np.abs(exact).sum(), "float64": np.abs(found).sum()}
                    difference = np.abs(exact - found).sum()
                    rows.append(
                        {"quantity": quantity, **one, "layer": update_depth, **numbers, "difference": difference}
                    )
    save_json(output, rows)


if __name__ == "__main__":
    run(main)
