"""Figures of the theory's checks: measured quantities and their bounds."""

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure

from ictd.report.figures.style import COLOURS, INK, LARGEST, LINES, WIDTH, env_name, label_ends, legend
from ictd.report.names import LOOKS
from ictd.report.tables import rows_with

NORMS = {"td": "$J$", "mc": "$J'$"}
# Lemmas on the expected errors in J and J'.
ERRORS = {"td": "lemma_1", "mc": "lemma_4"}
# Labels and lines of weights of the family, and of others.
MEMBERS = {
    "inside": ("$A = [G; H][-I, I]$", {"color": LINES[1], "lw": 1.2}),
    "beyond": ("the same $+ N [I, I]$", {"color": LINES[2], "lw": 1.2}),
    "theta_td": (
        r"$\theta^{\mathrm{TD}}$",
        {"color": COLOURS["theta_td"], "ls": LOOKS["theta_td"].dashes, "lw": 1},
    ),
    "residual_gradient": ("residual gradient", {"color": INK, "ls": "-.", "lw": 0.9}),
    "deflated_td": ("deflated TD", {"color": INK, "ls": (0, (5, 1)), "lw": 0.9}),
}
# Errors relative to the largest value down to which float64 resolves the ratio of an error to its bound.
ROUNDING = 1e-12
# Depths up to which the figure shows what explains the course of J.
EARLY = 60
# Labels of the bounds on what the lemmas bound.
LEMMAS = {
    "lemma_1": "Lemma 1",
    "lemma_2_query": "Lemma 2, $y_l^q$",
    "lemma_2_context": "Lemma 2, $Y_l$",
    "lemma_3": "Lemma 3",
    "bounded_gradient": "Lemma 3, ours",
    "lemma_4": "Lemma 4",
}


def theorem_1(statements: pd.DataFrame, discount: float) -> Figure:
    """Error of TF_L at theta^TD over its bound against L, a panel for each environment and a line for each n.

    Curves end where rounding errors begin to count.  ``statements`` is the theory's table, and ``discount`` is gamma.
    """
    errors = statements[statements["statement"] == "theorem_1"]
    errors = errors[discount ** errors["layer"] > ROUNDING]
    envs = list(dict.fromkeys(errors["env"]))
    figure, grid = plt.subplots(1, len(envs), sharey=True, squeeze=False, figsize=(WIDTH, 2.6))
    for axes, env in zip(grid[0], envs, strict=True):
        ends = []
        for states, layers in errors[errors["env"] == env].groupby("states"):
            share = layers["left_mean"] / layers["right_mean"]
            axes.plot(layers["layer"], share, color=COLOURS["theta_td"], lw=1.2)
            ends.append((f"$n = {states}$", share.iloc[-1], COLOURS["theta_td"]))
        axes.axhline(1, color=INK, ls=":")
        axes.set(ylim=(0, 1.1), xlabel="layers $L$", title=env_name(env))
        label_ends(axes, ends)
    bound = r"$\max_q\,|\mathrm{TF}_L - v(s_q)|\,/\,(\gamma^L \Vert v\Vert_\infty)$"
    grid[0, 0].set_ylabel(f"error / bound\n{bound}")
    return figure


