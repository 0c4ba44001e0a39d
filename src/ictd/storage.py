"""Result files: arrays as .npz, texts and JSON.  Tables are in ``table_files``.

A file appears under its name only when it is complete.
"""

import glob
import hashlib
import json
import os
import shlex
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Give a temporary path beside ``path``; the file there takes the place of ``path`` when the block ends well.

    What a writer that was killed left behind is removed.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    for left in path.parent.glob(f".*.{glob.escape(path.name)}"):
        left.unlink(missing_ok=True)
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
    """A sentence on a file that is missing or damaged."""


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turn what a missing or damaged file makes its reader raise into an Unusable that says how to remake the file."""
    try:
        yield
    except FileNotFoundError:
        raise Unusable(f"{path} is missing; run snakemake to make it.") from None
    except (PermissionError, MemoryError, Unusable):
        raise
    except Exception as error:
        what = str(error).partition("\n")[0].rstrip(".") or type(error).__name__
        remedy = f"make it anew: rm {shlex.quote(str(path))}, then run snakemake as before"
        raise Unusable(f"{path} cannot be used: {what}; {remedy}.") from None


def save_arrays(path: Path, **arrays: np.ndarray) -> None:
    """Write named arrays to one .npz file."""
    with replacing(path) as temporary:
        np.savez(temporary, **arrays)


def load_arrays(path: Path, *names: str) -> list[np.ndarray]:
    """Read named arrays from a .npz file; ValueError naming the file, if it is missing, damaged or lacks an array."""
    with reading(path), np.load(path) as archive:
        missing = [name for name in names if name not in archive]
        if missing:
            raise ValueError(f"it has no array {missing[0]!r}")
        return [archive[name] for name in names]


def load_named(path: Path, *names: str) -> dict[str, np.ndarray]:
    """As ``load_arrays``, a dict of the arrays by name."""
    return dict(zip(names, load_arrays(path, *names), strict=True))


def join_arrays(paths: list[Path], *names: str) -> list[np.ndarray]:
    """Read named arrays from several files and join each along its leading axis."""
    parts = [load_arrays(path, *names) for path in paths]
    return [np.concatenate(arrays) for arrays in zip(*parts, strict=True)]


def stacked(parts: Iterable, size: int) -> dict[str, np.ndarray]:
    """Mappings or dataclass objects of arrays as one mapping, each array stacked along a new leading axis.

    There are ``size`` parts, which are made one after the other; ValueError if there are not.
    """
    arrays = {}
    for i, part in zip(range(size), parts, strict=True):
        for name, array in (part if isinstance(part, dict) else vars(part)).items():
            arrays.setdefault(name, np.empty((size, *array.shape), array.dtype))[i] = array
    return arrays


def save_text(path: Path, text: str) -> None:
    """Write a text."""
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="")


def load_text(path: Path) -> str:
    """Read a text; ValueError naming the file, if it is missing."""
    with reading(path):
        return path.read_text(encoding="utf-8")


def save_json(path: Path, value) -> None:
    """Write a value as JSON."""
    save_text(path, json.dumps(value, indent=2, allow_nan=False) + "\n")


def load_json(path: Path):
    """Read a JSON file; ValueError naming the file, if it is missing or damaged."""
    with reading(path):
        return json.loads(load_text(path))


def file_digest(path: Path) -> str:
    """SHA-256 of a file; ValueError naming the file, if it is missing."""
    with reading(path):
        return hashlib.sha256(path.read_bytes()).hexdigest()
