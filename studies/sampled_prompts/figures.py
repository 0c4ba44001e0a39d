"""Draw pretraining on sampled contexts: comparisons with baselines, settings, targets, attention, and the weights."""

import itertools
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from ictd.prompt import ENUMERATED
from ictd.report.figures.style import COLOURS, LINES, NAMES, WIDTH, env_name, label_ends, legend, save
from ictd.report.tables import load_tables
from ictd.statistics import bootstrap_interval
from studies.sampled_prompts.grid import Setting
from studies.sampled_prompts.selection import (
    evaluated_as_trained,
    latest,
    ratio_to_baseline,
    rows_of_setting,
    sampled_updates,
    with_baselines,
)

BLACK = "#000000"
# Label, colour and line style of each baseline.
METHODS = {
    "zero": ("predicting zero", COLOURS["zero"], ":"),
    "td_lambda": (r"TD($\lambda$)", LINES[2], ":"),
    "theta_td": (NAMES["theta_td"], COLOURS["theta_td"], "--"),
    "batch_td": ("batch TD, best updates", COLOURS["theta_td"], "-."),
    "certainty_equivalence": ("certainty equivalence", LINES[5], ":"),
    "lstd": ("LSTD, best ridge", COLOURS["lstd"], "-"),
    "ce_uniform": ("uniform pseudo-counts", LINES[1], "--"),
    "mean_chain": ("mean chain, rewards seen", LINES[3], "-."),
    "lstd_prior": ("pseudo-counts, mean chain", COLOURS["lstd"], "--"),
    "bayes": ("Bayes error", BLACK, "-"),
}
# Number of context lengths in figures with one line or panel for each length.
SHOWN_LENGTHS = 3
# Numbers in the transfer map are white if the absolute value is greater than this.
DARK = 0.6
PROMPTS = {
    "contexts": "contexts",
    "grouped": "grouped contexts",
    "enumerated": "enumerated prompts",
    "paper": "as in the paper",
}
# Marker of each kind of pretraining prompts, and whether the marker is filled.
MARKERS = {"paper": ("s", True), "enumerated": ("s", False), "grouped": ("^", False), "contexts": ("o", False)}
# Baselines in the figure of formats.
SHOWN_METHODS = ("lstd", "mean_chain", "bayes")
# Upper limit of the axis for attention, as a multiple of the MSVE of predicting zero.
LARGEST_SHOWN = 3


def main(tables: list[Path], setting: dict, tasks: int, lengths: list[int], output: Path) -> None:
    """Write ``formats``, ``msve_by_length``, ``ratios``, ``transfer``, ``targets``, ``preconditioner``, ``attentions``.

    Each figure is written as PNG and SVG.
    """
    table = load_tables(tables)
    main_setting = Setting(**setting)
    save(formats(table, main_setting), output / "formats.png")
    save(msve_by_length(table, main_setting, tasks, lengths), output / "msve_by_length.png")
    save(ratios(table, main_setting, tasks, max(lengths)), output / "ratios.png")
    save(transfer(table, main_setting, tasks), output / "transfer.png")
    save(targets(table, main_setting, max(lengths)), output / "targets.png")
    save(preconditioners(table, main_setting), output / "preconditioner.png")
    save(attentions(table, main_setting), output / "attentions.png")


def draw_trials(axes, rows: pd.DataFrame, x: str, y: str, **style) -> None:
    """Draw means over trials of column y against column x, with 95% bootstrap intervals.

    The line is broken where a trial diverged.
    """
    groups = rows.groupby(x)[y]
    means = groups.mean(skipna=False)
    intervals = np.array([bootstrap_interval(samples.to_numpy()) for _, samples in groups])
    axes.plot(means.index, means, **style)
    if len(intervals):
        axes.fill_between(means.index, *intervals.T, color=style["color"], alpha=0.15, lw=0)


def picked_lengths(values: pd.DataFrame, longest: int) -> list[int]:
    """SHOWN_LENGTHS context lengths up to the longest of pretraining, including the smallest and the largest."""
    lengths = sorted(values["context_length"].unique())
    within = [length for length in lengths if length <= longest] or lengths[:1]
    positions = np.linspace(0, len(within) - 1, min(SHOWN_LENGTHS, len(within))).round().astype(int)
    return [within[position] for position in positions]


