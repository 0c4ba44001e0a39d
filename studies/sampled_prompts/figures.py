"""Draw pretraining on sampled contexts: beside baselines, by setting, teacher and attention, and the weights."""

import itertools
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from ictd.prompt import ENUMERATED
from ictd.report.figures.style import COLOURS, LINES, NAMES, WIDTH, env_name, legend, save
from ictd.statistics import bootstrap_interval
from ictd.tables import load_tables
from studies.sampled_prompts.grid import Setting
from studies.sampled_prompts.selection import (
    at_home,
    latest,
    of_setting,
    over_baseline,
    sampled_updates,
    with_baselines,
)

METHODS = {
    "zero": ("predicting zero", COLOURS["zero"], ":"),
    "td_lambda": (r"TD($\lambda$)", "#56B4E9", ":"),
    "theta_td": (NAMES["theta_td"], COLOURS["theta_td"], "--"),
    "batch_td": ("batch TD, best updates", COLOURS["theta_td"], "-."),
    "certainty_equivalence": ("certainty equivalence", "#E69F00", ":"),
    "lstd": ("LSTD, best ridge", COLOURS["lstd"], "-"),
    "ce_uniform": ("uniform pseudo-steps", "#E69F00", "--"),
    "lstd_prior": ("pseudo-steps, mean chain", COLOURS["lstd"], "--"),
    "bayes": ("Bayesian floor", "#000000", "-"),
}
SHOWN_LENGTHS = 3
# Beyond this, cells of the transfer map are dark.
DARK = 0.6
PROMPTS = {"contexts": "contexts", "enumerated": "enumerated prompts"}
LARGEST_SHOWN = 3  # times the MSVE of predicting zero


def main(tables: list[Path], setting: dict, tasks: int, lengths: list[int], output: Path) -> None:
    """Write ``beside_baselines``, ``ratios``, ``transfer``, ``teachers``, ``preconditioner`` and ``attentions``, as PNG
    and SVG."""
    of = (load_tables(tables), Setting(**setting))
    save(beside_baselines(*of, tasks, lengths), output / "beside_baselines.png")
    save(ratios(*of, tasks, max(lengths)), output / "ratios.png")
    save(transfer(*of, tasks), output / "transfer.png")
    save(teachers(*of, max(lengths)), output / "teachers.png")
    save(preconditioners(*of), output / "preconditioner.png")
    save(attentions(*of), output / "attentions.png")


def draw_trials(axes, rows: pd.DataFrame, x: str, y: str, **look) -> None:
    """A line of means over trials against a column, with 95% bootstrap intervals; broken where a trial diverged."""
    grouped = rows.groupby(x)[y]
    means = grouped.mean(skipna=False)
    intervals = np.array([bootstrap_interval(part.to_numpy()) for _, part in grouped])
    axes.plot(means.index, means, **look)
    if len(intervals):
        axes.fill_between(means.index, *intervals.T, color=look["color"], alpha=0.15, lw=0)


def picked_lengths(values: pd.DataFrame, longest: int) -> list[int]:
    """A few context lengths up to the longest of pretraining, the ends among them."""
    lengths = sorted(values["context_length"].unique())
    within = [length for length in lengths if length <= longest] or lengths[:1]
    return [within[i] for i in np.linspace(0, len(within) - 1, min(SHOWN_LENGTHS, len(within))).round().astype(int)]


def beside_baselines(tables: dict[str, pd.DataFrame], main: Setting, tasks: int, lengths: list[int]) -> Figure:
    """MSVE against context length in the main setting; the lengths of pretraining are shaded."""
    figure, axes = plt.subplots(figsize=(WIDTH, 3.2))
    place = of_setting(tables["baselines"], main, "depth")
    for method, (label, colour, style) in METHODS.items():
        line = place[place["method"] == method].set_index("context_length")["mean"]
        # Some lie on others: broken lines on solid ones, which are wider.
        look = {"lw": 2.5} if style == "-" else {"lw": 1.2, "zorder": 2.1}
        axes.plot(line.index, line, color=colour, ls=style, label=label, **look)
    home = of_setting(at_home(sampled_updates(tables["values"])), main)
    paper = latest(home, prompts="enumerated")
    for algo in dict.fromkeys(home["algo"]):
        own = latest(home, tasks)
        look = {"color": COLOURS[algo], "marker": "o", "ms": 3, "lw": 1.2}
        draw_trials(axes, own[own["algo"] == algo], "context_length", "mean", label=f"{NAMES[algo]}, contexts", **look)
        beside = paper[paper["algo"] == algo]
        draw_trials(axes, beside, "context_length", "mean", label=f"{NAMES[algo]}, enumerated", ls="--", **look)
    axes.axvspan(*lengths, color="#000000", alpha=0.05, lw=0)
    axes.set(xscale="log", yscale="log", xlabel="context length $m$", ylabel="MSVE")
    legend(figure)
    return figure


