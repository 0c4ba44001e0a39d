"""Write the manifest of a run: digests of its files, settings, versions, and the commit of the source.

The commit is the one at which a result last changed.
"""

import os
import platform
import subprocess
from importlib import metadata
from pathlib import Path

from ictd import __version__
from ictd.pipeline.provenance import PROJECT
from ictd.storage import file_digest, save_json

COMPUTING_LIBRARIES = ("numba", "numpy", "torch")


def main(folder: Path, files: list[str], pages: list[str], settings: dict, code: dict, output: Path) -> None:
    """Write the manifest as JSON.

    It has the SHA-256 of each of the results in ``files``, and of each of the ``pages`` and figures that show them, by
    place in ``folder``; and in ``code`` the digest of each module that the rules import.  Pages that show computing
    times have other digests in every run.
    """
    digests = {
        kind: {name: file_digest(folder / name) for name in sorted(names)}
        for kind, names in (("files", files), ("pages", pages))
    }
    versions = {"python": platform.python_version(), "ictd": __version__}
    versions |= {name: metadata.version(name) for name in COMPUTING_LIBRARIES}
    save_json(output, {"commit": commit(), "versions": versions, "settings": settings, "code": code, **digests})


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
