"""Learning curves of all cells."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from ictd.pipeline.grid import CELL, Cell
from ictd.report.figures.style import COLOURS, NAMES, WIDTH, difference, diverged_note, label_ends, line_width
from ictd.report.tables import rows_with


def learning_curves(learning: pd.DataFrame, weights: pd.DataFrame, main: Cell) -> Figure:
    """Draw the MSVE on new tasks, and the squared cosine to theta^TD, in pretraining; a column an algorithm.

    Lines are medians over the runs that did not diverge; the others are counted below the column.  Labels say what
    differs from the setting of the cell ``main``, which has the thick line.

    Parameters
    ----------
    learning, weights : tables of ``ictd.steps.metrics``
    main : Cell
    """
    cells = [Cell(*names) for names in weights[CELL].drop_duplicates().itertuples(index=False)]
    algos = [name for name in NAMES if name in {cell.algo for cell in cells}]
    figure, grid = plt.subplots(2, len(algos), sharex=True, sharey="row", squeeze=False, figsize=(WIDTH, 4.2))
    ends = {axes: [] for axes in grid.flat}
    for (above, below), algo in zip(grid.T, algos, strict=True):
        for cell in sorted(cell for cell in cells if cell.algo == algo):
            diverged = rows_with(weights, **cell._asdict()).set_index("seed")["diverged_at"] > 0
            if diverged.all():
                continue
            course = rows_with(learning, **cell._asdict()).pivot(index="seed", columns="tasks_seen")[~diverged]
            shares = course["cosine"].clip(lower=0) ** 2
            name = difference(cell, main)
            for axes, values in ((above, course["online_msve"]), (below, shares)):
                medians = np.median(values, axis=0)
                axes.plot(values.columns, medians, color=COLOURS[algo], lw=line_width(cell, main))
                ends[axes].append((name, medians[-1], COLOURS[algo]))
        above.set(title=NAMES[algo], xscale="log", yscale="log")
        note = diverged_note(rows_with(weights, algo=algo)["diverged_at"] > 0)
        below.set(xlabel=f"tasks seen\n{note}".strip(), ylim=(0, 1))
    grid[0, 0].set_ylabel("median MSVE on\nenumerated prompts")
    grid[1, 0].set_ylabel("median squared cosine\n" + r"of $A$ to $\theta^{\mathrm{TD}}$")
    for axes, labels in ends.items():
        label_ends(axes, labels)
    return figure
