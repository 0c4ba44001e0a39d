"""Result tables as CSV files."""

from pathlib import Path

import numpy as np
import pandas as pd

from ictd.storage import reading, save_text


def load_table(path: Path) -> pd.DataFrame:
    """Read a table; ValueError naming the file, if it is missing or damaged."""
    with reading(path):
        return pd.read_csv(path)


def load_tables(paths: list[Path]) -> dict[str, pd.DataFrame]:
    """Read tables by the names of their files."""
    return {path.stem: load_table(path) for path in paths}


def rows_with(table: pd.DataFrame, **values) -> pd.DataFrame:
    """Rows that have the given values in the columns of these names."""
    return table[(table[list(values)] == list(values.values())).all(axis=1)]


def save_table(path: Path, table: pd.DataFrame) -> None:
    """Write a table, floats with all their digits."""
    save_text(path, table.to_csv(index=False, lineterminator="\n"))


def save_tables(folder: Path, tables: dict[str, pd.DataFrame | list[pd.DataFrame]]) -> None:
    """Write tables by name, parts of one below each other, as CSV into a folder."""
    for name, table in tables.items():
        save_table(folder / f"{name}.csv", pd.concat(table, ignore_index=True) if isinstance(table, list) else table)


def long_table(axes: dict[str, np.ndarray], arrays: dict[str, np.ndarray], **names) -> pd.DataFrame:
    """A row for each entry of arrays that share their axes.

    By the names of the columns, ``axes`` has what numbers the entries along each axis, and ``arrays`` the arrays with
    these axes.  ``names`` is what all rows share.
    """
    index = np.meshgrid(*axes.values(), indexing="ij")
    columns = dict(zip(axes, index, strict=True)) | arrays
    return pd.DataFrame({**names, **{name: np.ravel(column) for name, column in columns.items()}})
