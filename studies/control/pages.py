"""Write the results of control in context as CSV, and its claims as pages."""

from itertools import product
from pathlib import Path

import numpy as np

from ictd.report import html
from ictd.report.claim_tables import claims_overview, claims_rows
from ictd.statistics import bootstrap_interval
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
            for k, m in enumerate(offline.lengths):
                row = {"place": place, "method": method, "tasks": tasks, "m": m}
                row |= {"parameter": parameters[k], "at_grid_end": at_grid_end[k]}
                for name, of_lengths in samples.items():
                    row |= mean_and_interval(name, of_lengths[:, k])
                rows.append(row)
    return rows


def regret_rows(online: Online) -> list[dict]:
    """Rows of the table ``regrets``."""
    rows = []
    for method, rule in product(online.methods, online.rules):
        row = {"method": method, "rule": rule, "choices": online.rows("choices", method, rule)[0]}
        rows.append(row | mean_and_interval("regret", online.rows("regret", method, rule)[..., -1]))
    return rows


def mean_and_interval(name: str, samples: np.ndarray) -> dict[str, float]:
    """Columns of a table: the mean of samples (seeds, N), and the ends of its 95% interval over processes."""
    low, high = bootstrap_interval(samples.mean(axis=0))
    return {name: samples.mean(), f"{name}_low": low, f"{name}_high": high}
