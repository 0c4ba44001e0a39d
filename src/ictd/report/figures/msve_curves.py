"""MSVE against context length, one panel per setting (Figures 1, 5, 7 and 10)."""

import textwrap

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from ictd.baselines import BASELINES, shown_baselines
from ictd.report.figures.style import COLOURS, NAMES, WIDTH, diverged_note, legend
from ictd.report.names import LOOKS
from ictd.report.tables import rows_with
from ictd.statistics import bootstrap_mean


def msve_curves(panels: dict[str, tuple[list, dict]], weights: pd.DataFrame, evaluated_on: str = "") -> Figure:
    """Draw the MSVE of cells and baselines on the tasks that decide the claims, one panel a setting.

    A line is the geometric mean over trials, as claims are on means of logarithms.  The bands of cells are 95%
    intervals of the ratio to predicting zero, around the line of predicting zero.  Dotted lines are medians over tasks.
    Trials that diverged are left out and counted below the panel.

    Parameters
    ----------
    panels : dict
        For each title the cells to show, which have the same numbers of states and layers, and a dict with the tables
        ``unseen_msve``, ``unseen_baselines`` and ``over_tasks`` of ``ictd.steps.unseen``.
    weights : table of ``ictd.steps.metrics``
    evaluated_on : str, the environment of the tasks, for the label
    """
    columns = min(3, len(panels))
    rows = -(-len(panels) // columns)
    figure, grid = plt.subplots(rows, columns, sharey=True, squeeze=False, figsize=(WIDTH, 2.4 * rows))
    for axes, (title, (cells, tables)) in zip(grid.flat, panels.items(), strict=False):
        over_tasks = tables["over_tasks"]
        states, depth = cells[0].states, cells[0].depth
        logs = {}
        for method in shown_baselines():
            layers = depth if BASELINES[method].layered else 0
            logs[method] = _by_trial(tables["unseen_baselines"], method=method, states=states, depth=layers)
        zero = logs["zero"]
        notes = []
        for cell in cells:
            diverged = rows_with(weights, **cell._asdict()).set_index("seed")["diverged_at"] > 0
            if not diverged.all():
                ratios = (_by_trial(tables["unseen_msve"], **cell._asdict()) - zero)[~diverged]
                _draw_trials(axes, ratios, zero.mean(), cell.algo)
                _draw_medians(axes, over_tasks, cell.algo, cell.env, cell)
            if diverged.any():
                notes.append(textwrap.fill(f"{cell.algo.upper()}: {diverged_note(diverged)}", 14))
        for method, trials in logs.items():
            look = {"color": COLOURS[method], "ls": LOOKS[method].dashes, "lw": 1, "label": NAMES[method]}
            axes.plot(trials.columns, 10 ** trials.mean(), **look)
        _draw_medians(axes, over_tasks, "zero", "any", cells[0]._replace(depth=0), "medians over tasks")
        axes.set(yscale="log", title=title, xlabel="\n".join(["context steps", *notes]))
    for axes in grid.flat[len(panels) :]:
        axes.set_visible(False)
    for axes in grid[:, 0]:
        axes.set_ylabel(f"MSVE{evaluated_on}")
    legend(figure)
    return figure


def _by_trial(table: pd.DataFrame, **place) -> pd.DataFrame:
    """Log10 of the MSVE, with a row for each seed and a column for each context length."""
    return np.log10(rows_with(table, **place).pivot(index="seed", columns="context_length", values="msve"))


def _draw_trials(axes, ratios: pd.DataFrame, zero: pd.Series, algo: str) -> None:
    """Draw the mean of log ratios to zero with its 95% interval; a dot marks the longest context, which decides."""
    estimates = np.array([bootstrap_mean(trials).estimate() for trials in ratios.to_numpy().T])
    value, low, high = 10 ** (estimates + zero.to_numpy()[:, None]).T
    look = {"color": COLOURS[algo], "label": NAMES[algo], "marker": "o", "ms": 4, "markevery": [-1]}
    axes.plot(ratios.columns, value, **look)
    axes.fill_between(ratios.columns, low, high, color=COLOURS[algo], alpha=0.25, lw=0)


def _draw_medians(axes, over_tasks: pd.DataFrame, method: str, env: str, cell, label: str = "") -> None:
    """Draw the medians over tasks of a method, with a label for the legend."""
    medians = rows_with(over_tasks, method=method, env=env, states=cell.states, depth=cell.depth)
    medians = medians[medians["context_length"] > 0]
    axes.plot(medians["context_length"], medians["median"], color=COLOURS[method], lw=1, ls=":", label=label)
