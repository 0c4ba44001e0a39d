"""Write the manifest of a run: digests of its files, settings, versions, and the commit of the source.

The manifest is made from the records of jobs (``ictd.pipeline.records``).  The commit is the one at which a result last
changed.
"""

import json
import os
import subprocess
from pathlib import Path

from ictd.pipeline.provenance import PROJECT
from ictd.pipeline.records import checked_records
from ictd.storage import file_digest, load_json, save_json


def main(folder: Path, files: list[str], pages: list[str], settings: dict, output: Path) -> None:
    """Write the manifest as JSON.

    It has the SHA-256 of each of the results in ``files``, and of each of the ``pages`` and figures that show them, by
    place in ``folder``, where a folder stands for all files in it; in ``code`` the digest of each module that made
    them; in ``modules`` the modules that each file was made with; in ``made_with`` the versions of the libraries that
    made each of these files and of the files that they were made from; and in ``without_record`` the files whose log is
    lost.

    ValueError if one of these files is not what its record says.
    """
    files, pages = (in_folders(folder, names) for names in (files, pages))
    records = checked_records(folder, [*files, *pages])
    known = {name: record for name, record in records.items() if record}
    code = {path: load_json(folder / path)["code"] for record in known.values() for path in record["options"]}
    content = {"commit": commit(), "settings": settings}
    for kind, names in (("files", files), ("pages", pages)):
        content[kind] = {name: file_digest(folder / name) for name in sorted(names)}
    content["code"] = {module: digest for digests in code.values() for module, digest in sorted(digests.items())}
    content["modules"] = {name: [*code[path]] for name, record in known.items() for path in record["options"]}
    content["made_with"] = made_with(known)
    content["without_record"] = [name for name, record in records.items() if record is None]
    save_json(output, content)


def in_folders(folder: Path, names: list[str]) -> list[str]:
    """Names of files, with the files in a folder in place of its name."""
    paths = [path for name in names for path in (sorted((folder / name).glob("[!.]*")) or [folder / name])]
    return [str(path.relative_to(folder)) for path in paths]


def made_with(records: dict[str, dict]) -> list[dict]:
    """List the different versions of Python and of libraries, each with the files that they made."""
    groups = {}
    for name, record in records.items():
        versions = record["versions"]
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
