"""Figures of the theory's checks: measured quantities and the proved bounds."""

import itertools
from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter

from ictd.report.figures.style import COLOURS, LARGEST, LINES, WIDTH, env_name, legend, save
from ictd.tables import load_tables, rows_with

BOUND, OURS = COLOURS["zero"], "#000000"
NORMS = {"td": "$J$", "mc": "$J'$"}
# Depths that show the rise of J before its fall.
EARLY = 60
# Statements, their names, what is measured, and its scale.
PANELS = (
    ("lemma_1", "Lemma 1", "expected TD error", "log"),
    ("lemma_2_query", "Lemma 2, $y_l^q$", "$|y_l^q|$", "linear"),
    ("lemma_2_context", "Lemma 2, $Y_l$", r"$\Vert Y_l\Vert_1$", "log"),
    ("lemma_3", "Lemma 3", r"$\Vert\nabla_\theta \mathrm{TF}_L\Vert_1$", "log"),
    ("lemma_4", "Lemma 4", "expected MC error", "log"),
)


def main(tables: list[Path], env: str, states: int, discount: float, output: Path) -> None:
    """Write ``theorem_1``, ``lemmas``, ``theorem_2``, ``corollary_1`` and ``family`` as PNG and SVG.

    Some show one setting only, that of ``env`` and ``states``.
    """
    of = load_tables(tables)
    save(theorem_1(of["statements"], of["precision"], discount), output / "theorem_1.png")
    save(lemmas(of["statements"], env, states), output / "lemmas.png")
    for algo, name in (("td", "theorem_2"), ("mc", "corollary_1")):
        save(expected_update(of["neu"], of["statements"], algo, env, states), output / f"{name}.png")
    save(family(of["family"], of["family_updates"], of["neu"], env, states), output / "family.png")


def theorem_1(statements: pd.DataFrame, precision: pd.DataFrame, discount: float) -> Figure:
    """Error of TF_L at theta^TD over ||v||_inf against L, a column an environment, and the same over its bound below.

    ``statements`` and ``precision`` are the theory's tables, and ``discount`` is gamma.
    """
    errors = statements[statements["statement"] == "theorem_1"]
    digits = precision[(precision["quantity"] == "lemma_4") & (precision["layer"] % 50 == 0)]
    envs = list(dict.fromkeys(errors["env"]))
    figure, grid = plt.subplots(2, len(envs), sharex=True, sharey="row", squeeze=False, figsize=(WIDTH, 4.2))
    for column, env in zip(grid.T, envs, strict=True):
        by_states = errors[errors["env"] == env].groupby("states")
        looks = itertools.cycle(zip(LINES[1:], "os^vD", strict=False))
        for (colour, marker), (states, rows) in zip(looks, by_states, strict=False):
            share = rows["left_mean"] / rows["right_mean"]
            exact = rows_with(digits, env=env, states=states).groupby("layer")["ratio"].mean()
            for axes, bound in zip(column, (discount ** rows["layer"], 1), strict=True):
                axes.plot(rows["layer"], share * bound, color=colour, lw=1.2, label=f"$n = {states}$")
            for axes, bound in zip(column, (discount**exact.index, 1), strict=True):
                axes.plot(exact.index, exact * bound, color=colour, ls="", marker=marker, ms=3.5, mfc="none")
        layers = errors["layer"].unique()
        for axes, bound in zip(column, (discount**layers, layers**0), strict=True):
            axes.plot(layers, bound, color=BOUND, ls=":", label=r"bound, $\gamma^L \Vert v\Vert_\infty$")
        column[0].plot([], [], color=BOUND, ls="", marker="o", ms=3.5, mfc="none", label="decimal arithmetic, 2 tasks")
        column[0].set(yscale="log", title=env_name(env))
        # Rounding takes the lines beyond the bound.
        column[1].set(ylim=(0, 1.1), xlabel="layers $L$")
    figure.suptitle(r"$\mathrm{TF}_L$ at $\theta^{\mathrm{TD}}$, means over tasks", fontsize=9)
    grid[0, 0].set_ylabel(r"$\max_q\,|\mathrm{TF}_L - v(s_q)|\,/\,\Vert v\Vert_\infty$")
    grid[1, 0].set_ylabel("error / bound")
    legend(figure, ncols=4)
    return figure


def lemmas(statements: pd.DataFrame, env: str, states: int) -> Figure:
    """Both sides of Lemmas 1 to 4 against the layer, and their tightest ratio, in one setting of the theory's table."""
    figure, grid = plt.subplots(2, 3, figsize=(WIDTH, 4))
    here = rows_with(statements, env=env, states=states)
    here = here[here["layer"].between(1, here.loc[here["statement"] == "lemma_3", "layer"].max())]
    last = grid.flat[len(PANELS)]
    for i, (axes, (name, title, quantity, scale)) in enumerate(zip(grid.flat, PANELS, strict=False)):
        rows = here[here["statement"] == name]
        axes.plot(rows["layer"], rows["left_mean"], color=LINES[2], lw=2.5, label="measured")
        axes.plot(rows["layer"], rows["right_mean"], color=BOUND, ls=":", label="the paper's bound")
        if name == "lemma_3":
            ours = here[here["statement"] == "bounded_gradient"]
            axes.plot(ours["layer"], ours["right_mean"], color=OURS, ls="--", label="our bound")
        depth = "layer $l$" if "_l" in quantity else "layers $L$"
        axes.set(yscale=scale, title=title, xlabel=depth, ylabel=quantity)
        axes.yaxis.set_minor_formatter(NullFormatter())
        # Some lie on one another; so their markers, a fifth of the panel apart, begin at different places.
        look = {"marker": "os^vD"[i], "ms": 3.5, "mfc": "none", "markevery": (0.04 * i, 0.2), "lw": 0.8}
        clear = rows.dropna(subset="tightest")
        if len(clear):  # Markers have no place on an empty line.
            last.plot(clear["layer"], clear["tightest"], color=LINES[1 + i], label=title, **look)
    last.set(yscale="log", title="least over tasks", xlabel="layer $l$ or $L$", ylabel="bound / measured")
    figure.suptitle(f"{env_name(env)}, $n = {states}$, means over tasks", fontsize=9)
    legend(figure, ncols=4)
    return figure


