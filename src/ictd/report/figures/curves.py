"""Curves of the experiments: MSVE against context length (Figures 1, 5, 7, 10), learning curves, and the overview."""

from pathlib import Path

from ictd.pipeline.grid import Cell
from ictd.report.figures.learning_curves import learning_curves
from ictd.report.figures.msve_curves import msve_curves
from ictd.report.figures.overview import overview
from ictd.report.figures.style import panels_of, save
from ictd.report.tables import load_tables


def main(figures: dict, overview_cells: list[str], tables: list[Path], folder: Path) -> None:
    """Write figures as PNG and SVG, from the tables msve, baselines, weights, learning and mean_entries.

    ``figures`` has for each figure of MSVE what varies and the cells to show.  The figure ``learning`` shows all cells,
    and ``overview`` those of the main setting.
    """
    table = load_tables(tables)
    for name, (vary, *cells) in figures.items():
        panels = panels_of(cells, vary)
        save(msve_curves(panels, table["msve"], table["baselines"], table["weights"]), folder / f"{name}.png")
    main_cells = [Cell.parse(cell) for cell in overview_cells]
    save(learning_curves(table["learning"], table["weights"], main_cells[0]), folder / "learning.png")
    shown = (table[name] for name in ("mean_entries", "msve", "baselines", "weights"))
    save(overview(main_cells, *shown), folder / "overview.png")
