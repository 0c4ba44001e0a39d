"""The lowest MSVE of several forms of the looped Transformer on sampled contexts.

A form is one head or two, with weights for each context length or for all lengths together (``grid.forms``).  A second
head is a second linear attention with its own weights.  Its output is added to that of the first head.  It divides by m
+ k instead of m, so its share in the output is m / (m + k).  Baselines are LSTD, with a ridge or with pseudo-counts.
"""

from pathlib import Path

import numpy as np

from ictd.baselines import certainty_equivalence, lstd, theta_preconditioned_td
from ictd.evaluation import UnseenTasks, draw_unseen_tasks
from ictd.mrp import Tasks
from ictd.prompt import Context
from ictd.statistics import log_spaced
from ictd.storage import save_table
from studies.limits.engine import Prompts, parameters_of, sampled_prompts
from studies.limits.minimise import MeanMsve, identifiable_basis, minimise

# Candidates for the parameters of the baselines.
RIDGES = log_spaced(1e-4, 30, 30)
PSEUDO_COUNTS = log_spaced(0.01, 1000, 41)
# Pseudo-counts so small that they matter only in states without a step, and so large that they outweigh all steps.
FEW = 1e-3
MANY = 1e6
# Number of groups of test tasks; intervals are over groups.
GROUPS = 20
# Descents start from theta^TD with this step size.
START = 0.2
# Norm of the gradient at which a descent ends.
TOLERANCE = 1e-10


