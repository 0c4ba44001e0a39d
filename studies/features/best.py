"""Fit the numbers of each family of weights with few numbers on tasks of a setting."""

from pathlib import Path

import numpy as np

from ictd.storage import save_table
from studies.features.symmetric import FAMILIES, best_of_starts, fixed_point
from studies.features.tasks import held_out

# Values of alpha, and the eta, from which descents start.
ALPHAS, ETA = (0.3, 1.5), 0.3
COLUMNS = ("setting", "family", "target", "alpha", "eta", "outside", "b11", "b12", "b21", "b22")


def main(name: str, setting: dict, tasks: int, output: Path) -> None:
    """Write the matrix B of each family with the least mean MSVE, and that at the fixed point of multi-task TD.

    ``outside`` is the share of the squared norm of B outside of K [-1, 1].
    """
    data, depth = held_out(setting, tasks, 0, "tuning"), setting["depth"]
    gram = data.gram
    rows = []
    for family, directions in FAMILIES.items():
        starts = [np.pad([alpha, alpha * ETA], (0, 2))[: len(directions)] for alpha in ALPHAS]
        numbers = best_of_starts(starts, directions, data, gram, depth)
        rows.append((name, family, "values", *coefficients_of(np.tensordot(numbers, directions, axes=1))))
        if len(directions) > 1:
            numbers = fixed_point(starts[0], directions, data, gram, depth)
            rows.append((name, family, "td", *coefficients_of(np.tensordot(numbers, directions, axes=1))))
    save_table(output, dict(zip(COLUMNS, zip(*rows, strict=True), strict=True)))


def coefficients_of(B: np.ndarray) -> tuple[float, ...]:
    """alpha, eta, the share outside, and the entries of B (2, 2)."""
    (g, h), n = (B[:, 1] - B[:, 0]) / 2, (B[:, 0] + B[:, 1]) / 2
    return g, h / g, 2 * (n**2).sum() / (B**2).sum(), *B.ravel()
