"""Figures of the theory's checks: measured quantities and the proved bounds."""

import itertools
from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure

from ictd.pipeline.grid import CELL, Cell
from ictd.pipeline.table_files import load_tables, rows_with
from ictd.report.figures.style import COLOURS, LARGEST, LINES, NAMES, WIDTH, env_name, legend, save, setting_title

BOUND, OURS = COLOURS["zero"], "#000000"
# Depths that show the rise of J before its fall.
EARLY = 60
# Of repeated layers what is within this factor of training is drawn.
SHOWN = 1e4
# Statements, titles of their panels, and labels in the last panel, where three are one line.
PANELS = (
    ("lemma_1", "Lemma 1, TD error", "1; 2, $y$; 4"),
    ("lemma_2_query", "Lemma 2, $|y_l^q|$", ""),
    ("lemma_2_context", r"Lemma 2, $\Vert Y_l\Vert_1$", "2, $Y$"),
    ("lemma_3", r"Lemma 3, $\Vert\nabla_\theta \mathrm{TF}_L\Vert_1$", "3"),
    ("lemma_4", "Lemma 4, MC error", ""),
)


def main(tables: list[Path], env: str, states: int, discount: float, output: Path) -> None:
    """Write ``theorem_1``, ``lemmas``, ``theorem_2``, ``corollary_1``, ``family`` and ``pretrained`` as PNG and SVG.

    Some show one setting only, that of ``env`` and ``states``.
    """
    of = load_tables(tables)
    save(theorem_1(of["statements"], of["precision"], discount), output / "theorem_1.png")
    save(lemmas(of["statements"], env, states), output / "lemmas.png")
    for algo, name in (("td", "theorem_2"), ("mc", "corollary_1")):
        save(expected_update(of["neu"], of["statements"], algo, env, states), output / f"{name}.png")
    save(family(of["family"], of["family_updates"], of["neu"], env, states), output / "family.png")
    save(pretrained(of["pretrained"], of["repeated"]), output / "pretrained.png")


def theorem_1(statements: pd.DataFrame, precision: pd.DataFrame, discount: float) -> Figure:
    """Error of TF_L at theta^TD over ||v||_inf against L, a panel an environment, with its bound and its tail.

    ``statements`` and ``precision`` are the theory's tables, and ``discount`` is gamma.
    """
    errors = statements[statements["statement"] == "theorem_1"]
    digits = precision[(precision["quantity"] == "lemma_4") & (precision["layer"] % 50 == 0)]
    envs = list(dict.fromkeys(errors["env"]))
    figure, grid = plt.subplots(1, len(envs), sharey=True, squeeze=False, figsize=(WIDTH, 2.9))
    for axes, env in zip(grid[0], envs, strict=True):
        by_states = errors[errors["env"] == env].groupby("states")
        for colour, (states, rows) in zip(itertools.cycle(LINES[1:]), by_states, strict=False):
            axes.plot(
                rows["layer"], rows["left_mean"] / rows["right_mean"].iloc[0], color=colour, label=f"$n = {states}$"
            )
            exact = rows_with(digits, env=env, states=states).groupby("layer")["ratio"].mean()
            axes.plot(exact.index, exact * discount**exact.index, color=colour, ls="", marker="o", ms=2.5)
        layers = errors["layer"].unique()
        axes.plot(layers, discount**layers, color=BOUND, ls=":", label=r"bound, $\gamma^L$")
        axes.plot([], [], color=BOUND, ls="", marker="o", ms=2.5, label="decimal arithmetic")
        axes.set(yscale="log", title=env_name(env), xlabel="$L$")
    grid[0, 0].set_ylabel(r"$\max_q\,|\mathrm{TF}_L - v(s_q)|\,/\,\Vert v\Vert_\infty$")
    legend(figure, ncols=4, fontsize=8)
    return figure


