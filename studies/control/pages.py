"""Write the results of control in context as CSV, and its claims as pages."""

from itertools import product
from pathlib import Path

import numpy as np

from ictd.report import html
from ictd.report.claim_tables import claims_overview, claims_rows
from ictd.statistics import bootstrap_intervals
from ictd.storage import load_json, save_tables
from studies.control.measured import Offline, Online


def main(claims: Path, offline: list[Path], online: Path, output: Path) -> None:
    """Write the tables ``measures`` and ``regrets``, and pages of the claims.

    ``measures`` has a row for each place, method, number of tasks and number of transitions m; ``share_once`` is the
    share after one iteration.  ``regrets`` has the regret after all steps.  Measures are means, with 95% intervals over
    processes.
    """
    measures = []
    for path in offline:
        measures += measure_rows(path.stem, Offline(path))
    tables = {"measures": measures, "regrets": regret_rows(Online(online))}
    for name, rows in tables.items():
        tables[name] = {column: [row[column] for row in rows] for column in rows[0]}
    save_tables(output, tables)
    records = load_json(claims)
    html.save_frames(output, {"claims": claims_overview(records), "claims_all": claims_rows(records)})


def measure_rows(place: str, offline: Offline) -> list[dict]:
    """Rows of the table ``measures`` for a place."""
    rows = []
    for method in offline.methods:
        parameters = offline.rows("parameter", method)[0]
        at_grid_end = offline.rows("at_grid_end", method)[0]
        for tasks in offline.task_counts(method):
            samples = {
                name: offline.rows(name, method, tasks) for name in ("error", "advantage_error", "cosine", "changes")
            }
            samples["share"] = offline.share(method, tasks=tasks)
            samples["share_once"] = offline.share(method, 1, tasks)
            measured = means_and_intervals(samples)
            for k, m in enumerate(offline.lengths):
                row = {"place": place, "method": method, "tasks": tasks, "m": m}
                row |= {"parameter": parameters[k], "at_grid_end": at_grid_end[k]}
                rows.append(row | measured[k])
    return rows


def regret_rows(online: Online) -> list[dict]:
    """Rows of the table ``regrets``."""
    rows = []
    for method, rule in product(online.methods, online.rules):
        row = {"method": method, "rule": rule, "choices": online.rows("choices", method, rule)[0]}
        (regret,) = means_and_intervals({"regret": online.rows("regret", method, rule)[:, None, :, -1]})
        rows.append(row | regret)
    return rows


def means_and_intervals(samples: dict[str, np.ndarray]) -> list[dict[str, float]]:
    """Columns of K rows of a table: means of samples (seeds, K, N) with their 95% intervals over processes."""
    intervals = iter(bootstrap_intervals(np.concatenate([array.mean(axis=0) for array in samples.values()]).T))
    rows = [{} for _ in next(iter(samples.values()))[0]]
    for name, array in samples.items():
        for k, row in enumerate(rows):
            row[name] = array[:, k].mean()
            row[f"{name}_low"], row[f"{name}_high"] = next(intervals)
    return rows
