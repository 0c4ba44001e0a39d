"""Write what a run consists of: digests of its result files, settings, versions, and the commit where there is one."""

import hashlib
import platform
import subprocess
from importlib import metadata
from pathlib import Path

import ictd
from ictd.steps import run
from ictd.storage import save_json

PACKAGES = ("numba", "numpy", "torch")


def main(folder: Path, files: list[Path], settings: dict, output: Path) -> None:
    """Write the SHA-256 of each file by its path below ``folder``; computing times are no results and are left out."""
    digests = {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(files)}
    versions = {"python": platform.python_version(), "ictd": ictd.__version__}
    versions |= {name: metadata.version(name) for name in PACKAGES}
    save_json(output, {"commit": commit(), "versions": versions, "settings": settings, "files": digests})


def commit() -> str | None:
    """Commit of the source tree, with "-dirty" if files differ from it; None outside of a git repository."""
    command = ["git", "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
    try:
        done = subprocess.run(command, cwd=Path(__file__).parent, capture_output=True, text=True)
    except FileNotFoundError:
        return None
    return done.stdout.strip() or None


if __name__ == "__main__":
    run(main)
