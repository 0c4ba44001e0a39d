"""Draw what emerges: decompositions, ablations, long pretraining, and the plane of states and depths."""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure

from ictd.pipeline.grid import CELL
from ictd.prompt import ENUMERATED
from ictd.report.figures.style import COLOURS, LARGEST, LINES, NAMES, WIDTH, env_name, legend, save
from ictd.report.tables import load_tables, rows_with
from ictd.statistics import bootstrap_interval

# Labels of the shares of A.
SHARES = {"theta": r"$\theta^{\mathrm{TD}}$", "preconditioner": "rest of $[G; H][-I, I]$", "outside": "outside"}
# Labels of the variants in the figure of ablations.
VARIANTS = {
    "whole": "whole", "no_u": "without $u$", "structure": "$[G; H][-I, I]$",
    "theta_outside": r"$\theta^{\mathrm{TD}}$ part + outside", "theta": r"$\theta^{\mathrm{TD}}$ part",
    "G": "$[G; 0][-I, I]$", "no_A11": "without $A_{11}$", "no_A12": "without $A_{12}$",
    "no_A21": "without $A_{21}$", "no_A22": "without $A_{22}$",
}  # fmt: skip
# Labels of the variants with controls.
CONTROLLED = {name: VARIANTS[name] for name in ("theta", "structure", "theta_outside", "no_u")}
# Symbol and label of each control.
CONTROLS = {
    "none": ("o", "no change"), "scaled": ("D", "best factor"), "repeated_3": (">", r"$3 L$ layers"),
    "repeated_10": ("*", r"$10 L$ layers"),
}  # fmt: skip
# Columns and titles of the panels on long pretraining.
COURSE = (
    ("alpha", r"step size $\alpha$"), ("cosine", r"cosine to $\theta^{\mathrm{TD}}$"), ("outside", "share outside"),
    ("bellman", "Bellman error"), ("msve_0", "MSVE, enumerated"),
)  # fmt: skip
# Upper limit of the axis of MSVE in the figure of controls.
GREATEST_SHOWN = 1e3
# Columns and titles of the panels on the plane of states and depths.
PHASE = (
    ("cosine", r"cosine to $\theta^{\mathrm{TD}}$"),
    ("outside", "share outside"),
    ("gain", "MSVE / that of $\\theta^{\\mathrm{TD}}$"),
)


def main(tables: list[Path], env: str, states: int, depth: int, output: Path) -> None:
    """Write ``decompositions``, ``ablations``, ``controls``, ``course`` and ``phase`` as PNG and SVG."""
    table = load_tables(tables)
    setting = {"env": env, "states": states, "depth": depth}
    save(decompositions(table["measures"]), output / "decompositions.png")
    save(ablations(table["ablations"], table["baselines"], setting), output / "ablations.png")
    save(controls(table["ablations"], table["controls"], setting), output / "controls.png")
    save(course(table["course"]), output / "course.png")
    save(phase(table["phase"]), output / "phase.png")


def decompositions(measures: pd.DataFrame) -> Figure:
    """Shares of the parts in the squared norm of the identifiable part of A: a bar for each cell, means over trials."""
    means = measures.groupby(CELL, sort=False)[list(SHARES)].mean()
    figure, axes = plt.subplots(figsize=(WIDTH, 0.22 * len(means) + 0.6))
    left = np.zeros(len(means))
    names = [f"{NAMES[algo]}, {env_name(env)}, $n={n}$, $L={depth}$" for algo, env, n, depth in means.index]
    for (name, label), colour in zip(SHARES.items(), (COLOURS["theta_td"], LINES[2], LINES[1]), strict=True):
        shares = means[name].to_numpy(dtype=float)
        axes.barh(names, shares, left=left, color=colour, label=label)
        left += shares
    axes.set(xlabel="share in the sum of squares of $A$, mean over trials", xlim=(0, 1), ylim=(len(means) - 0.5, -0.5))
    axes.tick_params(axis="y", labelsize=7)
    legend(figure)
    return figure


def ablations(table: pd.DataFrame, baselines: pd.DataFrame, setting: dict) -> Figure:
    """MSVE with parts removed, one panel for each context length: means over trials with 95% intervals.

    Parameters
    ----------
    table : table "ablations"
    baselines : table "baselines"
    setting : env, states and depth by these names
    """
    runs, theta = rows_with(table, **setting), rows_with(baselines, **setting)
    lengths = sorted(theta["context_length"].unique())
    figure, grid = plt.subplots(1, len(lengths), sharey=True, squeeze=False, figsize=(WIDTH, 3))
    positions = np.arange(len(VARIANTS))
    for axes, length in zip(grid[0], lengths, strict=True):
        for shift, (algo, rows) in zip((-0.15, 0.15), runs.groupby("algo", sort=False), strict=False):
            trials = rows[rows["context_length"] == length].pivot(index="seed", columns="variant", values="mean")
            means = trials[list(VARIANTS)].mean().to_numpy()
            intervals = np.array([bootstrap_interval(trials[name].to_numpy()) for name in VARIANTS])
            spread = np.abs(intervals.T - means)
            axes.errorbar(
                means, positions + shift, xerr=spread, fmt="o", ms=3, lw=1, color=COLOURS[algo], label=NAMES[algo]
            )
        best = theta.loc[theta["context_length"] == length, "best_mean"].iloc[0]
        axes.axvline(best, color=COLOURS["theta_td"], lw=1, ls="--", label=NAMES["theta_td"])
        axes.set(xscale="log", xlabel="MSVE", title=f"{length} steps" if length else "enumerated")
    grid[0, 0].set_yticks(positions, list(VARIANTS.values()), fontsize=7)
    grid[0, 0].invert_yaxis()
    legend(figure)
    return figure


