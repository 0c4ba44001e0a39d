"""The best that forms of the looped Transformer can do on sampled contexts, each length alone or lengths together."""

from pathlib import Path

import numpy as np
import pandas as pd

from ictd.baselines import certainty_equivalence, lstd
from ictd.evaluation import UnseenTasks, draw_unseen_tasks
from ictd.mrp import Tasks, boyan
from ictd.statistics import log_spaced
from ictd.storage import save_table
from ictd.transformer import Weights, theta_td
from studies.limits.engine import Prompts, columns
from studies.limits.minimise import Objective, flat, minimise, seen_basis

RIDGES, PSEUDO_STEPS = log_spaced(1e-4, 30, 30), log_spaced(0.01, 1000, 41)
NONE, ALL = 1e-3, 1e6  # Numbers of pseudo-steps that tell only where no step was seen, or in place of all that were.
GROUPS, START = 20, 0.2  # Groups of test tasks that intervals are over; alpha of theta^TD that descents start from.


def main(
    form: str, states: int, depth: int, discount: float, contexts: int, test_tasks: int, lengths: list[int],
    most_steps: int, added: list[int], output: Path,
) -> None:  # fmt: skip
    """Write the MSVE on test tasks, a row a method, length and group of tasks.  Of a descent the step is kept that is
    best on other tasks.  Lengths together are weighted by the inverse of the yardstick's MSVE."""
    drawn = {}
    for name, number in (("descent", contexts), ("choice", test_tasks), ("test", test_tasks)):
        # As many contexts to descend on of all lengths together as of one alone.
        number = max(GROUPS, number // len(lengths)) if name == "descent" and form != "alone" else number
        drawn[name] = {m: draw_unseen_tasks(m, states, number, m, discount, "boyan", f"limits {name}") for m in lengths}
    found, weights = yardsticks(drawn, discount)
    if form != "yardsticks":
        together = [[m] for m in lengths] if form == "alone" else [lengths]
        ends = [best(group, drawn, weights, form, depth, most_steps, added) for group in together]
        found = {(form, m): (errors, np.nan) for end in ends for m, errors in end.items()}
    rows = [
        {"method": name, "length": m, "group": i, "msve": group.mean(), "chosen": chosen}
        for (name, m), (errors, chosen) in found.items()
        for i, group in enumerate(np.array_split(errors, GROUPS))
    ]
    save_table(output, pd.DataFrame(rows))


def draw_tasks(kind: str, states: int, size: int, rng: np.random.Generator) -> Tasks:
    """Boyan's chains: ``uniform``, with Beta(5, 1) ``steps``, a leaning ``last_row``, or ``rewards`` of mean 0.5."""
    transition, reward = boyan(states, size, rng)
    if kind == "steps":
        inner, share = np.arange(states - 2), rng.beta(5, 1, (size, states - 2))
        transition[:, inner, inner + 1], transition[:, inner, inner + 2] = share, 1 - share
    if kind == "last_row":
        last = transition[:, -1] * np.linspace(1, 0.1, states)
        transition[:, -1] = last / last.sum(axis=1, keepdims=True)
    return Tasks(transition, reward + 0.5 * (kind == "rewards"))


def yardsticks(drawn: dict[str, dict[int, UnseenTasks]], discount: float) -> tuple[dict, dict[int, float]]:
    """MSVE of test tasks by LSTD, with pseudo-steps of other chains, and with those of the mean chain, each with the
    ridge or number that is chosen; and the inverse of the last one's MSVE as tuned."""
    found, weights = {}, {}
    for m, choice in drawn["choice"].items():
        mean = choice.tasks.stationary.mean(axis=0)[:, None] * choice.tasks.transition.mean(axis=0)
        even = np.full_like(mean, 1 / mean.size)
        methods = {"lstd": (RIDGES, lambda seen, ridge: lstd(seen, discount, ridge))}
        of_chain = {"mean chain in unseen states": (mean, [NONE]), "mean chain alone": (mean, [ALL])}
        of_chain |= {"uniform chain": (even, PSEUDO_STEPS), "pseudo_steps": (mean, PSEUDO_STEPS)}
        for name, (Q, numbers) in of_chain.items():
            methods[name] = numbers, lambda seen, k, Q=Q: certainty_equivalence(seen, discount, k * Q)
        for name, (values, method) in methods.items():
            means = [choice.error(method(choice.context(m), value)).mean() for value in values]
            test, weights[m], chosen = drawn["test"][m], 1 / min(means), values[int(np.argmin(means))]
            found[name, m] = test.error(method(test.context(m), chosen)), chosen
    return found, weights


def best(
    lengths: list[int], drawn: dict, weights: dict, form: str, depth: int, most_steps: int, added: list[int]
) -> dict[int, np.ndarray]:
    """MSVE of test tasks, by length, where the weighted MSVE of the contexts that are descended on is least."""
    one, (form, _, number) = drawn["test"][lengths[0]], form.partition("-")
    n = one.tasks.states
    basis, theta = seen_basis(n, one.discount), theta_td(n)

    def part(name: str, m: int):
        share, of = m / (m + int(number or added[0])), drawn[name][m]
        one = share * basis if number else basis
        both = np.hstack([basis, share * basis]) if form == "heads" else one
        return Prompts(*columns(of.gram(m)), of.value, weights[m] * of.tasks.stationary), both

    on, choice = (Objective([part(name, m) for m in lengths], depth) for name in ("descent", "choice"))
    z = basis.T @ flat(Weights(theta.u, START * n * theta.A))
    z = np.concatenate([z, np.zeros_like(z)]) if form == "heads" else z
    z, *_ = minimise(on, z, 1e-10, most_steps, held=lambda z: choice.value_and_gradient(z)[0])
    return {m: drawn["test"][m].error(Objective([part("test", m)], depth).estimates(z)[0]) for m in lengths}
