"""Figures of the study: minimisers, what is outside in trained runs, and forms on sampled contexts."""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from ictd.pipeline.table_files import load_tables, rows_with
from ictd.report.figures.style import COLOURS, LINES, NAMES, WIDTH, legend, save
from studies.limits.claims import reached
from studies.limits.grid import LEAST

RUNS = {"td": "as in pretraining", "gain": "gain of the output", "start": r"from $\alpha = 1$"}
FORMS = {"alone": "each length alone", "one": "lengths together", "empty": "empty columns", "heads": "two heads"}


def main(tables: list[Path], env: str, states: int, output: Path) -> None:
    """Write ``minimisers``, ``course`` and ``forms`` as PNG and SVG."""
    of = load_tables(tables)
    place = {"env": env, "states": max(of["descents"]["states"])}
    save(minimisers(*(rows_with(of[name], **place) for name in ("descents", "spectra"))), output / "minimisers.png")
    save(course(of["course"]), output / "course.png")
    save(forms(of["forms"], of["fits"]), output / "forms.png")


def minimisers(table: pd.DataFrame, spectra: pd.DataFrame) -> Figure:
    """Least MSVE, share outside, and curvatures, by depth; dots are starts."""
    figure, (left, middle, right) = plt.subplots(1, 3, figsize=(WIDTH, 2.4))
    near = pd.concat([reached(rows) for _, rows in table.groupby("depth")])
    lines = [("theta", "begin", NAMES["theta_td"], COLOURS["theta_td"], "-")]
    lines += [(algo, "begin", NAMES[algo], COLOURS[algo], "-") for algo in ("td", "mc") if algo in set(table["start"])]
    lines += [("family", "value", "least with nothing outside", LINES[1], "--")]
    for start, name, label, colour, dashes in lines:
        rows = rows_with(table, start=start).groupby("depth")[name].mean().clip(lower=LEAST)
        left.plot(rows.index, rows, color=colour, ls=dashes, marker="o", ms=3, label=label)
    least = table.groupby("depth")["value"].min().clip(lower=LEAST)
    left.plot(least.index, least, color=LINES[0], label="least")
    middle.plot(near["depth"], near["outside"].clip(lower=1e-17), "o", ms=3, mfc="none", color=LINES[0])
    for axes, title in ((left, "MSVE"), (middle, "share outside")):
        axes.set(xscale="log", yscale="log", xlabel="layers $L$", title=title)
    for depth, colour in zip(least.index, plt.cm.viridis(np.linspace(0, 0.9, len(least))), strict=True):
        curvature = np.sort(rows_with(spectra, depth=depth)["curvature"].abs())[::-1]
        right.plot(1 + np.arange(len(curvature)), curvature / curvature[0], color=colour, lw=1, label=f"$L={depth}$")
    right.set(yscale="log", xlabel="direction", title="curvature / greatest", ylim=(1e-14, 2))
    legend(figure)
    return figure


def course(table: pd.DataFrame) -> Figure:
    """Share outside against alpha L (1 - gamma) and against alpha L, a dot a run and mark, and its norm by tasks."""
    figure, (left, middle, right) = plt.subplots(1, 3, figsize=(WIDTH, 2.4))
    of = table[(table["run"] == "td") & (table["alpha"] > 0)]
    layers = of["alpha"] * of["depth"]
    for axes, power, title in ((left, 1, r"$\alpha L (1 - \gamma)$"), (middle, 0, r"$\alpha L$")):
        x = layers * (1 - of["discount"]) ** power
        for discount, colour in zip(sorted(of["discount"].unique()), (LINES[0], *LINES[2:]), strict=False):
            here = of["discount"] == discount
            axes.plot(x[here], of.loc[here, "outside"], ".", ms=2, color=colour, label=rf"$\gamma = {discount}$")
        axes.set(xscale="log", yscale="log", xlabel=title, title="share outside")
    discount, depth = (np.unique(table[name])[-2] for name in ("discount", "depth"))
    for (run, label), colour in zip(RUNS.items(), (COLOURS["td"], *LINES[1:2], COLOURS["theta_td"]), strict=True):
        rows = rows_with(table, run=run, depth=depth, discount=discount).groupby("tasks")["outside_norm"].median()
        right.plot(rows.index, rows, color=colour, ls="--", marker="o", ms=3, label=label)
    right.set(xscale="log", yscale="log", xlabel="tasks", title=f"norm outside\n$L={depth}$, $\\gamma={discount}$")
    legend(figure)
    return figure


def forms(table: pd.DataFrame, fits: pd.DataFrame) -> Figure:
    """Share of the gap between LSTD and LSTD with pseudo-steps that is closed, by length, cut off below -0.5."""
    figure, axes = plt.subplots(figsize=(WIDTH * 0.7, 2.6))
    means = table.pivot_table(index="length", columns="method", values="msve")
    trained = fits[fits["kind"] == "uniform"].pivot_table(index="length", columns="algo", values="msve")
    lines = [(means[name], label, colour) for (name, label), colour in zip(FORMS.items(), LINES, strict=False)]
    for values, label, colour in [*lines, *((trained[algo], NAMES[algo], COLOURS[algo]) for algo in trained)]:
        closed = (means["lstd"] - values) / (means["lstd"] - means["pseudo_steps"])
        axes.plot(closed.index, closed, color=colour, marker="o", ms=3, label=label)
    axes.axhline(0.9, color=COLOURS["zero"], lw=0.7, ls=":")
    axes.set(xscale="log", xlabel="steps of the context", ylabel="share of the gap closed", ylim=(-0.5, 1.15))
    legend(figure)
    return figure
