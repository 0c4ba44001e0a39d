"""MSVE against context length, one panel per setting (Figures 1, 5, 7 and 10)."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from ictd.baselines import shown_baselines
from ictd.report.figures.style import COLOURS, NAMES, WIDTH, diverged_note, legend
from ictd.report.names import LOOKS
from ictd.report.tables import rows_with
from ictd.statistics import standard_error


def msve_curves(panels: dict[str, list], msve: pd.DataFrame, baselines: pd.DataFrame, weights: pd.DataFrame) -> Figure:
    """Draw the mean over trials of the MSVE with its standard error, and its median, one panel a setting.

    The axis is logarithmic: a few tasks with short contexts have errors hundreds of times those of the others.
    Trials that diverged are left out and counted below the panel.

    Parameters
    ----------
    panels : dict
        For each title the cells to show, which have the same numbers of states and layers.
    msve, baselines, weights : tables of ``ictd.report.result_tables``
    """
    columns = min(3, len(panels))
    rows = -(-len(panels) // columns)
    size = (WIDTH if columns > 1 else 0.75 * WIDTH, 2.4 * rows)
    figure, grid = plt.subplots(rows, columns, sharey=True, squeeze=False, figsize=size)
    for axes, (title, cells) in zip(grid.flat, panels.items(), strict=False):
        notes = []
        for cell in cells:
            trials = rows_with(msve, **cell._asdict()).pivot(index="seed", columns="context_length", values="msve")
            diverged = rows_with(weights, **cell._asdict()).set_index("seed")["diverged_at"] > 0
            if not diverged.all():
                _draw_trials(axes, trials[~diverged], cell.algo)
            if diverged.any():
                notes.append(f"{cell.algo.upper()}: {diverged_note(diverged)}")
        for method in shown_baselines():
            errors = rows_with(baselines, method=method, states=cells[0].states, depth=cells[0].depth)
            mean = errors.groupby("context_length")["msve"].mean()
            axes.plot(mean.index, mean, color=COLOURS[method], ls=LOOKS[method].dashes, lw=1, label=NAMES[method])
        axes.set(yscale="log", title=title, xlabel="\n".join(["context length (steps)", *notes]))
    for axes in grid.flat[len(panels) :]:
        axes.set_visible(False)
    for axes in grid[:, 0]:
        axes.set_ylabel("MSVE")
    grid[0, 0].plot([], [], color="0.4", lw=1, ls=":", label="dotted: medians")
    legend(figure)
    return figure


def _draw_trials(axes, trials: pd.DataFrame, algo: str) -> None:
    """Draw the mean of trials (S, M) with its standard error, and their median; cut the band at a tenth of the mean."""
    lengths, errors = trials.columns, trials.to_numpy()
    mean, spread = errors.mean(axis=0), standard_error(errors)
    colour, name = COLOURS[algo], NAMES[algo]
    axes.plot(lengths, mean, color=colour, label=name)
    axes.fill_between(lengths, np.maximum(mean - spread, mean / 10), mean + spread, color=colour, alpha=0.2, lw=0)
    axes.plot(lengths, np.median(errors, axis=0), color=colour, lw=1, ls=":")
