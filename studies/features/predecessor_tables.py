"""Tables of the variants of the predecessor's setting."""

from pathlib import Path

import numpy as np
import pandas as pd

from ictd.anatomy import cosine
from ictd.report.claim import has_pattern
from ictd.statistics import Estimate, bootstrap, bootstrap_mean, proportion
from ictd.storage import load_named, long_table, save_tables
from studies.features.predecessor import aligned, td_matrices
from studies.features.predecessor_pretrain import MEASURES

# A run has learned if its median MSVE on unseen tasks is nearer to that of batch TD than to that of predicting zero.
LEARNED = 0.5


def main(runs: list[Path], output: Path) -> None:
    """Write the tables below as CSV.

    ``predecessor_variants`` has a row for each variant, with 95% intervals over seeds; ``predecessor_runs`` one for
    each run; ``predecessor_course`` one for each run and snapshot; and ``predecessor_matrices`` one for each entry of
    the means of P and Q over the seeds that did not diverge, with the sign that makes P's corner positive.
    """
    summary, table, course, matrices = [], [], [], []
    for path in runs:
        results = load_named(path, "tasks_seen", "P", "Q", "diverged_at", *MEASURES)
        of_course = course_measures(results)
        axes = {"seed": np.arange(len(results["diverged_at"])), "tasks": results["tasks_seen"]}
        course.append(long_table(axes, of_course, variant=path.stem))
        last = {name: values[:, -1] for name, values in of_course.items()}
        last["learned"] = last["share_of_td"] > LEARNED
        last["learned_td"] = last["learned"] & has_pattern(last["cosine_Q"])
        measures = {"diverged_at": results["diverged_at"], **last}
        table.append(long_table({"seed": axes["seed"]}, measures, variant=path.stem))
        final = aligned(np.stack([results["P"][:, -1], results["Q"][:, -1]], axis=1))
        summary.append({"variant": path.stem, **summarise(final, last)})
        finite = np.isfinite(final).all(axis=(1, 2, 3, 4))
        if finite.any():
            mean = final[finite].mean(axis=0)
            rows = {
                "matrix": np.array(["P", "Q"]),
                "layer": 1 + np.arange(mean.shape[1]),
                "row": np.arange(mean.shape[2]),
                "column": np.arange(mean.shape[2]),
            }
            matrices.append(long_table(rows, {"mean": mean}, variant=path.stem))
    tables = {
        "predecessor_variants": pd.DataFrame(summary),
        "predecessor_runs": table,
        "predecessor_course": course,
        "predecessor_matrices": matrices,
    }
    save_tables(output, tables)


def course_measures(results: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Measures (S, T) of S runs at T snapshots.

    Returns
    -------
    dict of (S, T) arrays: those of ``predecessor_pretrain``, and
        cosine_P, cosine_Q : cosines of P and Q, means over layers, to those of batch TD
        share_of_td : by how much the MSVE is below that of predicting zero, divided by the same for batch TD
    """
    P, Q = np.moveaxis(aligned(np.stack([results["P"], results["Q"]], axis=2)), 2, 0).mean(axis=3)
    P_td, Q_td = td_matrices(Q.shape[-1] // 2)
    gain = results["zero_msve"] - results["msve"]
    return {
        "cosine_P": cosine(P, P_td),
        "cosine_Q": cosine(Q, Q_td),
        "share_of_td": gain / (results["zero_msve"] - results["td_msve"]),
        **{name: results[name] for name in MEASURES},
    }


def summarise(matrices: np.ndarray, last: dict[str, np.ndarray]) -> dict[str, float]:
    """Numbers of a variant with their intervals over seeds.

    Parameters
    ----------
    matrices : (S, 2, K, D, D) array, aligned P and Q of S runs; NaN if a run diverged
    last : dict of (S,) arrays, measures after the last task

    Returns
    -------
    dict
        seeds, diverged, learned : numbers of runs
        learned_td : number of runs that learned, and whose own Q has the pattern of batch TD (``has_pattern``)
        learned_share, learned_td_share : with exact intervals
        mean_cosine_Q, mean_cosine_P : cosine of the mean over runs that did not diverge to that of batch TD
        others : means over these runs
    """
    finite = np.isfinite(matrices).all(axis=(1, 2, 3, 4))
    numbers = {"seeds": len(finite), "diverged": int((~finite).sum())}
    for name in ("learned", "learned_td"):
        numbers[name] = int(last[name].sum())
        numbers |= columns(f"{name}_share", proportion(numbers[name], len(finite)))
    means = matrices[finite].mean(axis=2)  # over layers
    for index, name in enumerate("PQ"):
        estimate = Estimate(np.nan, np.nan, np.nan)
        if finite.any():
            td = td_matrices(matrices.shape[-1] // 2)[index]
            found = bootstrap(lambda mean, td=td: {"cosine": cosine(mean, td)}, means[:, index])
            estimate = found["cosine"].estimate()
        numbers |= columns(f"mean_cosine_{name}", estimate)
    for name in ("cosine_Q", "share_of_td", "similarity", "value_difference"):
        values = last[name][finite]
        estimate = bootstrap_mean(values).estimate() if finite.any() else Estimate(np.nan, np.nan, np.nan)
        numbers |= columns(name, estimate)
    return numbers


def columns(name: str, estimate: Estimate) -> dict[str, float]:
    """Columns of an estimate and the ends of its interval."""
    return {name: estimate.value, f"{name}_low": estimate.low, f"{name}_high": estimate.high}
