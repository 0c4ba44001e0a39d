"""What stands in the way of a run, and what failed in it, in words for the end of Snakemake's output."""

import os
import re
import shutil
from pathlib import Path

LOGGED = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d (?P<done>done in [\d.]+ s)?", re.MULTILINE)
# Less than this is a full disk.
ROOM = 2**20


def failed_jobs(logs: Path, since: float, results: Path) -> str:
    """Rule, last words and log of each job that did not end well, and whether the disk is full.

    The folder of logs has one below it for each rule that has wildcards.  Logs older than ``since``, a time in seconds
    since the epoch, are of other runs.  ``results`` is the folder of the results.
    """
    parts = []
    for path in sorted(path for path in logs.rglob("*.log") if path.stat().st_mtime >= since):
        text = path.read_text(encoding="utf-8", errors="replace").strip()
        if any(line["done"] for line in LOGGED.finditer(text)):
            continue
        last = text.rpartition("\n")[2]
        said = "it was stopped before it could say why." if not last or LOGGED.match(last) else last
        rule = path.relative_to(logs).parts[0].removesuffix(".log")
        parts.append(f"Rule {rule} failed: {said}\n  Its log: {path}")
    if results.exists() and shutil.disk_usage(results).free < ROOM:
        parts.append(f"The disk that holds {results} is full: make room, and run the same command again.")
    return "\n".join(parts)


def check_writable(results: Path) -> None:
    """Refuse a results folder, or the place for a new one, that cannot be written to; ValueError naming the folder."""
    folder = next(folder for folder in (results, *results.absolute().parents) if folder.exists())
    if not (folder.is_dir() and os.access(folder, os.W_OK | os.X_OK)):
        raise ValueError(f"Nothing can be written to {folder}; give write access, or name another folder as results.")
