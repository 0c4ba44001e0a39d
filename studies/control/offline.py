"""Policy iteration in context from batches of transitions of the uniform policy, by all methods, in one place.

What limits it is asked by evaluators that know the truth in part: exact values of pairs that were seen, or that were
not; or with random errors, as large as the method's in all, or in advantages, what tells actions of a state apart.
"""

from functools import partial
from pathlib import Path

import numpy as np

from ictd.evaluation import log_spaced
from ictd.pipeline.storage import load_arrays, save_arrays
from ictd.streams import generator
from ictd.weights import Weights
from studies.control.evaluators import iterate, transformer, yardsticks
from studies.control.processes import Processes, pair_paths, transition_counts, uniform, unseen_processes

LIMITS = ("exact_seen", "exact_unseen", "random_error", "random_advantage")


def advantage(q: np.ndarray) -> np.ndarray:
    """What tells the actions of a state apart: q without its mean over them."""
    return q - q.mean(axis=-1, keepdims=True)


def limited(evaluate, processes: Processes, kind: str, counts, reward, policy, discount) -> np.ndarray:
    """An evaluator that knows the truth in part; random errors are the same at each call, but for their size."""
    exact, own = processes.values(policy, discount), evaluate(counts, reward, policy, discount)
    if kind.startswith("exact"):
        return np.where((counts.sum(axis=-1) > 0) == (kind == "exact_seen"), exact, own)
    noise, error = generator(0, kind, own.shape[1], "control errors").normal(size=own.shape), own - exact
    if kind == "random_advantage":
        noise, error = advantage(noise), advantage(error)
    size, unit = (np.linalg.norm(one, axis=(1, 2), keepdims=True) for one in (error, noise))
    return exact + noise / unit * size


def measure(evaluate, processes: Processes, counts: np.ndarray, discount: float, iterations: int) -> dict:
    """``worth`` (K + 1, N) of each policy, and whether the last one still changes; and of the evaluation of the uniform
    policy, the mean squared ``error`` over pairs, that of advantages, and the loss by being greedy for it, a mean over
    states, by how many actions were tried there: ``lost`` (A + 1, N)."""
    policies, found = iterate(evaluate, counts, processes.reward, discount, iterations)
    q, tried = processes.values(policies[0], discount), (counts.sum(axis=-1) > 0).sum(axis=-1)
    loss = q.max(axis=-1) - (q * policies[1]).sum(axis=-1)
    return {
        "worth": np.stack([processes.worth(policy, discount) for policy in policies]),
        "changes": (policies[-1] != policies[-2]).any(axis=(1, 2)),
        "error": ((found[0] - q) ** 2).mean(axis=(1, 2)),
        "advantage_error": (advantage(found[0] - q) ** 2).mean(axis=(1, 2)),
        "lost": np.stack([(loss * (tried == k)).mean(axis=-1) for k in range(q.shape[-1] + 1)]),
    }


def picture(evaluate, processes: Processes, counts: np.ndarray, discount: float) -> dict[str, np.ndarray]:
    """One run as it goes, the first whose second policy is not yet the third, which is kept."""
    policies, q = iterate(evaluate, counts, processes.reward, discount, 4)
    same = (policies[1:-1] == policies[2:]).all(axis=(2, 3))
    i = int(np.argmax(~same[0] & same[1] & same[2]))
    exact, best = np.stack([processes.values(one, discount) for one in policies[:3]]), processes.optimal(discount)[i]
    run = {"policies": policies[:3, i], "q": q[:3, i], "exact": exact[:, i], "optimal": best, "counts": counts[i]}
    return {f"run_{name}": one for name, one in run.items()} | {"run_transition": processes.transition[i]}


def main(place: dict, variants: dict, depth: int, iterations: int, test_processes: int, tuning_processes: int,
         context_lengths: list[int], concentrations: list[float], ridges: dict, pseudo_steps: dict, step_sizes: dict,
         runs: list[Path], output: Path) -> None:  # fmt: skip
    """Write what ``measure`` gives, (rows, lengths, ..., N), for each ``method``, ``seed`` and number of ``tasks``,
    all of the first run's and the last of others'.  A ``parameter`` is that for each length whose policies are worth
    most on tuning processes.  ``optimal`` (N,) is the worth of optimal policies."""
    discount, rows = place["discount"], []

    def drawn(size, purpose):
        processes, rng = unseen_processes(place, size, concentrations, purpose)
        paths = pair_paths(processes, uniform(processes.reward.shape), 1, max(context_lengths), rng)
        return processes, [transition_counts(paths, m, place["states"], place["actions"]) for m in context_lengths]

    def all_of(evaluators, processes, batches):
        pairs = zip(evaluators, batches, strict=True)
        found = [measure(one, processes, counts, discount, iterations) for one, counts in pairs]
        return {name: np.stack([one[name] for one in found]) for name in found[0]}

    def add(method, choices, parameter, seed=0, tasks=0, kinds=()):
        found, row = [choices[one] for one in parameter], {"seed": seed, "tasks": tasks, "parameter": parameter}
        rows.append({"method": method} | row | all_of(found, *test))
        for kind in kinds:
            partly = [partial(limited, one, test[0], kind) for one in found]
            rows.append({"method": f"{method} {kind}"} | row | all_of(partly, *test))

    def chosen(choices):
        worth = [
            all_of([one] * len(context_lengths), *tuning)["worth"][:, -1].mean(axis=-1) for one in choices.values()
        ]
        return np.array(list(choices))[np.argmax(worth, axis=0)]

    test, tuning = drawn(test_processes, "test"), drawn(tuning_processes, "tuning")
    mean, middle = tuning[0].transition.mean(axis=0), len(context_lengths) // 2
    for name, choices in yardsticks(place, depth, mean, ridges, pseudo_steps, step_sizes).items():
        add(name, choices, chosen(choices), kinds=LIMITS if name == "smoothed" else ())
    numbers = (0.0, *log_spaced(**pseudo_steps))
    for path in runs:
        name, (seen, u, A) = path.stem, load_arrays(path, "tasks_seen", "u", "A")
        for seed, k in np.ndindex(u.shape[:2]):
            weights, last = Weights(u[seed, k], A[seed, k]), k == len(seen) - 1
            choices = {one: partial(transformer, weights, variants[name]["depth"], one) for one in numbers}
            if last or path == runs[0]:
                kinds = LIMITS if last and path == runs[0] else ()
                add(name, choices, np.zeros(len(context_lengths)), seed, int(seen[k]), kinds)
            if last and path == runs[0]:
                if not seed:
                    best, shown = chosen(choices), picture(choices[0.0], test[0], test[1][middle], discount)
                add(f"{name} pseudo_steps", choices, best, seed, int(seen[k]))
    found = {name: np.stack([row[name] for row in rows]) for name in rows[0]}
    optimal = test[0].worth(test[0].optimal(discount), discount)
    save_arrays(output, **found, context_lengths=np.array(context_lengths), optimal=optimal, **shown)
