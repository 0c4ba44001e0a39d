"""Reading and writing of result tables, which are CSV files.

A table is a mapping from the names of its columns to sequences of one length.  Tables that are read are DataFrames.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ictd.storage import reading, save_text

if TYPE_CHECKING:
    import pandas as pd


def load_table(path: Path) -> pd.DataFrame:
    """Read a table.  A missing or damaged file raises a ValueError, ``ictd.storage.Unusable``."""
    import pandas as pd  # Writing a table does not need pandas, whose import takes time.

    with reading(path):
        return pd.read_csv(path)


def load_tables(paths: list[Path]) -> dict[str, pd.DataFrame]:
    """Read tables, as a dict by the names of their files without the ending."""
    return {path.stem: load_table(path) for path in paths}


def rows_with(table: pd.DataFrame, **values) -> pd.DataFrame:
    """Select the rows with the given values in the columns of these names."""
    return table[(table[list(values)] == list(values.values())).all(axis=1)]


def save_table(path: Path, *tables: Mapping) -> None:
    """Write tables with the same columns below each other as CSV: floats with all digits, NaN as nothing.

    pandas is not needed for this, because its import takes half as long as a short step.

    Parameters
    ----------
    path : Path
    *tables : mappings from the names of columns to sequences of one length, such as DataFrames

    Raises
    ------
    ValueError
        If the tables have different columns, or the columns of a table have different lengths.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    header = list(tables[0])
    writer.writerow(header)
    for table in tables:
        if list(table) != header:
            raise ValueError(f"{path} has the columns {', '.join(header)}; a table has {', '.join(table)}.")
        columns = [np.asarray(table[name]).tolist() for name in header]
        for row in zip(*columns, strict=True):
            # Only NaN is not equal to itself.
            writer.writerow(["" if value != value else value for value in row])
    save_text(path, text.getvalue())


def save_tables(folder: Path, tables: dict[str, Mapping | list[Mapping]]) -> None:
    """Write tables as CSV into a folder, by name; the tables of a list are written below each other."""
    for name, table in tables.items():
        parts = table if isinstance(table, list) else [table]
        save_table(folder / f"{name}.csv", *parts)


def long_table(axes: dict[str, np.ndarray], arrays: dict[str, np.ndarray], **names) -> dict[str, np.ndarray]:
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
    dict of columns, in the order of ``names``, ``axes`` and ``arrays``
    """
    labels = np.meshgrid(*axes.values(), indexing="ij")
    columns = {name: np.ravel(column) for name, column in zip(axes, labels, strict=True)}
    columns |= {name: np.ravel(array) for name, array in arrays.items()}
    (rows,) = {len(column) for column in columns.values()}
    return {name: np.full(rows, value) for name, value in names.items()} | columns
