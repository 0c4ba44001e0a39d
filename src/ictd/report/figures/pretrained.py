"""The figure of J and J' at the pretrained weights."""

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure

from ictd.pipeline.grid import CELL, Cell
from ictd.report.figures.style import LARGEST, NAMES, WIDTH, difference, label_ends, legend, setting_looks
from ictd.report.figures.theory import NORMS, OURS
from ictd.report.tables import rows_with

# Norms with repeated layers are shown up to this factor of the largest norm with as many layers as in training.
SHOWN = 1e4


def pretrained(line: pd.DataFrame, repeated: pd.DataFrame, main: Cell) -> Figure:
    """J or J' on the line from the pretrained weights to theta^TD, and for pretrained layers repeated to other depths.

    ``line`` and ``repeated`` are the theory's tables pretrained and repeated.  Labels beside the last column say what
    differs from the setting of the cell ``main``.
    """
    algos = sorted(set(line["algo"]), key=list(NAMES).index)
    settings = [Cell("", *key) for key in line[CELL[1:]].drop_duplicates().itertuples(index=False)]
    looks = setting_looks(settings, main)
    ends = []
    figure, grid = plt.subplots(2, len(algos), sharex="row", sharey="row", squeeze=False, figsize=(WIDTH, 4.4))
    for (above, below), algo in zip(grid.T, algos, strict=True):
        for key, of_cell in line[line["algo"] == algo].groupby(CELL, sort=False):
            cell = Cell(*key)
            look = looks[cell._replace(algo="")]
            mark = {"color": look["color"], "ls": "", "ms": 4, "mfc": "none"}
            medians = of_cell.groupby("position")["looped_norm"].median()
            medians = medians[medians < LARGEST]
            above.plot(medians.index, medians, **look)
            if algo == algos[-1] and len(medians):
                ends.append((difference(cell, main), medians.iloc[-1], look["color"]))
            medians = rows_with(repeated, **cell._asdict()).groupby("layer")["looped_norm"].median()
            medians = medians[medians < LARGEST]
            below.plot(medians.index, medians, **look)
            trained = medians[medians.index == cell.depth]
            below.plot(trained.index, trained, marker="o", **mark)
        below.plot([], [], marker="o", color=OURS, ls="", ms=4, mfc="none", label="as many layers as in training")
        above.set(yscale="log", title=f"{NAMES[algo]}, {NORMS[algo]}")
        theta_td = r"\theta^{\mathrm{TD}}$"
        above.set_xticks([0, 0.5, 1], ["pretrained", "half", rf"$\alpha\,{theta_td}"], fontsize=8)
        above.set_xlabel(r"from pretrained weights to $\theta^{\mathrm{TD}}$")
        below.set_xlabel("repetitions of the layer")
        if (repeated["looped_norm"] < LARGEST).any():  # An axis without data takes no logarithmic scale.
            below.set(xscale="log", yscale="log")
    trained = repeated.loc[repeated["layer"] == repeated["depth"], "looped_norm"]
    trained = trained[(trained > 0) & (trained < LARGEST)]
    if len(trained):
        grid[1, 0].set_ylim(trained.min() / 30, trained.max() * SHOWN)
    for axes in grid[:, 0]:
        axes.set_ylabel("expected update,\nmedian $J$ or $J'$")
    label_ends(grid[0, -1], ends)
    legend(figure, ncols=2)
    return figure