def main(
    form: str,
    states: int,
    depth: int,
    discount: float,
    contexts: int,
    test_tasks: int,
    lengths: list[int],
    most_steps: int,
    added: list[int],
    output: Path,
) -> None:
    """Write the MSVE on test tasks, a row for each method, context length and group of tasks.

    ``form`` is one of ``grid.forms``, or "baselines".  The weights of a form minimise the MSVE on other contexts.
    For weights of all lengths together, lengths are weighted by the inverse of the MSVE of the best baseline.
    """
    # All lengths together have as many contexts as a single length.
    training_tasks = contexts if form == "alone" else max(GROUPS, contexts // len(lengths))
    data = {}
    for purpose, number in (("descent", training_tasks), ("choice", test_tasks), ("test", test_tasks)):
        data[purpose] = {
            m: draw_unseen_tasks(m, states, number, m, discount, "boyan", f"limits {purpose}") for m in lengths
        }
    if form == "baselines":
        errors, chosen = baseline_errors(data["choice"], data["test"])
    else:
        groups = [[m] for m in lengths] if form == "alone" else [lengths]
        errors, chosen = {}, {}
        importance = importance_of_lengths(data["choice"])
        for group in groups:
            best = best_errors(group, data, importance, form, depth, most_steps, added)
            errors |= {(form, m): msve for m, msve in best.items()}
    rows = []
    for (method, m), msve in errors.items():
        for i, group in enumerate(np.array_split(msve, GROUPS)):
            rows.append((method, m, i, group.mean(), chosen.get((method, m), np.nan)))
    columns = zip(*rows, strict=True)
    save_table(output, dict(zip(("method", "length", "group", "msve", "chosen"), columns, strict=True)))


def baseline_errors(
    choice: dict[int, UnseenTasks], test: dict[int, UnseenTasks]
) -> tuple[dict[tuple[str, int], np.ndarray], dict[tuple[str, int], float]]:
    """Compute the MSVE of LSTD with a ridge, and of LSTD with pseudo-counts of several chains.

    Parameters
    ----------
    choice : UnseenTasks by context length m
        Tasks for tuning ridges and pseudo-counts.  Their mean transitions are the mean chain.
    test : UnseenTasks by context length m

    Returns
    -------
    errors : dict of (N,) arrays by (method, m), the MSVE on each test task
    chosen : dict of the chosen ridges and pseudo-counts by (method, m)
    """
    errors, chosen = {}, {}
    for m, tuning in choice.items():
        chain = mean_chain(tuning.tasks)
        uniform_chain = np.full_like(chain, 1 / chain.size)
        # The addition of each method to a context, and the candidates for its parameter.
        methods = {
            "lstd": (None, RIDGES),
            "mean chain in unseen states": (chain, [FEW]),
            "mean chain alone": (chain, [MANY]),
            "uniform chain": (uniform_chain, PSEUDO_COUNTS),
            "pseudo_counts": (chain, PSEUDO_COUNTS),
        }
        context = test[m].context(m)
        for method, (added_chain, candidates) in methods.items():
            msve = tuning_errors(tuning, m, added_chain, candidates)
            best = candidates[int(np.argmin(msve))]
            errors[method, m] = baseline_error(test[m], context, added_chain, best)
            chosen[method, m] = best
    return errors, chosen


def importance_of_lengths(choice: dict[int, UnseenTasks]) -> dict[int, float]:
    """Inverse of the mean MSVE of LSTD with the best pseudo-counts of the mean chain, by context length."""
    return {m: 1 / min(tuning_errors(data, m, mean_chain(data.tasks), PSEUDO_COUNTS)) for m, data in choice.items()}


def mean_chain(tasks: Tasks) -> np.ndarray:
    """Mean transitions (n, n) of tasks, weighted by the mean stationary distribution."""
    return tasks.stationary.mean(axis=0)[:, None] * tasks.transition.mean(axis=0)


def tuning_errors(data: UnseenTasks, m: int, chain: np.ndarray | None, candidates: list[float]) -> list[float]:
    """Mean MSVE of a baseline with each of the candidates for its parameter."""
    context = data.context(m)
    return [baseline_error(data, context, chain, value).mean() for value in candidates]


def baseline_error(data: UnseenTasks, context: Context, chain: np.ndarray | None, value: float) -> np.ndarray:
    """MSVE (N,) of LSTD with a ridge, or with pseudo-counts of a chain (n, n), whose entries sum to one."""
    if chain is None:
        return data.error(lstd(context, data.discount, value))
    return data.error(certainty_equivalence(context, data.discount, value * chain))


def best_errors(
    lengths: list[int],
    data: dict[str, dict[int, UnseenTasks]],
    importance: dict[int, float],
    form: str,
    depth: int,
    most_steps: int,
    added: list[int],
) -> dict[int, np.ndarray]:
    """MSVE (N,) of test tasks, by context length, at the weights that minimise the weighted MSVE of some lengths.

    Of all steps of the descent, the step with the lowest weighted MSVE on the tasks of "choice" is returned.
    """
    some_data = data["test"][lengths[0]]
    states = some_data.tasks.states
    identifiable = identifiable_basis(states, some_data.discount)

    def part(purpose: str, m: int) -> tuple[Prompts, np.ndarray]:
        of_length = data[purpose][m]
        weight = importance[m] * of_length.tasks.stationary
        prompts = sampled_prompts(of_length.gram_matrix(m), of_length.value, weight)
        return prompts, form_basis(form, m, added[0], identifiable)

    training = MeanMsve([part("descent", m) for m in lengths], depth)
    choice = MeanMsve([part("choice", m) for m in lengths], depth)
    start = identifiable.T @ parameters_of(theta_preconditioned_td(START * states * np.eye(states)))
    if form.startswith("heads"):
        start = np.concatenate([start, np.zeros_like(start)])
    minimum = minimise(training, start, TOLERANCE, most_steps, validation=lambda z: choice.value_and_gradient(z)[0])
    errors = {}
    for m in lengths:
        (estimate,) = MeanMsve([part("test", m)], depth).estimates(minimum.z)
        errors[m] = data["test"][m].error(estimate)
    return errors


def form_basis(form: str, m: int, added: int, identifiable: np.ndarray) -> np.ndarray:
    """Basis of the parameters of a form on contexts of m steps.

    Parameters
    ----------
    form : str, one of ``grid.forms``
    m : int
    added : int
        The second head of "heads" adds this number to m.
    identifiable : (2n + 4n^2 + 1, k) array

    Returns
    -------
    basis : (2n + 4n^2 + 1, k) array, or (2n + 4n^2 + 1, 2k) for two heads
    """
    heads, _, number = form.partition("-")
    share = m / (m + int(number or added))
    if heads == "heads":
        return np.hstack([identifiable, share * identifiable])
    return share * identifiable if number else identifiable
