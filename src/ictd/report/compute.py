"""Gather Snakemake's benchmarks into one table of time and memory per rule (appendix, section "Compute Resources")."""

from pathlib import Path

import numpy as np
import pandas as pd

from ictd.storage import reading

# What Snakemake measures of a job: seconds, and MiB of memory.
MEASURED = ["s", "cpu_time", "max_rss"]
# What the paper's appendix says.
PAPER_CORES, PAPER_TD_MINUTES, PAPER_MC_HOURS = 150, 50, 15


def load_benchmarks(folder: Path, rules: list[str]) -> dict[str, list[pd.DataFrame]]:
    """Load Snakemake's benchmark tables of each job, by rule.

    A rule with one job has the benchmark ``RULE.tsv``; a rule with several has benchmarks in the folder ``RULE``.
    """
    benchmarks = {}
    for rule in rules:
        for path in sorted([*folder.glob(f"{rule}.tsv"), *folder.glob(f"{rule}/**/*.tsv")]):
            with reading(path):
                measured = pd.read_csv(path, sep="\t")[MEASURED].astype(float)
            benchmarks.setdefault(rule, []).append(measured)
    return benchmarks


def compute_table(benchmarks: dict[str, list[pd.DataFrame]]) -> pd.DataFrame:
    """Tabulate for each rule its jobs, their total wall and CPU time, and their largest memory; and the paper's totals.

    Parameters
    ----------
    benchmarks : dict
        Snakemake's benchmark table of each job, by rule.
    """
    lines = []
    for rule, by_job in benchmarks.items():
        jobs = pd.concat(by_job)
        measured = jobs[jobs["cpu_time"] > 0]  # Snakemake measured nothing of a job that ended before its first look.
        lines.append(
            [rule, str(len(jobs)), jobs["s"].sum(), measured["cpu_time"].sum(min_count=1), measured["max_rss"].max()]
        )
    columns = ["rule", "jobs", "time, summed over jobs (s)", "CPU time (s)", "peak memory (MiB)"]
    table = pd.DataFrame(lines, columns=columns)
    jobs, peak = str(table["jobs"].astype(int).sum()), table[columns[4]].max()
    total = ["these rules together", jobs, *table[columns[2:4]].sum(), peak]
    td, mc = PAPER_CORES * PAPER_TD_MINUTES * 60.0, PAPER_CORES * PAPER_MC_HOURS * 3600.0
    paper = [
        [f"paper, multi-task TD, {PAPER_TD_MINUTES} minutes on {PAPER_CORES} cores", "", np.nan, td, np.nan],
        [f"paper, multi-task MC, {PAPER_MC_HOURS} hours on {PAPER_CORES} cores", "", np.nan, mc, np.nan],
    ]
    return pd.concat([table, pd.DataFrame([total, *paper], columns=columns)], ignore_index=True)
