"""Decide the claims on what emerges."""

from pathlib import Path

from ictd.claims import as_records
from ictd.emergence import check_emergence
from ictd.frames import load_table
from ictd.steps import run
from ictd.storage import save_json


def main(tables: list[Path], output: Path) -> None:
    """Write the claims from the tables that ``check_emergence`` names."""
    save_json(output, as_records(check_emergence({path.stem: load_table(path) for path in tables})))


if __name__ == "__main__":
    run(main)
