"""The main setting in one figure: mean weights after pretraining, and the MSVE by the length of the prompt."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from ictd.baselines import shown_baselines
from ictd.pipeline.grid import Cell
from ictd.report.figures.style import COLOURS, NAMES, label_ends
from ictd.report.figures.weight_maps import mean_weights
from ictd.report.tables import rows_with
from ictd.transformer import theta_td


def overview(
    cells: list[Cell], mean_entries: pd.DataFrame, msve: pd.DataFrame, baselines: pd.DataFrame, weights: pd.DataFrame
) -> Figure:
    """Draw A of theta^TD and the mean A of each algorithm, beside the mean MSVE against the context length.

    Parameters
    ----------
    cells : list of Cells of one setting, one for each algorithm
    mean_entries, msve, baselines, weights : tables of ``ictd.report.result_tables``
    """
    figure = plt.figure(figsize=(8.6, 2.9))
    left, right = figure.subfigures(1, 2, width_ratios=[1.25, 1])
    matrices = {r"$\theta^{\mathrm{TD}}$": theta_td(cells[0].states).A}
    matrices |= {f"pretrained by {cell.algo.upper()}": mean_weights(mean_entries, cell).A for cell in cells}
    panels = left.subplots(1, len(matrices))
    left.suptitle("weights A (mean over trials)", fontsize=10)
    for axes, (title, A) in zip(panels, matrices.items(), strict=True):
        image = axes.imshow(A / np.abs(A).max(), cmap="RdBu_r", vmin=-1, vmax=1)
        axes.set_xlabel(title)
        axes.set(xticks=[], yticks=[])
        axes.spines[:].set_visible(True)
    left.colorbar(image, ax=panels, location="bottom", aspect=50, shrink=0.6, ticks=[-1, 0, 1], label="scaled entry")
    axes = right.subplots()
    right.suptitle("error of value estimates on new tasks", fontsize=10)
    ends = []
    for cell in cells:
        trials = rows_with(msve, **cell._asdict()).pivot(index="seed", columns="context_length", values="msve")
        diverged = rows_with(weights, **cell._asdict()).set_index("seed")["diverged_at"] > 0
        mean = trials[~diverged].mean()
        axes.plot(mean.index, mean, color=COLOURS[cell.algo])
        ends.append((f"pretrained by {cell.algo.upper()}", mean.iloc[-1], COLOURS[cell.algo]))
    for method in shown_baselines():
        errors = rows_with(baselines, method=method, states=cells[0].states, depth=cells[0].depth)
        mean = errors.groupby("context_length")["msve"].mean()
        axes.plot(mean.index, mean, color=COLOURS[method], lw=1.2)
        ends.append((NAMES[method].removesuffix(" size"), mean.iloc[-1], COLOURS[method]))
    axes.set(yscale="log", xlabel="steps in the prompt", ylabel="MSVE", xlim=(0, msve["context_length"].max()))
    label_ends(axes, ends)
    return figure
