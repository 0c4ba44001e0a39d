"""Learning curves of all cells."""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from ictd.pipeline.grid import Cell
from ictd.report.figures.style import NAMES, WIDTH, diverged_note, legend, save, setting_looks
from ictd.report.result_tables import seen_measures
from ictd.storage import load_named
from ictd.transformer import Weights


def main(weights: list[Path], discount: float, output: Path) -> None:
    """Write the figure as PNG and SVG."""
    runs = {}
    for path in weights:
        cell = Cell.parse(path.stem)
        result = load_named(path, "tasks_seen", "online_msve", "history_u", "history_A", "diverged_at")
        measures = seen_measures(Weights(result["history_u"], result["history_A"]), discount)
        runs[cell] = {**result, "cosine": measures["cosine"]}
    save(learning_curves(runs), output)


def learning_curves(runs: dict[Cell, dict]) -> Figure:
    """What is learned in the course of pretraining, a column an algorithm: MSVE on new tasks, and cosine to theta^TD.

    Runs that diverged are left out of the medians and counted below the column.  For each cell ``runs`` has
    ``tasks_seen`` (K,), ``online_msve`` (S, K), ``cosine`` (S, K) and ``diverged_at`` (S,).
    """
    algos = list(dict.fromkeys(cell.algo for cell in runs))
    lost = {algo: [] for algo in algos}
    looks = setting_looks(runs)
    figure, grid = plt.subplots(2, len(algos), sharex=True, sharey="row", squeeze=False, figsize=(WIDTH, 3.8))
    for cell in sorted(runs):
        result = runs[cell]
        column = grid[:, algos.index(cell.algo)]
        look = looks[cell._replace(algo="")]
        diverged = result["diverged_at"] > 0
        lost[cell.algo].append(diverged)
        if diverged.all():
            continue
        column[0].plot(result["tasks_seen"], np.median(result["online_msve"][~diverged], axis=0), **look)
        column[1].plot(result["tasks_seen"], np.median(result["cosine"][~diverged], axis=0), **look)
    for axes, algo in zip(grid[0], algos, strict=True):
        axes.set(title=NAMES[algo], xscale="log", yscale="log")
    for axes, algo in zip(grid[1], algos, strict=True):
        axes.set(xlabel=f"tasks seen\n{diverged_note(np.concatenate(lost[algo]))}".strip())
    grid[0, 0].set_ylabel("median MSVE on\nenumerated prompts")
    grid[1, 0].set_ylabel("median cosine\n" + r"of $A$ to $\theta^{\mathrm{TD}}$")
    legend(figure, ncols=2)
    return figure
