"""Write the tables of the page on what emerges, as HTML."""

from pathlib import Path

import pandas as pd

from ictd import html
from ictd.frames import load_table
from ictd.grid import CELL
from ictd.steps import run
from ictd.storage import load_json, replacing
from ictd.summaries import claims_overview


def main(claims: Path, measures: Path, correlations: Path, output: Path) -> None:
    """Write the pages emergence, measures and correlations into the folder ``output``."""
    of_cells = load_table(measures).groupby(CELL, sort=False).mean().drop(columns="seed").reset_index()
    pairs = load_table(correlations).groupby(["kind", *CELL], sort=False)[["cosine", "null"]].mean().reset_index()
    frames = {"emergence": claims_overview(load_json(claims)), "measures": of_cells, "correlations": pairs}
    for name, frame in frames.items():
        write(output / f"{name}.html", name, frame)


def write(path: Path, title: str, frame: pd.DataFrame) -> None:
    """Write one page."""
    with replacing(path) as temporary:
        temporary.write_text(html.page(title, html.table(frame)), encoding="utf-8")


if __name__ == "__main__":
    run(main)
