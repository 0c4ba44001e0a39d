"""Keep the summary figures of a finished run as the reference (``make reference``)."""

from pathlib import Path

from ictd.frames import save_table
from ictd.steps import run
from ictd.storage import load_json, save_json
from ictd.verification import summary_tables


def main(results: Path, output: Path) -> None:
    """Write a table for each of the run's summaries, and its settings, into the folder ``output``."""
    for name, table in summary_tables(results).items():
        save_table(output / f"{name}.csv", table)
    save_json(output / "settings.json", load_json(results / "manifest.json")["settings"])


if __name__ == "__main__":
    run(main)
