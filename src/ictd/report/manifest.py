"""Write what a run consists of: digests of its result files, settings, versions, and the commit where there is one.

The commit is that of the source when a result last changed.
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
    """Write the SHA-256 of each file by its place in ``folder``, results and the pages and figures that show them.

    ``code`` has the digest of each module that the rules import.

    Computing times are no results; pages that show them have other digests at every run.
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

    An image keeps that of its files in ``commit.txt``.
    """
    # Git's variables may name another repository; and whoever owns the project, its code runs already.
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
