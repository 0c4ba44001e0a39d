"""Figures of the study: minimisers, the part outside the family during training, and forms on sampled contexts."""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter

from ictd.report.figures.style import COLOURS, LINES, NAMES, WIDTH, legend, save
from ictd.report.tables import load_tables, rows_with
from studies.limits.claims import HEADS, reaching_least
from studies.limits.grid import LEAST_MSVE

FORMS = {"lstd": "LSTD, best ridge", "alone": "each length alone", "one": "lengths together", "heads": "second head"}
LOOKS = {"uniform": {"ls": "-", "marker": "o", "ms": 3}, "heads": {"ls": "--", "marker": "o", "ms": 3, "mfc": "none"}}
# Shares below this are rounding errors.
LEAST_SHARE = 1e-17


def main(tables: list[Path], env: str, states: int, output: Path) -> None:
    """Write ``minimisers``, ``course`` and ``forms`` as PNG and SVG."""
    by_name = load_tables(tables)
    shown = {"env": env, "states": max(by_name["descents"]["states"])}
    descents = rows_with(by_name["descents"], **shown)
    spectra = rows_with(by_name["spectra"], **shown)
    save(minimisers(descents, spectra), output / "minimisers.png")
    save(course(by_name["course"]), output / "course.png")
    save(forms(by_name["forms"], by_name["fits"]), output / "forms.png")


def shades(number: int) -> np.ndarray:
    """Colours (number, 4) of a sequence."""
    return plt.cm.viridis(np.linspace(0, 0.9, number))


def minimisers(descents: pd.DataFrame, spectra: pd.DataFrame) -> Figure:
    """Lowest MSVE, share outside the family, and curvatures, by depth."""
    figure, (left, middle, right) = plt.subplots(1, 3, figsize=(WIDTH, 2.4))
    _draw_least(left, descents)
    reaching = pd.concat([reaching_least(of_depth) for _, of_depth in descents.groupby("depth")])
    depths = reaching["depth"].astype(str)
    middle.plot(depths, reaching["outside"].clip(lower=LEAST_SHARE), "o", ms=3, mfc="none", color=LINES[0])
    left.set(yscale="log", xlabel="layers $L$", ylabel="MSVE")
    middle.set(yscale="log", xlabel="layers $L$", ylabel="share outside")
    legend(figure)
    depths = sorted(descents["depth"].unique())
    for depth, colour in zip(depths, shades(len(depths)), strict=True):
        curvature = np.sort(rows_with(spectra, depth=depth)["curvature"].abs())[::-1]
        direction = np.arange(1, len(curvature) + 1)
        right.plot(direction, curvature / curvature[0], color=colour, lw=1, label=f"$L={depth}$")
    right.set(yscale="log", xlabel="direction", ylabel="curvature / greatest", ylim=(1e-14, 2))
    right.legend(loc="lower left", fontsize=7, handlelength=1)
    return figure


def _draw_least(axes: Axes, descents: pd.DataFrame) -> None:
    """Lowest MSVE of all descents and of descents within the family, and the MSVE of their starting points."""
    least = descents.groupby("depth")["msve"].min().clip(lower=LEAST_MSVE)
    within = rows_with(descents, start="family").groupby("depth")["msve"].min().clip(lower=LEAST_MSVE)
    axes.plot(least.index.astype(str), least, color=LINES[2], lw=4, label="lowest")
    axes.plot(within.index.astype(str), within, color=LINES[0], lw=1, ls="--", label="lowest in the family")
    for start in NAMES:
        if start in set(descents["start"]):
            before = rows_with(descents, start=start).groupby("depth")["msve_before"].mean()
            axes.plot(before.index.astype(str), before, color=COLOURS[start], marker="o", ms=3, label=NAMES[start])


def course(table: pd.DataFrame) -> Figure:
    """Share outside the family against alpha L (1 - gamma) and alpha L, after three numbers of tasks."""
    runs = table[(table["run"] == "td") & (table["alpha"] > 0)]
    marks = table["tasks"].unique()
    marks = marks[sorted({0, len(marks) // 2, len(marks) - 1})]
    figure, grid = plt.subplots(2, len(marks), figsize=(WIDTH, 4.4), sharex="row", sharey=True, squeeze=False)
    for mark, (upper, lower) in zip(marks, grid.T, strict=True):
        by_discount = rows_with(runs, tasks=mark).groupby("discount")
        for (discount, trials), colour in zip(by_discount, shades(len(by_discount)), strict=True):
            look = {"ms": 4, "color": colour, "label": rf"$\gamma = {discount}$"}
            step_layers = trials["alpha"] * trials["depth"]
            upper.plot(step_layers * (1 - discount), trials["outside"], ".", **look)
            lower.plot(step_layers, trials["outside"], ".", **look)
        upper.set(xscale="log", yscale="log", xlabel=r"$\alpha L (1 - \gamma)$", title=f"{mark:,} tasks")
        lower.set(xscale="log", yscale="log", xlabel=r"$\alpha L$")
    for axes in grid.flat:
        axes.xaxis.set_minor_formatter(NullFormatter())
    for axes in grid[:, 0]:
        axes.set_ylabel("share outside")
    legend(figure)
    return figure


def forms(table: pd.DataFrame, fits: pd.DataFrame) -> Figure:
    """MSVE relative to LSTD with the best pseudo-counts, and the pseudo-counts that fit outputs, by context length."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(WIDTH, 2.8), width_ratios=[3, 2])
    table = table.assign(length=table["length"].astype(str))
    fits = fits.assign(length=fits["length"].astype(str))
    means = table.pivot_table(index="length", columns="method", values="msve", sort=False)
    for (name, label), colour in zip(FORMS.items(), (COLOURS["lstd"], *LINES[1:]), strict=False):
        left.plot(means[name] / means["pseudo_counts"], color=colour, marker=".", label=label)
    best = rows_with(table, method="pseudo_counts", group=0)
    right.plot(best["length"], best["chosen"], color=LINES[0], marker=".", label="best $k$")
    on_uniform_tasks = fits[fits["kind"].isin(HEADS)]
    for (kind, algo), trials in on_uniform_tasks.groupby(["kind", "algo"], sort=False):
        by_length = trials.groupby("length").mean(numeric_only=True).loc[means.index]
        look = LOOKS[kind] | {"color": COLOURS[algo]}
        label = ", ".join([f"trained by {algo.upper()}", *HEADS[kind]])
        left.plot(by_length["msve"] / by_length["pseudo_counts"], label=label, **look)
        right.plot(by_length["k"], **look)
    left.axhline(1, color=LINES[0], lw=0.7, ls=":")
    left.set(ylabel="MSVE / that with the best $k$", xlabel="steps of the context")
    right.set(ylabel="pseudo-counts $k$", ylim=(0, None), xlabel="steps of the context")
    legend(figure)
    return figure
