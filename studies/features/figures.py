"""Figures of the study: eta against one factor at a time, eta in all settings, and errors of methods."""

from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure

from ictd.report.figures.style import COLOURS, LINES, NAMES, WIDTH, legend, save
from ictd.report.tables import load_tables, rows_with
from studies.features.cause_figures import draw_means, mean_part, reversibility
from studies.features.claims import last_rows
from studies.features.grid import FACTORS, varied

TARGETS = {
    "values": ("true values", LINES[1], "o"),
    "mc": ("MC", COLOURS["mc"], "s"),
    "td": ("TD", COLOURS["td"], "D"),
}
# Methods in the figure of errors: label, colour and marker.
METHODS = {
    "theta_td": (NAMES["theta_td"], COLOURS["theta_td"], "o"),
    "two_numbers": (r"best $\alpha$, $\eta$", LINES[3], "x"),
    "td_lambda": (r"TD($\lambda$), best", LINES[4], "x"),
    "lstd": ("LSTD", COLOURS["lstd"], "|"),
    "lstd_ridge": ("LSTD, best ridge", COLOURS["lstd"], "o"),
    "lstd_second": (r"LSTD, best $\eta$ and ridge", LINES[2], "^"),
    "lstd_mean": ("LSTD, mean features", LINES[0], "v"),
    "lstd_lambda": (r"LSTD($\lambda$), best", LINES[5], "^"),
    "pretrained_td": ("pretrained, TD", COLOURS["td"], "D"),
    "pretrained_values": ("pretrained, true values", LINES[1], "o"),
}
# Largest ratio of errors, and the range of eta, that are drawn.
LARGEST_RATIO, SHOWN_ETA = 6, (-1.5, 2.5)


def main(settings: dict, tables: list[Path], output: Path) -> None:
    """Write all figures of the study as PNG and SVG."""
    by_name = load_tables(tables)
    last = last_rows(by_name["coefficients"])
    save(coefficients(settings, by_name["coefficients"], by_name["best"]), output / "coefficients.png")
    save(all_settings(last, by_name["best"]), output / "settings.png")
    save(mean_part(settings, by_name["mean_part"]), output / "mean_part.png")
    save(errors(by_name["errors"]), output / "errors.png")
    save(reversibility(by_name["reversibility"]), output / "reversibility.png")


def coefficients(settings: dict[str, dict], table: pd.DataFrame, best: pd.DataFrame) -> Figure:
    """Eta against features, layers, discount, and tasks seen; lines are computed from four numbers."""
    last = last_rows(table)
    figure, grid = plt.subplots(2, 2, figsize=(WIDTH, 4.6))
    for axes, (factor, label) in zip(grid.flat, FACTORS.items(), strict=False):
        at = varied(settings, factor)
        for target, (name, colour, marker) in TARGETS.items():
            rows = rows_with(last[last["setting"].isin(at)], target=target)
            look = {"marker": marker, "ms": 4, "color": colour, "ls": "", "elinewidth": 1, "label": name}
            draw_means(axes, rows.assign(value=rows["setting"].map(at)), "value", "eta", **look)
            computed = rows_with(best[best["setting"].isin(at)], family="four_numbers", target=target)
            line = computed.set_index(computed["setting"].map(at))["eta"].sort_index()
            axes.plot(line.index, line, color=colour, lw=1)
        axes.axhline(0, color="0.6", lw=0.7, ls=":")
        axes.set(xlabel=label, ylabel=r"$\eta$")
    grid[0, 1].set_xscale("log")
    course = grid[1, 1]
    longest = table[table["tasks_seen"] == table["tasks_seen"].max()]["setting"].iloc[0]
    for target, (_, colour, _) in TARGETS.items():
        rows = rows_with(table, setting=longest, target=target)
        course.plot(rows.groupby("tasks_seen")["eta"].mean(), color=colour, lw=1.2)
    course.set(xscale="log", xlabel="tasks seen", ylabel=r"$\eta$")
    legend(figure)
    return figure


def all_settings(last: pd.DataFrame, best: pd.DataFrame) -> Figure:
    """Eta in each setting: a dot for each trial, and a bar at the value computed from four numbers."""
    names = list(last["setting"].unique())
    figure, axes = plt.subplots(figsize=(WIDTH, 0.19 * len(names) + 0.8))
    for target, (label, colour, _) in TARGETS.items():
        rows = rows_with(last, target=target)
        axes.plot(rows["eta"], rows["setting"].map(names.index), ".", ms=4, color=colour, alpha=0.6, label=label)
        computed = rows_with(best, family="four_numbers", target=target)
        computed = computed[computed["setting"].isin(names)]
        axes.plot(computed["eta"], computed["setting"].map(names.index), "|", ms=9, color=colour)
    axes.axvline(0, color="0.6", lw=0.7, ls=":")
    axes.set_yticks(range(len(names)), [name.replace("_", " ") for name in names], fontsize=7)
    axes.set(xlabel=r"$\eta$", xlim=SHOWN_ETA, ylim=(len(names) - 0.5, -0.5))
    legend(figure)
    return figure


def errors(table: pd.DataFrame) -> Figure:
    """Trimmed mean of the MSVE in each setting, over that of the projection; medians over trials."""
    medians = table.pivot_table(index="setting", columns="method", values="trimmed", aggfunc="median", sort=False)
    # The projection has no error where features represent all values.
    medians = medians[medians["projection"] > 1e-9 * medians["zero"]]
    names = list(medians.index)
    figure, axes = plt.subplots(figsize=(WIDTH, 0.22 * len(names) + 0.8))
    for method, (label, colour, marker) in METHODS.items():
        ratio = (medians[method] / medians["projection"]).clip(upper=LARGEST_RATIO)
        axes.plot(ratio, range(len(names)), marker, ms=5, color=colour, mfc="none", label=label)
    axes.set_yticks(range(len(names)), [name.replace("_", " ") for name in names], fontsize=7)
    axes.set(xlabel="error over that of the projection", ylim=(len(names) - 0.5, -0.5), xscale="log")
    ticks = [1, 1.5, 2, 3, 4, LARGEST_RATIO]
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.set_xticks([], minor=True)
    legend(figure)
    return figure
