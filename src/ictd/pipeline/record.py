"""The record of a run: ``run.json`` in the folder of results has the settings and digests of the code.

Snakemake knows from the folder ``.snakemake`` with which settings and code each file was made.  Two things it cannot
see: that this folder is not the one of these results, as after a copy of results, and that a module is edited while
jobs run.  The record, which every run begins with, tells both.
"""

import py_compile
import sys
from contextlib import suppress
from importlib.util import cache_from_source
from pathlib import Path
from urllib.parse import quote

from ictd.pipeline.provenance import code_digests, module_path
from ictd.pipeline.storage import file_digest, load_json, save_json

# Variable in which the workflow tells a job where the record is.
RECORD_VARIABLE = "ICTD_RUN_RECORD"
# Bytes 4 to 7 of a compiled module that Python compares with the content of its source, not with its time.
COMPARED_BY_CONTENT = b"\x03\x00\x00\x00"


def record_path(results: Path) -> Path:
    """Where the record of a folder of results is."""
    return results / "run.json"


def write_record(results: Path, settings: dict, code: dict[str, str]) -> None:
    """Write the record of a run that begins, and a copy into ``.snakemake``.

    ``code`` has the digest of each module by name.
    """
    sources = {name: file_digest(module_path(name)) for name in code}
    record = {"settings": settings, "code": code, "sources": sources}
    save_json(_copy(results), record)
    save_json(record_path(results), record)
    for name in code:
        compare_by_content(module_path(name))


def _copy(results: Path) -> Path:
    return Path(".snakemake/ictd", f"{quote(str(results), safe='')}.json")


def compare_by_content(path: Path) -> None:
    """Have Python compare a compiled module with its source by content, now and whenever it compiles it anew.

    By default it compares times in seconds and sizes, so that an edit of the same size within a second goes unseen.
    """
    compiled = Path(cache_from_source(str(path)))
    with suppress(OSError):
        if not compiled.exists() or compiled.read_bytes()[4:8] != COMPARED_BY_CONTENT:
            py_compile.compile(str(path), invalidation_mode=py_compile.PycInvalidationMode.CHECKED_HASH)


def check_results(results: Path, settings: dict, code: dict[str, str]) -> None:
    """Refuse results of other settings or code that Snakemake knows nothing of; ValueError.

    It would take their files for up to date, and mix them with new ones.
    """
    path, copy = record_path(results), _copy(results)
    if not path.exists() or (copy.exists() and copy.read_bytes() == path.read_bytes()):
        return
    other = differences(load_json(path), settings, code)
    if other:
        raise ValueError(
            f"{results} was made with other settings or code ({', '.join(other)}), and .snakemake has no record of it. "
            f"Remove {results}, or give another folder as results; to keep its files as they are, remove {path}."
        )


def differences(record: dict, settings: dict, code: dict[str, str]) -> list[str]:
    """Keys of settings and names of modules in which a record differs from settings and code, the first ten."""
    pairs = [(record["settings"], settings), (record["code"], code)]
    found = [key for one, other in pairs for key in other if key in one and one[key] != other[key]]
    return found if len(found) <= 10 else [*found[:10], f"and {len(found) - 10} more"]


def check_loaded_code(path: Path) -> None:
    """Refuse code that was edited after the run was planned whose record is ``path``; ValueError.

    The modules are those that this process has imported.  Edits of comments and docstrings are no change.
    """
    if not path.exists():
        return
    record = load_json(path)
    for name in sorted(record["code"].keys() & sys.modules.keys()):
        source = module_path(name)
        if file_digest(source) != record["sources"][name] and code_digests(name)[name] != record["code"][name]:
            raise ValueError(
                f"{source} was edited after this run was planned; run snakemake again: finished jobs are kept."
            )
