"""Draw the course of pretraining in the predecessor's setting, its mean P and Q, and what decides."""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from ictd.report.figures.style import COLOURS, LINES, WIDTH, legend, save
from ictd.report.tables import load_table, rows_with
from studies.features.predecessor import td_matrices

# Measures of the course, their labels, and whether the public code's runs have them.
COURSE = (
    ("cosine_Q", "cosine of $Q$ to batch TD"),
    ("cosine_P", "cosine of $P$ to batch TD"),
    ("similarity", "similarity of weights"),
    ("value_difference", "value difference"),
)


def main(tables: list[Path], public: Path, first: str, output: Path) -> None:
    """Write ``predecessor_course``, ``predecessor_matrices`` and ``predecessor_variants`` as PNG and SVG.

    ``first`` is the variant with the main settings, and ``public`` the file with runs of the public code.
    """
    variants, course_table, matrices = (load_table(path) for path in tables)
    runs = rows_with(load_table(public), variant=first)
    save(course(rows_with(course_table, variant=first), runs), output / "predecessor_course.png")
    save(mean_matrices(rows_with(matrices, variant=first)), output / "predecessor_matrices.png")
    save(what_decides(variants), output / "predecessor_variants.png")


def course(ours: pd.DataFrame, public: pd.DataFrame) -> Figure:
    """Measures against the number of tasks: our seeds and their mean, and runs of the public code."""
    figure, grid = plt.subplots(1, len(COURSE), figsize=(1.5 * WIDTH, 2.1))
    for axes, (measure, label) in zip(grid, COURSE, strict=True):
        wide = ours.pivot(index="tasks", columns="seed", values=measure)
        axes.plot(wide.index, wide, color=COLOURS["td"], alpha=0.25, lw=0.8)
        axes.plot(wide.index, wide.mean(axis=1), color=COLOURS["td"], lw=1.5, label="ours, seeds and mean")
        theirs = public.pivot(index="tasks", columns="seed", values=measure)
        axes.plot(theirs.index, theirs, color=COLOURS["mc"], lw=1, ls="--", label="public code, single seeds")
        axes.set(xlabel="tasks", title=label, ylim=(0, None if measure == "value_difference" else 1.05))
    legend(figure)
    return figure


def mean_matrices(entries: pd.DataFrame) -> Figure:
    """Mean P and Q after the last task, means over layers too, beside those of batch TD, each scaled to [-1, 1]."""
    found = [
        rows_with(entries, matrix=name).groupby(["row", "column"])["mean"].mean().unstack().to_numpy() for name in "PQ"
    ]
    panels = {"mean $P$": found[0], "mean $Q$": found[1]}
    panels |= dict(zip(("$P$ of batch TD", "$Q$ of batch TD"), td_matrices(len(found[0]) // 2), strict=True))
    figure, grid = plt.subplots(1, len(panels), figsize=(1.5 * WIDTH, 2), layout="compressed")
    for axes, (title, matrix) in zip(grid, panels.items(), strict=True):
        image = axes.imshow(matrix / np.abs(matrix).max(), vmin=-1, vmax=1, cmap="RdBu_r")
        axes.set(title=title, xticks=[], yticks=[])
    figure.colorbar(image, ax=grid, ticks=[-1, 0, 1], shrink=0.8)
    return figure


def what_decides(variants: pd.DataFrame) -> Figure:
    """For each variant the cosine of the mean Q, the part of batch TD's gain, and what the runs learned."""
    figure, grid = plt.subplots(1, 3, sharey=True, figsize=(1.5 * WIDTH, 0.2 * len(variants) + 0.8))
    place = np.arange(len(variants))
    for axes, name, label in (
        (grid[0], "mean_cosine_Q", "cosine of the mean $Q$\nto that of batch TD"),
        (grid[1], "share_of_td", "gain over predicting zero,\nthat of batch TD is 1"),
    ):
        value, low, high = (variants[f"{name}{end}"] for end in ("", "_low", "_high"))
        axes.hlines(place, low, high, color=LINES[0], lw=1)
        axes.plot(value, place, "o", color=COLOURS["td"], ms=4)
        axes.axvline(1, color="0.7", lw=0.8, zorder=0)
        axes.set(xlabel=label)
    grid[1].set_xlim(left=max(-0.5, grid[1].get_xlim()[0]))
    seeds = variants["seeds"]
    td, learned, diverged = (variants[name] / seeds for name in ("learned_td", "learned", "diverged"))
    grid[2].barh(place, td, color=COLOURS["theta_td"], label="learned TD")
    grid[2].barh(place, learned - td, left=td, color=LINES[1], label="learned something else")
    grid[2].barh(place, diverged, left=1 - diverged, color=COLOURS["mc"], label="diverged")
    grid[2].set(xlabel="share of seeds", xlim=(0, 1))
    grid[0].set_yticks(place, variants["variant"].str.replace("_", " "), fontsize=7)
    grid[0].set_ylim(len(variants) - 0.5, -0.5)
    legend(figure)
    return figure
