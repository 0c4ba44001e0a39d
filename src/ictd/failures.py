"""What failed in a run of Snakemake, said once more at its end."""

import re
from pathlib import Path

FAILED = re.compile(r"^Error in rule (\w+):\n(?:    .*\n)*?    log: (.+?)(?: \(check log.*)?\n", re.MULTILINE)


def failed_jobs(text: str) -> str:
    """Rule, last words and log of each job that failed.

    Parameters
    ----------
    text : Snakemake's log
    """
    parts = []
    for rule, log in dict.fromkeys(FAILED.findall(text)):
        path = Path(log)
        lines = path.read_text(encoding="utf-8", errors="replace").strip().splitlines() if path.exists() else []
        parts.append(f"Rule {rule} failed: {lines[-1] if lines else 'it left no message.'}\n  Its log: {log}")
    return "\n".join(parts)