def ratios(tables: dict[str, pd.DataFrame], main: Setting, tasks: int, longest: int) -> Figure:
    """MSVE over that of the best baseline, against layers, tasks and states, and the Bayesian floor's."""
    everything = with_baselines(at_home(sampled_updates(tables["values"])), tables["baselines"])
    everything = everything[everything["prompts"] == "contexts"].assign(ratio=over_baseline)
    picked = picked_lengths(everything, longest)
    panels = (("depth", "layers $L$"), ("tasks_seen", "tasks seen"), ("states", "states $n$"))
    figure, grid = plt.subplots(1, 3, sharey=True, figsize=(WIDTH, 2.4))
    for axes, (name, label) in zip(grid, panels, strict=True):
        rows = everything if name == "tasks_seen" else latest(everything, tasks)
        rows = of_setting(rows, main, name)
        rows = rows[rows["context_length"].isin(picked)]
        styles = dict(zip(picked, ("-", "--", ":"), strict=False))
        axes.axhline(1, color=METHODS["lstd"][1], lw=3, alpha=0.4, label="best baseline")
        for (algo, length), part in rows.groupby(["algo", "context_length"]):
            look = {"color": COLOURS[algo], "ls": styles[length], "lw": 1.2}
            draw_trials(axes, part, name, "ratio", label=f"{NAMES[algo]}, $m={length}$", **look)
        for length, part in rows.groupby("context_length"):
            floor = (part["bayes_mean"] / part["best_mean"]).groupby(part[name]).first()
            look = {"color": "#000000", "ls": styles[length], "lw": 0.6}
            axes.plot(floor.index, floor, label=f"Bayesian floor, $m={length}$", **look)
        axes.set(xlabel=label, xscale="log", yscale="log")
        if name != "tasks_seen":
            axes.set_xticks(rows[name].unique(), rows[name].unique())
            axes.minorticks_off()
    grid[0].set_ylabel("MSVE / best baseline's")
    legend(figure)
    return figure


def transfer(tables: dict[str, pd.DataFrame], main: Setting, tasks: int) -> Figure:
    """log10 of the MSVE over that of uniformly smoothed certainty equivalence on the shortest contexts, by setting of
    pretraining and of evaluation."""
    values = with_baselines(latest(sampled_updates(tables["values"]), tasks), tables["baselines"])
    values = of_setting(values, main, "env", "discount")
    values = values[values["context_length"] == values["context_length"].min()]
    values = values.assign(ratio=np.log10(over_baseline(values, "ce_uniform")))
    algos = [algo for algo in ("td", "mc") if algo in set(values["algo"])]
    figure, grid = plt.subplots(1, len(algos), squeeze=False, sharey=True, figsize=(WIDTH, 2.6))
    for axes, algo in zip(grid[0], algos, strict=True):
        here = values[values["algo"] == algo]
        table = here.pivot_table(index=["env", "discount"], columns=["on_env", "on_discount"], values="ratio")
        image = axes.imshow(table, cmap="PuOr_r", vmin=-1, vmax=1, aspect="auto")
        for (row, column), number in np.ndenumerate(table.to_numpy()):
            colour = "white" if abs(number) > DARK else "black"
            axes.text(column, row, f"{number:.2f}", ha="center", va="center", fontsize=7, color=colour)
        names = [[f"{env_name(env)}, {discount:g}" for env, discount in axis] for axis in table.axes]
        axes.set_yticks(range(len(names[0])), names[0], fontsize=7)
        axes.set_xticks(range(len(names[1])), names[1], fontsize=7, rotation=90)
        axes.set(title=NAMES[algo], xlabel=r"evaluated on, $\gamma$")
    grid[0, 0].set_ylabel(r"pretrained on, $\gamma$")
    figure.colorbar(image, ax=grid[0], shrink=0.7, label="log$_{10}$ ratio of MSVE")
    return figure


def teachers(tables: dict[str, pd.DataFrame], main: Setting, longest: int) -> Figure:
    """MSVE against tasks by the four teachers in the main setting, a panel a context length."""
    values = of_setting(at_home(tables["values"]), main)
    values = values[values["prompts"] == "contexts"]
    place = of_setting(tables["baselines"], main, "depth")
    picked = picked_lengths(values, longest)
    figure, grid = plt.subplots(1, len(picked), squeeze=False, figsize=(WIDTH, 2.3))
    for axes, length in zip(grid[0], picked, strict=True):
        rows = values[values["context_length"] == length]
        for algo, expected in itertools.product(("td", "mc"), ("", "expected_")):
            label = f"{NAMES[algo]}, expected updates" if expected else NAMES[algo]
            look = {"color": COLOURS[algo], "ls": "--" if expected else "-", "lw": 1.2, "label": label}
            part = rows[rows["algo"] == expected + algo]
            if len(part):
                draw_trials(axes, part, "tasks_seen", "mean", **look)
        for method in ("lstd", "ce_uniform", "lstd_prior", "bayes"):
            level = place.loc[(place["method"] == method) & (place["context_length"] == length), "mean"]
            label, colour, style = METHODS[method]
            for y in level:
                axes.axhline(y, color=colour, ls=style, lw=0.8, label=label)
        axes.set(xscale="log", yscale="log", xlabel="tasks seen", title=f"context length ${length}$")
    grid[0, 0].set_ylabel("MSVE")
    legend(figure)
    return figure