def expected_update(neu: pd.DataFrame, statements: pd.DataFrame, algo: str, env: str, states: int) -> Figure:
    """J or J' at theta^TD against the depth L with its bounds, and why it rises first, in one setting.

    ``algo`` is "td" for J and Theorem 2, or "mc" for J' and Corollary 1.  The tables are the theory's.
    """
    name, colour = NORMS[algo], COLOURS[algo]
    error = "lemma_1" if algo == "td" else "lemma_4"
    figure, (left, right) = plt.subplots(1, 2, figsize=(WIDTH, 3))
    rows = rows_with(neu[neu["layer"] > 0], algo=algo, env=env, states=states)
    here, separate = (rows[rows["space"] == space] for space in ("looped", "separate"))
    early = here[here["layer"] <= EARLY]
    left.plot(here["layer"], here["norm"], color=colour, label=f"{name} of $\\theta_L^{{\\mathrm{{TD}}}}$")
    look = {"color": OURS, "ls": "", "marker": "o", "ms": 3.5, "mfc": "none"}
    left.plot(separate["layer"], separate["norm"], label="the same, separate layers", **look)
    left.plot(here["layer"], here["bound"], color=BOUND, ls=":", label="the paper's bound")
    left.plot(here["layer"], here["sharper"], color=OURS, ls="--", label="our bound")
    left.set(yscale="log", xlabel="layers $L$", ylabel=f"norm of the expected update, {name}")
    left.set_title(f"{env_name(env)}, $n = {states}$")
    greatest = early["norm"].max()
    right.plot(early["layer"], early["norm"] / greatest, color=colour)
    low, high = (early["norm"] + sign * early["standard_error"] for sign in (-1, 1))
    right.fill_between(early["layer"], low / greatest, high / greatest, color=colour, alpha=0.25, lw=0)
    sides = statements[statements["layer"].between(1, EARLY)]
    for statement, dashes, label in (
        (error, "-.", f"expected {algo.upper()} error"),
        ("lemma_3", "--", "norm of the gradient"),
    ):
        rows = rows_with(sides, env=env, states=states, statement=statement)
        right.plot(rows["layer"], rows["left_mean"] / rows["left_mean"].max(), color=OURS, lw=1, ls=dashes, label=label)
    right.set(xlabel="layers $L$", ylabel="value / its greatest", title=f"why {name} rises first")
    legend(figure)
    return figure


def family(table: pd.DataFrame, updates: pd.DataFrame, neu: pd.DataFrame, env: str, states: int) -> Figure:
    """Error, and J and J', against the depth L of random weights of the family with the limit v, and of some beyond it,
    in one setting of the theory's tables family, family_updates and neu."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(WIDTH, 2.6))
    here, of = (rows_with(frame, env=env, states=states) for frame in (table, updates))
    for member, colour, label in (
        ("inside", LINES[2], "$A = [G; H][-I, I]$"),
        ("beyond", LINES[1], "the same $+ N [I, I]$"),
    ):
        for _, rows in here[here["member"] == member].groupby("draw"):
            shown = rows[rows["error"] < LARGEST]
            left.plot(shown["layer"], shown["error"], color=colour, lw=0.9, label=label)
    bound = here[(here["member"] == "inside") & (here["draw"] == 0)]
    left.plot(
        bound["layer"], bound["bound"], color=BOUND, ls=":", label=r"bound, $c^L \Vert r\Vert_\infty / (1 - \gamma)$"
    )
    left.set(yscale="log", xlabel="layers $L$", ylabel=r"largest $|v - \mathrm{TF}_L|$")
    for algo, J in NORMS.items():
        for _, rows in of[of["algo"] == algo].groupby("draw"):
            right.plot(rows["layer"], rows["norm"], color=COLOURS[algo], lw=2, label=f"{J}, $A = [G; H][-I, I]$")
        td = rows_with(neu, algo=algo, env=env, states=states, space="looped")
        td = td[td["layer"] > 0]
        right.plot(
            td["layer"], td["norm"], color=OURS, ls="--", lw=0.9, label=r"$J$ and $J'$, $\theta_L^{\mathrm{TD}}$"
        )
    right.set(xscale="log", yscale="log", xlabel="layers $L$", ylabel="expected update, norm")
    figure.suptitle(f"{env_name(env)}, $n = {states}$", fontsize=9)
    legend(figure)
    return figure
