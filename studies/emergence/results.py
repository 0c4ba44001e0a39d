"""Claims, tables and figures of the study.

Intervals are 95% bootstrap intervals of means over trials: seeds, or groups of tasks if there are no seeds.
"""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from ictd.pipeline.grid import CELL, Cell, cells, main_setting
from ictd.report.claim import Trials
from ictd.report.figures.style import COLOURS, LINES, NAMES, WIDTH, env_name, legend
from ictd.report.part import claim, figure, numbers, table
from ictd.report.tables import load_table, rows_with
from studies.emergence import symmetry_results

MODULES = [symmetry_results]
# Sets of weights in the table of minimisers, with their names for readers.
SETS = {"1": "step size", "2": "two numbers", "4": "four", "8": "eight", "family": "family", "all": "all weights"}
# Descents do not distinguish smaller errors.
LEAST_MSVE = 1e-20


def load(folder: Path, settings: dict) -> dict:
    """The tables "best_numbers", "minimisers", "slow_mode" and "shares", and the "main" setting."""
    paper = settings["paper"]
    files = {
        "best_numbers": settings["best_numbers"]["states"],
        "minimisers": [f"{one['states']}-{one['depth']}" for one in settings["minimisers"]["settings"]],
        "slow_mode": ["falling", "rising"],
    }
    tables = {
        name: pd.concat([load_table(folder / name / f"{part}.csv") for part in parts], ignore_index=True)
        for name, parts in files.items()
    }
    results = tables | {"main": main_setting(paper)} | symmetry_results.load(folder, settings)
    parts = [shares_of(cell, results["runs"][str(cell)], paper["discount"]) for cell in cells(paper)]
    return results | {"shares": pd.concat(parts, ignore_index=True)}


def shares_of(cell: Cell, run: dict, discount: float) -> pd.DataFrame:
    """A row for each trial on ordinary tasks: shares of one and two numbers in the family part, and the MSVE."""
    A, msve = run["A"][symmetry_results.ORDINARY], run["mean"][symmetry_results.ORDINARY, symmetry_results.ORDINARY, 0]
    columns = {f"family_{count}": symmetry_results.shares(A, count, discount) for count in (1, 2)}
    return pd.DataFrame(cell._asdict() | {"seed": np.arange(len(A))} | columns | {"msve": msve})


# 1. Two numbers: shares in the weights of the paper's cells


def beta_in_the_rest(shares: pd.DataFrame) -> pd.Series:
    """Share of 11' in what a step size leaves of the family part."""
    return (shares["family_2"] - shares["family_1"]) / (1 - shares["family_1"])


@table
def shares(results):
    """Means over trials, for each cell of the paper.

    one, two: shares of a step size and of two numbers in the squared norm of the family part; beta of the rest: the
    share of 11' in what the step size leaves; MSVE: on enumerated prompts.
    """
    frame = results["shares"].assign(rest=beta_in_the_rest(results["shares"]))
    columns = {"family_1": "one", "family_2": "two", "rest": "beta of the rest", "msve": "MSVE"}
    return frame.groupby(CELL, sort=False)[[*columns]].mean().rename(columns=columns).reset_index()


@figure
def parts(results):
    """Shares of a few numbers in the weights.

    Shares of a step size, of β11', and of the rest in the part of the weights that acts on TD errors, as means over
    trials, for each algorithm, environment, number of states n and number of layers L.
    """
    means = results["shares"].groupby(CELL, sort=False)[["family_1", "family_2"]].mean()
    names = [f"{algo.upper()}, {env_name(env)}, $n={n}$, $L={depth}$" for algo, env, n, depth in means.index]
    ends = {
        r"$\alpha I$ ($\theta^{\mathrm{TD}}$)": (means["family_1"], COLOURS["theta_td"]),
        r"$\beta 11'$": (means["family_2"], LINES[1]),
        "rest": (1.0, "0.8"),
    }
    drawn, axes = plt.subplots(figsize=(WIDTH, 0.22 * len(means) + 0.6))
    left = 0.0
    for label, (end, colour) in ends.items():
        axes.barh(names, end - left, left=left, color=colour, label=label)
        left = end
    axes.set(xlabel="share of the family part", xlim=(0, 1), ylim=(len(means) - 0.5, -0.5))
    legend(drawn)
    return drawn


# 2. The best numbers, and minimisers


@claim("<", -1.0)
def best_two(results):
    """The best two numbers have less than a tenth of the MSVE of theta^TD with its best step size.

    The mean over groups of other tasks of the log10 ratio of the two MSVEs on enumerated prompts.
    """
    # A factor of 10.
    best = rows_with(results["best_numbers"], states=results["main"]["states"], discount=results["discount"])
    for depth, rows in best.groupby("depth"):
        msve = np.log10(rows.pivot(index="group", columns="numbers", values="mean"))
        yield f"{depth} layers", Trials(msve[2] - msve[1])


@table
def best_numbers(results):
    """The best step size alone, and the best two numbers: MSVE on 1,000 other tasks, on enumerated prompts.

    alpha and beta are those of two numbers, for attention divided by n.
    """
    # Three digits of alpha and beta: a descent ends where its steps lower the error by less than a thousandth.
    keys = ["states", "discount", "depth"]
    rows = []
    for key, group in results["best_numbers"].groupby(keys):
        one, two = (rows_with(group, numbers=count) for count in (1, 2))
        numbers = {"alpha": two["identity"].iloc[0], "beta": two["ones"].iloc[0]}
        found = {name: float(f"{number:.3g}") for name, number in numbers.items()}
        means = {"MSVE of one": one["mean"].mean(), "MSVE of two": two["mean"].mean()}
        rows.append(dict(zip(keys, key, strict=True)) | found | means)
    return pd.DataFrame(rows)


