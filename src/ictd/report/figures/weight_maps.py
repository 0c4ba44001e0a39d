"""Heat maps of theta^TD and of the mean Q and P after pretraining, a row a setting (Figures 2, 4, 6 and 9)."""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from ictd.pipeline.grid import Cell
from ictd.report.figures.style import NAMES, WIDTH, diverged_note, save, setting_title
from ictd.storage import load_arrays
from ictd.transformer import Weights, theta_td


def main(figures: dict, weights: list[Path], folder: Path) -> None:
    """Write figures as PNG and SVG."""
    of = {path.stem: Weights(*load_arrays(path, "u", "A")) for path in weights}
    for name, (vary, *cells) in figures.items():
        panels = {}
        for cell in map(Cell.parse, cells):
            panels.setdefault(setting_title(cell, vary), {})[cell.algo] = of[str(cell)]
        save(weight_maps(panels), folder / f"{name}.png")


def weight_maps(panels: dict[str, dict[str, Weights]]) -> Figure:
    """A row a setting: theta^TD, then for each algorithm the mean over trials, each matrix over its largest entry.

    A map is Q, and the strip below it the last row [u, 1] of P, whose other rows are zero.  Trials that diverged are
    left out and counted below the panel.  For each title ``panels`` has the weights (S, ...) of each algorithm.
    """
    algos = list(next(iter(panels.values())))
    rows, columns = len(panels), len(algos) + 1
    figure, grid = plt.subplots(
        rows, columns, squeeze=False, figsize=(WIDTH / 3 * columns, 2.1 * rows + 0.8), layout="compressed"
    )
    for line, (title, weights) in zip(grid, panels.items(), strict=True):
        line[0].set_ylabel(title.replace(", $n", ",\n$n"))
        _draw_map(line[0], theta_td(weights[algos[0]].states)[None], "")
        for axes, algo in zip(line[1:], algos, strict=True):
            diverged = ~np.isfinite(weights[algo].A).all(axis=(1, 2))
            image = _draw_map(axes, weights[algo][~diverged], diverged_note(diverged))
    names = [r"$\theta^{\mathrm{TD}}$", *(f"{NAMES[algo]}, mean" for algo in algos)]
    for axes, name in zip(grid[0], names, strict=True):
        axes.set_title(name)
    bar = figure.colorbar(image, ax=grid, location="bottom", aspect=40, shrink=0.6, ticks=[-1, 0, 1])
    bar.set_label("entry over the largest absolute one\nof $Q$, or of $P$ (strips: its last row)", fontsize=8)
    return figure


def _draw_map(axes, weights: Weights, note: str):
    """The mean Q of weights (S, ...), with lines between its blocks, and the last row of the mean P in a strip."""
    n = weights.states
    strip = axes.inset_axes(bounds=[0, -0.16, 1, 0.1], sharex=axes)
    # A sum over its largest entry is what a mean is, and zero where there are no trials.
    for panel, matrix in ((axes, weights.Q().sum(axis=0)), (strip, weights.P().sum(axis=0)[-1:])):
        image = panel.imshow(matrix / (np.abs(matrix).max() or 1), cmap="RdBu_r", vmin=-1, vmax=1, aspect="auto")
        panel.spines[:].set_visible(True)
        for edge in (n - 0.5, 2 * n - 0.5):
            panel.axvline(edge, color="0.6", lw=0.5)
            axes.axhline(edge, color="0.6", lw=0.5)
    ticks = [0, n, 2 * n]
    axes.set_yticks(ticks, [tick + 1 for tick in ticks])
    strip.set_xticks(ticks, [tick + 1 for tick in ticks])
    strip.set_yticks([0], ["$P$"])
    axes.tick_params(length=0, labelsize=7, labelbottom=False)
    strip.tick_params(length=0, labelsize=7)
    axes.set_box_aspect(1)
    if note:  # An empty label would take room.
        strip.set_xlabel(note, fontsize=8)
    return image
