"""Gather the decompositions and ablations of all cells, and correlate what is left without theta^TD."""

from pathlib import Path

import numpy as np
import pandas as pd

from ictd.decomposition import relabelled, residuals
from ictd.pattern import cosine
from ictd.pipeline.grid import CELL, Cell
from ictd.pipeline.storage import load_arrays, load_named
from ictd.pipeline.table_files import save_table
from ictd.weights import Weights

MEASURES = (
    "unseen", "alpha", "cosine", "theta", "preconditioner", "outside", "H", "diagonal", "symmetric", "u",
)  # fmt: skip
CORRELATIONS = ["kind", *CELL, "seed", "cosine", "null_entries", "null_states"]
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
        "correlations": pd.DataFrame(correlations(of_cell), columns=CORRELATIONS),
    }
    for name, table in made.items():
        save_table(output / f"{name}.csv", table)


def correlations(of_cell: dict[Cell, dict[int, np.ndarray]]) -> list[dict]:
    """Cosines of residuals, a row a pair: TD and MC, of one seed and of two, and of one algorithm two seeds or depths.

    No run is in two pairs of a kind.  ``null_entries`` is the 97.5% quantile of the same cosine over random orders of
    one side's entries: what noise would give.  ``null_states`` is that over random orders of its states, other than
    rotations, for which chains and loops may be alike: what a pattern would give that is the same for all states.  With
    fewer than 5 states there are too few of these.
    """
    rows = []
    for cell, runs in of_cell.items():
        seeds = sorted(runs)
        same, two = {seed: seed for seed in seeds}, dict(zip(seeds[::2], seeds[1::2], strict=False))
        twin = of_cell.get(cell._replace(algo="mc"), {}) if cell.algo == "td" else {}
        pairs = [("algos", twin, same), ("algos, seeds", twin, two), ("seeds", runs, two)]
        for other in of_cell:
            if other[:3] == cell[:3] and other.depth > cell.depth:
                pairs.append((f"depths, {other.depth}", of_cell[other], same))
        entries, states = random_orders(cell.states)
        for kind, others, partner in pairs:
            for seed, beside in partner.items():
                if beside in others:
                    one, other = runs[seed], others[beside]
                    shuffled = other.ravel()[entries].reshape(-1, *other.shape)
                    row = {"kind": kind, **cell._asdict(), "seed": seed, "cosine": cosine(one, other)}
                    row["null_entries"] = np.quantile(cosine(one, shuffled), 0.975)
                    if cell.states >= 5:
                        relabelings = np.array([relabelled(other, order) for order in states])
                        row["null_states"] = np.quantile(cosine(one, relabelings), 0.975)
                    rows.append(row)
    return rows


def random_orders(states: int) -> tuple[np.ndarray, list[np.ndarray]]:
    """Orders of the entries of A, (ORDERS, 4n^2), and of the states that are no rotation."""
    rng = np.random.default_rng(0)
    entries = np.array([rng.permutation(4 * states**2) for _ in range(ORDERS)])
    drawn = (rng.permutation(states) for _ in range(ORDERS))
    return entries, [order for order in drawn if (np.diff(order) % states != 1).any()]