def lowest(results) -> pd.DataFrame:
    """The descent with the lowest MSVE in each set of weights, for each number of states and layers."""
    table = results["minimisers"]
    return table.loc[table.groupby(["states", "depth", "set"], sort=False)["msve"].idxmin()]


def strict_minima(descents: pd.DataFrame) -> pd.DataFrame:
    """The different points at which descents ended with a positive definite Hessian."""
    return descents[descents["least_curvature"] > 0].drop_duplicates("point")


@claim("<", -1.0, shown="minima")
def pretraining_stops_short(results):
    """The lowest error in the family is less than a tenth of that of pretrained weights.

    The log10 of the lowest MSVE found in the family, on other tasks, over the MSVE of pretrained weights (trials are
    seeds).
    """
    # A factor of 10.
    main = results["main"]
    best = lowest(results).set_index(["set", "states", "depth"])["test_msve"]
    cells = rows_with(results["shares"], env=main["env"], states=main["states"])
    for (algo, depth), trials in cells.groupby(["algo", "depth"], sort=False):
        if ("family", main["states"], depth) in best:
            least = max(best["family", main["states"], depth], LEAST_MSVE)
            yield (algo, f"{depth} layers"), Trials(np.log10(least / trials["msve"]))


@claim("<", 2, exact=True)
def one_minimum(results):
    """Descents in one set of weights that end at a strict local minimum end at the same one.

    Number of different strict local minima at which descents ended.
    """
    # Ends are different if their distance is above a thousandth of their norm.  With 3 states and 5 layers, Newton's
    # method moved both minima by less than 3e-5 of it; the distance between them is 0.2, and their least curvatures are
    # 450 times the bound on rounding or more.
    for (n, depth, name), descents in results["minimisers"].groupby(["states", "depth", "set"], sort=False):
        if name in ("family", "all") and (descents["least_curvature"] > 0).sum() > 1:
            yield (name, f"{n} states", f"{depth} layers"), len(strict_minima(descents))


@table
def minimisers(results):
    """The lowest MSVE found in growing sets of weights, on other tasks.

    The last columns have the share of the lowest A outside the family, and the number of strict local minima that were
    found in the family and in all weights; no number if the MSVE is too small to resolve curvatures.
    """
    rows = []
    for (n, depth), best in lowest(results).groupby(["states", "depth"], sort=False):
        errors = best.set_index("set")["test_msve"].clip(lower=LEAST_MSVE)
        row = {"n": n, "L": depth, **{words: errors[name] for name, words in SETS.items()}}
        row["outside"] = rows_with(best, set="all")["outside"].iloc[0]
        for name in ("family", "all"):
            minima = strict_minima(rows_with(results["minimisers"], states=n, depth=depth, set=name))
            row[f"minima, {name}"] = len(minima) or ""
        rows.append(row)
    return pd.DataFrame(rows)


@figure
def minima(results):
    """The lowest error in growing sets of weights.

    The lowest MSVE found in five sets of weights, on other tasks, against the number of layers, and the MSVE of weights
    pretrained by TD, as mean over trials; main environment, and the first number of states of the table of minimisers.
    """
    drawn, axes = plt.subplots(figsize=(WIDTH, 2.6))
    best = lowest(results)
    states = best["states"].iloc[0]
    best = rows_with(best, states=states)
    sets = {name: words for name, words in SETS.items() if name != "4"}
    for (name, words), colour in zip(sets.items(), (COLOURS["theta_td"], *LINES), strict=False):
        line = rows_with(best, set=name).sort_values("depth")
        dashes = ":" if name == "all" else "-"  # The line of the family is below.
        axes.plot(
            line["depth"], line["test_msve"].clip(lower=LEAST_MSVE), dashes, marker="o", ms=3, color=colour, label=words
        )
    trained = rows_with(results["shares"], algo="td", env=results["main"]["env"], states=states)
    means = trained.groupby("depth")["msve"].mean()
    means = means[means.index <= best["depth"].max()]
    axes.plot(means.index, means, "s--", ms=3, color=COLOURS["td"], label=f"pretrained, {NAMES['td']}")
    axes.set(xscale="log", yscale="log", xlabel="layers $L$", ylabel="MSVE, enumerated")
    axes.set_xticks(sorted(best["depth"].unique()), sorted(best["depth"].unique()))
    axes.minorticks_off()
    legend(drawn, ncols=3)
    return drawn


# 3. Another slow mode


@claim(">", 0.0)
def follows_slow_mode(results):
    """The leading direction of the weights follows the slow mode of TD if the slow mode is not constant.

    The cosine of the direction to the slow mode minus its cosine to constants.
    """
    # Fixed before the first run: refuted if the whole interval of one design is below 0.
    for design, trials in results["slow_mode"].groupby("design"):
        yield design, Trials(trials["slow"] - trials["ones"])


@numbers
def headline(results):
    """Numbers that pages quote."""
    two = results["shares"].groupby(CELL)["family_2"].mean()
    rising = rows_with(results["slow_mode"], design="rising")
    return {"lowest_two_share": two.min(), "follows_rising": (rising["slow"] - rising["ones"]).mean()}
