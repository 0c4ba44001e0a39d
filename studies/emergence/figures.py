"""Draw shares of a few numbers, the best numbers, long pretraining, and the plane of states and depths."""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure

from ictd.pipeline.grid import CELL
from ictd.report.figures.style import COLOURS, LARGEST, LINES, NAMES, WIDTH, env_name, legend, save
from ictd.report.tables import load_tables, rows_with

# Labels of the parts of A, in the order of ``shares``.
PARTS = (r"$\alpha I$", r"$\beta 11'$", "rest of $[G; H][-I, I]$", "outside")
# Labels of the sets of numbers, by the count of the numbers.
NUMBERS = {1: r"$\alpha$ ($\theta^{\mathrm{TD}}$)", 2: r"$\alpha, \beta$", 3: r"$\alpha, \beta$, $H$",
           4: r"$\alpha, \beta$, $a, b$"}  # fmt: skip
# Symbols in the titles of panels.
SYMBOLS = {"states": "n", "depth": "L", "discount": r"\gamma"}
# Smallest MSVE that is drawn; smaller values are near the rounding error of the estimates.
SMALLEST_SHOWN = 1e-20
# Columns and titles of the panels on long pretraining.
COURSE = (
    ("identity", r"$\alpha$"), ("ones", r"$\beta$"), ("cosine", r"cosine to $\theta^{\mathrm{TD}}$"),
    ("outside", "share outside"), ("msve_0", "MSVE, enumerated"),
)  # fmt: skip
# Columns and titles of the panels on the plane of states and depths.
PHASE = (
    ("cosine", r"cosine to $\theta^{\mathrm{TD}}$"),
    ("outside", "share outside"),
    ("gain", "MSVE / that of $\\theta^{\\mathrm{TD}}$"),
)


def main(tables: list[Path], env: str, states: int, depth: int, discount: float, output: Path) -> None:
    """Write ``shares``, ``best_numbers``, ``course`` and ``phase`` as PNG and SVG."""
    table = load_tables(tables)
    save(shares(table["measures"]), output / "shares.png")
    save(best_numbers(table["best_numbers"], env, states, depth, discount), output / "best_numbers.png")
    save(course(table["course"]), output / "course.png")
    save(phase(table["phase"]), output / "phase.png")


def shares(measures: pd.DataFrame) -> Figure:
    """Shares of the parts in the squared norm of A: a bar for each cell, means over trials."""
    inside = 1 - measures["outside"]
    alpha, two = inside * measures["family_1"], inside * measures["family_2"]
    parts = pd.DataFrame(dict(zip(PARTS, (alpha, two - alpha, inside - two, measures["outside"]), strict=True)))
    means = parts.groupby([measures[name] for name in CELL], sort=False).mean()
    figure, axes = plt.subplots(figsize=(WIDTH, 0.22 * len(means) + 0.6))
    left = np.zeros(len(means))
    names = [f"{NAMES[algo]}, {env_name(env)}, $n={n}$, $L={depth}$" for algo, env, n, depth in means.index]
    for name, colour in zip(PARTS, (COLOURS["theta_td"], *LINES[2:0:-1], "0.8"), strict=True):
        axes.barh(names, means[name], left=left, color=colour, label=name)
        left += means[name].to_numpy()
    axes.set(xlabel="share in the sum of squares of $A$, mean over trials", xlim=(0, 1), ylim=(len(means) - 0.5, -0.5))
    axes.tick_params(axis="y", labelsize=7)
    legend(figure)
    return figure


def best_numbers(table: pd.DataFrame, env: str, states: int, depth: int, discount: float) -> Figure:
    """MSVE on other tasks with the best numbers of each set, against layers, discount and states: means over tasks.

    Parameters
    ----------
    table : table "best_numbers"
    env, states, depth, discount : the setting that all panels contain, or the nearest values in the table
    """
    at = {"env": env, "states": states, "depth": depth, "discount": discount}
    for name in ("states", "depth", "discount"):
        values = table[name].unique()
        at[name] = values[np.abs(values - at[name]).argmin()]
    panels = {"depth": "layers $L$", "discount": r"discount $\gamma$", "states": "states $n$"}
    figure, grid = plt.subplots(1, len(panels), sharey=True, squeeze=False, figsize=(WIDTH, 2.4))
    for axes, (varied, label) in zip(grid[0], panels.items(), strict=True):
        rows = rows_with(table, **{name: value for name, value in at.items() if name != varied})
        for (count, of_set), colour in zip(rows.groupby("numbers"), LINES, strict=False):
            means = of_set.groupby(varied)["mean"].mean().clip(lower=SMALLEST_SHOWN)
            axes.plot(means.index, means, "o-", ms=3, color=colour, label=NUMBERS[count])
        others = ", ".join(f"{symbol} = {at[name]:g}" for name, symbol in SYMBOLS.items() if name != varied)
        axes.set(yscale="log", xlabel=label, title=f"${others}$")
    grid[0, 0].set_ylabel("MSVE, enumerated")
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
        if name in ("identity", "ones") and axes.get_ylim()[1] > 1e-2:
            axes.set_ylim(bottom=1e-3)  # The two numbers start around zero.
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
