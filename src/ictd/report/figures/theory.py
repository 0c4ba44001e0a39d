"""Figures of the theory's checks: measured quantities and their bounds."""

import itertools

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter

from ictd.report.figures.style import COLOURS, LARGEST, LINES, WIDTH, env_name, label_ends, legend
from ictd.report.tables import rows_with

BOUND = COLOURS["zero"]
OURS = "#000000"
NORMS = {"td": "$J$", "mc": "$J'$"}
# Algorithms whose weights are in the family, with the labels, colours and dashes of their lines.
ALGORITHMS = {
    "theta_td": (r"$\theta_L^{\mathrm{TD}}$", OURS, "--"),
    "residual_gradient": ("residual gradient", LINES[3], "-."),
    "deflated_td": ("deflated TD", LINES[4], (0, (5, 1))),
}
# Errors relative to the largest value down to which float64 resolves the ratio of an error to its bound.
ROUNDING = 1e-12
# Depths up to which the figure shows what explains the course of J.
EARLY = 60
# Of each panel the statement, its title, what is measured, and the scale of its axis.
PANELS = (
    ("lemma_1", "Lemma 1", "expected TD error", "log"),
    ("lemma_2_query", "Lemma 2, $y_l^q$", "query's entry $|y_l^q|$", "linear"),
    ("lemma_2_context", "Lemma 2, $Y_l$", r"context's row $\Vert Y_l\Vert_1$", "log"),
    ("lemma_3", "Lemma 3", r"gradient $\Vert\nabla_\theta \mathrm{TF}_L\Vert_1$", "log"),
    ("lemma_4", "Lemma 4", "expected MC error", "log"),
)


def theorem_1(statements: pd.DataFrame, discount: float) -> Figure:
    """Error of TF_L at theta^TD relative to ||v||_inf against L, a column for each environment.

    The lower row shows the error over its bound.  Curves end where rounding errors begin to count.  ``statements`` is
    the theory's table, and ``discount`` is gamma.
    """
    errors = statements[statements["statement"] == "theorem_1"]
    errors = errors[discount ** errors["layer"] > ROUNDING]
    envs = list(dict.fromkeys(errors["env"]))
    figure, grid = plt.subplots(2, len(envs), sharex=True, sharey="row", squeeze=False, figsize=(WIDTH, 4.2))
    for column, env in zip(grid.T, envs, strict=True):
        by_states = errors[errors["env"] == env].groupby("states")
        ends = []
        for colour, (states, layers) in zip(itertools.cycle(LINES[1:]), by_states, strict=False):
            share = layers["left_mean"] / layers["right_mean"]
            for axes, bound in zip(column, (discount ** layers["layer"], 1), strict=True):
                axes.plot(layers["layer"], share * bound, color=colour, lw=1.2)
            ends.append((f"$n = {states}$", share.iloc[-1], colour))
        layer = errors["layer"].unique()
        for axes, bound in zip(column, (discount**layer, layer**0), strict=True):
            axes.plot(layer, bound, color=BOUND, ls=":", label=r"bound, $\gamma^L \Vert v\Vert_\infty$")
        column[0].set(yscale="log", title=env_name(env))
        column[1].set(ylim=(0, 1.1), xlabel="layers $L$")
        label_ends(column[1], ends)
    figure.suptitle(r"$\mathrm{TF}_L$ at $\theta^{\mathrm{TD}}$, means over tasks", fontsize=9)
    grid[0, 0].set_ylabel("largest error of values\n" + r"$\max_q\,|\mathrm{TF}_L - v(s_q)|\,/\,\Vert v\Vert_\infty$")
    grid[1, 0].set_ylabel("error / bound")
    legend(figure)
    return figure


def lemmas(statements: pd.DataFrame, env: str, states: int) -> Figure:
    """Both sides of Lemmas 1 to 4 against the layer, and their smallest ratio over tasks, in one setting."""
    figure, grid = plt.subplots(2, 3, figsize=(WIDTH, 4))
    of_setting = rows_with(statements, env=env, states=states)
    depth = of_setting.loc[of_setting["statement"] == "lemma_3", "layer"].max()
    of_setting = of_setting[of_setting["layer"].between(1, depth)]
    ratio_axes = grid.flat[len(PANELS)]
    ends = {}
    for i, (axes, (name, title, quantity, scale)) in enumerate(zip(grid.flat, PANELS, strict=False)):
        sides = of_setting[of_setting["statement"] == name]
        axes.plot(sides["layer"], sides["left_mean"], color=LINES[2], lw=2.5, label="measured")
        axes.plot(sides["layer"], sides["right_mean"], color=BOUND, ls=":", label="the paper's bound")
        if name == "lemma_3":
            ours = of_setting[of_setting["statement"] == "bounded_gradient"]
            axes.plot(ours["layer"], ours["right_mean"], color=OURS, ls="--", label="our bound")
        xlabel = "layer $l$" if "_l" in quantity else "layers $L$"
        axes.set(yscale=scale, title=title, xlabel=xlabel, ylabel=quantity)
        axes.yaxis.set_minor_formatter(NullFormatter())
        # Some ratios coincide, so the markers of each begin at another place.
        look = {"marker": "os^vD"[i], "ms": 3.5, "mfc": "none", "markevery": (0.04 * i, 0.2), "lw": 0.8}
        ratios = sides.dropna(subset="tightest")
        if len(ratios):  # Matplotlib cannot place markers on an empty line.
            ratio_axes.plot(ratios["layer"], ratios["tightest"], color=LINES[1 + i], **look)
            # Ratios that end at the same value share a label.
            last = f"{ratios['tightest'].iloc[-1]:.0e}"
            ends.setdefault(last, []).append((title.removeprefix("Lemma "), LINES[1 + i]))
    ratio_axes.set(yscale="log", title="smallest ratio, by lemma", xlabel="layer $l$ or $L$", ylabel="bound / measured")
    labels = [("; ".join(name for name, _ in group), float(value), group[-1][1]) for value, group in ends.items()]
    label_ends(ratio_axes, labels)
    figure.suptitle(f"{env_name(env)}, $n = {states}$, means over tasks", fontsize=9)
    legend(figure, ncols=4)
    return figure


