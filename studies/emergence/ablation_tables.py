"""Gather the decompositions and ablations of all cells as tables, and correlate residuals."""

from pathlib import Path

import numpy as np
import pandas as pd

from ictd.anatomy import cosine, project_identifiable, residual
from ictd.pipeline.grid import CELL, Cell
from ictd.storage import load_named, long_table, save_tables
from studies.emergence.ablate import finite_runs

# Arrays of the ablations of a cell.
MEASURES = (
    "unidentifiable", "alpha", "cosine", "theta", "preconditioner", "outside", "H", "diagonal", "symmetric", "u",
)  # fmt: skip
THETA = ("best_coefficient", "best_mean", "best_median")
CONTROLS = ("controls", "controlled", "factor", "control_mean", "control_median")
CORRELATIONS = ["kind", *CELL, "seed", "cosine", "null_entries", "null_states"]
# Number of random orders in a null distribution.
ORDERS = 200


def main(ablations: list[Path], weights: list[Path], discount: float, output: Path) -> None:
    """Write tables as CSV into ``output``.

    ``measures`` has a row for each run, ``ablations`` for each variant, run and context length, and ``controls`` for
    each controlled variant, control, run and context length.  ``factors`` has the factors of A in the controls,
    ``baselines`` theta^TD with its best step size for each cell and context length, and ``correlations`` a row for
    each pair of runs.
    """
    tables = {name: [] for name in ("measures", "ablations", "controls", "factors", "baselines")}
    for path in ablations:
        for name, table in ablation_tables(path).items():
            tables[name].append(table)
    residuals = {}
    for path in weights:
        seeds, runs = finite_runs(path)
        of_runs = residual(project_identifiable(runs, discount).A)
        residuals[Cell.parse(path.stem)] = dict(zip(seeds, of_runs, strict=True))
    tables["correlations"] = pd.DataFrame(correlations(residuals), columns=CORRELATIONS)
    save_tables(output, tables)


def ablation_tables(path: Path) -> dict[str, pd.DataFrame]:
    """The tables of one cell, by their names, from the file that the step ``ablate`` wrote."""
    cell = Cell.parse(path.stem)._asdict()
    arrays = load_named(path, "seeds", "variants", "lengths", "mean", "median", *THETA, *CONTROLS, *MEASURES)
    variant, controlled, control = arrays["variants"], arrays["controlled"], arrays["controls"]
    runs = {"seed": arrays["seeds"]}
    lengths = {"context_length": arrays["lengths"]}
    msve = {"mean": arrays["mean"], "median": arrays["median"]}
    control_msve = {"mean": arrays["control_mean"], "median": arrays["control_median"]}
    return {
        "measures": long_table(runs, {name: arrays[name] for name in MEASURES}, **cell),
        "ablations": long_table({"variant": variant} | runs | lengths, msve, **cell),
        "controls": long_table({"variant": controlled, "control": control} | runs | lengths, control_msve, **cell),
        "factors": long_table({"variant": controlled} | lengths, {"factor": arrays["factor"]}, **cell),
        "baselines": long_table(lengths, {name: arrays[name] for name in THETA}, **cell),
    }


def correlations(residuals: dict[Cell, dict[int, np.ndarray]]) -> list[dict]:
    """Compute cosines between the residuals of pairs of runs, and what chance would give.

    Pairs are of TD and MC with one seed, of TD and MC with two seeds, of two seeds of one algorithm, and of two depths
    with one seed.  No run is in two pairs of the same kind.

    Parameters
    ----------
    residuals : residuals (2n, 2n) of the identifiable part of A, by cell and seed

    Returns
    -------
    list of rows, one for each pair, with CORRELATIONS as keys
        null_entries : 97.5% quantile of the cosine over random orders of the entries of one side, as for noise
        null_states : the same over random orders of its states, as for a pattern that is the same for all states
            There is none for fewer than 5 states, which have too few orders.
    """
    table = []
    for cell, runs in residuals.items():
        entries, states = random_orders(cell.states)
        for kind, others, partners in compared_runs(cell, residuals):
            for seed, partner in partners.items():
                if partner not in others:
                    continue
                first, second = runs[seed], others[partner]
                shuffled = second.ravel()[entries].reshape(-1, *second.shape)
                row = {"kind": kind, **cell._asdict(), "seed": seed, "cosine": cosine(first, second)}
                row["null_entries"] = np.quantile(cosine(first, shuffled), 0.975)
                if cell.states >= 5:
                    relabelled = np.array([relabel_states(second, order) for order in states])
                    row["null_states"] = np.quantile(cosine(first, relabelled), 0.975)
                table.append(row)
    return table


def compared_runs(cell: Cell, residuals: dict[Cell, dict[int, np.ndarray]]) -> list[tuple[str, dict, dict[int, int]]]:
    """The kinds of pairs of a cell: name, residuals of the other runs by seed, and the other seed for each seed."""
    seeds = sorted(residuals[cell])
    same_seed = {seed: seed for seed in seeds}
    next_seed = dict(zip(seeds[::2], seeds[1::2], strict=False))
    mc = residuals.get(cell._replace(algo="mc"), {}) if cell.algo == "td" else {}
    pairs = [("algos", mc, same_seed), ("algos, seeds", mc, next_seed), ("seeds", residuals[cell], next_seed)]
    for other in residuals:
        if other[:3] == cell[:3] and other.depth > cell.depth:
            pairs.append((f"depths, {other.depth}", residuals[other], same_seed))
    return pairs


def random_orders(states: int) -> tuple[np.ndarray, list[np.ndarray]]:
    """Random orders of the entries of A, (ORDERS, 4n^2), and of the states.

    Rotations of the states are left out, because the chains may be alike after a rotation.
    """
    rng = np.random.default_rng(0)
    entries = np.array([rng.permutation(4 * states**2) for _ in range(ORDERS)])
    orders = [rng.permutation(states) for _ in range(ORDERS)]
    return entries, [order for order in orders if (np.diff(order) % states != 1).any()]


def relabel_states(A: np.ndarray, order: np.ndarray) -> np.ndarray:
    """A (..., 2n, 2n) with the states in another order (n,), in both halves of its rows and of its columns."""
    index = np.concatenate([order, order + len(order)])
    return A[..., index[:, None], index]
