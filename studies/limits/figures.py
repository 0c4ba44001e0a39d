"""Figures of the study: minimisers, what is outside in trained runs, and forms on sampled contexts."""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from ictd.report.figures.style import COLOURS, LINES, NAMES, WIDTH, legend, save
from ictd.storage import load_tables, rows_with
from studies.limits.claims import HEADS, reached
from studies.limits.grid import LEAST

FORMS = {"lstd": "LSTD, best ridge", "alone": "each length alone", "one": "lengths together", "heads": "second head"}
LOOKS = {"uniform": {"ls": "-", "marker": "o", "ms": 3}, "heads": {"ls": "--", "marker": "o", "ms": 3, "mfc": "none"}}


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
    both = table, rows_with(table, start="family")
    least, within = (of.groupby("depth")["value"].min().clip(lower=LEAST) for of in both)
    left.plot(least.index.astype(str), least, color=LINES[2], lw=4, label="least")
    left.plot(within.index.astype(str), within, color=LINES[0], lw=1, ls="--", label="least with nothing outside")
    for start in (one for one in NAMES if one in set(table["start"])):
        rows = rows_with(table, start=start).groupby("depth")["begin"].mean()
        left.plot(rows.index.astype(str), rows, color=COLOURS[start], marker="o", ms=3, label=NAMES[start])
    middle.plot(near["depth"].astype(str), near["outside"].clip(lower=1e-17), "o", ms=3, mfc="none", color=LINES[0])
    for axes, title in ((left, "MSVE"), (middle, "share outside")):
        axes.set(yscale="log", xlabel="layers $L$", title=title)
    for depth, colour in zip(least.index, plt.cm.viridis(np.linspace(0, 0.9, len(least))), strict=True):
        curvature = np.sort(rows_with(spectra, depth=depth)["curvature"].abs())[::-1]
        right.plot(1 + np.arange(len(curvature)), curvature / curvature[0], color=colour, lw=1, label=f"$L={depth}$")
    right.set(yscale="log", xlabel="direction", title="curvature / greatest", ylim=(1e-14, 2))
    legend(figure)
    return figure


def course(table: pd.DataFrame) -> Figure:
    """Share outside against alpha L (1 - gamma) and against alpha L, after three numbers of tasks, a dot a run."""
    of, marks = table[(table["run"] == "td") & (table["alpha"] > 0)], table["tasks"].unique()
    marks = marks[sorted({0, len(marks) // 2, len(marks) - 1})]
    figure, grid = plt.subplots(2, len(marks), figsize=(WIDTH, 4.4), sharex="row", sharey=True, squeeze=False)
    for (power, title), row in zip(((1, r"$\alpha L (1 - \gamma)$"), (0, r"$\alpha L$")), grid, strict=True):
        for mark, axes in zip(marks, row, strict=True):
            runs = rows_with(of, tasks=mark).groupby("discount")
            for (one, rows), colour in zip(runs, plt.cm.viridis(np.linspace(0, 0.9, len(runs))), strict=True):
                place = rows["alpha"] * rows["depth"] * (1 - one) ** power
                axes.plot(place, rows["outside"], ".", ms=4, color=colour, label=rf"$\gamma = {one}$")
            axes.set(xscale="log", yscale="log", xlabel=title, title=f"{mark:,} tasks" * power)
        row[0].set_ylabel("share outside")
    legend(figure)
    return figure


def forms(table: pd.DataFrame, fits: pd.DataFrame) -> Figure:
    """MSVE over that of LSTD with the best k pseudo-steps, by length, and the k that fits outputs best."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(WIDTH, 2.8), width_ratios=[3, 2])
    table, fits = (of.assign(length=of["length"].astype(str)) for of in (table, fits))
    means = table.pivot_table(index="length", columns="method", values="msve", sort=False)
    for (name, label), colour in zip(FORMS.items(), (COLOURS["lstd"], *LINES[1:]), strict=False):
        left.plot(means[name] / means["pseudo_steps"], color=colour, marker=".", label=label)
    best = rows_with(table, method="pseudo_steps", group=0)
    right.plot(best["length"], best["chosen"], color=LINES[0], marker=".", label="best $k$")
    for (kind, algo), rows in fits[fits["kind"].isin(HEADS)].groupby(["kind", "algo"], sort=False):
        of_length, look = rows.groupby("length").mean(numeric_only=True), LOOKS[kind] | {"color": COLOURS[algo]}
        over = (of_length["msve"] / of_length["pseudo_steps"])[means.index]
        left.plot(over, label=", ".join([f"trained by {algo.upper()}", *HEADS[kind]]), **look)
        right.plot(of_length.loc[means.index, "k"], **look)
    left.axhline(1, color=LINES[0], lw=0.7, ls=":")
    left.set(title="MSVE over that with the best $k$", xlabel="steps of the context")
    right.set(title="pseudo-steps $k$", ylim=(0, None), xlabel="steps of the context")
    legend(figure)
    return figure
