"""Gather Snakemake's benchmarks into one table of time and memory per rule (appendix, section "Compute Resources")."""

from pathlib import Path

import numpy as np
import pandas as pd

from ictd.report import html
from ictd.storage import reading
from ictd.tables import save_table

# What Snakemake measures of a job: seconds, and MiB of memory.
MEASURED = ["s", "cpu_time", "max_rss"]
# What the paper's appendix says.
PAPER_CORES, PAPER_TD_MINUTES, PAPER_MC_HOURS = 150, 50, 15


def main(folder: Path, rules: list[str], table: Path, page: Path) -> None:
    """Write one table as CSV and HTML, a row a rule, from the benchmarks in ``folder``.

    The benchmark of a rule is ``RULE.tsv``, or those in the folder ``RULE`` if the rule has several jobs.
    """
    benchmarks = {}
    for rule in rules:
        for path in sorted([*folder.glob(f"{rule}.tsv"), *folder.glob(f"{rule}/**/*.tsv")]):
            with reading(path):
                measured = pd.read_csv(path, sep="\t")[MEASURED].astype(float)
            benchmarks.setdefault(rule, []).append(measured)
    frame = compute_table(benchmarks)
    save_table(table, frame)
    html.save(page, "compute", html.table(frame))


def compute_table(benchmarks: dict[str, list[pd.DataFrame]]) -> pd.DataFrame:
    """A row a rule, from the benchmark tables that Snakemake wrote for it: jobs, wall and CPU time summed over the
    jobs, and their greatest memory; and the paper's totals."""
    rows = []
    for rule, parts in benchmarks.items():
        jobs = pd.concat(parts)
        measured = jobs[jobs["cpu_time"] > 0]  # The others ended before Snakemake looked at them.
        rows.append(
            [rule, str(len(jobs)), jobs["s"].sum(), measured["cpu_time"].sum(min_count=1), measured["max_rss"].max()]
        )
    columns = ["rule", "jobs", "time, summed over jobs (s)", "CPU time (s)", "peak memory (MiB)"]
    table = pd.DataFrame(rows, columns=columns)
    jobs, peak = str(table["jobs"].astype(int).sum()), table[columns[4]].max()
    total = ["these rules together", jobs, *table[columns[2:4]].sum(), peak]
    td, mc = PAPER_CORES * PAPER_TD_MINUTES * 60.0, PAPER_CORES * PAPER_MC_HOURS * 3600.0
    paper = [
        [f"paper, multi-task TD, {PAPER_TD_MINUTES} minutes on {PAPER_CORES} cores", "", np.nan, td, np.nan],
        [f"paper, multi-task MC, {PAPER_MC_HOURS} hours on {PAPER_CORES} cores", "", np.nan, mc, np.nan],
    ]
    return pd.concat([table, pd.DataFrame([total, *paper], columns=columns)], ignore_index=True)
