"""Draw MSVE against context length, a panel a setting (Figures 1, 5, 7 and 10)."""

from pathlib import Path

from ictd.figures.curves import msve_curves
from ictd.figures.style import save, setting_title
from ictd.grid import Cell
from ictd.steps import run
from ictd.storage import load_named


def main(vary: str, evaluations: list[Path], baselines: list[Path], output: Path) -> None:
    """Write the figure as PNG and SVG; ``vary`` says what sets the panels apart."""
    beside = {path.stem: load_named(path, "theta_td", "lstd", "zero") for path in baselines}
    panels = {}
    for path in evaluations:
        cell = Cell.parse(path.stem)
        shown, _ = panels.setdefault(setting_title(cell, vary), ({}, beside[f"{cell.states}-{cell.depth}"]))
        shown[cell] = load_named(path, "context_lengths", "msve", "diverged_at")
    save(msve_curves(panels), output)


if __name__ == "__main__":
    run(main)
