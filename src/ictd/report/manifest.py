"""Write the manifest of a run: digests of its files, settings, versions, and the commit of the source.

The last line of each job's log is the record of the job (``ictd.pipeline.runner``), from which the manifest is made.
The commit is the one at which a result last changed.
"""

import json
import os
import subprocess
from pathlib import Path

from ictd.pipeline.provenance import PROJECT, options_digest
from ictd.storage import file_digest, load_json, load_text, save_json


def main(folder: Path, logs: Path, files: list[str], pages: list[str], settings: dict, output: Path) -> None:
    """Write the manifest as JSON.

    It has the SHA-256 of each of the results in ``files``, and of each of the ``pages`` and figures that show them, by
    place in ``folder``; the digests of the code that made them; and in ``made_with`` the versions of the libraries that
    made each of these files and of the files that they were made from.  Pages that show computing times have other
    digests in every run.

    ValueError if a file has no record, is not the one that its job wrote, or was made with other options than the ones
    in its options file.
    """
    records = records_by_output(logs)
    digests = {kind: {} for kind in ("files", "pages")}
    for kind, names in (("files", files), ("pages", pages)):
        for name in sorted(names):
            path = folder / name
            digests[kind][name] = file_digest(path)
            if str(path) not in records:
                raise ValueError(f"{path} has no record in {logs}; {remedy(path)}.")
            log, record = records[str(path)]
            if record["outputs"][str(path)] != digests[kind][name]:
                raise ValueError(f"{path} is not the file that its job wrote, according to {log}; {remedy(path)}.")
    made = made_from(records, [str(folder / name) for names in digests.values() for name in names])
    check_options(made, records)
    code = {part: digest for path in made for part, digest in records[path][1]["code"].items()}
    content = {"commit": commit(), "settings": settings, "code": code, **digests, "made_with": made_with(made, records)}
    save_json(output, content)


def remedy(path: Path | str) -> str:
    """What to do about a file whose provenance is not known, as the end of a sentence."""
    return f"rm {path}, then run snakemake as before"


def records_by_output(logs: Path) -> dict[str, tuple[Path, dict]]:
    """Find the log and the record of the job that made each file, by the path of the file.

    Logs without a record are skipped: those of failed jobs, and of Snakemake itself.  Of several records of a file the
    latest counts.
    """
    records = {}
    for log in sorted(logs.rglob("*.log"), key=lambda path: path.stat().st_mtime):
        last_line = load_text(log).rstrip().rpartition("\n")[2]
        if last_line.startswith('{"options"'):
            record = json.loads(last_line)
            records |= dict.fromkeys(record["outputs"], (log, record))
    return records


def made_from(records: dict, paths: list[str]) -> list[str]:
    """List some files and all files of jobs that they were made from, in alphabetical order."""
    found, waiting = set(), [*paths]
    while waiting:
        path = waiting.pop()
        if path in records and path not in found:
            found.add(path)
            waiting += records[path][1]["inputs"]
    return sorted(found)


def check_options(paths: list[str], records: dict) -> None:
    """Refuse files that were made with other options than those of their options files."""
    current = {}
    for path in paths:
        for file, digest in records[path][1]["options"].items():
            if file not in current:
                current[file] = options_digest(load_json(Path(file)))
            if digest != current[file]:
                raise ValueError(f"{path} was made with other options than those in {file}; {remedy(path)}.")


def made_with(paths: list[str], records: dict) -> list[dict]:
    """List the different versions of Python and of libraries, each with the files that they made."""
    groups = {}
    for path in paths:
        versions = records[path][1]["versions"]
        groups.setdefault(json.dumps(versions), {"versions": versions, "files": []})["files"].append(path)
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
