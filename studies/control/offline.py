"""Policy iteration in context from batches of transitions of the uniform policy, by all methods, in one place."""

from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ictd.statistics import log_spaced
from ictd.storage import load_arrays, save_arrays
from ictd.transformer import Weights
from studies.control.evaluators import Evaluator, InContext, baselines, iterate
from studies.control.grid import CONTROLS, FORMATS
from studies.control.partly_exact import PartlyExact, advantage, inner
from studies.control.processes import Processes, pair_paths, transition_counts, uniform, unseen_processes

# Upper limit of means of diverging estimates, so that they fit into float32.
LARGEST = 1e30
# Number of iterations of the run in the figure.
SHOWN_ITERATIONS = 4


def main(
    place: dict,
    variants: dict,
    first: str,
    depth: int,
    iterations: int,
    test_processes: int,
    tuning_processes: int,
    context_lengths: list[int],
    concentrations: list[float],
    ridges: dict,
    pseudo_counts: dict,
    step_sizes: dict,
    runs: list[Path],
    output: Path,
) -> None:
    """Write what ``measure`` returns for each method, seed, number of tasks and context length.

    ``runs`` are files of pretrained weights.  The first run is evaluated after all numbers of tasks, the others only
    after the last number of tasks.  The first run, and runs that were pretrained on other prompts than the variant
    ``first``, are evaluated on prompts in all formats, without and with pseudo-counts.  Control experiments are made if
    the first run belongs to the variant ``first``.
    """
    discount = place["discount"]
    test = draw_batches(place, test_processes, context_lengths, concentrations, "test")
    tuning = draw_batches(place, tuning_processes, context_lengths, concentrations, "tuning")
    trial = Trial(test, tuning, discount, iterations)
    controls = CONTROLS if runs[0].stem == first else ()

    rows = []
    mean_transition = tuning.processes.transition.mean(axis=0)
    candidates = baselines(place, depth, mean_transition, ridges, pseudo_counts, step_sizes)
    for name, evaluators in candidates.items():
        some_controls = controls if name == "smoothed" else ()
        rows += trial.rows(name, evaluators, trial.tuned(evaluators), controls=some_controls)
    numbers = [0.0, *log_spaced(**pseudo_counts)]
    no_pseudo_counts = np.zeros(len(context_lengths))
    for path in runs:
        name = path.stem
        tasks_seen, u, A = load_arrays(path, "tasks_seen", "u", "A")
        is_first = path == runs[0]
        in_all_formats = is_first or variants[name]["prompts"] != variants[first]["prompts"]
        evaluated = range(len(tasks_seen)) if is_first else [len(tasks_seen) - 1]
        for format, seed, k in product(FORMATS if in_all_formats else [""], range(len(u)), evaluated):
            is_last = k == len(tasks_seen) - 1
            weights, layers = Weights(u[seed, k], A[seed, k]), variants[name]["depth"]
            evaluators = {number: InContext(weights, layers, number, grouped=bool(format)) for number in numbers}
            some_controls = controls if is_first and is_last and not format else ()
            rows += trial.rows(name + format, evaluators, no_pseudo_counts, seed, tasks_seen[k], some_controls)
            if is_last and in_all_formats:
                if seed == 0:
                    best = trial.tuned(evaluators)
                rows += trial.rows(f"{name}{format} pseudo_counts", evaluators, best, seed, tasks_seen[k])
    u, A = load_arrays(runs[0], "u", "A")
    critic = InContext(Weights(u[0, -1], A[0, -1]), variants[runs[0].stem]["depth"])
    shown = shown_run(critic, test.processes, test.counts[len(context_lengths) // 2], discount)
    arrays = {name: np.stack([row[name] for row in rows]) for name in rows[0]}
    optimal = test.processes.mean_value(test.processes.optimal(discount), discount)
    save_arrays(output, **arrays, context_lengths=np.array(context_lengths), optimal=optimal, **shown)


class Batches(NamedTuple):
    """Processes, and the counts (N, S, A, S) of the transitions observed in each, for each context length."""

    processes: Processes
    counts: list[np.ndarray]


def draw_batches(
    place: dict, size: int, context_lengths: list[int], concentrations: list[float], purpose: str
) -> Batches:
    """Draw processes, and one path of the uniform policy in each, whose first steps are the batches."""
    processes, rng = unseen_processes(place, size, concentrations, purpose)
    policy = uniform(processes.reward.shape)
    paths = pair_paths(processes, policy, 1, max(context_lengths), rng)[:, 0]
    counts = [transition_counts(paths, length, place["states"], place["actions"]) for length in context_lengths]
    return Batches(processes, counts)


class Trial:
    """Evaluation of methods on the batches of one place.

    Parameters
    ----------
    test : Batches, on which methods are compared
    tuning : Batches, on which parameters are chosen
    discount : float, gamma
    iterations : int, K
    """

    def __init__(self, test: Batches, tuning: Batches, discount: float, iterations: int):
        self.test = test
        self.tuning = tuning
        self.discount = discount
        self.iterations = iterations

    def measures(self, evaluators: list[Evaluator], batches: Batches) -> dict[str, np.ndarray]:
        """Arrays (lengths, ...) of ``measure``, with one evaluator for each context length."""
        by_length = [
            measure(evaluate, batches.processes, counts, self.discount, self.iterations)
            for evaluate, counts in zip(evaluators, batches.counts, strict=True)
        ]
        stacked = {name: np.stack([measures[name] for measures in by_length]) for name in by_length[0]}
        return {name: array.clip(max=LARGEST).astype(np.float32) for name, array in stacked.items()}

    def tuned(self, evaluators: dict[float, Evaluator]) -> np.ndarray:
        """Parameters (lengths,) whose last policies have the greatest mean value on the tuning processes.

        If parameters are equally good, the largest is chosen.
        """
        parameters = np.array(list(evaluators)[::-1])
        values = []
        for parameter in parameters:
            everywhere = [evaluators[parameter]] * len(self.tuning.counts)
            values.append(self.measures(everywhere, self.tuning)["mean_value"][:, -1].mean(axis=-1))
        return parameters[np.argmax(values, axis=0)]

    def rows(
        self,
        method: str,
        evaluators: dict[float, Evaluator],
        parameters: np.ndarray,
        seed: int = 0,
        tasks: int = 0,
        controls: tuple[str, ...] = (),
    ) -> list[dict]:
        """Rows of results of a method, and of control experiments with it, named "METHOD CONTROL".

        Parameters
        ----------
        method : str
        evaluators : dict of evaluators by parameter
        parameters : (lengths,) array, the chosen parameters
        seed, tasks : int, those of pretraining
        controls : names of control experiments
        """
        chosen = [evaluators[parameter] for parameter in parameters]
        at_grid_end = np.isin(parameters, [min(evaluators), max(evaluators)]) & (parameters > 0)
        trial = {"seed": seed, "tasks": tasks, "parameter": parameters, "at_grid_end": at_grid_end}
        rows = [{"method": method} | trial | self.measures(chosen, self.test)]
        for kind in controls:
            partly_exact = [PartlyExact(evaluate, self.test.processes, kind) for evaluate in chosen]
            rows.append({"method": f"{method} {kind}"} | trial | self.measures(partly_exact, self.test))
        return rows


def measure(
    evaluate: Evaluator, processes: Processes, counts: np.ndarray, discount: float, iterations: int
) -> dict[str, np.ndarray]:
    """Measure policy iteration with an evaluator.

    Parameters
    ----------
    evaluate : Evaluator
    processes : Processes, N of them
    counts : (N, S, A, S) array, observed transitions
    discount : float, gamma
    iterations : int, K

    Returns
    -------
    dict
        mean_value : (K+1, N) array, mean value over states of each policy
        changes : (N,) bool array, true if the last iteration changes the policy
        error : (N,) array, mean squared error over pairs of the estimates for the uniform policy
        advantage_error : (N,) array, the same of the advantages
        cosine : (N,) array, cosine of the error of the advantages and the true advantages
    """
    policies, estimated = iterate(evaluate, counts, processes.reward, discount, iterations)
    q = processes.values(policies[0], discount)
    true_advantage = advantage(q)
    advantage_error = advantage(estimated[0] - q)
    norms = np.sqrt(inner(advantage_error, advantage_error) * inner(true_advantage, true_advantage))
    cosine = inner(advantage_error, true_advantage) / np.maximum(norms, 1e-300)
    return {
        "mean_value": np.stack([processes.mean_value(policy, discount) for policy in policies]),
        "changes": (policies[-1] != policies[-2]).any(axis=(1, 2)),
        "error": ((estimated[0] - q) ** 2).mean(axis=(1, 2)),
        "advantage_error": (advantage_error**2).mean(axis=(1, 2)),
        "cosine": cosine[:, 0, 0],
    }


def shown_run(evaluate: Evaluator, processes: Processes, counts: np.ndarray, discount: float) -> dict[str, np.ndarray]:
    """Select one process, and return what policy iteration does there.

    It is the first process whose policy changes in the second iteration and not in the next two (kind 2), else the
    first whose policy changes in the second iteration (kind 1), else the first (kind 0).

    Returns
    -------
    dict
        run_q, run_exact : (3, S, A) arrays, estimates and true values of the first three policies
        run_optimal : (S, A) array, an optimal policy
        run_transition : (S, A, S) array
        run_kind : int, kind of the process
        run_share : (3,) array, share of the way from the uniform to the optimal policy after each iteration
    """
    policies, q = iterate(evaluate, counts, processes.reward, discount, SHOWN_ITERATIONS)
    changes = (policies[1:-1] != policies[2:]).any(axis=(2, 3))  # (3, N), in iterations 2, 3 and 4
    kind = changes[0] * (2 - (changes[1] | changes[2]))
    index = int(np.argmax(kind))
    one_process = slice(index, index + 1)
    process = Processes(processes.transition[one_process], processes.reward[one_process])
    optimal = processes.optimal(discount)[one_process]
    (uniform_value,) = process.mean_value(policies[0, one_process], discount)
    (optimal_value,) = process.mean_value(optimal, discount)
    values = np.array([process.mean_value(policy, discount)[0] for policy in policies[1:4, one_process]])
    return {
        "run_q": q[:3, index],
        "run_exact": np.concatenate([process.values(policy, discount) for policy in policies[:3, one_process]]),
        "run_optimal": optimal[0],
        "run_transition": process.transition[0],
        "run_kind": kind[index],
        "run_share": (values - uniform_value) / (optimal_value - uniform_value),
    }
