"""Figures of pretraining on sampled contexts: beside yardsticks, by depth, tasks and states, and away from home."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from ictd.agents import SETTING, at_home, gap_closed, last_values, paper_values, with_yardsticks
from ictd.figures.style import COLOURS, NAMES, WIDTH, environment_name, legend_entries
from ictd.statistics import bootstrap_interval

METHODS = {
    "zero": ("predicting zero", COLOURS["zero"], ":"),
    "td_lambda": (r"TD($\lambda$)", "#56B4E9", ":"),
    "theta_td": (NAMES["theta_td"], COLOURS["theta_td"], "--"),
    "batch_td": ("batch TD, best depth too", COLOURS["theta_td"], "-"),
    "certainty_equivalence": ("certainty equivalence", "#E69F00", ":"),
    "lstd": ("LSTD, best ridge", COLOURS["lstd"], "-"),
    "bayes": ("Bayesian floor", "#000000", "-"),
}
SHOWN_LENGTHS = 3
# Beyond this, cells of the transfer map are dark.
DARK = 0.6


def draw_trials(axes, rows: pd.DataFrame, x: str, y: str, **look) -> None:
    """A line of means over trials against a column, with 95% bootstrap intervals."""
    grouped = rows.dropna(subset=y).groupby(x)[y]
    means, intervals = grouped.mean(), np.array([bootstrap_interval(part.to_numpy()) for _, part in grouped])
    axes.plot(means.index, means, **look)
    if len(intervals):
        axes.fill_between(means.index, *intervals.T, color=look["color"], alpha=0.15, lw=0)


def beside_yardsticks(tables: dict[str, pd.DataFrame], main: tuple, tasks: int, lengths: list[int]) -> Figure:
    """MSVE against context length in the main setting; the lengths of pretraining are shaded."""
    figure, axes = plt.subplots(figsize=(WIDTH, 3.6))
    place = tables["yardsticks"]
    place = place[(place[["env", "states", "discount"]] == [main[0], main[1], main[3]]).all(axis=1)]
    for method, (label, colour, style) in METHODS.items():
        line = place[place["method"] == method].set_index("context_length")["mean"]
        axes.plot(line.index, line, color=colour, ls=style, lw=1.2, label=label)
    home = at_home(tables["values"])
    home = home[(home[SETTING] == list(main)).all(axis=1)]
    paper = paper_values(home)
    for algo in dict.fromkeys(home["algo"]):
        own = last_values(home, tasks)
        look = {"color": COLOURS[algo], "marker": "o", "ms": 3, "lw": 1.2}
        draw_trials(axes, own[own["algo"] == algo], "context_length", "mean", label=f"{NAMES[algo]}, contexts", **look)
        beside = paper[paper["algo"] == algo]
        draw_trials(axes, beside, "context_length", "mean", label=f"{NAMES[algo]}, enumerated", ls="--", **look)
    axes.axvspan(*lengths, color="#000000", alpha=0.05, lw=0)
    axes.set(xscale="log", yscale="log", xlabel="context length $m$", ylabel="MSVE")
    figure.legend(*legend_entries(np.array([[axes]])), loc="outside lower center", ncols=3, fontsize=7)
    return figure


def gaps(tables: dict[str, pd.DataFrame], main: tuple, tasks: int, longest: int) -> Figure:
    """Share of the gap between LSTD and the Bayesian floor that is closed, against layers, tasks and states."""
    everything = with_yardsticks(at_home(tables["values"]), tables["yardsticks"])
    everything = everything[everything["prompts"] == "contexts"].assign(closed=gap_closed)
    within = sorted(length for length in everything["context_length"].unique() if length <= longest)
    picked = [within[i] for i in np.linspace(0, len(within) - 1, min(SHOWN_LENGTHS, len(within))).round().astype(int)]
    panels = (("depth", "layers $L$"), ("tasks_seen", "tasks seen"), ("states", "states $n$"))
    figure, grid = plt.subplots(1, 3, sharey=True, figsize=(WIDTH, 2.8))
    for axes, (name, label) in zip(grid, panels, strict=True):
        rows = everything if name == "tasks_seen" else last_values(everything, tasks)
        fixed = {key: value for key, value in zip(SETTING, main, strict=True) if key != name}
        rows = rows[(rows[list(fixed)] == list(fixed.values())).all(axis=1)]
        for (algo, length), part in rows[rows["context_length"].isin(picked)].groupby(["algo", "context_length"]):
            style = ("-", "--", ":")[picked.index(length)]
            draw_trials(
                axes, part, name, "closed", color=COLOURS[algo], ls=style, lw=1.2, label=f"{NAMES[algo]}, $m={length}$"
            )
        axes.axhline(0, color=METHODS["lstd"][1], lw=0.8)
        axes.axhline(1, color="#000000", lw=0.8)
        axes.set(xscale="log", xlabel=label, ylim=(-1, 1.1))
        if name != "tasks_seen":
            axes.set_xticks(rows[name].unique(), rows[name].unique())
            axes.minorticks_off()
    grid[0].set_ylabel("share of the gap closed")
    figure.legend(*legend_entries(grid[None]), loc="outside lower center", ncols=2, fontsize=7)
    return figure


def transfer(tables: dict[str, pd.DataFrame], main: tuple, tasks: int) -> Figure:
    """log10 of the MSVE over that of LSTD on the shortest contexts, by setting of pretraining and of evaluation."""
    values = with_yardsticks(last_values(tables["values"], tasks), tables["yardsticks"])
    values = values[(values["states"] == main[1]) & (values["depth"] == main[2])]
    values = values[values["context_length"] == values["context_length"].min()]
    values = values.assign(ratio=np.log10(values["mean"] / values["lstd"]))
    algos = [algo for algo in ("td", "mc") if algo in set(values["algo"])]
    figure, grid = plt.subplots(1, len(algos), squeeze=False, sharey=True, figsize=(WIDTH, 2.8))
    for axes, algo in zip(grid[0], algos, strict=True):
        here = values[values["algo"] == algo]
        table = here.pivot_table(index=["env", "discount"], columns=["on_env", "on_discount"], values="ratio")
        image = axes.imshow(table, cmap="PuOr_r", vmin=-1, vmax=1)
        for (row, column), number in np.ndenumerate(table.to_numpy()):
            colour = "white" if abs(number) > DARK else "black"
            axes.text(column, row, f"{number:.2f}", ha="center", va="center", fontsize=6, color=colour)
        names = [[f"{environment_name(env)}, {discount:g}" for env, discount in axis] for axis in table.axes]
        axes.set_yticks(range(len(names[0])), names[0], fontsize=7)
        axes.set_xticks(range(len(names[1])), names[1], fontsize=7, rotation=45, ha="right")
        axes.set(title=NAMES[algo], xlabel=r"evaluated on, $\gamma$")
    grid[0, 0].set_ylabel(r"pretrained on, $\gamma$")
    figure.colorbar(image, ax=grid[0], shrink=0.7)
    return figure