def lemmas(statements: pd.DataFrame, env: str, states: int) -> Figure:
    """Both sides of Lemmas 1 to 4 against the layer, and their tightest ratio, in one setting of the theory's table."""
    figure, grid = plt.subplots(2, 3, figsize=(WIDTH, 4.4))
    here = rows_with(statements, env=env, states=states)
    here = here[here["layer"].between(1, here.loc[here["statement"] == "lemma_3", "layer"].max())]
    last = grid.flat[len(PANELS)]
    for axes, (name, title, label), colour in zip(grid.flat, PANELS, LINES[1:], strict=False):
        rows = here[here["statement"] == name]
        axes.plot(rows["layer"], rows["left_mean"], color=LINES[2], label="measured, mean over tasks")
        axes.plot(rows["layer"], rows["right_mean"], color=BOUND, ls=":", label="the paper's bound, mean")
        if name == "lemma_3":
            ours = here[here["statement"] == "bounded_gradient"]
            axes.plot(ours["layer"], ours["right_mean"], color=OURS, ls="--", label="our bound, mean")
        axes.set(yscale="log", title=title)
        last.plot(rows["layer"], rows["tightest"], color=colour, lw=1.2)
        clear = rows.dropna(subset="tightest").tail(1)
        for at in zip(clear["layer"], clear["tightest"], strict=True):
            last.annotate(label, at, (0, 4), textcoords="offset points", ha="right", fontsize=7)
    last.set(yscale="log", title="bound / measured")
    last.margins(y=0.15)
    for axes in grid[1]:
        axes.set_xlabel("$l$ or $L$")
    legend(figure, ncols=3, fontsize=8)
    return figure


def expected_update(neu: pd.DataFrame, statements: pd.DataFrame, algo: str, env: str, states: int) -> Figure:
    """J or J' at theta^TD against the depth L with its bounds, and why it rises first, in one setting.

    ``algo`` is "td" for J and Theorem 2, or "mc" for J' and Corollary 1.  The tables are the theory's.
    """
    name, error = ("$J$", "lemma_1") if algo == "td" else ("$J'$", "lemma_4")
    colour = COLOURS[algo]
    figure, grid = plt.subplots(1, 2, figsize=(WIDTH, 3.3))
    left, right = grid
    rows = rows_with(neu[neu["layer"] > 0], algo=algo, env=env, states=states)
    here, separate = (rows[rows["space"] == space] for space in ("looped", "separate"))
    early = here[here["layer"] <= EARLY]
    left.plot(here["layer"], here["norm"], color=colour, label=f"{name} of $\\theta_L^{{\\mathrm{{TD}}}}$")
    look = {"color": colour, "ls": "", "marker": "o", "ms": 2.5}
    left.plot(separate["layer"], separate["norm"], label="the same, separate layers", **look)
    left.plot(here["layer"], here["bound"], color=BOUND, ls=":", label="the paper's bound")
    left.plot(here["layer"], here["sharper"], color=OURS, ls="--", label="our bound")
    left.set(yscale="log", xlabel="$L$", title=f"{env_name(env)}, $n = {states}$")
    greatest = early["norm"].max()
    right.plot(early["layer"], early["norm"] / greatest, color=colour)
    low, high = (early["norm"] + sign * early["standard_error"] for sign in (-1, 1))
    right.fill_between(early["layer"], low / greatest, high / greatest, color=colour, alpha=0.25, lw=0)
    sides = statements[statements["layer"].between(1, EARLY)]
    for statement, dashes, label in ((error, "-.", "expected error"), ("lemma_3", "--", "norm of the gradient")):
        rows = rows_with(sides, env=env, states=states, statement=statement)
        right.plot(rows["layer"], rows["left_mean"] / rows["left_mean"].max(), color=OURS, lw=1, ls=dashes, label=label)
    right.set(xlabel="$L$", title="each over its greatest value")
    legend(figure, ncols=3, fontsize=8)
    return figure


