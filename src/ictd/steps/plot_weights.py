"""Draw the mean P and Q after pretraining, a row a setting (Figures 2, 4, 6 and 9)."""

from pathlib import Path

from ictd.figures.heatmaps import weight_maps
from ictd.figures.style import save, setting_title
from ictd.grid import Cell
from ictd.steps import run
from ictd.storage import load_arrays
from ictd.weights import Weights


def main(vary: str, weights: list[Path], output: Path) -> None:
    """Write the figure as PNG and SVG; ``vary`` says what sets the rows apart."""
    panels = {}
    for path in weights:
        cell = Cell.parse(path.stem)
        panels.setdefault(setting_title(cell, vary), {})[cell.algo] = Weights(*load_arrays(path, "u", "A"))
    save(weight_maps(panels), output)


if __name__ == "__main__":
    run(main)
