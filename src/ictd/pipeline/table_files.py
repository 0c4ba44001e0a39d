"""Result tables as CSV files."""

import io
import itertools
from pathlib import Path

import numpy as np
import pandas as pd

from ictd.pipeline.storage import load_text, naming, save_text


def load_table(path: str | Path) -> pd.DataFrame:
    """Read a table; ValueError naming the file, if it is missing or not what was written."""
    with naming(path):
        return pd.read_csv(io.StringIO(load_text(path)))


def load_tables(paths: list[Path], rows: dict[str, list[dict]] | None = None) -> dict[str, pd.DataFrame]:
    """Read tables by their files' names, as ``load_table`` does; where ``rows`` are given, ``check_rows`` of each."""
    tables = {path.stem: load_table(path) for path in paths}
    for path in paths if rows else ():
        check_rows(path, tables[path.stem], rows[path.stem])
    return tables


def check_rows(path: Path, table: pd.DataFrame, products: list[dict]) -> None:
    """Refuse a table that lacks a row of what the configuration spans, has one twice, or one beyond; ValueError names
    the file and the row.

    Each product has values, or lists of them, by columns, and stands for a row of each combination.
    """
    products = products or [{name: [] for name in table}]
    lists = [{name: one if isinstance(one, list) else [one] for name, one in of.items()} for of in products]
    wanted = pd.concat(pd.DataFrame(itertools.product(*of.values()), columns=list(of)) for of in lists)
    names, wanted = list(wanted), pd.MultiIndex.from_frame(wanted)
    found = pd.MultiIndex.from_frame(table[names])
    twice, beyond = found[found.duplicated()], found.difference(wanted)
    with naming(path):
        for words, rows in (("lacks the row", wanted.difference(found)), ("has twice", twice), ("has unasked", beyond)):
            for row in rows[:1]:
                of = ", ".join(f"{name} {value}" for name, value in zip(names, row, strict=True))
                raise ValueError(f"it {words} {of}")


def rows_with(table: pd.DataFrame, **values) -> pd.DataFrame:
    """Rows that have the given values in the columns of these names."""
    return table[(table[list(values)] == list(values.values())).all(axis=1)]


def save_table(path: str | Path, table: pd.DataFrame) -> None:
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