def preconditioners(tables: dict[str, pd.DataFrame], main: Setting) -> Figure:
    """G at the end of pretraining in the main setting, and the step size beside theta^TD's best for each length."""
    entries = of_setting(sampled_updates(tables["preconditioners"]), main)
    algos = [algo for algo in ("td", "mc") if algo in set(entries["algo"])]
    figure, (*maps, axes) = plt.subplots(1, len(algos) + 1, figsize=(WIDTH, 2.2))
    largest = entries.loc[entries["row"] <= main.states, "mean"].abs().max()
    for panel, algo in zip(maps, algos, strict=True):
        K = entries[entries["algo"] == algo].pivot(index="row", columns="column", values="mean").to_numpy()
        image = panel.imshow(K[: main.states], cmap="PuOr_r", vmin=-largest, vmax=largest, extent=frame(main.states))
        panel.set(title=f"$G$, {NAMES[algo]}", xlabel="state of the estimate")
        for axis in (panel.xaxis, panel.yaxis):
            axis.set_major_locator(MaxNLocator(integer=True))
    maps[0].set_ylabel("state of the error")
    figure.colorbar(image, ax=maps[-1], shrink=0.7)
    place = of_setting(tables["chosen"], main, "depth")
    look = {"color": COLOURS["theta_td"], "lw": 1.2, "marker": "o", "ms": 3, "label": NAMES["theta_td"]}
    axes.plot(place["context_length"], place["theta_td_step"], **look)
    shapes = of_setting(latest(tables["shapes"]), main)
    for algo in algos:
        step = main.states * shapes.loc[shapes["algo"] == algo, "alpha"].mean()
        axes.axhline(step, color=COLOURS[algo], lw=1.2, label=f"{NAMES[algo]}, all lengths")
    axes.set(xscale="log", ylim=(0, None), xlabel="context length $m$", title="step size")
    legend(figure)
    return figure


def frame(states: int) -> tuple[float, float, float, float]:
    """Edges of an image whose pixels are states from 1 on."""
    return 0.5, states + 0.5, states + 0.5, 0.5


def attentions(tables: dict[str, pd.DataFrame], main: Setting) -> Figure:
    """MSVE of each kind of attention on enumerated prompts and against context length, a panel a kind of prompts seen.

    Medians over trials, some of which fail, by the first of the algorithms; baselines as in ``beside_baselines``.
    """
    table, place = tables["attention"], of_setting(tables["baselines"], main, "depth")
    table = table[table["algo"] == table["algo"].iloc[0]]
    shown = sorted(table["context_length"].unique())
    figure, grid = plt.subplots(1, 2, sharey=True, figsize=(WIDTH, 2.8))
    for axes, prompts in zip(grid, ("contexts", "enumerated"), strict=True):
        looks = itertools.cycle(zip(itertools.product(("-", "--"), LINES[1:]), "os^vD<>p*hXP", strict=True))
        for kind, rows in table[table["prompts"] == prompts].groupby("attention", sort=False):
            (style, colour), marker = next(looks)
            medians = rows.groupby("context_length")["mean"].median()
            label = kind.replace("_", " ")
            # Enumerated prompts are no context length, and no line leads from them to one.
            for part in (medians[medians.index == ENUMERATED], medians[medians.index != ENUMERATED]):
                places = [shown.index(length) for length in part.index]
                look = {"color": colour, "ls": style, "marker": marker, "ms": 4, "mfc": "none", "lw": 0.9}
                axes.plot(places, part, label=label, **look)
        for method, style in (("zero", ":"), ("ce_uniform", "-."), ("lstd_prior", "--"), ("bayes", "-")):
            label = METHODS[method][0]
            line = place[place["method"] == method]
            places = [shown.index(length) for length in line["context_length"]]
            axes.plot(places, line["mean"], color="#000000", ls=style, lw=0.8, label=label)
        axes.set(yscale="log", xlabel="context length $m$", title=f"pretrained on {PROMPTS[prompts]}")
        axes.set_xticks(range(len(shown)), ["enumerated", *map(str, shown[1:])], rotation=90, fontsize=7)
    grid[0].set_ylim(top=LARGEST_SHOWN * place.loc[place["method"] == "zero", "mean"].max())
    grid[0].set_ylabel("MSVE")
    legend(figure)
    return figure
