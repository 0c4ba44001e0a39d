"""Tables as columns: a mapping from the names of the columns to sequences of one length.

The steps of the theory write tables without pandas, whose import would make a short step a third longer.
"""

import csv
import io
from pathlib import Path

import numpy as np

from ictd.storage import save_text


def long_columns(axes: dict[str, np.ndarray], arrays: dict[str, np.ndarray], **names) -> dict[str, list]:
    """Make a table with a row for each entry of some arrays, as ``ictd.tables.long_table`` does.

    Parameters
    ----------
    axes : dict of arrays
        By the name of a column, the labels of the entries along an axis.  The order is that of the axes.
    arrays : dict of arrays
        By the name of a column, an array with these axes.
    **names : values of further columns, each the same in all rows

    Returns
    -------
    dict of lists
        Columns ``names``, ``axes`` and ``arrays``, in this order.
    """
    labels = np.meshgrid(*axes.values(), indexing="ij")
    columns = {name: np.ravel(column).tolist() for name, column in zip(axes, labels, strict=True)}
    columns |= {name: np.ravel(array).tolist() for name, array in arrays.items()}
    (rows,) = {len(column) for column in columns.values()}
    return {name: [value] * rows for name, value in names.items()} | columns


def save_columns(path: Path, tables: list[dict[str, list]]) -> None:
    """Write tables with the same columns below each other as CSV: floats with all their digits, NaN as nothing.

    ValueError if the tables have different columns, or the columns of a table different lengths.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    header = list(tables[0])
    writer.writerow(header)
    for table in tables:
        if list(table) != header:
            raise ValueError(f"{path} has the columns {', '.join(header)}; a table has {', '.join(table)}.")
        for row in zip(*table.values(), strict=True):
            # A number that is not itself is NaN.
            writer.writerow(["" if value != value else value for value in row])
    save_text(path, text.getvalue())