def controls(ablations: pd.DataFrame, table: pd.DataFrame, setting: dict) -> Figure:
    """MSVE of variants on enumerated prompts, without a change and with controls, one panel for each algorithm.

    Means over trials.  Values above GREATEST_SHOWN or NaN are drawn at the right edge.

    Parameters
    ----------
    ablations : table "ablations"
    table : table "controls"
    setting : env, states and depth by these names
    """
    joined = pd.concat([ablations.assign(control="none"), table])
    runs = rows_with(joined, **setting, context_length=ENUMERATED)
    algos = runs["algo"].unique()
    figure, grid = plt.subplots(1, len(algos), sharex=True, sharey=True, squeeze=False, figsize=(WIDTH, 2.2))
    for axes, algo in zip(grid[0], algos, strict=True):
        means = runs[runs["algo"] == algo].groupby(["variant", "control"])["mean"].mean()
        for (control, (marker, label)), colour in zip(CONTROLS.items(), LINES, strict=False):
            values = [means[name, control] for name in CONTROLLED]
            shown = np.where(np.isfinite(values), values, np.inf).clip(max=GREATEST_SHOWN)
            style = {"color": colour, "marker": marker, "ms": 5, "mfc": "none", "clip_on": False}
            axes.plot(shown, range(len(CONTROLLED)), ls="", label=label, **style)
        axes.set(xscale="log", xlabel="MSVE, enumerated", title=NAMES[algo], xlim=(None, GREATEST_SHOWN))
    grid[0, 0].set_yticks(range(len(CONTROLLED)), list(CONTROLLED.values()), fontsize=7)
    grid[0, 0].set_ylim(len(CONTROLLED) - 0.5, -0.5)
    legend(figure, ncols=4)
    return figure


def course(table: pd.DataFrame) -> Figure:
    """Measures against the number of tasks, medians over trials with quartiles, by algorithm and environment."""
    longest = max(int(name.removeprefix("msve_")) for name in table if name.startswith("msve_"))
    panels = [*COURSE, (f"msve_{longest}", f"MSVE, {longest} steps")]
    measures = [name for name, _ in panels]
    table = table.assign(**table[measures].where(table[measures].abs() < LARGEST))
    figure, grid = plt.subplots(2, 3, sharex=True, figsize=(WIDTH, 3.6))
    for axes, (name, title) in zip(grid.flat, panels, strict=True):
        for algo, env in table[["algo", "env"]].drop_duplicates().itertuples(index=False):
            trials = rows_with(table, algo=algo, env=env).groupby("tasks_seen")[name]
            low, median, high = (trials.quantile(q) for q in (0.25, 0.5, 0.75))
            style = {"color": COLOURS[algo], "ls": "-" if env == table["env"].iloc[0] else "--"}
            axes.plot(median.index, median, label=f"{NAMES[algo]}, {env_name(env)}", lw=1.2, **style)
            axes.fill_between(median.index, low, high, color=COLOURS[algo], alpha=0.12, lw=0)
        axes.set(xscale="log", title=title)
        if name != "cosine" and (table[name] > 0).any():
            axes.set_yscale("log")
        if name == "alpha" and axes.get_ylim()[1] > 1e-2:
            axes.set_ylim(bottom=1e-3)  # Step sizes start around zero.
    for axes in grid[1]:
        axes.set_xlabel("tasks seen")
    legend(figure, ncols=2)
    return figure


def phase(table: pd.DataFrame) -> Figure:
    """Medians over trials on the plane of states and depths, a row of panels for each algorithm.

    A dot marks a point at which trials diverged.
    """
    table = table.assign(gain=table["msve"] / table["theta_msve"])
    algos = sorted(set(table["algo"]), key=list(NAMES).index)
    figure, grid = plt.subplots(
        len(algos), len(PHASE), squeeze=False, sharex=True, sharey=True, figsize=(WIDTH, 2 * len(algos) + 0.4)
    )
    norms = {"cosine": plt.Normalize(0, 1), "outside": plt.Normalize(0, 1), "gain": LogNorm(1e-2, 1e2)}
    for panels, algo in zip(grid, algos, strict=True):
        rows = table[table["algo"] == algo]
        diverged = rows.pivot_table(index="states", columns="depth", values="diverged_at", aggfunc="max")
        for k, (axes, (name, title)) in enumerate(zip(panels, PHASE, strict=True)):
            values = rows.pivot_table(index="states", columns="depth", values=name, aggfunc="median", dropna=False)
            colours = "PuOr" if name == "gain" else "viridis"
            image = axes.imshow(values, origin="lower", aspect="auto", norm=norms[name], cmap=colours)
            down, across = np.nonzero(diverged.to_numpy())
            if len(down):
                axes.plot(across, down, "k.", ms=3, label="trials diverged")
            axes.set_xticks(range(values.shape[1]), values.columns, fontsize=7, rotation=90)
            axes.set_yticks(range(values.shape[0]), values.index, fontsize=7)
            if algo == algos[0]:
                axes.set_title(title)
            if algo == algos[-1]:
                axes.set_xlabel("layers $L$")
                figure.colorbar(image, ax=grid[:, k], orientation="horizontal", shrink=0.9)
        panels[0].set_ylabel(f"{NAMES[algo]}\nstates $n$")
    legend(figure)
    return figure