def formats(tables: dict[str, pd.DataFrame], main: Setting) -> Figure:
    """MSVE against context length for the formats "step" and "grouped", by the prompts of pretraining.

    Means over tasks in the main setting, with standard errors, and LSTD, the mean chain and the Bayes error.
    """
    rows = tables["formats"]
    rows = rows[(rows["env"] == main.env) & (rows["states"] == main.states) & (rows["depth"] == main.depth)]
    baselines = rows_of_setting(tables["baselines"], main, "depth")
    baselines = baselines[baselines["context_length"] <= rows["context_length"].max()]
    figure, grid = plt.subplots(1, 2, sharey=True, figsize=(WIDTH, 2.8))
    titles = {"step": "a column for each step", "grouped": "a column for each visited state"}
    for axes, (shown, title) in zip(grid, titles.items(), strict=True):
        for method in SHOWN_METHODS:
            label, colour, dashes = METHODS[method]
            msve = baselines[baselines["method"] == method]
            axes.plot(msve["context_length"], msve["mean"], color=colour, ls=dashes, lw=2, alpha=0.6, label=label)
        for (prompts, algo), trials in rows[rows["shown"] == shown].groupby(["prompts", "algo"], sort=False):
            marker, filled = MARKERS[prompts]
            style = {"color": COLOURS[algo], "marker": marker, "ms": 4, "lw": 0.9, "capsize": 2}
            style |= {"mfc": COLOURS[algo] if filled else "none", "label": f"{NAMES[algo]}, {PROMPTS[prompts]}"}
            axes.errorbar(trials["context_length"], trials["mean"], trials["standard_error"], **style)
        axes.set(xscale="log", yscale="log", xlabel="context length $m$ (steps)", title=title)
        axes.set_xticks(rows["context_length"].unique(), rows["context_length"].unique())
        axes.minorticks_off()
    grid[0].set_ylabel("MSVE")
    legend(figure)
    return figure


def msve_by_length(tables: dict[str, pd.DataFrame], main: Setting, tasks: int, lengths: list[int]) -> Figure:
    """MSVE against context length in the main setting; the lengths of pretraining are shaded."""
    figure, axes = plt.subplots(figsize=(WIDTH, 3))
    baselines = rows_of_setting(tables["baselines"], main, "depth")
    for method, (label, colour, dashes) in METHODS.items():
        msve = baselines[baselines["method"] == method].set_index("context_length")["mean"]
        # Some lines coincide: broken lines are drawn on top of wider solid lines.
        style = {"lw": 2.5} if dashes == "-" else {"lw": 1.2, "zorder": 2.1}
        axes.plot(msve.index, msve, color=colour, ls=dashes, label=label, **style)
    runs = rows_of_setting(evaluated_as_trained(sampled_updates(tables["values"])), main)
    on_contexts = latest(runs, tasks)
    on_enumerated = latest(runs, prompts="enumerated")
    for algo in dict.fromkeys(runs["algo"]):
        style = {"color": COLOURS[algo], "marker": "o", "ms": 3, "lw": 1.2}
        for selected, label, dashes in ((on_contexts, "contexts", "-"), (on_enumerated, "enumerated", "--")):
            rows = selected[selected["algo"] == algo]
            draw_trials(axes, rows, "context_length", "mean", label=f"{NAMES[algo]}, {label}", ls=dashes, **style)
    axes.axvspan(*lengths, color=BLACK, alpha=0.05, lw=0)
    axes.set(xscale="log", yscale="log", xlabel="context length $m$ (steps)", ylabel="MSVE")
    # A line has no end if a method is missing or its last trial diverged.
    lines = [line for line in axes.lines if np.isfinite(line.get_ydata()[-1:]).any()]
    label_ends(axes, [(line.get_label(), line.get_ydata()[-1], line.get_color()) for line in lines])
    return figure


