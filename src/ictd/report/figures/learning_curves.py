"""Learning curves of all cells."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from ictd.pipeline.grid import CELL, Cell
from ictd.report.figures.style import NAMES, WIDTH, difference, diverged_note, label_ends, setting_looks
from ictd.report.tables import rows_with

# Columns of the table of learning curves, one a row of panels.
MEASURES = ("online_msve", "cosine")


def learning_curves(learning: pd.DataFrame, weights: pd.DataFrame, main: Cell) -> Figure:
    """Draw the MSVE on new tasks and the cosine to theta^TD in the course of pretraining, a column an algorithm.

    Lines are medians over the runs that did not diverge; the others are counted below the column.  Labels beside the
    last column say what differs from the setting of the cell ``main``.

    Parameters
    ----------
    learning, weights : tables of ``ictd.report.result_tables``
    main : Cell
    """
    cells = [Cell(*names) for names in weights[CELL].drop_duplicates().itertuples(index=False)]
    algos = [name for name in NAMES if name in {cell.algo for cell in cells}]
    looks = setting_looks(cells, main)
    figure, grid = plt.subplots(2, len(algos), sharex=True, sharey="row", squeeze=False, figsize=(WIDTH, 4.2))
    ends = {name: [] for name in MEASURES}
    for cell in sorted(cells):
        diverged = rows_with(weights, **cell._asdict()).set_index("seed")["diverged_at"] > 0
        if diverged.all():
            continue
        course = rows_with(learning, **cell._asdict()).pivot(index="seed", columns="tasks_seen")[~diverged]
        column = grid[:, algos.index(cell.algo)]
        for axes, name in zip(column, MEASURES, strict=True):
            medians = np.median(course[name].to_numpy(), axis=0)
            look = looks[cell._replace(algo="")]
            axes.plot(course[name].columns, medians, **look)
            if cell.algo == algos[-1]:
                ends[name].append((difference(cell, main), medians[-1], look["color"]))
    for axes, algo in zip(grid[0], algos, strict=True):
        axes.set(title=NAMES[algo], xscale="log", yscale="log")
    for axes, algo in zip(grid[1], algos, strict=True):
        note = diverged_note(rows_with(weights, algo=algo)["diverged_at"] > 0)
        axes.set(xlabel=f"tasks seen\n{note}".strip())
    grid[0, 0].set_ylabel("median MSVE on\nenumerated prompts")
    grid[1, 0].set_ylabel("median cosine\n" + r"of $A$ to $\theta^{\mathrm{TD}}$")
    for axes, name in zip(grid[:, -1], MEASURES, strict=True):
        label_ends(axes, ends[name])
    return figure
