"""Draw learning curves of all cells."""

from pathlib import Path

from ictd.figures.curves import learning_curves
from ictd.figures.style import save
from ictd.grid import Cell
from ictd.measures import cosine
from ictd.steps import run
from ictd.storage import load_named
from ictd.weights import theta_td


def main(weights: list[Path], output: Path) -> None:
    """Write the figure as PNG and SVG."""
    runs = {}
    for path in weights:
        cell = Cell.parse(path.stem)
        result = load_named(path, "tasks_seen", "online_msve", "history_A", "diverged_at")
        runs[cell] = {**result, "cosine": cosine(result["history_A"], theta_td(cell.states).A)}
    save(learning_curves(runs), output)


if __name__ == "__main__":
    run(main)