def expected_update(neu: pd.DataFrame, statements: pd.DataFrame, algo: str, env: str, states: int) -> Figure:
    """J or J' at theta^TD against the depth L with its bounds, and what explains its course, in one setting.

    ``algo`` is "td" for J and Theorem 2, or "mc" for J' and Corollary 1.  The tables are the theory's.
    """
    J, colour = NORMS[algo], COLOURS[algo]
    figure, (left, right) = plt.subplots(1, 2, figsize=(WIDTH, 3))
    norms = rows_with(neu[neu["layer"] > 0], algo=algo, env=env, states=states)
    looped = norms[norms["space"] == "looped"]
    separate = norms[norms["space"] == "separate"]
    left.plot(looped["layer"], looped["norm"], color=colour, label=f"{J} of $\\theta_L^{{\\mathrm{{TD}}}}$")
    look = {"color": OURS, "ls": "", "marker": "o", "ms": 3.5, "mfc": "none"}
    left.plot(separate["layer"], separate["norm"], label="the same, separate layers", **look)
    left.plot(looped["layer"], looped["bound"], color=BOUND, ls=":", label="the paper's bound")
    left.plot(looped["layer"], looped["sharper"], color=OURS, ls="--", label="our bound")
    left.set(yscale="log", xlabel="layers $L$", ylabel=f"norm of the expected update, {J}")
    left.set_title(f"{env_name(env)}, $n = {states}$")
    early = looped[looped["layer"] <= EARLY]
    largest = early["norm"].max()
    right.plot(early["layer"], early["norm"] / largest, color=colour)
    low, high = (early["norm"] + sign * early["standard_error"] for sign in (-1, 1))
    right.fill_between(early["layer"], low / largest, high / largest, color=colour, alpha=0.25, lw=0)
    early_sides = rows_with(statements[statements["layer"].between(1, EARLY)], env=env, states=states)
    error = "lemma_1" if algo == "td" else "lemma_4"
    for statement, dashes, label in (
        (error, "-.", f"expected {algo.upper()} error"),
        ("lemma_3", "--", "norm of the gradient"),
    ):
        sides = early_sides[early_sides["statement"] == statement]
        relative = sides["left_mean"] / sides["left_mean"].max()
        right.plot(sides["layer"], relative, color=OURS, lw=1, ls=dashes, label=label)
    rises = early["norm"].iloc[0] < largest
    right.set(xlabel="layers $L$", ylabel="value / its maximum", title=f"why {J} {'rises first' if rises else 'falls'}")
    legend(figure)
    return figure


def family(errors: pd.DataFrame, updates: pd.DataFrame, neu: pd.DataFrame, env: str, states: int) -> Figure:
    """Error, and J and J', against the depth L of random weights of the family, and errors of other weights.

    The others are weights beyond the family, and those of known algorithms in it.
    ``errors``, ``updates`` and ``neu`` are the theory's tables family, family_updates and neu; one setting is shown.
    """
    figure, (left, right) = plt.subplots(1, 2, figsize=(WIDTH, 3))
    errors = rows_with(errors, env=env, states=states)
    updates = rows_with(updates, env=env, states=states)
    for member, colour, label in (
        ("inside", LINES[2], "$A = [G; H][-I, I]$"),
        ("beyond", LINES[1], "the same $+ N [I, I]$"),
    ):
        for _, of_draw in errors[errors["member"] == member].groupby("draw"):
            shown = of_draw[of_draw["error"] < LARGEST]
            left.plot(shown["layer"], shown["error"], color=colour, lw=0.9, label=label)
    for algorithm, (label, colour, dashes) in ALGORITHMS.items():
        rows = rows_with(errors, member=algorithm)
        left.plot(rows["layer"], rows["error"], color=colour, ls=dashes, lw=0.9, label=label)
    bound = rows_with(errors, member="inside", draw=0)
    label = r"bound, $c^L \Vert r\Vert_\infty / (1 - \gamma)$"
    left.plot(bound["layer"], bound["bound"], color=BOUND, ls=":", label=label)
    left.set(yscale="log", xlabel="layers $L$", ylabel="largest error of values\n" + r"$|v - \mathrm{TF}_L|$")
    ends = {}
    for algo, J in NORMS.items():
        for _, of_draw in updates[updates["algo"] == algo].groupby("draw"):
            right.plot(of_draw["layer"], of_draw["norm"], color=COLOURS[algo], lw=2)
            ends[J] = J, of_draw["norm"].iloc[-1], COLOURS[algo]
        theta_td = rows_with(neu[neu["layer"] > 0], algo=algo, env=env, states=states, space="looped")
        label, colour, dashes = ALGORITHMS["theta_td"]
        right.plot(theta_td["layer"], theta_td["norm"], color=colour, ls=dashes, lw=0.9, label=label)
    right.set(xscale="log", yscale="log", xlabel="layers $L$", ylabel="norm of the expected update")
    label_ends(right, list(ends.values()))
    figure.suptitle(f"{env_name(env)}, $n = {states}$", fontsize=9)
    legend(figure)
    return figure
