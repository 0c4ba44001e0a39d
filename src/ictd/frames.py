"""Result tables as CSV files."""

from pathlib import Path

import pandas as pd

from ictd.storage import naming, replacing


def load_table(path: str | Path) -> pd.DataFrame:
    """Read a table; ValueError naming the file, if it is missing or damaged."""
    with naming(path):
        return pd.read_csv(path)


def save_table(path: str | Path, table: pd.DataFrame) -> None:
    """Write a table, floats with all their digits."""
    with replacing(path) as temporary:
        table.to_csv(temporary, index=False, lineterminator="\n")
