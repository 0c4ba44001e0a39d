"""Which of the numbers in relabelled weights lower the error: estimates from parts of A."""

import itertools
from pathlib import Path

import numpy as np

from ictd.mrp import sample_tasks
from ictd.rng import generator
from ictd.storage import load_arrays, save_table
from ictd.transformer import Weights
from ictd.weight_measures import shortest_identifiable
from studies.emergence.few_numbers import SETS, basis, nearest, nearest_numbers
from studies.emergence.questions import enumerated_errors
from studies.emergence.symmetry import family_part, label_mean


def main(env: str, states: int, depth: int, discount: float, test_tasks: int, weights: Path, output: Path) -> None:
    """Write the MSVE on enumerated prompts of relabelled tasks, of parts of A of each run, averaged over tasks.

    Numbers that are left out are zero, and the others keep their values.  ``weights`` is of ``relabelled``.
    """
    (A,) = load_arrays(weights, "A")
    A, env = A[1], f"relabelled_{env}"
    tasks = sample_tasks(env, states, test_tasks, generator(0, env, states, "parts"))
    names, six = SETS[8], basis(8, states)
    numbers = nearest_numbers(label_mean(A), six, discount)
    parts = {"all of A": A, "family part": family_part(shortest_identifiable(A, discount))}
    parts["nearest deflated TD"] = nearest(A, basis(2, states), discount)
    for count in range(1, 7):
        for kept in itertools.combinations(range(6), count):
            part = " ".join(names[i] for i in kept)
            parts[part] = np.tensordot(numbers[:, kept], six[[*kept]], axes=1)
    parts["nothing"] = np.zeros_like(A)
    found = []
    for part in parts.values():
        errors = enumerated_errors(Weights(np.zeros(part.shape[:-1]), part), tasks, discount, depth)
        found.append([errors.mean(), np.median(errors)])
    mean, median = np.transpose(found)
    save_table(output, {"part": [*parts], "mean": mean, "median": median})
