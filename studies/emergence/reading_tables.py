"""Decide the paper's claims on the main setting under each reading."""

from pathlib import Path

import numpy as np
import pandas as pd

from ictd.anatomy import decomposition_measures, squared_norm
from ictd.pipeline.grid import Cell
from ictd.report.claim import Statements
from ictd.report.paper_claims import check_cells
from ictd.report.result_tables import agreement_table, mean_weights_table, msve_table, weights_table
from ictd.storage import load_named
from ictd.tables import load_table, long_table, save_tables
from ictd.transformer import Weights
from studies.emergence.batched_engine import theta_masks

OF_RUNS = ("u", "A", "P", "Q", "diverged_at", "msve", "enumerated_msve")
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
    """Write ``readings``, a row a reading and claim, and ``reading_runs``, a row a run, as CSV."""
    of_paper, beside, verdicts, measures = Statements(statements), load_table(baselines), [], []
    for path in runs:
        arrays = load_named(path, "algos", "seeds", "context_lengths", "scaled", *OF_RUNS)
        of = {
            Cell(str(algo), env, states, depth): arrays | {name: arrays[name][i] for name in OF_RUNS}
            for i, algo in enumerate(arrays["algos"])
        }
        tables = {
            "msve": msve_table(of), "baselines": beside, "weights": weights_table(of, of, discount),
            "mean_weights": mean_weights_table(of, discount),
            "agreement": agreement_table(of, discount),
        }  # fmt: skip
        for claim in check_cells(of_paper, tables, (env, states, depth)):
            name, _, setting = claim.id.partition("/")
            algo = next((algo for algo in arrays["algos"] if setting.startswith(f"{algo}-")), "both")
            judged = {"value": claim.value, "relation": claim.relation, "threshold": claim.threshold}
            verdicts.append({"reading": path.stem, "claim": name, "algo": algo, **judged, "verdict": claim.verdict})
        for cell, result in of.items():
            columns = run_measures(result, discount)
            measures.append(long_table({"seed": result["seeds"]}, columns, reading=path.stem, algo=cell.algo))
    save_tables(output, {"readings": pd.DataFrame(verdicts), "reading_runs": measures})


def run_measures(result: dict[str, np.ndarray], discount: float) -> dict[str, np.ndarray]:
    """Of each run: the task at which it diverged, shares of the parts of A, the share of what is beyond Theta in P and
    in Q, and MSVE.

    ``result`` is of S runs by one algorithm, as the step ``emergence.readings`` writes them; ``discount`` is gamma.
    """
    weights = Weights(result["u"], result["A"])
    shares = decomposition_measures(weights, discount, bool(result["scaled"]))
    inside = theta_masks(weights.states)
    inside[0, -1, -1] = 1
    columns = {"diverged_at": result["diverged_at"], **{name: shares[name] for name in SHARES}}
    for name, mask in zip("PQ", inside, strict=True):
        columns[f"beyond_{name}"] = 1 - squared_norm(result[name] * mask) / squared_norm(result[name])
    columns["msve_0"] = result["enumerated_msve"].mean(axis=-1)
    by_length = zip(result["context_lengths"], result["msve"].mean(axis=-1).T, strict=True)
    return columns | {f"msve_{length}": errors for length, errors in by_length}
