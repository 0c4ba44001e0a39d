"""The record of a run: the settings and digests of the code, in the file ``run.json`` in the folder of results.

Snakemake stores in ``.snakemake`` the settings and code that made each file.  It misses two cases: results without a
matching ``.snakemake``, such as a copy of results, and a module that is edited while jobs run.  The record detects
both.  A run writes it before the first job.
"""

import py_compile
import sys
from contextlib import suppress
from importlib.util import cache_from_source
from pathlib import Path

from ictd.pipeline.provenance import code_digests, digest, module_path
from ictd.storage import file_digest, load_json, save_json

# Environment variable with the path of the record, which the workflow sets for jobs.
RECORD_VARIABLE = "ICTD_RUN_RECORD"
# Bytes 4 to 7 of a compiled module that Python compares with its source by content, not by time.
COMPARED_BY_CONTENT = b"\x03\x00\x00\x00"


def record_path(results: Path) -> Path:
    """The path of the record in a folder of results."""
    return results / "run.json"


def write_record(results: Path, settings: dict, code: dict[str, str]) -> None:
    """Write the record of a new run, and a copy of it into ``.snakemake``.

    Parameters
    ----------
    results : Path, the folder of results
    settings : dict
    code : dict, the digest of each module by name

    Raises
    ------
    ValueError
        If a file cannot be written.
    """
    sources = {name: file_digest(module_path(name)) for name in code}
    record = {"settings": settings, "code": code, "sources": sources}
    try:
        save_json(record_path(results), record)
        save_json(_copy(results), record)
    except OSError as error:
        raise ValueError(f"{error.filename}: {error.strerror}; make room or give write access.") from None
    for name in code:
        compare_by_content(module_path(name))


def _copy(results: Path) -> Path:
    return Path(".snakemake/ictd", f"{digest(str(results))}.json")


def compare_by_content(path: Path) -> None:
    """Compile a module such that Python compares the compiled file with its source by content.

    By default Python compares sizes and times in seconds, and misses an edit of the same size within one second.
    """
    compiled = Path(cache_from_source(str(path)))
    with suppress(OSError):
        if not compiled.exists() or compiled.read_bytes()[4:8] != COMPARED_BY_CONTENT:
            py_compile.compile(str(path), invalidation_mode=py_compile.PycInvalidationMode.CHECKED_HASH)


def check_results(results: Path, settings: dict, code: dict[str, str]) -> None:
    """Raise a ValueError if results have other settings or code and ``.snakemake`` has no record of them.

    Without this check Snakemake would treat their files as up to date, and mix them with new files.  If results have
    the same settings and code but no record, they are a copy, and a hint is printed: Snakemake compares their times.
    """
    path, copy = record_path(results), _copy(results)
    if not path.exists() or (copy.exists() and copy.read_bytes() == path.read_bytes()):
        return
    # The manifest is older than the record if the last run did not make all results.
    records = [load_json(file) for file in (path, results / "manifest.json") if file.exists()]
    names = list(dict.fromkeys(name for record in records for name in changed_names(record, settings, code)))
    if names:
        raise ValueError(
            f"{results} was made with other settings or code ({', '.join(names)}), and .snakemake has no record of it. "
            f"Remove {results}, or give another folder as results; or remove {path} to accept files of mixed settings "
            "or code."
        )
    if not copy.exists():
        print(
            f".snakemake has no record of {results}, so Snakemake compares the times of its files. If {results} is a "
            "copy whose files have new times, run snakemake --touch first, with the same arguments: it keeps them.",
            file=sys.stderr,
        )


def changed_names(record: dict, settings: dict, code: dict[str, str]) -> list[str]:
    """List the keys of settings and the modules in which a record differs, the first ten of them."""
    changed = []
    for recorded, current in ((record["settings"], settings), (record["code"], code)):
        changed += [key for key in current if key in recorded and recorded[key] != current[key]]
    return changed if len(changed) <= 10 else [*changed[:10], f"and {len(changed) - 10} more"]


def check_code(path: Path, module: str) -> None:
    """Raise a ValueError if the code of a step was edited after the run was planned.

    The code of a step is its module and all modules that it imports.  Edits of comments and docstrings do not count.

    Parameters
    ----------
    path : Path, the record of the run
    module : str, the step
    """
    if not path.exists():
        return
    record = load_json(path)
    paths = {name: module_path(name) for name in record["sources"]}
    edited = [name for name in paths if paths[name] and file_digest(paths[name]) != record["sources"][name]]
    if not edited:
        return
    code = code_digests(module)
    for name in edited:
        if name in code and code[name] != record["code"][name]:
            raise ValueError(
                f"{paths[name]} was edited after this run was planned; run snakemake again: finished jobs are kept."
            )
