"""Curves of MSVE against context length (Figures 1, 5, 7 and 10), and of learning."""

import itertools

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from ictd.figures.style import COLOURS, LINES, NAMES, WIDTH, diverged_note, legend_entries, setting_title
from ictd.grid import Cell
from ictd.statistics import standard_error


def msve_curves(panels: dict[str, tuple[dict[Cell, dict], dict]]) -> Figure:
    """One panel a setting: mean and standard error over trials of the MSVE, and its median.

    The axis is logarithmic: a few tasks with short contexts have errors hundreds of times those of the others.
    Trials that diverged are left out and counted below the panel.

    Parameters
    ----------
    panels : from each title to (evaluations, baselines)
        Evaluations of the cells to show, each with ``context_lengths`` (M,), ``msve`` (S, M, k) and ``diverged_at``
        (S,), and the baselines' arrays (S, M, k) for the same number of states and layers.
    """
    columns = min(3, len(panels))
    rows = -(-len(panels) // columns)
    size = (WIDTH if columns > 1 else 0.75 * WIDTH, 2.6 * rows + 0.5)
    figure, grid = plt.subplots(rows, columns, sharey=True, squeeze=False, figsize=size)
    for axes, (title, (evaluations, baselines)) in zip(grid.flat, panels.items(), strict=False):
        notes = []
        for cell, result in evaluations.items():
            trials, lengths = result["msve"].mean(axis=-1), result["context_lengths"]
            diverged = result["diverged_at"] > 0
            if not diverged.all():
                _draw_trials(axes, lengths, trials[~diverged], cell.algo)
            if diverged.any():
                notes.append(f"{NAMES[cell.algo]}: {diverged_note(diverged)}")
        for method, dashes in (("theta_td", (5, 2)), ("lstd", (5, 2, 1, 2)), ("zero", ())):
            mean = baselines[method].mean(axis=(0, 2))
            axes.plot(
                lengths, mean, color=COLOURS[method], ls=(0, dashes) if dashes else "-", lw=1, label=NAMES[method]
            )
        axes.set(yscale="log", title=title, xlabel="\n".join(["context length", *notes]))
    for axes in grid.flat[len(panels) :]:
        axes.set_visible(False)
    for axes in grid[:, 0]:
        axes.set_ylabel("MSVE")
    figure.legend(*legend_entries(grid), loc="outside lower center", ncols=2 if columns == 1 else 3, fontsize=8)
    return figure


def _draw_trials(axes, lengths: np.ndarray, trials: np.ndarray, algo: str) -> None:
    """Mean of trials (S, M) with its standard error, and their median; the band is cut at a tenth of the mean."""
    mean, error = trials.mean(axis=0), standard_error(trials)
    colour, name = COLOURS[algo], NAMES[algo]
    axes.plot(lengths, mean, color=colour, label=f"{name}, mean")
    axes.fill_between(lengths, np.maximum(mean - error, mean / 10), mean + error, color=colour, alpha=0.2, lw=0)
    axes.plot(lengths, np.median(trials, axis=0), color=colour, lw=1, ls=":", label=f"{name}, median")


def learning_curves(runs: dict[Cell, dict]) -> Figure:
    """What is learned in the course of pretraining, a column an algorithm: MSVE on new tasks, and cosine to theta^TD.

    Runs that diverged are left out of the medians and counted below the column.

    Parameters
    ----------
    runs : for each cell ``tasks_seen`` (K,), ``online_msve`` (S, K), ``cosine`` (S, K) and ``diverged_at`` (S,)
    """
    algos = list(dict.fromkeys(cell.algo for cell in runs))
    settings = list(dict.fromkeys(cell._replace(algo="") for cell in runs))
    cycle = itertools.cycle(zip(LINES, ("-", "--", ":", "-.", "-", "--", ":"), strict=True))
    lost = {algo: [] for algo in algos}
    looks = dict(zip(settings, cycle, strict=False))
    figure, grid = plt.subplots(2, len(algos), sharex=True, sharey="row", squeeze=False, figsize=(WIDTH, 4.4))
    for cell, result in runs.items():
        column = grid[:, algos.index(cell.algo)]
        colour, dashes = looks[cell._replace(algo="")]
        style = {"color": colour, "ls": dashes, "lw": 1.2}
        diverged = result["diverged_at"] > 0
        lost[cell.algo].append(diverged)
        label = setting_title(cell, "main")
        if diverged.all():
            continue
        column[0].plot(result["tasks_seen"], np.median(result["online_msve"][~diverged], axis=0), label=label, **style)
        column[1].plot(result["tasks_seen"], np.median(result["cosine"][~diverged], axis=0), **style)
    for axes, algo in zip(grid[0], algos, strict=True):
        axes.set(title=NAMES[algo], xscale="log", yscale="log")
    for axes, algo in zip(grid[1], algos, strict=True):
        axes.set(xlabel=f"tasks seen\n{diverged_note(np.concatenate(lost[algo]))}".strip())
    grid[0, 0].set_ylabel("MSVE, enumerated")
    grid[1, 0].set_ylabel(r"cosine of $A$ to $\theta^{\mathrm{TD}}$")
    figure.legend(*legend_entries(grid), loc="outside lower center", ncols=2, fontsize=8)
    return figure
