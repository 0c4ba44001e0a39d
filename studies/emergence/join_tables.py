"""Concatenate tables with the same columns."""

from pathlib import Path

import pandas as pd

from ictd.report.tables import load_table
from ictd.storage import save_table


def main(tables: list[Path], output: Path) -> None:
    """Write the rows of all tables as one table."""
    save_table(output, pd.concat([load_table(path) for path in tables], ignore_index=True))
