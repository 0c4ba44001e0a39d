"""Reading and writing of result tables, which are CSV files."""

from pathlib import Path

import numpy as np
import pandas as pd

from ictd.storage import reading, save_text


def load_table(path: Path) -> pd.DataFrame:
    """Read a table.  A missing or damaged file raises a ValueError, ``ictd.storage.Unusable``."""
    with reading(path):
        return pd.read_csv(path)


def load_tables(paths: list[Path]) -> dict[str, pd.DataFrame]:
    """Read tables, as a dict by the names of their files without the ending."""
    return {path.stem: load_table(path) for path in paths}


def rows_with(table: pd.DataFrame, **values) -> pd.DataFrame:
    """Select the rows with the given values in the columns of these names."""
    return table[(table[list(values)] == list(values.values())).all(axis=1)]


def save_table(path: Path, table: pd.DataFrame) -> None:
    """Write a table; floats are written with all digits."""
    save_text(path, table.to_csv(index=False, lineterminator="\n"))


def save_tables(folder: Path, tables: dict[str, pd.DataFrame | list[pd.DataFrame]]) -> None:
    """Write tables as CSV into a folder, by name; a list of tables is concatenated first."""
    for name, table in tables.items():
        save_table(folder / f"{name}.csv", pd.concat(table, ignore_index=True) if isinstance(table, list) else table)


def long_table(axes: dict[str, np.ndarray], arrays: dict[str, np.ndarray], **names) -> pd.DataFrame:
    """Make a table with one row for each entry of arrays that share their axes.

    Parameters
    ----------
    axes : dict
        For each axis, in order, the name of a column and the labels of the entries along the axis.
    arrays : dict
        The arrays, by the names of their columns.
    **names : values of further columns, the same in all rows

    Returns
    -------
    DataFrame with the columns of ``names``, ``axes`` and ``arrays``
    """
    index = np.meshgrid(*axes.values(), indexing="ij")
    columns = dict(zip(axes, index, strict=True)) | arrays
    return pd.DataFrame({**names, **{name: np.ravel(column) for name, column in columns.items()}})