def ratios(tables: dict[str, pd.DataFrame], main: Setting, tasks: int, longest: int) -> Figure:
    """Ratio of the MSVE to the best baseline's, against layers, tasks and states, and the same for the Bayes error."""
    values = with_baselines(evaluated_as_trained(sampled_updates(tables["values"])), tables["baselines"])
    values = values[values["prompts"] == "contexts"].assign(ratio=ratio_to_baseline)
    lengths = picked_lengths(values, longest)
    dashes = dict(zip(lengths, ("-", "--", ":"), strict=False))
    panels = (("depth", "layers $L$"), ("tasks_seen", "tasks seen"), ("states", "states $n$"))
    figure, grid = plt.subplots(1, 3, sharey=True, figsize=(WIDTH, 2.4))
    for axes, (name, label) in zip(grid, panels, strict=True):
        rows = values if name == "tasks_seen" else latest(values, tasks)
        rows = rows_of_setting(rows, main, name)
        rows = rows[rows["context_length"].isin(lengths)]
        axes.axhline(1, color=METHODS["lstd"][1], lw=3, alpha=0.4, label="best baseline")
        for (algo, length), trials in rows.groupby(["algo", "context_length"]):
            style = {"color": COLOURS[algo], "ls": dashes[length], "lw": 1.2}
            draw_trials(axes, trials, name, "ratio", label=f"{NAMES[algo]}, $m={length}$", **style)
        for length, trials in rows.groupby("context_length"):
            bayes = (trials["bayes_mean"] / trials["best_mean"]).groupby(trials[name]).first()
            style = {"color": BLACK, "ls": dashes[length], "lw": 0.6}
            axes.plot(bayes.index, bayes, label=f"Bayes error, $m={length}$", **style)
        axes.set(xlabel=label, xscale="log", yscale="log")
        if name != "tasks_seen":
            axes.set_xticks(rows[name].unique(), rows[name].unique())
            axes.minorticks_off()
    grid[0].set_ylabel("MSVE / best baseline's")
    legend(figure)
    return figure


def transfer(tables: dict[str, pd.DataFrame], main: Setting, tasks: int) -> Figure:
    """log10 of the MSVE divided by the MSVE of uniform pseudo-counts, on the shortest contexts.

    Rows are settings of pretraining, columns settings of evaluation.
    """
    values = with_baselines(latest(sampled_updates(tables["values"]), tasks), tables["baselines"])
    values = rows_of_setting(values, main, "env", "discount")
    values = values[values["context_length"] == values["context_length"].min()]
    values = values.assign(ratio=np.log10(ratio_to_baseline(values, "ce_uniform")))
    algos = [algo for algo in ("td", "mc") if algo in set(values["algo"])]
    figure, grid = plt.subplots(1, len(algos), squeeze=False, sharey=True, figsize=(WIDTH, 2.6))
    for axes, algo in zip(grid[0], algos, strict=True):
        rows = values[values["algo"] == algo]
        ratios = rows.pivot_table(index=["env", "discount"], columns=["on_env", "on_discount"], values="ratio")
        image = axes.imshow(ratios, cmap="PuOr_r", vmin=-1, vmax=1, aspect="auto")
        for (row, column), ratio in np.ndenumerate(ratios.to_numpy()):
            colour = "white" if abs(ratio) > DARK else "black"
            axes.text(column, row, f"{ratio:.2f}", ha="center", va="center", fontsize=7, color=colour)
        trained_on = [f"{env_name(env)}, {discount:g}" for env, discount in ratios.index]
        evaluated_on = [f"{env_name(env)}, {discount:g}" for env, discount in ratios.columns]
        axes.set_yticks(range(len(trained_on)), trained_on, fontsize=7)
        axes.set_xticks(range(len(evaluated_on)), evaluated_on, fontsize=7, rotation=90)
        axes.set(title=NAMES[algo], xlabel=r"evaluated on, $\gamma$")
    grid[0, 0].set_ylabel(r"pretrained on, $\gamma$")
    figure.colorbar(image, ax=grid[0], shrink=0.7, label="log$_{10}$ ratio of MSVE")
    return figure


def targets(tables: dict[str, pd.DataFrame], main: Setting, longest: int) -> Figure:
    """MSVE against tasks with the four targets in the main setting, one panel for each context length."""
    values = rows_of_setting(evaluated_as_trained(tables["values"]), main)
    values = values[values["prompts"] == "contexts"]
    baselines = rows_of_setting(tables["baselines"], main, "depth")
    lengths = picked_lengths(values, longest)
    figure, grid = plt.subplots(1, len(lengths), squeeze=False, figsize=(WIDTH, 2.3))
    for axes, length in zip(grid[0], lengths, strict=True):
        at_length = values[values["context_length"] == length]
        for algo, expected in itertools.product(("td", "mc"), ("", "expected_")):
            label = f"{NAMES[algo]}, expected updates" if expected else NAMES[algo]
            style = {"color": COLOURS[algo], "ls": "--" if expected else "-", "lw": 1.2, "label": label}
            trials = at_length[at_length["algo"] == expected + algo]
            if len(trials):
                draw_trials(axes, trials, "tasks_seen", "mean", **style)
        for method in ("lstd", "ce_uniform", "lstd_prior", "bayes"):
            chosen = (baselines["method"] == method) & (baselines["context_length"] == length)
            label, colour, dashes = METHODS[method]
            for msve in baselines.loc[chosen, "mean"]:
                axes.axhline(msve, color=colour, ls=dashes, lw=0.8, label=label)
        axes.set(xscale="log", yscale="log", xlabel="tasks seen", title=f"context length ${length}$")
    grid[0, 0].set_ylabel("MSVE")
    legend(figure)
    return figure