def family(table: pd.DataFrame, updates: pd.DataFrame, neu: pd.DataFrame, env: str, states: int) -> Figure:
    """Error, and J and J', against the depth L of random weights of the family with the limit v, and of some beyond it,
    in one setting of the theory's tables family, family_updates and neu."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(WIDTH, 3.1))
    here, of = (rows_with(frame, env=env, states=states) for frame in (table, updates))
    for member, colour, label in (("inside", LINES[2], "$A = [G; H][-I, I]$"), ("beyond", LINES[1], "with $N [I, I]$")):
        for _, rows in here[here["member"] == member].groupby("draw"):
            shown = rows[rows["error"] < LARGEST]
            left.plot(shown["layer"], shown["error"], color=colour, lw=0.9, label=label)
    bound = here[(here["member"] == "inside") & (here["draw"] == 0)]
    left.plot(
        bound["layer"], bound["bound"], color=BOUND, ls=":", label=r"bound, $c^L \Vert r\Vert_\infty / (1 - \gamma)$"
    )
    left.set(yscale="log", xlabel="$L$", title=rf"$\max |v - \mathrm{{TF}}_L|$, {env_name(env)}, $n = {states}$")
    for algo, J in (("td", "$J$"), ("mc", "$J'$")):
        for _, rows in of[of["algo"] == algo].groupby("draw"):
            right.plot(
                rows["layer"], rows["norm"], color=COLOURS[algo], lw=0.9, marker="o", ms=2.5, label=f"{J}, family"
            )
        td = rows_with(neu, algo=algo, env=env, states=states, space="looped")
        td = td[td["layer"] > 0]
        look = {"color": COLOURS[algo], "ls": "--", "lw": 1.2}
        right.plot(td["layer"], td["norm"], label=rf"{J}, $\theta_L^{{\mathrm{{TD}}}}$", **look)
    right.set(xscale="log", yscale="log", xlabel="$L$", title="norm of the expected update")
    legend(figure, ncols=3, fontsize=8)
    return figure


def pretrained(line: pd.DataFrame, repeated: pd.DataFrame) -> Figure:
    """J or J' from the pretrained weights to theta^TD, and at pretrained layers repeated to any depth.

    ``line`` and ``repeated`` are the theory's tables pretrained and repeated.
    """
    algos = sorted(set(line["algo"]), key=list(NAMES).index)
    looks = dict(zip(line[CELL[1:]].drop_duplicates().itertuples(index=False), itertools.cycle(LINES), strict=False))
    figure, grid = plt.subplots(2, len(algos), sharex="row", sharey="row", squeeze=False, figsize=(WIDTH, 5))
    for column, algo in zip(grid.T, algos, strict=True):
        for key, rows in line[line["algo"] == algo].groupby(CELL, sort=False):
            colour = looks[key[1:]]
            median = rows.groupby("position")["looped_norm"].median()
            median = median[median < LARGEST]
            column[0].plot(median.index, median, color=colour, lw=1.2, label=setting_title(Cell(*key), "main"))
            column[0].plot(1.3, rows["theta_td"].iloc[0], color=colour, marker="D", ms=4, ls="")
            deeper = rows_with(repeated, **Cell(*key)._asdict()).groupby("layer")["looped_norm"].median()
            deeper = deeper[deeper < LARGEST]
            column[1].plot(deeper.index, deeper, color=colour, lw=1.2)
            own = deeper[deeper.index == key[-1]]
            column[1].plot(own.index, own, color=colour, marker="o", ms=4)
        ticks = {
            "xticks": [0, 0.5, 1, 1.3],
            "xticklabels": ["pretrained", "", r"$\alpha\,\theta^{\mathrm{TD}}$", r"$\theta^{\mathrm{TD}}$"],
        }
        column[0].set(yscale="log", title=NAMES[algo], **ticks)
        column[1].set_xlabel("layers")
        if (repeated["looped_norm"] < LARGEST).any():  # An axis without data takes no logarithmic scale.
            column[1].set(xscale="log", yscale="log")
    trained = repeated.loc[repeated["layer"] == repeated["depth"], "looped_norm"]
    trained = trained[(trained > 0) & (trained < LARGEST)]
    if len(trained):
        grid[1, 0].set_ylim(trained.min() / 30, trained.max() * SHOWN)
    grid[0, 0].set_ylabel("$J$ or $J'$")
    grid[1, 0].set_ylabel("$J$ or $J'$")
    legend(figure, ncols=2, fontsize=8)
    return figure
