"""Which parts of A lower the error: two numbers, to which others of the eight and the rest are added one by one."""

from pathlib import Path

import numpy as np

from ictd.mrp import sample_tasks
from ictd.rng import generator
from ictd.storage import load_arrays, long_table, save_table
from ictd.weight_measures import shortest_identifiable
from studies.emergence.few_numbers import SETS, basis, nearest_numbers, without_u
from studies.emergence.questions import enumerated_errors
from studies.emergence.symmetry import family_part, label_mean


def main(env: str, states: int, depth: int, discount: float, test_tasks: int, weights: Path, output: Path) -> None:
    """Write the median MSVE of parts of A over runs and tasks, on enumerated prompts of the tasks of pretraining.

    Rows with the step 0 are nothing, the family part and the eight numbers.  Step 1 has two numbers, and each further
    step adds the part with which the error is lowest, until all of A is there.  ``weights`` is of ``relabelled``.
    """
    (A,) = load_arrays(weights, "A")
    tables = []
    for kind, runs in zip((env, f"relabelled_{env}"), A, strict=True):
        tasks = sample_tasks(kind, states, test_tasks, generator(0, kind, states, "parts"))

        def error(part: np.ndarray, tasks=tasks) -> float:
            return float(np.median(enumerated_errors(without_u(part), tasks, discount, depth)))

        parts, eight = parts_of(runs, discount), list(SETS[8])
        family = family_part(shortest_identifiable(runs, discount))
        rows = [("nothing", 0, error(0 * family)), ("family part", 0, error(family))]
        rows.append(("eight numbers", 0, error(sum(parts[name] for name in eight))))
        total = parts.pop("alpha") + parts.pop("beta")
        rows.append(("two numbers", 1, error(total)))
        while parts:
            errors = {name: error(total + part) for name, part in parts.items()}
            best = min(errors, key=errors.get)
            total = total + parts.pop(best)
            rows.append((best, rows[-1][1] + 1, errors[best]))
        names, steps, errors = map(np.array, zip(*rows, strict=True))
        tables.append(long_table({"part": names}, {"step": steps, "median": errors}, env=kind))
    save_table(output, *tables)


def parts_of(A: np.ndarray, discount: float) -> dict[str, np.ndarray]:
    """Parts (S, 2n, 2n) that sum to the ``shortest_identifiable`` A: each of eight numbers, and the rest in two."""
    A, bases = shortest_identifiable(A, discount), basis(8, A.shape[-1] // 2)
    numbers = nearest_numbers(label_mean(A), bases, discount)  # (S, K)
    scaled = numbers.T[..., None, None] * shortest_identifiable(bases, discount)[:, None]  # (K, S, 2n, 2n)
    parts = dict(zip(SETS[8], scaled, strict=True))
    rest = A - sum(parts.values())
    return parts | {"rest of the family": family_part(rest), "rest outside": rest - family_part(rest)}
