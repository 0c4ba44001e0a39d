"""Put tables of one kind under each other."""

from pathlib import Path

import pandas as pd

from ictd.frames import load_table, save_table
from ictd.steps import run


def main(tables: list[Path], output: Path) -> None:
    """Write one table."""
    save_table(output, pd.concat([load_table(path) for path in tables], ignore_index=True))


if __name__ == "__main__":
    run(main)
