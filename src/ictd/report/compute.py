"""Gather Snakemake's benchmarks into one table of time and memory per rule (appendix, section "Compute Resources")."""

import re
from pathlib import Path

import numpy as np
import pandas as pd

from ictd.pipeline.storage import naming
from ictd.pipeline.table_files import save_table
from ictd.report import html

# What Snakemake measures of a job: seconds, and MiB of memory.
MEASURED = ["s", "cpu_time", "max_rss"]
# Where a job's name has its algorithm, if it took one.
ALGO = re.compile("/(?:td|mc)-")
# What the paper's appendix says.
PAPER_CORES, PAPER_TD_MINUTES, PAPER_MC_HOURS = 150, 50, 15


def main(folder: Path, jobs: list[str], table: Path, page: Path) -> None:
    """Write one table as CSV and HTML, a row a rule, which is how a job's name begins.

    Benchmarks that were removed from ``folder`` are left out: they are no reason to compute anything again.
    """
    parts, paths = {}, {job: folder / f"{job}.tsv" for job in jobs}
    for job in counted({job: path.stat().st_mtime for job, path in paths.items() if path.exists()}):
        path = paths[job]
        with naming(path):
            parts.setdefault(job.partition("/")[0], []).append(pd.read_csv(path, sep="\t")[MEASURED].astype(float))
    frame = compute_table(parts)
    save_table(table, frame)
    html.save(page, "compute", html.table(frame))


def counted(ended: dict[str, float]) -> list[str]:
    """Jobs without those that were done again under another cut, from when each ended: of the job that took all
    algorithms of a setting and those that took one, the last and its like."""
    alike = {}
    for job in ended:
        alike.setdefault(ALGO.sub("/", job), []).append(job)
    last = {of_all: max(jobs, key=ended.get) for of_all, jobs in alike.items()}
    return [job for of_all, jobs in alike.items() for job in jobs if (job == of_all) is (last[of_all] == of_all)]


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