def preconditioners(tables: dict[str, pd.DataFrame], main: Setting) -> Figure:
    """G at the end of pretraining in the main setting, and the step sizes of the weights and of theta^TD."""
    entries = rows_of_setting(sampled_updates(tables["preconditioners"]), main)
    algos = [algo for algo in ("td", "mc") if algo in set(entries["algo"])]
    figure, (*maps, axes) = plt.subplots(1, len(algos) + 1, figsize=(WIDTH, 2.2))
    largest = entries.loc[entries["row"] <= main.states, "mean"].abs().max()
    # Edges of an image in which each pixel is a pair of states, numbered from 1.
    extent = (0.5, main.states + 0.5, main.states + 0.5, 0.5)
    for panel, algo in zip(maps, algos, strict=True):
        K = entries[entries["algo"] == algo].pivot(index="row", columns="column", values="mean").to_numpy()
        image = panel.imshow(K[: main.states], cmap="PuOr_r", vmin=-largest, vmax=largest, extent=extent)
        panel.set(title=f"$G$, {NAMES[algo]}", xlabel="state of the estimate")
        for axis in (panel.xaxis, panel.yaxis):
            axis.set_major_locator(MaxNLocator(integer=True))
    maps[0].set_ylabel("state of the error")
    figure.colorbar(image, ax=maps[-1], shrink=0.7)
    weights = rows_of_setting(latest(tables["weights"]), main)
    best = rows_of_setting(tables["tuned"], main, "depth")["theta_td_step"].iloc[0]
    axes.bar(r"$\theta^{\rm TD}$", best, color=COLOURS["theta_td"])
    for algo in algos:
        # A trial's step size along theta^TD with attention divided by the context length.
        step_sizes = main.states * weights.loc[weights["algo"] == algo, "alpha"]
        axes.bar(algo.upper(), step_sizes.mean(), yerr=step_sizes.sem(), color=COLOURS[algo])
    axes.set(title="step size", ylim=(0, None))
    return figure


def attentions(tables: dict[str, pd.DataFrame], main: Setting) -> Figure:
    """MSVE with each kind of attention on enumerated prompts and by context length.

    There is one panel for each kind of pretraining prompts.  Lines are medians over trials of the first algorithm,
    because some trials fail.  Baselines are from the main setting.
    """
    table = tables["attention"]
    table = table[table["algo"] == table["algo"].iloc[0]]
    baselines = rows_of_setting(tables["baselines"], main, "depth")
    lengths = sorted(table["context_length"].unique())
    figure, grid = plt.subplots(1, 2, sharey=True, figsize=(WIDTH, 2.8))
    for axes, prompts in zip(grid, ("contexts", "enumerated"), strict=True):
        styles = itertools.cycle(zip(itertools.product(("-", "--"), LINES[1:]), "os^vD<>p*hXP", strict=True))
        for kind, rows in table[table["prompts"] == prompts].groupby("attention", sort=False):
            (dashes, colour), marker = next(styles)
            style = {"color": colour, "ls": dashes, "marker": marker, "ms": 4, "mfc": "none", "lw": 0.9}
            medians = rows.groupby("context_length")["mean"].median()
            # Enumerated prompts have no context length, so no line connects them with sampled prompts.
            for points in (medians[medians.index == ENUMERATED], medians[medians.index != ENUMERATED]):
                positions = [lengths.index(length) for length in points.index]
                axes.plot(positions, points, label=kind.replace("_", " "), **style)
        for method, dashes in (("zero", ":"), ("ce_uniform", "-."), ("lstd_prior", "--"), ("bayes", "-")):
            msve = baselines[baselines["method"] == method]
            positions = [lengths.index(length) for length in msve["context_length"]]
            axes.plot(positions, msve["mean"], color=BLACK, ls=dashes, lw=0.8, label=METHODS[method][0])
        axes.set(yscale="log", xlabel="context length $m$ (steps)", title=f"pretrained on {PROMPTS[prompts]}")
        axes.set_xticks(range(len(lengths)), ["enumerated", *map(str, lengths[1:])], rotation=90, fontsize=7)
    zero = baselines.loc[baselines["method"] == "zero", "mean"].max()
    grid[0].set_ylim(top=LARGEST_SHOWN * zero)
    grid[0].set_ylabel("MSVE")
    legend(figure)
    return figure
