"""Gather Snakemake's benchmarks into one table of time and memory per rule."""

from pathlib import Path

import pandas as pd

from ictd import html, summaries
from ictd.frames import save_table
from ictd.steps import run


def main(folder: Path, benchmarks: list[Path], table: Path, page: Path) -> None:
    """Write the table as CSV and HTML; a file's place below ``folder`` names its rule."""
    parts = {}
    for path in benchmarks:
        rule = path.relative_to(folder).parts[0].removesuffix(".tsv")
        parts.setdefault(rule, []).append(pd.read_csv(path, sep="\t"))
    frame = summaries.compute_table(parts)
    save_table(table, frame)
    html.save(page, "compute", html.table(frame))


if __name__ == "__main__":
    run(main)
