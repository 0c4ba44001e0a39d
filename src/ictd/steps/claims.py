"""Decide the paper's claims from the result tables."""

from pathlib import Path

from ictd.claims import as_records, check_claims
from ictd.frames import load_table
from ictd.steps import run
from ictd.storage import save_json


def main(tables: list[Path], env: str, states: int, depth: int, output: Path) -> None:
    """Write the claims; ``env``, ``states`` and ``depth`` are the main setting."""
    loaded = {path.stem: load_table(path) for path in tables}
    save_json(output, as_records(check_claims(loaded, (env, states, depth))))


if __name__ == "__main__":
    run(main)
