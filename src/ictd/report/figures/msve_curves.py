"""MSVE against context length, a panel a setting (Figures 1, 5, 7 and 10)."""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from ictd.pipeline.grid import Cell
from ictd.report.figures.style import COLOURS, NAMES, WIDTH, diverged_note, legend, save, setting_title
from ictd.statistics import standard_error
from ictd.storage import load_named


def main(figures: dict, evaluations: list[Path], baselines: list[Path], folder: Path) -> None:
    """Write figures as PNG and SVG."""
    of = {path.stem: load_named(path, "context_lengths", "msve", "diverged_at") for path in evaluations}
    beside = {path.stem: load_named(path, "theta_td", "lstd", "zero") for path in baselines}
    for name, (vary, *cells) in figures.items():
        panels = {}
        for cell in map(Cell.parse, cells):
            shown, _ = panels.setdefault(setting_title(cell, vary), ({}, beside[f"{cell.states}-{cell.depth}"]))
            shown[cell] = of[str(cell)]
        save(msve_curves(panels), folder / f"{name}.png")


def msve_curves(panels: dict[str, tuple[dict[Cell, dict], dict]]) -> Figure:
    """One panel a setting: mean and standard error over trials of the MSVE, and its median.

    The axis is logarithmic: a few tasks with short contexts have errors hundreds of times those of the others.
    Trials that diverged are left out and counted below the panel.

    For each title ``panels`` has the evaluations of the cells to show, each with ``context_lengths`` (M,), ``msve``
    (S, M, k) and ``diverged_at`` (S,), and the baselines' arrays (S, M, k) for the same number of states and layers.
    """
    columns = min(3, len(panels))
    rows = -(-len(panels) // columns)
    size = (WIDTH if columns > 1 else 0.75 * WIDTH, 2.4 * rows)
    figure, grid = plt.subplots(rows, columns, sharey=True, squeeze=False, figsize=size)
    for axes, (title, (evaluations, baselines)) in zip(grid.flat, panels.items(), strict=False):
        notes = []
        for cell, result in evaluations.items():
            trials, lengths = result["msve"].mean(axis=-1), result["context_lengths"]
            diverged = result["diverged_at"] > 0
            if not diverged.all():
                _draw_trials(axes, lengths, trials[~diverged], cell.algo)
            if diverged.any():
                notes.append(f"{cell.algo.upper()}: {diverged_note(diverged)}")
        for method, dashes in (("theta_td", (5, 2)), ("lstd", (5, 2, 1, 2)), ("zero", ())):
            mean = baselines[method].mean(axis=(0, 2))
            axes.plot(
                lengths, mean, color=COLOURS[method], ls=(0, dashes) if dashes else "-", lw=1, label=NAMES[method]
            )
        axes.set(yscale="log", title=title, xlabel="\n".join(["context length (steps)", *notes]))
    for axes in grid.flat[len(panels) :]:
        axes.set_visible(False)
    for axes in grid[:, 0]:
        axes.set_ylabel("MSVE")
    legend(figure)
    return figure


def _draw_trials(axes, lengths: np.ndarray, trials: np.ndarray, algo: str) -> None:
    """Mean of trials (S, M) with its standard error, and their median; the band is cut at a tenth of the mean."""
    mean, error = trials.mean(axis=0), standard_error(trials)
    colour, name = COLOURS[algo], NAMES[algo]
    axes.plot(lengths, mean, color=colour, label=f"{name}, mean")
    axes.fill_between(lengths, np.maximum(mean - error, mean / 10), mean + error, color=colour, alpha=0.2, lw=0)
    axes.plot(lengths, np.median(trials, axis=0), color=colour, lw=1, ls=":", label=f"{name}, median")
