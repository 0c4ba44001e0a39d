"""Decide the paper's claims on the main setting under each reading."""

from pathlib import Path

import numpy as np
import pandas as pd

from ictd.pipeline.grid import Cell
from ictd.report.claim import Claim, Statements
from ictd.report.paper_claims import check_cells
from ictd.report.result_tables import agreement_table, mean_weights_table, msve_table, weights_table
from ictd.report.tables import load_table
from ictd.storage import load_named, long_table, save_tables
from ictd.transformer import Weights
from ictd.weight_measures import decomposition_measures, squared_norm
from studies.emergence.parameters import theta_masks

# Arrays with an axis of algorithms.
RUNS = ("u", "A", "P", "Q", "diverged_at", "msve", "enumerated_msve")
SHARES = ("alpha", "theta", "preconditioner", "outside")


def main(
    statements: Path,
    runs: list[Path],
    baselines: Path,
    env: str,
    states: int,
    depth: int,
    discount: float,
    output: Path,
) -> None:
    """Write ``readings``, a row for each reading and claim, and ``reading_runs``, a row for each run, as CSV."""
    paper_statements, baseline_table = Statements(statements), load_table(baselines)
    verdicts, measures = [], []
    for path in runs:
        arrays = load_named(path, "algos", "seeds", "context_lengths", "scaled", *RUNS)
        cells = {}
        for i, algo in enumerate(arrays["algos"]):
            cells[Cell(str(algo), env, states, depth)] = arrays | {name: arrays[name][i] for name in RUNS}
        tables = {
            "msve": msve_table(cells),
            "baselines": baseline_table,
            "weights": weights_table(cells, cells, discount),
            "mean_weights": mean_weights_table(cells, discount),
            "agreement": agreement_table(cells, discount),
        }
        for claim in check_cells(paper_statements, tables, (env, states, depth)):
            verdicts.append({"reading": path.stem, **verdict_row(claim, arrays["algos"])})
        for cell, result in cells.items():
            columns = run_measures(result, discount)
            measures.append(long_table({"seed": result["seeds"]}, columns, reading=path.stem, algo=cell.algo))
    save_tables(output, {"readings": pd.DataFrame(verdicts), "reading_runs": measures})


def verdict_row(claim: Claim, algos: np.ndarray) -> dict:
    """A claim's name, its algorithm ("both" for claims on both algorithms), its value and its verdict."""
    name, _, setting = claim.id.partition("/")
    return {
        "claim": name,
        "algo": next((algo for algo in algos if setting.startswith(f"{algo}-")), "both"),
        "value": claim.value,
        "relation": claim.relation,
        "threshold": claim.threshold,
        "verdict": claim.verdict,
    }


def run_measures(result: dict[str, np.ndarray], discount: float) -> dict[str, np.ndarray]:
    """Measure S runs by one algorithm.

    Parameters
    ----------
    result : arrays of S runs, as the step ``emergence.readings`` writes them
    discount : float, gamma

    Returns
    -------
    dict of (S,) arrays
        diverged_at : number of the task at which the run diverged, 0 if it did not
        alpha, theta, preconditioner, outside : as in ``ictd.weight_measures.decomposition_measures``
        beyond_P, beyond_Q : shares of the squared norms of P and of Q outside Theta
        msve_M : mean MSVE on contexts of M steps; M = 0 stands for enumerated prompts
    """
    weights = Weights(result["u"], result["A"])
    shares = decomposition_measures(weights, discount, bool(result["scaled"]))
    in_theta = theta_masks(weights.dimension)
    in_theta[0, -1, -1] = 1
    columns = {"diverged_at": result["diverged_at"], **{name: shares[name] for name in SHARES}}
    for name, mask in zip("PQ", in_theta, strict=True):
        columns[f"beyond_{name}"] = 1 - squared_norm(result[name] * mask) / squared_norm(result[name])
    columns["msve_0"] = result["enumerated_msve"].mean(axis=-1)
    for length, msve in zip(result["context_lengths"], result["msve"].mean(axis=-1).T, strict=True):
        columns[f"msve_{length}"] = msve
    return columns
