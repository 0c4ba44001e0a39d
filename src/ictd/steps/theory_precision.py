"""Compute the tails of Lemmas 1 and 4, and the terms of J and J', in decimal arithmetic."""

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
# Layers between two rows of the tails.
EVERY = 10


def main(
    env: str, states: list[int], update_states: list[int], depth: int, update_depth: int, discount: float,
    env_options: dict, output: Path,
) -> None:  # fmt: skip
    """Write, for each number of states and task, both sides of the lemmas at every tenth layer; and at the greatest
    depth the norm of the task's expected update, with its relative difference from float64."""
    rows = []
    layers = list(range(0, depth + 1, EVERY))
    for n in sorted({*states, *update_states}):
        tasks = sample_tasks(env, n, TASKS, generator(0, env, n, "theory"), **env_options)
        for task in range(TASKS):
            one = {"env": env, "states": n, "task": task}
            if n in states:
                for quantity, sides in exact_tails(tasks, task, discount, layers).items():
                    for layer, (exact, bound, ratio) in zip(layers, sides, strict=True):
                        numbers = {"layer": layer, "exact": exact, "bound": bound, "ratio": ratio}
                        rows.append({"quantity": quantity, **one, **numbers})
            if n in update_states:
                updates = descent(embeddings(theta_td(n), tasks[task : task + 1], discount, update_depth)).updates
                for algo, quantity in (("td", "theorem_2"), ("mc", "corollary_1")):
                    exact, found = exact_update(tasks, task, algo, discount, update_depth), updates[algo][0, -1]
                    norm, off = np.abs(exact).sum(), np.abs(exact - found).sum()
                    numbers = {"layer": update_depth, "exact": norm, "difference": off / norm if norm else off}
                    rows.append({"quantity": quantity, **one, **numbers})
    save_json(output, rows)


if __name__ == "__main__":
    run(main)
