"""The best that forms of the looped Transformer can do on sampled contexts, each length alone or lengths together."""

from pathlib import Path

import numpy as np
import pandas as pd

from ictd.baselines import lstd
from ictd.evaluation import log_spaced
from ictd.pipeline.table_files import save_table
from ictd.streams import generator
from ictd.weights import Weights, theta_td
from studies.limits.contexts import Sampled, draw_tasks, sampled, with_pseudo_steps
from studies.limits.minimise import Objective, flat, minimise, seen_basis

SECTION = "forms"
RIDGES, PSEUDO_STEPS = log_spaced(1e-4, 30, 30), log_spaced(0.01, 1000, 41)
GROUPS, START = 20, 0.2  # Groups of test tasks that intervals are over; alpha of theta^TD that descents start from.


def main(
    form: str, states: int, depth: int, discount: float, contexts: int, test_tasks: int, lengths: list[int],
    most_steps: int, added: int, output: Path,
) -> None:  # fmt: skip
    """Write the MSVE on test tasks, a row a method, length and group of tasks.  Of a descent the step is kept that is
    best on other tasks.  Lengths together are weighted by the inverse of the yardstick's MSVE."""
    drawn = {}
    for name, number in (("descent", contexts), ("choice", test_tasks), ("test", test_tasks)):
        rng = generator(0, "boyan", states, f"limits {name}")
        # As many contexts to descend on of all lengths together as of one alone.
        number = number // len(lengths) if name == "descent" and form != "alone" else number
        drawn[name] = {m: sampled(draw_tasks("uniform", states, number, rng), m, discount, rng) for m in lengths}
    found, weights = yardsticks(drawn, discount)
    if form != "yardsticks":
        together = [[m] for m in lengths] if form == "alone" else [lengths]
        ends = [best(group, drawn, weights, form, depth, discount, most_steps, added) for group in together]
        found = {(form, m): errors for end in ends for m, errors in end.items()}
    rows = [
        pd.DataFrame({"method": name, "length": m, "group": range(GROUPS), "msve": [one.mean() for one in groups]})
        for (name, m), errors in found.items() for groups in [np.array_split(errors, GROUPS)]
    ]  # fmt: skip
    save_table(output, pd.concat(rows, ignore_index=True))


def yardsticks(drawn: dict[str, dict[int, Sampled]], discount: float) -> tuple[dict, dict[int, float]]:
    """MSVE of test tasks by LSTD and with pseudo-steps of the mean chain, and the inverse of the latter's as tuned."""
    found, weights = {}, {}
    for m, choice in drawn["choice"].items():
        mean = choice.tasks.stationary.mean(axis=0)[:, None] * choice.tasks.transition.mean(axis=0)
        methods = (
            ("lstd", RIDGES, lambda of, ridge: lstd(of.context, discount, ridge)),
            ("pseudo_steps", PSEUDO_STEPS,
             lambda of, k, steps=mean: with_pseudo_steps(of.context, k * steps, 0.0, discount)),
        )  # fmt: skip
        for name, values, method in methods:
            means = [choice.error(method(choice, value)).mean() for value in values]
            test, weights[m] = drawn["test"][m], 1 / min(means)
            found[name, m] = test.error(method(test, values[int(np.argmin(means))]))
    return found, weights


def best(
    lengths: list[int], drawn: dict, weights: dict, form: str, depth: int, discount: float, most_steps: int, added: int
) -> dict[int, np.ndarray]:
    """MSVE of test tasks, by length, where the weighted MSVE of the contexts that are descended on is least."""
    n = drawn["test"][lengths[0]].tasks.states
    basis, theta = seen_basis(n, discount), theta_td(n)

    def part(of: str, m: int):
        share = m / (m + added)
        both = np.hstack([basis, share * basis]) if form == "heads" else basis
        return drawn[of][m].prompts(discount, share if form == "empty" else 1.0, weights[m]), both

    on, choice = (Objective([part(of, m) for m in lengths], depth) for of in ("descent", "choice"))
    z = basis.T @ flat(Weights(theta.u, START * n * theta.A))
    z = np.concatenate([z, np.zeros_like(z)]) if form == "heads" else z
    z, *_ = minimise(on, z, 1e-10, most_steps, 0, lambda z: choice.value_and_gradient(z)[0])
    return {m: drawn["test"][m].error(Objective([part("test", m)], depth).estimates(z)[0]) for m in lengths}
