"""Result files: arrays as .npz without pickling, the rest as JSON; tables are in ``table_files``.

A file appears under its name only when it is complete.  A file has a label (``labels``), an archive's in it and a
text's beside it, in a hidden file; what is not what it should be is not read.
"""

import glob
import hashlib
import json
import math
import os
import shlex
import zipfile
from collections.abc import Iterable
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from ictd.pipeline.labels import Work, content_of_archive, content_of_text

# What this process carries out; the runner says it.
work = Work()
# The entry of an archive that holds its label.
LABEL = "label.json"


@contextmanager
def replacing(path: str | Path):
    """Give a temporary path beside ``path``, which takes its place when the block ends well.

    What a writer that was killed left behind is removed.
    """
    path = Path(path)
    if path.exists() and not path.is_file():
        raise ValueError(f"{path} is there and is no file; write to another place.")
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


def save_arrays(path: str | Path, **arrays: np.ndarray) -> None:
    """Write named arrays to one .npz file; the same arrays give the same bytes.

    Versions of Python differ in the headers that ``numpy.savez`` makes them write, so the archive is written here.
    """
    with replacing(path) as temporary, zipfile.ZipFile(temporary, "w") as archive:
        for name, array in arrays.items():
            entry, array = zipfile.ZipInfo(f"{name}.npy"), np.asanyarray(array)
            entry.file_size = array.nbytes  # About, for the format of the entry.
            with archive.open(entry, "w") as file:
                np.lib.format.write_array(file, array, allow_pickle=False)
        archive.writestr(zipfile.ZipInfo(LABEL), work.label(Path(path), content_of_archive(archive, LABEL)))


def stacked(parts: Iterable, size: int) -> dict[str, np.ndarray]:
    """Mappings or dataclass objects of arrays as one mapping, each stacked along a new leading axis.

    There are ``size`` of them, which are made one after the other; ValueError if there are not.
    """
    arrays = {}
    for i, part in zip(range(size), parts, strict=True):
        for name, array in (part if isinstance(part, dict) else vars(part)).items():
            arrays.setdefault(name, np.empty((size, *array.shape), array.dtype))[i] = array
    return arrays


def load_arrays(path: str | Path, *names: str) -> list[np.ndarray]:
    """Read named arrays from a .npz file; ValueError naming the file, if it is missing, damaged, another's or lacks an
    array."""
    with naming(path), zipfile.ZipFile(path) as archive:
        _read_label(archive, path, work)
        return [_array(archive, name) for name in names]


def _array(archive: zipfile.ZipFile, name: str) -> np.ndarray:
    entry = f"{name}.npy"
    if entry not in archive.namelist():
        raise ValueError(f"it has no array {name!r}")
    with archive.open(entry) as file:
        np.lib.format.read_magic(file)
        shape, _, kind = np.lib.format.read_array_header_1_0(file)
        # A damaged head may ask for less, or for more than there is memory.
        if file.tell() + math.prod(shape) * kind.itemsize != archive.getinfo(entry).file_size:
            raise ValueError(f"array {name!r} is not as long as it says")
    with archive.open(entry) as file:
        array = np.lib.format.read_array(file, allow_pickle=False)
        file.read(1)  # The end of an entry is where its checksum is looked at.
    return array


def check_archive(path: str | Path, config: dict) -> None:
    """Refuse an archive that is not what was written, or was made with other settings; ValueError naming the file."""
    with naming(path), zipfile.ZipFile(path) as archive:
        _read_label(archive, path, Work(config=config))


def load_options(path: str | Path, *names: str) -> list:
    """Options of the step that wrote an archive, by name; ValueError naming the file, as ``load_arrays`` raises."""
    with naming(path), zipfile.ZipFile(path) as archive:
        _read_label(archive, path, work)
        given = json.loads(archive.read(LABEL))["values"]
        missing = [name for name in names if name not in given]
        if missing:
            raise ValueError(f"it does not say with which {missing[0]} it was made")
        return [given[name] for name in names]


def _read_label(archive: zipfile.ZipFile, path: str | Path, by: Work) -> None:
    if LABEL not in archive.namelist():
        raise ValueError("it does not say what it is")
    by.read(archive.read(LABEL).decode(), Path(path), content_of_archive(archive, LABEL))


def load_json(path: str | Path):
    """Read a JSON file; ValueError naming the file, if it is missing or not what was written."""
    with naming(path):
        return json.loads(load_text(path))


def save_text(path: str | Path, text: str) -> None:
    """Write a text, and its label beside it."""
    path = Path(path)
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="")
        with replacing(_label_file(path)) as beside:
            beside.write_text(work.label(path, content_of_text(text.encode())) + "\n", encoding="utf-8")


def load_text(path: str | Path) -> str:
    """Read a text that ``save_text`` wrote; ValueError naming the file, if it is missing or another."""
    with naming(path):
        content, beside = Path(path).read_bytes(), _label_file(Path(path))
        if not beside.is_file():
            raise ValueError(f"its label is not beside it, in {beside.name}")
        work.read(beside.read_text(encoding="utf-8"), Path(path), content_of_text(content))
        return content.decode()


def _label_file(path: Path) -> Path:
    return path.with_name(f".{path.name}.label")


class Unusable(ValueError):
    """A sentence on a file that is missing or cannot be used."""


@contextmanager
def naming(path: str | Path):
    """Turn whatever a damaged file makes its reader raise into an Unusable that says how to remake the file."""
    try:
        yield
    except FileNotFoundError:
        raise Unusable(f"{path} is missing; run snakemake to make it.") from None
    except (PermissionError, MemoryError, Unusable):
        raise
    except Exception as error:
        what = str(error).partition("\n")[0].rstrip(".") or type(error).__name__
        raise Unusable(
            f"{path} cannot be used: {what}; make it anew: rm {shlex.quote(str(path))}, then run snakemake as before."
        ) from None


def load_named(path: str | Path, *names: str) -> dict[str, np.ndarray]:
    """Read named arrays from a .npz file, as ``load_arrays`` does, into a dict."""
    return dict(zip(names, load_arrays(path, *names), strict=True))


def join_arrays(paths: list[str | Path], *names: str) -> list[np.ndarray]:
    """Read named arrays from several files and join each along its leading axis; ValueError if they share seeds."""
    parts = [load_arrays(path, *names) for path in paths]
    joined = [np.concatenate(arrays) for arrays in zip(*parts, strict=True)]
    if "seeds" in names and len(set(joined[names.index("seeds")])) < len(joined[0]):
        raise ValueError(f"{', '.join(map(str, paths))} have seeds in common; give each once.")
    return joined


def paired(files: list[Path], others: list[Path]) -> list[tuple[Path, Path]]:
    """Files with others of the same names, but for endings, pair by pair; ValueError if these or their order differ, or
    if one is there twice."""
    names, other_names = ([path.stem for path in paths] for paths in (files, others))
    if names != other_names or len(set(names)) < len(names):
        raise ValueError(
            f"files are named {' '.join(names)} and {' '.join(other_names)}; give both the same names, each once."
        )
    return list(zip(files, others, strict=True))


def save_json(path: str | Path, value) -> None:
    """Write a value as JSON."""
    save_text(path, json.dumps(value, indent=2, allow_nan=False) + "\n")


def file_digest(path: str | Path) -> str:
    """SHA-256 of a file; ValueError naming it if it is missing."""
    with naming(path):
        return hashlib.sha256(Path(path).read_bytes()).hexdigest()
