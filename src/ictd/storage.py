"""Reading and writing of result files: arrays as .npz, tables as .csv, texts and JSON.

A table is a mapping from the names of its columns to sequences of one length, such as a DataFrame.
``ictd.report.tables`` reads tables.

A file gets its final name only when it is complete.
"""

import csv
import glob
import hashlib
import io
import json
import os
import shlex
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from ictd.checks import first_line


def user_path(path: str | Path) -> Path:
    """Path of a user, in which a first part ~ or ~name stands for a home folder.

    Raises a ValueError if this home folder is not known.
    """
    try:
        return Path(path).expanduser()
    except RuntimeError:
        raise ValueError(f"{path} is in a home folder that is not known; write the path without ~.") from None


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary path in the folder of ``path``, and rename it to ``path`` when the block ends without an error.

    Temporary files of writers that were killed are removed.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    for abandoned in path.parent.glob(f".*.{glob.escape(path.name)}"):
        abandoned.unlink(missing_ok=True)
    temporary = path.with_name(f".{os.getpid()}.{path.name}")
    try:
        yield temporary
        os.replace(temporary, path)
    except OSError as error:
        error.filename = error.filename or str(path)
        raise
    finally:
        temporary.unlink(missing_ok=True)


class Unusable(ValueError):
    """Raised for a missing or damaged file.  The message is one sentence that says how to make the file again."""


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turn the errors of reading a missing or damaged file into ``Unusable``."""
    try:
        yield
    except FileNotFoundError:
        raise Unusable(f"{path} is missing; run snakemake to make it.") from None
    except (PermissionError, MemoryError, Unusable):
        raise
    except Exception as error:
        problem = first_line(error)
        remedy = f"make it anew: rm {shlex.quote(str(path))}, then run snakemake as before"
        raise Unusable(f"{path} cannot be used: {problem}; {remedy}.") from None


def save_arrays(path: Path, **arrays: np.ndarray) -> None:
    """Write named arrays to one .npz file."""
    with replacing(path) as temporary:
        np.savez(temporary, **arrays)


def load_arrays(path: Path, *names: str) -> list[np.ndarray]:
    """Read named arrays from an .npz file.  A missing or damaged file, or a missing array, raises ``Unusable``."""
    with reading(path), np.load(path) as archive:
        missing = [name for name in names if name not in archive]
        if missing:
            raise ValueError(f"it has no array {missing[0]!r}")
        return [archive[name] for name in names]


def names_of_arrays(path: Path) -> list[str]:
    """List the arrays of an .npz file.  A missing or damaged file raises ``Unusable``."""
    with reading(path), np.load(path) as archive:
        return list(archive)


def load_named(path: Path, *names: str) -> dict[str, np.ndarray]:
    """Read named arrays from an .npz file as a dict by name, with the errors of ``load_arrays``."""
    return dict(zip(names, load_arrays(path, *names), strict=True))


def join_arrays(paths: list[Path], *names: str) -> list[np.ndarray]:
    """Read named arrays from several files, and concatenate each along its leading axis."""
    return [*joined_arrays([load_named(path, *names) for path in paths]).values()]


def stacked(parts: Iterable, size: int) -> dict[str, np.ndarray]:
    """Stack the arrays of several parts along a new leading axis.

    Parameters
    ----------
    parts : iterable of dicts or dataclass objects, whose values are arrays
        An iterator makes them one after the other, so that only one part is in memory at a time.
    size : int, number of parts

    Returns
    -------
    dict of arrays (size, ...)

    Raises
    ------
    ValueError
        If there are more or fewer parts than ``size``.
    """
    arrays = {}
    for i, part in zip(range(size), parts, strict=True):
        for name, array in (part if isinstance(part, dict) else vars(part)).items():
            arrays.setdefault(name, np.empty((size, *array.shape), array.dtype))[i] = array
    return arrays


def joined_arrays(parts: list[dict[str, np.ndarray]]) -> dict[str, np.ndarray]:
    """Concatenate the arrays of several parts, which have the same names, along the leading axis."""
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def save_text(path: Path, text: str) -> None:
    """Write a text file."""
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="")


def load_text(path: Path) -> str:
    """Read a text file.  A missing file raises ``Unusable``."""
    with reading(path):
        return path.read_text(encoding="utf-8")


def save_json(path: Path, value) -> None:
    """Write a value as JSON."""
    save_text(path, json.dumps(value, indent=2, allow_nan=False) + "\n")


def load_json(path: Path):
    """Read a JSON file.  A missing or damaged file raises ``Unusable``."""
    with reading(path):
        return json.loads(load_text(path))


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
        # Only NaN is not equal to itself.
        columns = [["" if value != value else value for value in np.asarray(table[name]).tolist()] for name in header]
        writer.writerows(zip(*columns, strict=True))
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


def file_digest(path: Path) -> str:
    """Compute the SHA-256 of a file.  A missing file raises ``Unusable``."""
    with reading(path), open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
