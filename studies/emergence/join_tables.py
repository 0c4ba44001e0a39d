"""Put tables of one kind under each other."""

from pathlib import Path

import pandas as pd

from ictd.tables import load_table, save_table


def main(tables: list[Path], output: Path) -> None:
    """Write one table."""
    save_table(output, pd.concat([load_table(path) for path in tables], ignore_index=True))
