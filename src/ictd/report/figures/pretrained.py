"""The figure of J and J' at the pretrained weights."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from ictd.pipeline.grid import CELL, Cell
from ictd.report.figures.style import COLOURS, INK, NAMES, WIDTH, difference, label_ends, line_width
from ictd.report.figures.theory import NORMS
from ictd.report.tables import rows_with


def pretrained(line: pd.DataFrame, repeated: pd.DataFrame, main: Cell) -> Figure:
    """Growth of J or J' on the line from the pretrained weights to theta^TD, and for other numbers of layers.

    Growth is the mean over trials of log10 of the ratio to J at the pretrained weights with as many layers as in
    training.  ``line`` and ``repeated`` are the theory's tables pretrained and repeated.  Labels say what differs from
    the setting of the cell ``main``.
    """
    algos = sorted(set(line["algo"]), key=list(NAMES).index)
    figure, grid = plt.subplots(2, len(algos), sharex="row", sharey="row", squeeze=False, figsize=(WIDTH, 4.4))
    ends = {axes: [] for axes in grid.flat}
    for (above, below), algo in zip(grid.T, algos, strict=True):
        for key, of_cell in line[line["algo"] == algo].groupby(CELL, sort=False):
            cell = Cell(*key)
            name = difference(cell, main)
            along = _growth(of_cell, "position", 0)
            by_layers = _growth(rows_with(repeated, **cell._asdict()), "layer", cell.depth)
            for axes, growth in ((above, along), (below, by_layers)):
                axes.plot(growth.index, growth, color=COLOURS[algo], lw=line_width(cell, main))
                if len(growth):
                    ends[axes].append((name, growth.iloc[-1], COLOURS[algo]))
            below.plot(cell.depth, 0, color=COLOURS[algo], marker="o", ms=4, mfc="none")
        above.set_title(f"{NAMES[algo]}, {NORMS[algo]}")
        above.set_xticks([0, 1], ["pretrained", r"$\alpha\,\theta^{\mathrm{TD}}$"])
        below.set(xscale="log", xlabel="repetitions of the layer")
    for axes in grid.flat:
        axes.axhline(0, color=INK, lw=0.5)
    for axes in grid[:, 0]:
        axes.set_ylabel("growth of the norm,\norders of magnitude")
    for axes, labels in ends.items():
        label_ends(axes, labels)
    return figure


def _growth(norms: pd.DataFrame, along: str, start: float) -> pd.Series:
    """Mean over trials of log10 of the ratio of the norm to that at ``start``, where it is finite in all trials."""
    logs = np.log10(norms.pivot(index="seed", columns=along, values="looped_norm").fillna(np.inf))
    growth = logs.sub(logs[start], axis=0)[np.isfinite(logs[start])].mean()
    return growth[np.isfinite(growth)]
