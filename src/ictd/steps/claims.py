"""Decide the paper's claims from the result tables."""

from pathlib import Path

from ictd.claims import as_records, check_claims
from ictd.frames import load_table
from ictd.steps import run
from ictd.storage import save_json
from ictd.theory.claims import check_theory


def main(
    tables: list[Path], theory: list[Path], env: str, states: int, depth: int, discount: float, output: Path
) -> None:
    """Write the claims; ``env``, ``states`` and ``depth`` are the main setting."""
    found, checks = ({path.stem: load_table(path) for path in paths} for paths in (tables, theory))
    save_json(output, as_records([*check_claims(found, (env, states, depth)), *check_theory(checks, discount)]))


if __name__ == "__main__":
    run(main)
