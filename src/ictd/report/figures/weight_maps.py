"""Heat maps of the mean P and Q after pretraining, a row a setting (Figures 2, 4, 6 and 9)."""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from ictd.pipeline.grid import Cell
from ictd.pipeline.storage import load_arrays
from ictd.report.figures.style import NAMES, diverged_note, save, setting_title
from ictd.weights import Weights


def main(vary: str, weights: list[Path], output: Path) -> None:
    """Write the figure as PNG and SVG."""
    panels = {}
    for path in weights:
        cell = Cell.parse(path.stem)
        panels.setdefault(setting_title(cell, vary), {})[cell.algo] = Weights(*load_arrays(path, "u", "A"))
    save(weight_maps(panels), output)


def weight_maps(panels: dict[str, dict[str, Weights]]) -> Figure:
    """A row a setting; for each algorithm the mean over trials of P and of Q, each divided by its largest entry.

    Trials that diverged are left out and counted below the panel.  For each title ``panels`` has the weights (S, ...)
    of each algorithm.
    """
    algos = list(next(iter(panels.values())))
    rows = len(panels)
    size = (3.1 * len(algos) + 0.4, 1.6 * rows + 0.7)
    figure, grid = plt.subplots(rows, 2 * len(algos), squeeze=False, figsize=size)
    for line, (title, weights) in zip(grid, panels.items(), strict=True):
        line[0].set_ylabel(title.replace(", $n", ",\n$n"))
        for i, algo in enumerate(algos):
            diverged = ~np.isfinite(weights[algo].A).all(axis=(1, 2))
            kept = weights[algo][~diverged]
            for axes, matrices in zip(line[2 * i :], (kept.P(), kept.Q()), strict=False):
                image = _draw_matrix(axes, matrices.sum(axis=0), kept.states)
                if diverged.any():  # An empty label would take room.
                    axes.set_xlabel(diverged_note(diverged))
    for i, axes in enumerate(grid[0]):
        axes.set_title(f"{NAMES[algos[i // 2]]}: ${'PQ'[i % 2]}$")
    figure.colorbar(image, ax=grid, location="bottom", aspect=40, shrink=0.6, ticks=[-1, 0, 1]).set_label(
        "entry over the largest absolute entry"
    )
    return figure


def _draw_matrix(axes, matrix: np.ndarray, states: int):
    """One matrix (2n+1, 2n+1) over its largest absolute entry, with lines between its blocks; zero stays as it is."""
    image = axes.imshow(matrix / (np.abs(matrix).max() or 1), cmap="RdBu_r", vmin=-1, vmax=1)
    for edge in (states - 0.5, 2 * states - 0.5):
        axes.axhline(edge, color="0.6", lw=0.5)
        axes.axvline(edge, color="0.6", lw=0.5)
    ticks = [0, states, 2 * states]
    axes.set_xticks(ticks, [tick + 1 for tick in ticks])
    axes.set_yticks(ticks, [tick + 1 for tick in ticks])
    axes.tick_params(length=0, labelsize=7)
    axes.spines[:].set_visible(True)
    return image
