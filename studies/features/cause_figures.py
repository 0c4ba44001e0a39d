"""Figures on causes of eta: the mean TD error, and reversibility of the chain."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ictd.report.figures.style import LINES, WIDTH, legend
from ictd.report.tables import rows_with
from ictd.statistics import bootstrap_interval
from studies.features.grid import is_plain

# Coefficients of the parts of P phi, from the top: case, target, method, and label.
SPLITS = (
    ("own", "values", "split", "true values"),
    ("own", "values", "pretrained", "true values, pretrained"),
    ("own", "values", "limit", r"true values, $L \to \infty$"),
    ("own", "td", "split", "TD"),
    ("own", "td", "pretrained", "TD, pretrained"),
    ("stationary", "values", "split", "stationary mean"),
    ("weighted", "values", "split", "weighted columns"),
    ("reversible", "values", "split", "reversible chain"),
)
# Ticks of coefficients.
COEFFICIENTS = (-1, 0, 1, 10)
# Errors over those of TD with its best step: label, colour and marker.
SPLIT_ERRORS = {
    "tied": (r"$\eta$", "0.5", "o"),
    "mean": (r"$\eta_m$", LINES[1], "v"),
    "rest": (r"$\eta_r$", LINES[2], "^"),
    "split": (r"$\eta_m$ and $\eta_r$", LINES[0], "x"),
    "other_states": (r"$\eta_m$, rest of other states", LINES[3], "+"),
}
# What is drawn of each method: its column, label and look.
REVERSIBILITY = {
    "limit": ("eta", r"best $\eta$, $L \to \infty$", {"color": LINES[0], "ls": "-"}),
    "limit_shuffled": ("zeta", r"$\eta$, $L \to \infty$, other states' $P \phi$", {"color": "0.6", "ls": "-"}),
    "two_numbers": ("eta", r"best $\alpha$, $\eta$", {"color": LINES[1], "ls": "--"}),
    "pretrained": ("eta", r"pretrained $\eta$", {"color": LINES[2], "ls": "", "marker": "o"}),
    "three_numbers": ("zeta", r"$\zeta$ with a third block", {"color": LINES[3], "ls": ":", "marker": "^"}),
}


def mean_part(settings: dict[str, dict], table: pd.DataFrame) -> Figure:
    """Coefficients of the mean and of the rest in plain settings, and below the errors of fits with and without them.

    Dots are means over trials with 95% intervals.  Errors are over those of TD with its best step, in each trial.
    """
    names = [name for name in table["setting"].unique() if is_plain(settings[name])]
    figure, grid = plt.subplots(
        2, len(names), figsize=(WIDTH, 3.6), squeeze=False, sharex="row", sharey="row", height_ratios=[8, 5]
    )
    for (upper, lower), name in zip(grid.T, names, strict=True):
        rows = rows_with(table, setting=name)
        for place, (case, target, method, _) in enumerate(SPLITS):
            trials = rows_with(rows, case=case, target=target, method=method)
            for column, label, colour, marker in (
                ("mean", r"$\eta_m$, mean of $P\phi$", LINES[1], "v"),
                ("rest", r"$\eta_r$, rest of $P\phi$", LINES[2], "^"),
            ):
                _dot(upper, trials[column], place, label if place == 0 else None, colour, marker)
        own = rows_with(rows, case="own", target="values").pivot(index="seed", columns="method", values="error")
        for place, (method, (_, colour, marker)) in enumerate(SPLIT_ERRORS.items()):
            _dot(lower, own[method] / own["td"], place, None, colour, marker)
        upper.axvline(0, color="0.6", lw=0.7, ls=":")
        lower.axvline(1, color="0.6", lw=0.7, ls=":")
        upper.set_title(name.replace("_", " "), fontsize=8)
        # Linear between -1 and 1, and logarithmic beyond.
        upper.set_xscale("symlog", linthresh=1, linscale=0.7)
        upper.set_xticks(COEFFICIENTS, [str(number) for number in COEFFICIENTS])
        upper.set_xticks([], minor=True)
        upper.set_xlabel("coefficient")
        lower.set_xlabel("error over TD's")
    grid[0, 0].set_yticks(range(len(SPLITS)), [label for *_, label in SPLITS], fontsize=7)
    grid[0, 0].set_ylim(len(SPLITS) - 0.5, -0.5)
    grid[1, 0].set_yticks(range(len(SPLIT_ERRORS)), [label for label, *_ in SPLIT_ERRORS.values()], fontsize=7)
    grid[1, 0].set_ylim(len(SPLIT_ERRORS) - 0.5, -0.5)
    legend(figure)
    return figure


def _dot(axes: Axes, trials: pd.Series, place: int, label: str | None, colour: str, marker: str) -> None:
    """The mean over trials with its 95% interval at a height of the vertical axis; nothing without trials."""
    trials = trials.dropna().to_numpy()
    if len(trials) == 0:
        return
    low, high = bootstrap_interval(trials) if len(trials) > 1 else (trials[0], trials[0])
    width = np.maximum([[trials.mean() - low], [high - trials.mean()]], 0)
    axes.errorbar(trials.mean(), place, xerr=width, fmt=marker, ms=3, color=colour, elinewidth=1, label=label)


def reversibility(table: pd.DataFrame) -> Figure:
    """Eta against the drift, for each kind of features and chain, at the discount at which all methods were fitted."""
    table = rows_with(table, discount=rows_with(table, method="two_numbers")["discount"].iloc[0])
    kinds, chains = table["features"].unique(), table["chain"].unique()
    figure, grid = plt.subplots(
        len(kinds), len(chains), figsize=(WIDTH, 1.5 * len(kinds) + 0.6), sharex=True, sharey="row", squeeze=False
    )
    for row, kind in zip(grid, kinds, strict=True):
        for axes, chain in zip(row, chains, strict=True):
            rows = rows_with(table, features=kind, chain=chain)
            for method, (column, label, look) in REVERSIBILITY.items():
                draw_means(axes, rows_with(rows, method=method), "drift", column, label=label, **look)
            axes.axhline(0, color="0.6", lw=0.7, ls=":")
            if kind == kinds[0]:
                axes.set_title(chain, fontsize=8)
            if kind == kinds[-1]:
                axes.set_xlabel("drift")
        row[0].set_ylabel(f"{kind}\n" + r"$\eta$, $\zeta$")
    legend(figure)
    return figure


def draw_means(axes: Axes, rows: pd.DataFrame, along: str, column: str, **look) -> None:
    """Means over trials of a column with 95% intervals, against another column."""
    groups = rows.dropna(subset=column).groupby(along)[column]
    means = groups.mean()
    if means.empty:
        return
    intervals = [bootstrap_interval(values.to_numpy()) if len(values) > 1 else (mean, mean)
                 for (_, values), mean in zip(groups, means, strict=True)]  # fmt: skip
    low, high = zip(*intervals, strict=True)
    lengths = [(means - low).clip(lower=0), (high - means).clip(lower=0)]
    axes.errorbar(means.index, means, lengths, **{"lw": 1.2, "ms": 3.5, "elinewidth": 0.8} | look)
