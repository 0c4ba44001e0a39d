"""The figure of J and J' at the pretrained weights."""

from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure

from ictd.pipeline.grid import CELL, Cell
from ictd.report.figures.style import LARGEST, NAMES, WIDTH, legend, save, setting_looks
from ictd.tables import load_tables, rows_with
from ictd.theory.figures import NORMS, OURS

# Of repeated layers what is within this factor of training is drawn.
SHOWN = 1e4


def main(tables: list[Path], output: Path) -> None:
    """Write the figure as PNG and SVG."""
    of = load_tables(tables)
    save(pretrained(of["pretrained"], of["repeated"]), output)


def pretrained(line: pd.DataFrame, repeated: pd.DataFrame) -> Figure:
    """J or J' from the pretrained weights to theta^TD, and at pretrained layers repeated to any depth.

    ``line`` and ``repeated`` are the theory's tables pretrained and repeated.
    """
    algos = sorted(set(line["algo"]), key=list(NAMES).index)
    looks = setting_looks(Cell("", *key) for key in line[CELL[1:]].drop_duplicates().itertuples(index=False))
    figure, grid = plt.subplots(2, len(algos), sharex="row", sharey="row", squeeze=False, figsize=(WIDTH, 4.4))
    for column, algo in zip(grid.T, algos, strict=True):
        for key, rows in line[line["algo"] == algo].groupby(CELL, sort=False):
            cell = Cell(*key)
            look = looks[cell._replace(algo="")]
            mark = {"color": look["color"], "ls": "", "ms": 4, "mfc": "none"}
            median = rows.groupby("position")["looped_norm"].median()
            median = median[median < LARGEST]
            column[0].plot(median.index, median, **look)
            column[0].plot(1.3, rows["theta_td"].iloc[0], marker="D", **mark)
            deeper = rows_with(repeated, **cell._asdict()).groupby("layer")["looped_norm"].median()
            deeper = deeper[deeper < LARGEST]
            column[1].plot(deeper.index, deeper, **look)
            own = deeper[deeper.index == cell.depth]
            column[1].plot(own.index, own, marker="o", **mark)
        column[0].plot([], [], marker="D", color=OURS, ls="", ms=4, mfc="none", label="step size 1")
        column[1].plot([], [], marker="o", color=OURS, ls="", ms=4, mfc="none", label="as many layers as in training")
        column[0].set(yscale="log", title=f"{NAMES[algo]}, {NORMS[algo]}")
        td = r"\theta^{\mathrm{TD}}$"
        column[0].set_xticks([0, 0.5, 1, 1.3], ["trained", "half", rf"$\alpha\,{td}", f"${td}"], fontsize=8)
        column[0].set_xlabel(r"from pretrained weights to $\theta^{\mathrm{TD}}$")
        column[1].set_xlabel("layers, the pretrained one repeated")
        if (repeated["looped_norm"] < LARGEST).any():  # An axis without data takes no logarithmic scale.
            column[1].set(xscale="log", yscale="log")
    trained = repeated.loc[repeated["layer"] == repeated["depth"], "looped_norm"]
    trained = trained[(trained > 0) & (trained < LARGEST)]
    if len(trained):
        grid[1, 0].set_ylim(trained.min() / 30, trained.max() * SHOWN)
    for axes in grid[:, 0]:
        axes.set_ylabel("median $J$ or $J'$")
    legend(figure, ncols=2)
    return figure
