"""What stands in the way of a run, and what failed in it, in words for the end of Snakemake's output."""

import os
import re
import shutil
from pathlib import Path

FAILED = re.compile(r"^Error in rule (\w+):\n(?:    .*\n)*?    log: (.+?)(?: \(check log.*)?\n", re.MULTILINE)
LOGGED = re.compile(r"\d{4}-\d\d-\d\d ")
# Less than this is a full disk.
ROOM = 2**20


def failed_jobs(text: str, results: Path) -> str:
    """Rule, last words and log of each job that failed, and whether the disk is full.

    Parameters
    ----------
    text : Snakemake's log
    results : folder of the results
    """
    parts = []
    for rule, log in dict.fromkeys(FAILED.findall(text)):
        path = Path(log)
        lines = path.read_text(encoding="utf-8", errors="replace").strip().splitlines() if path.exists() else []
        said = lines[-1] if lines and not LOGGED.match(lines[-1]) else "it was stopped before it could say why."
        parts.append(f"Rule {rule} failed: {said}\n  Its log: {log}")
    if results.exists() and shutil.disk_usage(results).free < ROOM:
        parts.append(f"The disk that holds {results} is full: make room, and run the same command again.")
    return "\n".join(parts)


def check_writable(results: Path) -> None:
    """Refuse a results folder, or the place for a new one, that cannot be written to.

    Raises
    ------
    ValueError
        Naming the folder.
    """
    folder = next(folder for folder in (results, *results.absolute().parents) if folder.exists())
    if not (folder.is_dir() and os.access(folder, os.W_OK | os.X_OK)):
        raise ValueError(f"Nothing can be written to {folder}; give write access, or name another folder as results.")
