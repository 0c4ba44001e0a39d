"""Gather the decompositions and ablations of all cells, and correlate what is left without theta^TD."""

from pathlib import Path

import numpy as np
import pandas as pd

from ictd.decomposition import relabelled, residuals
from ictd.frames import save_table
from ictd.grid import Cell
from ictd.measures import cosine
from ictd.steps import run
from ictd.storage import load_arrays, load_named
from ictd.weights import Weights

MEASURES = (
    "unseen", "alpha", "theta", "preconditioner", "outside", "H", "diagonal", "symmetric", "u",
)  # fmt: skip
# Random orders that a null distribution is made of.
ORDERS = 200


def main(ablations: list[Path], weights: list[Path], discount: float, output: Path) -> None:
    """Write measures, ablations, yardsticks and correlations as CSV into the folder ``output``."""
    measured, removed, yardsticks, of_cell = [], [], [], {}
    for path in ablations:
        cell = Cell.parse(path.stem)
        part = load_named(path, "seeds", "variants", "lengths", "mean", "median", *MEASURES)
        names = cell._asdict()
        measured.append(pd.DataFrame({**names, "seed": part["seeds"], **{name: part[name] for name in MEASURES}}))
        axes = np.meshgrid(part["variants"], part["seeds"], part["lengths"], indexing="ij")
        columns = {name: axis.ravel() for name, axis in zip(("variant", "seed", "context_length"), axes, strict=True)}
        columns |= {name: part[name].ravel() for name in ("mean", "median")}
        removed.append(pd.DataFrame({**names, **columns}))
        names_of = ("lengths", "best_coefficient", "best_mean", "best_median")
        columns = dict(zip(("context_length", *names_of[1:]), load_arrays(path, *names_of), strict=True))
        yardsticks.append(pd.DataFrame({**names, **columns}))
    for path in weights:
        seeds, u, A, diverged_at = load_arrays(path, "seeds", "u", "A", "diverged_at")
        kept = diverged_at == 0
        of_cell[Cell.parse(path.stem)] = dict(
            zip(seeds[kept], residuals(Weights(u[kept], A[kept]), discount), strict=True)
        )
    made = {
        "measures": pd.concat(measured, ignore_index=True),
        "ablations": pd.concat(removed, ignore_index=True),
        "yardsticks": pd.concat(yardsticks, ignore_index=True),
        "correlations": pd.DataFrame(correlations(of_cell)),
    }
    for name, table in made.items():
        save_table(output / f"{name}.csv", table)


def correlations(of_cell: dict[Cell, dict[int, np.ndarray]]) -> list[dict]:
    """Cosines of residuals, a row a pair: TD and MC, of one seed and of two, and of one algorithm two seeds or depths.

    ``null_entries`` is the 97.5% quantile of the same cosine over random orders of one side's entries: what noise would
    give.  ``null_states`` is that over random orders of its states: what a pattern would give that is the same for all.
    """
    rows = []
    for cell, runs in of_cell.items():
        seeds = sorted(runs)
        following = dict(zip(seeds, seeds[1:] + seeds[:1], strict=True))
        twin = of_cell.get(cell._replace(algo="mc"), {}) if cell.algo == "td" else {}
        deeper = [other for other in of_cell if other[:3] == cell[:3] and other.depth > cell.depth]
        pairs = [("algos", twin, {seed: seed for seed in seeds}), ("algos, seeds", twin, following)]
        pairs += [("seeds", runs, following)] if len(seeds) > 1 else []
        pairs += [(f"depths, {other.depth}", of_cell[other], {seed: seed for seed in seeds}) for other in deeper]
        rng = np.random.default_rng(0)
        states = [rng.permutation(cell.states) for _ in range(ORDERS)]
        entries = [rng.permutation(4 * cell.states**2) for _ in range(ORDERS)]
        for kind, others, partner in pairs:
            for seed in seeds:
                if partner[seed] in others:
                    other = others[partner[seed]]
                    nulls = {
                        "null_entries": [other.ravel()[order].reshape(other.shape) for order in entries],
                        "null_states": [relabelled(other, order) for order in states],
                    }
                    row = {"kind": kind, **cell._asdict(), "seed": seed, "cosine": cosine(runs[seed], other)}
                    for name, drawn in nulls.items():
                        row[name] = np.quantile(cosine(runs[seed], np.array(drawn)), 0.975)
                    rows.append(row)
    return rows


if __name__ == "__main__":
    run(main)
