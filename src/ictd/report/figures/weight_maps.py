"""Heat maps of theta^TD and of the mean Q and P after pretraining, one row per setting (Figures 2, 4, 6 and 9)."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.colors import LinearSegmentedColormap, to_rgba
from matplotlib.figure import Figure

from ictd.pipeline.grid import Cell
from ictd.report.claim import has_pattern
from ictd.report.figures.style import NAMES, WIDTH, diverged_note
from ictd.report.tables import rows_with
from ictd.transformer import Weights, theta_td

# Blue for negative and red for positive entries, the more opaque the larger; zero is transparent.
BLUE, RED = "#2B7BBA", "#CB3A4A"
OPACITY = ((0, (BLUE, 1)), (0.5, (BLUE, 0)), (0.5, (RED, 0)), (1, (RED, 1)))
MAP = LinearSegmentedColormap.from_list("signs", [(place, to_rgba(*colour)) for place, colour in OPACITY])


def weight_maps(
    panels: dict[str, list[Cell]], mean_entries: pd.DataFrame, mean_weights: pd.DataFrame, weights: pd.DataFrame
) -> Figure:
    """Draw one row per setting: theta^TD, then for each algorithm the mean over trials, each matrix scaled.

    A map is Q, and the strip below it the last row [u, 1] of P, whose other rows are zero.  Below the panel stands the
    squared cosine of the mean identifiable A and theta^TD with its interval, and the number of trials that have the
    pattern.  Trials that diverged are left out of the mean and counted, too.

    Parameters
    ----------
    panels : dict
        For each title the cells to show, which differ in their algorithm.
    mean_entries, mean_weights, weights : tables of ``ictd.steps.metrics``
    """
    algos = [cell.algo for cell in next(iter(panels.values()))]
    rows, columns = len(panels), len(algos) + 1
    figure, grid = plt.subplots(
        rows, columns, squeeze=False, figsize=(WIDTH / 3 * columns, 1.85 * rows + 0.8), layout="compressed"
    )
    for line, (title, cells) in zip(grid, panels.items(), strict=True):
        line[0].set_ylabel(title.replace(", $n", ",\n$n"))
        _draw_map(line[0], theta_td(cells[0].states), "")
        for axes, cell in zip(line[1:], cells, strict=True):
            (measured,) = rows_with(mean_weights, **cell._asdict()).itertuples()
            share = f"{measured.pattern:.3f} ({measured.pattern_low:.3f}, {measured.pattern_high:.3f})"
            trials = rows_with(weights, **cell._asdict())
            good = f"{has_pattern(trials['cosine']).sum()} of {len(trials)} trials"
            note = f"{share}\n{good}\n{diverged_note(trials['diverged_at'] > 0)}".strip()
            image = _draw_map(axes, entries_of(mean_entries, cell), note)
    names = [r"$\theta^{\mathrm{TD}}$", *(NAMES[algo] for algo in algos)]
    for axes, name in zip(grid[0], names, strict=True):
        axes.set_title(name)
    figure.colorbar(image, ax=grid, location="bottom", aspect=40, shrink=0.6, ticks=[-1, 0, 1])
    return figure


def entries_of(mean_entries: pd.DataFrame, cell: Cell) -> Weights:
    """Mean weights of a cell at the end of pretraining."""
    entries = rows_with(mean_entries, **cell._asdict())
    last = rows_with(entries, tasks_seen=entries["tasks_seen"].max())
    u, A = (
        rows_with(last, matrix=name).pivot(index="row", columns="column", values="mean").to_numpy()
        for name in ("u", "A")
    )
    return Weights(u[0], A)


def _draw_map(axes, weights: Weights, note: str):
    """Draw Q, with lines between its blocks, and the last row of P in a strip."""
    n = weights.dimension
    strip = axes.inset_axes(bounds=[0, -0.16, 1, 0.1], sharex=axes)
    for panel, matrix in ((axes, weights.Q()), (strip, weights.P()[-1:])):
        image = panel.imshow(matrix / (np.abs(matrix).max() or 1), cmap=MAP, vmin=-1, vmax=1, aspect="auto")
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
