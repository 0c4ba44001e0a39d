"""Compare gradients by the fused engine and by the appendix's recursions with torch's, on whole prompts."""

from pathlib import Path

import numpy as np

from ictd.environments import sample_tasks
from ictd.fused import value_gradients
from ictd.steps import run
from ictd.storage import save_json
from ictd.streams import generator
from ictd.theory.agreement import by_appendix, by_autograd, largest_difference
from ictd.weights import Weights, theta_td

TASKS = 2
# Standard deviation of random weights' entries times sqrt(2n), which keeps 60 layers from growing much.
SPREAD = 0.2


def main(settings: list[str], discount: float, env_options: dict, output: Path) -> None:
    """Write the largest differences for each setting "env-states-depth", at theta^TD and at random weights."""
    rows = []
    for setting in settings:
        env, states, depth = setting.split("-")
        n, L = int(states), int(depth)
        rng = generator(0, env, n, "agreement")
        tasks = sample_tasks(env, n, TASKS, rng, **env_options.get(env, {}))
        deviation = SPREAD / np.sqrt(2 * n)
        random = Weights(rng.normal(0, deviation, 2 * n), rng.normal(0, deviation, (2 * n, 2 * n)))
        for name, weights in (("theta_td", theta_td(n)), ("random", random)):
            cases = [(weights, tasks, task, discount, L) for task in range(TASKS)]
            references = [by_autograd(*case) for case in cases]
            row = {"env": env, "states": n, "depth": L, "weights": name}
            for way, function in (("fused", value_gradients), ("appendix", by_appendix)):
                pairs = zip(cases, references, strict=True)
                row[way] = float(np.max([largest_difference(function(*case), wanted) for case, wanted in pairs]))
            rows.append(row)
    save_json(output, rows)


if __name__ == "__main__":
    run(main)
