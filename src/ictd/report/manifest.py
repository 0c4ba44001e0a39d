"""Write the manifest of a run: digests of its files, settings, versions, and the commit of the source.

The log of each job ends with the record of the job (``ictd.pipeline.runner``), from which the manifest is made.  The
commit is the one at which a result last changed.
"""

import json
import os
import shlex
import subprocess
from collections.abc import Iterable
from pathlib import Path

from ictd.pipeline.provenance import PROJECT, job_records
from ictd.storage import file_digest, load_json, save_json


def main(folder: Path, logs: Path, files: list[str], pages: list[str], settings: dict, output: Path) -> None:
    """Write the manifest as JSON.

    It has the SHA-256 of each of the results in ``files``, and of each of the ``pages`` and figures that show them, by
    place in ``folder``; the digests of the code that made them; and in ``made_with`` the versions of the libraries that
    made each of these files and of the files that they were made from.

    ValueError if one of these files has no record, is not the one that its job wrote, or was made with other options
    than the ones in its options file.
    """
    records = {name: (log, record) for log, record in job_records(logs) for name in record["outputs"]}
    listed = {*files, *pages}
    made = made_from(folder, records, listed)
    faults = {name: fault(folder, name, records, name in listed) for name in made}
    faulty = [name for name in made if faults[name]]
    if faulty:
        remedy = shlex.join(["rm", *(str(folder / name) for name in faulty)])
        raise ValueError(f"{folder / faulty[0]} {faults[faulty[0]]}; {remedy}, then run snakemake as before.")
    options = {path for name in made for path in records[name][1]["options"]}
    code = {part: digest for path in sorted(options) for part, digest in load_json(folder / path)["code"].items()}
    content = {"commit": commit(), "settings": settings, "code": code}
    for kind, names in (("files", files), ("pages", pages)):
        content[kind] = {name: records[name][1]["outputs"][name] for name in sorted(names)}
    save_json(output, content | {"made_with": made_with(made, records)})


def made_from(folder: Path, records: dict, names: Iterable[str]) -> list[str]:
    """List some files and all files of jobs in the folder that they were made from, in alphabetical order."""
    found, waiting = set(), [*names]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            inputs = records[name][1]["inputs"] if name in records else []
            waiting += [path for path in inputs if not os.path.isabs(path) and (folder / path).exists()]
    return sorted(found)


def fault(folder: Path, name: str, records: dict, listed: bool) -> str:
    """Say what is wrong with a file, as the end of a sentence; empty if its record is right.

    Only files that the manifest lists are read, because task sets are large.
    """
    if name not in records:
        return "has no record in a log"
    log, record = records[name]
    if listed and file_digest(folder / name) != record["outputs"][name]:
        return f"is not the file that its job wrote, according to {log}"
    for options, digest in record["options"].items():
        if digest != file_digest(folder / options):
            return f"was made with other options than those in {folder / options}"
    return ""


def made_with(names: list[str], records: dict) -> list[dict]:
    """List the different versions of Python and of libraries, each with the files that they made."""
    groups = {}
    for name in names:
        versions = records[name][1]["versions"]
        groups.setdefault(json.dumps(versions), {"versions": versions, "files": []})["files"].append(name)
    return [*groups.values()]


def commit() -> str | None:
    """Commit of the source tree, with "-dirty" if its files differ from it; None if git does not track it.

    In a container image, which has no git, the file ``commit.txt`` has it.
    """
    # Git's variables may name another repository.  Git refuses folders of other owners, but this code runs already.
    variables = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}

    def git(*arguments: str) -> str:
        command = ["git", "-c", f"safe.directory={PROJECT}", *arguments]
        done = subprocess.run(command, cwd=Path(__file__).parent, env=variables, capture_output=True, text=True)
        return done.stdout.strip()

    try:
        tracked = git("ls-files", Path(__file__).name)
    except FileNotFoundError:
        tracked = ""
    if tracked:
        return git("describe", "--always", "--dirty", "--abbrev=40", "--exclude=*")
    kept = PROJECT / "commit.txt"
    return kept.read_text(encoding="utf-8").strip() or None if kept.exists() else None
