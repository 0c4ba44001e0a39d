"""The records of jobs, and whether files are what their records say (``make verify``).

The last line of the log of a job is its record: the digest of its options file, the versions of the libraries, the
files that it read, and the SHA-256 of the files that it wrote.  A file is refused if its record names another digest of
the file or of the options file.
"""

import json
import os
import shlex
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from ictd.pipeline.provenance import options_digest
from ictd.storage import file_digest, load_json

# The beginning of a record.
RECORD = '{"options"'


def load_records(results: Path) -> dict[str, dict]:
    """Read the records of jobs, by the names of the files that they wrote, and with the path of the log as "log".

    Logs without a record are left out: those of failed jobs, damaged ones, and those of Snakemake itself.
    """
    found = {}
    for log in sorted((results / "logs").rglob("*.log"), key=lambda path: path.stat().st_mtime):
        lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
        line = next((line for line in reversed(lines) if line.startswith(RECORD)), RECORD)
        with suppress(ValueError):
            record = json.loads(line) | {"log": log}
            found |= dict.fromkeys(record["outputs"], record)
    return found


def checked_records(results: Path, names: Iterable[str]) -> dict[str, dict | None]:
    """Find the records of some files, and of all files in the folder that they were made from.

    Parameters
    ----------
    results : Path, the folder of results
    names : names of files, relative to the folder

    Returns
    -------
    dict of records by the names of files, in alphabetical order; None for a file whose log is lost

    Raises
    ------
    ValueError
        If a file is missing, is not the one that its job wrote, or was made with other options than those in the
        options file of its job.
    """
    records = load_records(results)
    found, waiting = {}, [*names]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found[name] = records.get(name)
            inputs = found[name]["inputs"] if found[name] else []
            waiting += [path for path in inputs if not os.path.isabs(path) and (results / path).exists()]
    faults = {name: fault(results, name, record) for name, record in sorted(found.items())}
    faulty = [name for name in faults if faults[name]]
    if faulty:
        remedy = shlex.join(["rm", *(str(results / name) for name in faulty)])
        raise ValueError(f"{results / faulty[0]} {faults[faulty[0]]}; {remedy}, then run snakemake as before.")
    return {name: found[name] for name in faults}


def fault(results: Path, name: str, record: dict | None) -> str:
    """Say what is wrong with a file, as the end of a sentence; empty if it is what its record says."""
    found = file_digest(results / name)
    if record is None:
        return ""
    if found != record["outputs"][name]:
        return f"is not the file that its job wrote, according to {record['log']}"
    for options, digest in record["options"].items():
        if digest != options_digest(load_json(results / options)):
            return f"was made with other options than those in {results / options}"
    return ""


def without_record(records: dict[str, dict | None]) -> str:
    """A sentence that names the number of files whose log is lost; empty if there are none."""
    lost = [name for name, record in records.items() if record is None]
    return (
        f"{len(lost)} file(s) have no record in a log, such as {lost[0]}: their options are not known." if lost else ""
    )


def finished_files(results: Path) -> list[str]:
    """List the files of the manifest, and those of the article and of the studies that have ended."""
    manifest = load_json(results / "manifest.json")
    found = [*results.glob("manifest.json"), *results.glob("article.pdf")]
    for study in results.glob("*/numbers.csv"):
        # Snakemake keeps a hidden file in each folder that is an output.
        for pattern in ("*.html", "*.json", "numbers.csv", "tables/[!.]*", "figures/[!.]*"):
            found += study.parent.glob(pattern)
    return [*manifest["files"], *manifest["pages"], *(str(path.relative_to(results)) for path in found)]