def lemmas(statements: pd.DataFrame, env: str, states: int) -> Figure:
    """The smallest ratio over tasks of the bounds of Lemmas 1 to 4 to what they bound, against the layer."""
    figure, axes = plt.subplots(figsize=(WIDTH, 2.8))
    of_setting = rows_with(statements, env=env, states=states)
    depth = of_setting.loc[of_setting["statement"] == "lemma_3", "layer"].max()
    of_setting = of_setting[of_setting["layer"].between(1, depth)].dropna(subset="tightest")
    ends = []
    for name, label in LEMMAS.items():
        ratios = rows_with(of_setting, statement=name)
        if len(ratios):
            axes.plot(ratios["layer"], ratios["tightest"], color=INK, lw=1, ls="--" if "ours" in label else "-")
            ends.append((label, ratios["tightest"].iloc[-1], INK))
    axes.axhline(1, color=INK, ls=":")
    title = f"{env_name(env)}, $n = {states}$"
    axes.set(
        yscale="log", title=title, xlabel="layer $l$ or $L$", ylabel="bound / what it bounds,\nsmallest over tasks"
    )
    label_ends(axes, ends)
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
    look = {"color": INK, "ls": "", "marker": "o", "ms": 3.5, "mfc": "none"}
    left.plot(separate["layer"], separate["norm"], label="the same, separate layers", **look)
    left.plot(looped["layer"], looped["bound"], color=INK, ls=":", label="the paper's bound")
    left.plot(looped["layer"], looped["sharper"], color=INK, ls="--", label="our bound")
    left.set(yscale="log", xlabel="layers $L$", ylabel=f"norm of the expected update, {J}")
    left.set_title(f"{env_name(env)}, $n = {states}$")
    early = looped[looped["layer"] <= EARLY]
    largest = early["norm"].max()
    right.plot(early["layer"], early["norm"] / largest, color=colour)
    low, high = (early["norm"] + sign * early["standard_error"] for sign in (-1, 1))
    right.fill_between(early["layer"], low / largest, high / largest, color=colour, alpha=0.25, lw=0)
    early_sides = rows_with(statements[statements["layer"].between(1, EARLY)], env=env, states=states)
    error = ERRORS[algo]
    for statement, dashes, label in (
        (error, "-.", f"expected {algo.upper()} error"),
        ("lemma_3", "--", "norm of the gradient"),
    ):
        sides = early_sides[early_sides["statement"] == statement]
        relative = sides["left_mean"] / sides["left_mean"].max()
        right.plot(sides["layer"], relative, color=INK, lw=1, ls=dashes, label=label)
    rises = early["norm"].iloc[0] < largest
    right.set(xlabel="layers $L$", ylabel="value / its maximum", title=f"why {J} {'rises first' if rises else 'falls'}")
    legend(figure)
    return figure


def family(errors: pd.DataFrame, updates: pd.DataFrame, env: str, states: int) -> Figure:
    """Error, and J and J', against the depth L of random weights of the family, and errors of other weights.

    The others are weights beyond the family, and those of known algorithms in it.
    ``errors`` and ``updates`` are the theory's tables family and family_updates; one setting is shown.
    """
    figure, (left, right) = plt.subplots(1, 2, figsize=(WIDTH, 3))
    errors = rows_with(errors, env=env, states=states)
    updates = rows_with(updates, env=env, states=states)
    for member, (label, look) in MEMBERS.items():
        for _, of_draw in errors[errors["member"] == member].groupby("draw"):
            shown = of_draw[of_draw["error"] < LARGEST]
            left.plot(shown["layer"], shown["error"], label=label, **look)
    bound = rows_with(errors, member="inside", draw=0)
    label = r"bound, $c^L \Vert r\Vert_\infty / (1 - \gamma)$"
    left.plot(bound["layer"], bound["bound"], color=INK, ls=":", label=label)
    left.set(yscale="log", xlabel="layers $L$", ylabel="largest error of values\n" + r"$|v - \mathrm{TF}_L|$")
    ends = {}
    for algo, J in NORMS.items():
        for _, of_draw in updates[updates["algo"] == algo].groupby("draw"):
            right.plot(of_draw["layer"], of_draw["norm"], color=COLOURS[algo], lw=2)
            ends[J] = J, of_draw["norm"].iloc[-1], COLOURS[algo]
    right.set(xscale="log", yscale="log", xlabel="layers $L$", ylabel="norm of the expected update")
    label_ends(right, list(ends.values()))
    figure.suptitle(f"{env_name(env)}, $n = {states}$", fontsize=9)
    legend(figure)
    return figure
