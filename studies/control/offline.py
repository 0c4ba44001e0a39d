"""Policy iteration in context from batches of transitions of the uniform policy, by all methods, in one place."""

from functools import partial
from pathlib import Path

import numpy as np

from ictd.rng import generator
from ictd.statistics import log_spaced
from ictd.storage import load_arrays, save_arrays
from ictd.transformer import Weights
from studies.control.evaluators import iterate, transformer, yardsticks
from studies.control.grid import LIMITS
from studies.control.processes import Processes, pair_paths, transition_counts, uniform, unseen_processes


def advantage(q: np.ndarray) -> np.ndarray:
    """What tells the actions of a state apart: q without its mean over them."""
    return q - q.mean(axis=-1, keepdims=True)


def inner(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Inner product of values of all pairs, (N, 1, 1)."""
    return (x * y).sum(axis=(1, 2), keepdims=True)


def limited(evaluate, processes: Processes, kind: str, counts, reward, policy, discount) -> np.ndarray:
    """An evaluator that knows the truth in part.  It has exact values of pairs that were seen, or not, or of as many
    random ones; or a part of its own error; or an error that is random but as large, in all or in advantages only, and
    there also as much along the true ones, or as large in each state.  What is random is the same at each call."""
    exact, own = processes.values(policy, discount), evaluate(counts, reward, policy, discount)
    noise, error = generator(0, kind, own.shape[1], "control errors").normal(size=own.shape), own - exact
    if kind in ("quarter_error", "half_error"):
        return exact + error / (2 if kind == "half_error" else 4)
    if kind.startswith("exact"):
        known = (counts.sum(axis=-1) > 0) == kind.endswith("_seen")
        if "_as_" in kind:
            places = noise.reshape(len(own), -1).argsort(axis=-1).argsort(axis=-1).reshape(own.shape)
            known = places < known.sum(axis=(1, 2), keepdims=True)
        return np.where(known, exact, own)
    if kind != "random_error":
        noise, error = advantage(noise), advantage(error)
    if kind == "random_sign":
        return exact + np.sign(noise[..., :1]) * error
    true, along = advantage(exact), 0.0
    if kind == "aligned_advantage":
        along, beside = (inner(one, true) / inner(true, true) * true for one in (error, noise))
        noise, error = noise - beside, error - along
    return exact + along + noise * np.sqrt(inner(error, error) / inner(noise, noise))


def measure(evaluate, processes: Processes, counts: np.ndarray, discount: float, iterations: int) -> dict:
    """``worth`` (K + 1, N) of each policy, and whether the last one still changes; and of the evaluation of the uniform
    policy, the mean squared ``error`` over pairs, that of advantages, and its ``cosine`` with the true ones."""
    policies, found = iterate(evaluate, counts, processes.reward, discount, iterations)
    q = processes.values(policies[0], discount)
    true, error = advantage(q), advantage(found[0] - q)
    cosine = inner(error, true) / np.maximum(np.sqrt(inner(error, error) * inner(true, true)), 1e-300)
    return {
        "worth": np.stack([processes.worth(policy, discount) for policy in policies]),
        "changes": (policies[-1] != policies[-2]).any(axis=(1, 2)),
        "error": ((found[0] - q) ** 2).mean(axis=(1, 2)),
        "advantage_error": (error**2).mean(axis=(1, 2)),
        "cosine": cosine[:, 0, 0],
    }


def picture(evaluate, processes: Processes, counts: np.ndarray, discount: float) -> dict[str, np.ndarray]:
    """One run as it goes: the first whose second policy is not yet the third, which is kept twice; else the first whose
    second policy is not yet the third; else the first.  ``kind`` counts what of that it is, 2 to 0."""
    policies, q = iterate(evaluate, counts, processes.reward, discount, 4)
    changes = (policies[1:-1] != policies[2:]).any(axis=(2, 3))
    kind = changes[0] * (2 - (changes[1] | changes[2]))
    i = [int(np.argmax(kind))]
    one, best = Processes(*(part[i] for part in processes)), processes.optimal(discount)[i]
    low, high, *worth = (one.worth(of, discount)[0] for of in (uniform(best.shape), best, *policies[1:4, i]))
    exact = np.concatenate([one.values(policy, discount) for policy in policies[:3, i]])
    run = {"q": q[:3, i[0]], "exact": exact, "optimal": best[0], "transition": one.transition[0]}
    run |= {"kind": kind[i[0]], "share": (np.array(worth) - low) / (high - low)}
    return {f"run_{name}": one for name, one in run.items()}


def main(place: dict, variants: dict, first: str, depth: int, iterations: int, test_processes: int,
         tuning_processes: int, context_lengths: list[int], concentrations: list[float], ridges: dict,
         pseudo_steps: dict, step_sizes: dict, runs: list[Path], output: Path) -> None:  # fmt: skip
    """Write what ``measure`` gives, (rows, lengths, ..., N), at most 1e30, for each ``method``, ``seed`` and number of
    ``tasks``, all of the first run, else the last.  A ``parameter`` is that whose policies are worth most on tuning
    processes, ``at_end`` whether it is the least or greatest one.  ``optimal`` (N,) is the worth of optimal policies.
    Controls are those of the main variant, where it is tried first."""
    discount, rows, limits = place["discount"], [], LIMITS if runs[0].stem == first else ()

    def drawn(size, purpose):
        processes, rng = unseen_processes(place, size, concentrations, purpose)
        paths = pair_paths(processes, uniform(processes.reward.shape), 1, max(context_lengths), rng)
        return processes, [transition_counts(paths, m, place["states"], place["actions"]) for m in context_lengths]

    def all_of(evaluators, processes, batches):
        found = [measure(one, processes, of, discount, iterations) for one, of in zip(evaluators, batches, strict=True)]
        return {name: np.stack([one[name] for one in found]).clip(max=1e30).astype(np.float32) for name in found[0]}

    def add(method, choices, parameter, seed=0, tasks=0, kinds=()):
        found, row = [choices[one] for one in parameter], {"seed": seed, "tasks": tasks, "parameter": parameter}
        row["at_end"] = np.isin(parameter, [min(choices), max(choices)]) & (parameter > 0)
        rows.append({"method": method} | row | all_of(found, *test))
        for kind in kinds:
            partly = [partial(limited, one, test[0], kind) for one in found]
            rows.append({"method": f"{method} {kind}"} | row | all_of(partly, *test))

    def chosen(choices):
        order = list(choices)[::-1]  # Of those that do as well the greatest is taken.
        found = [all_of([choices[one]] * len(context_lengths), *tuning)["worth"] for one in order]
        return np.array(order)[np.argmax([one[:, -1].mean(axis=-1) for one in found], axis=0)]

    test, tuning = drawn(test_processes, "test"), drawn(tuning_processes, "tuning")
    mean, middle, numbers = tuning[0].transition.mean(axis=0), len(context_lengths) // 2, log_spaced(**pseudo_steps)
    for name, choices in yardsticks(place, depth, mean, ridges, pseudo_steps, step_sizes).items():
        add(name, choices, chosen(choices), kinds=limits if name == "smoothed" else ())
    for path in runs:
        name, (seen, u, A) = path.stem, load_arrays(path, "tasks_seen", "u", "A")
        for seed, k in np.ndindex(u.shape[:2]):
            weights, last, own = Weights(u[seed, k], A[seed, k]), k == len(seen) - 1, path == runs[0]
            choices = {one: partial(transformer, weights, variants[name]["depth"], one) for one in (0.0, *numbers)}
            if last or own:
                add(name, choices, np.zeros(len(context_lengths)), seed, seen[k], limits if last and own else ())
            if last and own and not seed:
                best, shown = chosen(choices), picture(choices[0.0], test[0], test[1][middle], discount)
            if last and own:
                add(f"{name} pseudo_steps", choices, best, seed, seen[k])
    found = {name: np.stack([row[name] for row in rows]) for name in rows[0]}
    optimal = test[0].worth(test[0].optimal(discount), discount)
    save_arrays(output, **found, context_lengths=np.array(context_lengths), optimal=optimal, **shown)
