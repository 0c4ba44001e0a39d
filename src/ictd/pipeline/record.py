"""The record of a run: ``run.json`` in the folder of results has the settings and digests of the code.

Snakemake knows from the folder ``.snakemake`` with which settings and code each file was made.  It misses two cases:
results that ``.snakemake`` does not belong to, as after a copy of results, and a module that is edited while jobs run.
The record shows both.  Every run that has jobs begins by writing it.
"""

import py_compile
from contextlib import suppress
from importlib.util import cache_from_source
from pathlib import Path

from ictd.pipeline.provenance import code_digests, digest, module_path
from ictd.storage import file_digest, load_json, save_json

# Variable in which the workflow tells a job where the record is.
RECORD_VARIABLE = "ICTD_RUN_RECORD"
# Bytes 4 to 7 of a compiled module that Python compares with the content of its source, not with its time.
COMPARED_BY_CONTENT = b"\x03\x00\x00\x00"


def record_path(results: Path) -> Path:
    """Where the record of a folder of results is."""
    return results / "run.json"


def write_record(results: Path, settings: dict, code: dict[str, str]) -> None:
    """Write the record of a run that begins, and a copy into ``.snakemake``; ValueError if there is no room or right.

    ``code`` has the digest of each module by name.
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
    """Have Python compare a compiled module with its source by content, now and whenever it compiles it anew.

    By default it compares times in seconds and sizes, so that an edit of the same size within a second goes unseen.
    """
    compiled = Path(cache_from_source(str(path)))
    with suppress(OSError):
        if not compiled.exists() or compiled.read_bytes()[4:8] != COMPARED_BY_CONTENT:
            py_compile.compile(str(path), invalidation_mode=py_compile.PycInvalidationMode.CHECKED_HASH)


def check_results(results: Path, settings: dict, code: dict[str, str]) -> None:
    """Refuse results made with other settings or code if ``.snakemake`` has no record of them; ValueError.

    Snakemake would take their files for up to date, and mix them with new ones.
    """
    path, copy = record_path(results), _copy(results)
    if not path.exists() or (copy.exists() and copy.read_bytes() == path.read_bytes()):
        return
    # The manifest is older than the record if the last run did not make all results.
    made = [load_json(one) for one in (path, results / "manifest.json") if one.exists()]
    other = list(dict.fromkeys(name for record in made for name in differences(record, settings, code)))
    if other:
        raise ValueError(
            f"{results} was made with other settings or code ({', '.join(other)}), and .snakemake has no record of it. "
            f"Remove {results}, or give another folder as results; or remove {path} to accept files of mixed settings "
            "or code."
        )


def differences(record: dict, settings: dict, code: dict[str, str]) -> list[str]:
    """Keys of settings and names of modules in which a record differs from settings and code, the first ten."""
    pairs = [(record["settings"], settings), (record["code"], code)]
    found = [key for one, other in pairs for key in other if key in one and one[key] != other[key]]
    return found if len(found) <= 10 else [*found[:10], f"and {len(found) - 10} more"]


def check_code(path: Path, module: str) -> None:
    """Refuse to carry out a step whose code was edited since the run with this record was planned; ValueError.

    The code is what the module of the step imports.  Edits of comments and docstrings are no change.
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
