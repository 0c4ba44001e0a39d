"""Gather the decompositions and ablations of all cells, and correlate what is left without theta^TD."""

from pathlib import Path

import numpy as np
import pandas as pd

from ictd.anatomy import cosine, project_identifiable, residual
from ictd.pipeline.grid import CELL, Cell
from ictd.storage import load_named
from ictd.tables import long_table, save_tables
from studies.emergence.ablate import finite_runs

MEASURES = (
    "unidentifiable", "alpha", "cosine", "theta", "preconditioner", "outside", "H", "diagonal", "symmetric", "u",
)  # fmt: skip
OF_THETA = ("best_coefficient", "best_mean", "best_median")
OF_CONTROLS = ("controls", "controlled", "factor", "control_mean", "control_median")
CORRELATIONS = ["kind", *CELL, "seed", "cosine", "null_entries", "null_states"]
# Random orders that a null distribution is made of.
ORDERS = 200


def main(ablations: list[Path], weights: list[Path], discount: float, output: Path) -> None:
    """Write as CSV ``measures``, a row a run; ``ablations``, a row a variant, run and context length; ``controls``, the
    same for variants with a larger step or more layers, and ``factors``, those steps; ``baselines``, a row a cell and
    context length for theta^TD with its best step size; and ``correlations``, a row a pair of runs."""
    tables, residuals = {name: [] for name in ("measures", "ablations", "controls", "factors", "baselines")}, {}
    for path in ablations:
        names = Cell.parse(path.stem)._asdict()
        part = load_named(path, "seeds", "variants", "lengths", "mean", "median", *OF_THETA, *OF_CONTROLS, *MEASURES)
        of_runs, of_variants, of_theta = (
            {name: part[name] for name in group} for group in (MEASURES, ("mean", "median"), OF_THETA)
        )
        axes = {"variant": part["variants"], "seed": part["seeds"], "context_length": part["lengths"]}
        tables["measures"].append(long_table({"seed": part["seeds"]}, of_runs, **names))
        tables["ablations"].append(long_table(axes, of_variants, **names))
        controlled = {"variant": part["controlled"], "context_length": part["lengths"]}
        tables["factors"].append(long_table(controlled, {"factor": part["factor"]}, **names))
        by_control = {"variant": part["controlled"], "control": part["controls"]}
        by_control |= {"seed": part["seeds"], "context_length": part["lengths"]}
        errors = {over: part[f"control_{over}"] for over in ("mean", "median")}
        tables["controls"].append(long_table(by_control, errors, **names))
        tables["baselines"].append(long_table({"context_length": part["lengths"]}, of_theta, **names))
    for path in weights:
        seeds, runs = finite_runs(path)
        residuals[Cell.parse(path.stem)] = dict(
            zip(seeds, residual(project_identifiable(runs, discount).A), strict=True)
        )
    correlated = pd.DataFrame(correlations(residuals), columns=CORRELATIONS)
    save_tables(output, {**tables, "correlations": correlated})


def correlations(of_cell: dict[Cell, dict[int, np.ndarray]]) -> list[dict]:
    """Cosines of residuals, a row a pair: TD and MC, of one seed and of two, and of one algorithm two seeds or depths.

    For each cell ``of_cell`` has by seeds the residual (2n, 2n): A, as prompts see it, without its part along theta^TD.
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


def relabelled(A: np.ndarray, order: np.ndarray) -> np.ndarray:
    """A (..., 2n, 2n) with the states in another order, in rows and columns and in both halves of each."""
    both = np.concatenate([order, order + len(order)])
    return A[..., both[:, None], both]
