"""Claims, tables and figures of the study.  Trials are seeds, each with pretraining and held-out tasks of its own."""

from collections.abc import Collection, Iterator
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from ictd.report.claim import Trials
from ictd.report.figures.style import LINES, WIDTH, legend
from ictd.report.part import claim, figure, numbers, table
from ictd.report.tables import load_table, rows_with
from ictd.statistics import bootstrap_mean
from ictd.storage import load_arrays, long_table
from studies.features.measures import measures
from studies.features.setting import checked_settings

# The settings that decide claims, with the prefix of their variants and their name for readers.
PLAIN = {"main": "", "loop": "loop_", "dense": "dense_"}
NAMES = {"main": "Boyan's chains", "loop": "Loop", "dense": "dense chains"}
NAMES |= {f"{prefix}constant": f"{NAMES[name]}, constant" for name, prefix in PLAIN.items()}
TARGETS = {"values": "true values", "mc": "MC", "td": "TD"}
# Coefficients of the two parts, by weights of the columns and method, and errors, by method.
COEFFICIENTS = {
    ("equal", "split"): "best",
    ("equal", "pretrained_values"): "pretrained, true values",
    ("equal", "pretrained_td"): "pretrained, TD",
    ("weighted", "split"): "best, weighted columns",
    ("reversible", "split"): "best, reversible chains",
}
ERRORS = {
    "eta": "best step and η",
    "mean": "best step and η_m",
    "rest": "best step and η_r",
    "split": "best step, η_m and η_r",
    "ordinary": "pretrained, true values",
    "without_mean": "the same without the mean",
    "without_rest": "the same without the rest",
}
# Methods that are compared; their parameters are the best ones on other tasks.
METHODS = {
    "td": "TD",
    "pretrained_td": "pretrained, TD",
    "pretrained_values": "pretrained, true values",
    "eta": "TD, best η",
    "lstd_ridge": "LSTD, ridge",
    "lstd_mean": "LSTD, mean feature",
    "lstd_lambda": "LSTD(λ)",
}


def load(folder: Path, settings: dict) -> dict[str, pd.DataFrame]:
    """Tables of the measures of pretrained "weights", of "errors" of all methods, and of both "parts".

    "equal" has the rows of "parts" whose columns have equal weights.
    """
    weights, known = [], checked_settings(settings)
    for name, setting in known.items():
        (A,) = load_arrays(folder / f"weights/{name}.npz", "A")
        axes = {"target": setting["targets"], "seed": range(setting["seeds"])}
        weights.append(pd.DataFrame(long_table(axes, measures(A), setting=name)))
    errors = [load_table(folder / f"errors/{name}.csv") for name in known]
    parts = [load_table(folder / f"mean_part/{name}.csv") for name in settings["mean_part"]["settings"]]
    found = {"weights": pd.concat(weights), "errors": pd.concat(errors), "parts": pd.concat(parts)}
    return found | {"equal": rows_with(found["parts"], columns="equal")}


def samples(frame: pd.DataFrame, column: str, **values) -> pd.Series:
    """A column by seed, of the rows with the given values."""
    return rows_with(frame, **values).set_index("seed")[column]


def settings_in(frame: pd.DataFrame, suffix: str = "") -> Iterator[tuple[str, str]]:
    """Pairs of a plain setting and its variant with a suffix, such as "constant", if results have both."""
    known = set(frame["setting"])
    for plain, prefix in PLAIN.items():
        other = prefix + suffix if suffix else plain
        if {plain, other} <= known:
            yield plain, other


def log_errors(frame: pd.DataFrame, name: str, measure: str = "trimmed") -> pd.DataFrame:
    """log10 of the errors in a setting, with a row for each seed and a column for each method."""
    return np.log10(rows_with(frame, setting=name).pivot(index="seed", columns="method", values=measure))


def log_ratios(results: dict, method: str, other: str) -> Iterator[tuple]:
    """log10 of the error of a method over that of another one, in the settings of the table "errors"."""
    for name in compared(results["errors"]):
        errors = log_errors(results["errors"], name)
        yield name, Trials(errors[method] - errors[other])


def errors_in_parts(results: dict) -> Iterator[tuple[str, pd.DataFrame]]:
    """The plain settings of the table "parts", with their ``log_errors``."""
    for name, _ in settings_in(results["parts"]):
        yield name, log_errors(results["equal"], name)


def beyond_half(results: dict, method: str) -> Iterator[tuple]:
    """log10 of the error over the geometric mean of the errors with no part and with both parts."""
    for name, errors in errors_in_parts(results):
        yield name, Trials(errors[method] - (errors["td"] + errors["split"]) / 2)


@claim(">", 0.5)
def four_multiples(results):
    """The four blocks of A are multiples of I.

    The share of the squared norm of A that the multiples of I in its four blocks hold.
    """
    for name, _ in settings_in(results["weights"]):
        for target in ("values", "td"):
            yield (name, target), Trials(samples(results["weights"], "four", setting=name, target=target))


@claim(">", 0)
def positive_eta(results):
    """With true values as targets, the learned update has test functions φ + η γ P φ with a positive η.

    η, the multiple of I in H over that in G.
    """
    for name in (*PLAIN, "other_start"):
        yield name, Trials(samples(results["weights"], "eta", setting=name, target="values"))


@claim(">", 0)
def more_than_complete(results):
    """η is larger than with as many orthonormal features as states, which represent all values.

    η minus that of the same seed with d = n features.
    """
    yield from eta_differences(results, "complete", ("values", "td"))


@claim(">", 0)
def more_than_constant(results):
    """With true values as targets, η is larger than with a constant feature.

    η minus that of the same seed with a constant feature.
    """
    yield from eta_differences(results, "constant", ("values",))


def eta_differences(results: dict, suffix: str, targets: tuple[str, ...]) -> Iterator[tuple]:
    """eta minus that in the variant with a suffix."""
    for name, other in settings_in(results["weights"], suffix):
        for target in targets:
            eta, control = (samples(results["weights"], "eta", setting=one, target=target) for one in (name, other))
            yield (name, target), Trials((eta - control).dropna())


@claim(">", 1, shown="coefficients")
def large_mean(results):
    """With true values as targets, the mean has a larger coefficient than in a first-order step of eligibility.

    η_m, the coefficient of the mean of γ P φ over that of φ in the test functions.
    """
    # A first-order step of eligibility, phi + gamma P phi, has eta_m = eta_r = 1.
    yield from coefficients_of(results, "mean", "equal", ("split", "pretrained_values"))


@claim("<", 0.5, shown="coefficients")
def small_rest(results):
    """With true values as targets, the rest has less than half of its coefficient in a first-order step of eligibility.

    η_r, the coefficient of the rest of γ P φ over that of φ in the test functions.
    """
    yield from coefficients_of(results, "rest", "equal", ("split", "pretrained_values"))


@claim(">", 0.5, shown="coefficients")
def rest_on_reversible_chains(results):
    """On reversible chains, where P φ stands for eligibility, the rest has more than half of the coefficient.

    η_r on reversible chains, with columns weighted by the stationary distribution.
    """
    # This shows that the fit finds eligibility where there is some.
    yield from coefficients_of(results, "rest", "reversible", ("split",))


def coefficients_of(results: dict, column: str, columns: str, methods: tuple[str, ...]) -> Iterator[tuple]:
    """A coefficient in each plain setting and for each method."""
    for name, _ in settings_in(results["parts"]):
        for method in methods:
            yield (
                (name, method),
                Trials(samples(results["parts"], column, setting=name, columns=columns, method=method).dropna()),
            )


@claim("<", 0)
def mean_alone(results):
    """With the best step and η_m alone, more than half of the gain of both parts remains.

    log10 of the error over the geometric mean of those of the best step, and of the best step, η_m and η_r.
    """
    yield from beyond_half(results, "mean")


@claim(">", 0)
def rest_alone(results):
    """With the best step and η_r alone, less than half of the gain of both parts remains.

    log10 of the error over the geometric mean of those of the best step, and of the best step, η_m and η_r.
    """
    yield from beyond_half(results, "rest")


@claim(">", 0)
def mean_taken_out(results):
    """Pretrained weights need the mean: without it in their test functions the error is larger than without the rest.

    log10 of the error of the weights without the mean over that without the rest.
    """
    for name, errors in errors_in_parts(results):
        yield name, Trials((errors["without_mean"] - errors["without_rest"]).dropna())


@claim("<", 0)
def no_gain_with_constant(results):
    """The best η_m lowers the error more than it does with a constant feature.

    log10 of the error of the best step and η_m over that of the best step, minus the same with a constant feature.
    """
    for name, other in settings_in(results["parts"], "constant"):
        errors, control = log_errors(results["equal"], name), log_errors(results["equal"], other)
        yield name, Trials((errors["mean"] - errors["td"]) - (control["mean"] - control["td"]))


@claim("<", 0, shown="gaps")
def better_than_td(results):
    """Pretrained towards true values, the Transformer has a smaller error than TD with its best step.

    log10 of its error over that of TD with the step that is best on other tasks.
    """
    yield from log_ratios(results, "pretrained_values", "td")


@claim("<", 0, shown="gaps")
def better_than_lstd(results):
    """Pretrained towards true values, the Transformer has a smaller error than LSTD.

    log10 of its error over that of LSTD; errors are trimmed means, or medians, of the MSVE over tasks.
    """
    for name in compared(results["errors"]):
        for measure in ("trimmed", "median"):
            errors = log_errors(results["errors"], name, measure)
            yield (name, measure), Trials(errors["pretrained_values"] - errors["lstd"])


@claim("<", 0, shown="gaps")
def lstd_lambda_is_better(results):
    """LSTD(λ), which reads the chain, has a smaller error than the Transformer pretrained towards true values.

    log10 of the error of LSTD(λ), with the best λ and ridge on other tasks, over that of the Transformer.
    """
    yield from log_ratios(results, "lstd_lambda", "pretrained_values")


def compared(frame: pd.DataFrame) -> list[str]:
    """The plain settings, and those with a constant feature."""
    return [name for name, _ in settings_in(frame)] + [name for _, name in settings_in(frame, "constant")]


@table
def eta(results):
    """The coefficient η of the second part, and the share of A that four multiples of I hold; means over trials."""
    rows = results["weights"].pivot_table(index="setting", columns="target", values=["eta", "four"], sort=False)
    shown = {f"η, {words}": rows["eta", target] for target, words in TARGETS.items() if ("eta", target) in rows}
    shown |= {"four multiples, true values": rows["four", "values"]}
    return pd.DataFrame(shown).reset_index()


@table
def coefficients_of_parts(results):
    """Coefficients of the mean (η_m) and of the rest (η_r) of the next features; means over trials."""
    rows = results["parts"].groupby(["columns", "method", "setting"])[["mean", "rest"]].mean()
    columns = {"coefficients": COEFFICIENTS.values()}
    for name, _ in settings_in(results["parts"]):
        for part, symbol in (("mean", "η_m"), ("rest", "η_r")):
            columns[f"{NAMES[name]}, {symbol}"] = [rows.loc[(*key, name), part] for key in COEFFICIENTS]
    return pd.DataFrame(columns)


@table
def errors_of_parts(results):
    """Errors over those of TD with its best step; means over trials."""
    errors = {name: log_errors(results["equal"], name) for name in compared(results["parts"])}
    means = {name: (10 ** own.sub(own["td"], axis=0)).mean() for name, own in errors.items()}
    return by_method(means, ERRORS)


def closed(results: dict, name: str, measure: str = "trimmed") -> pd.DataFrame:
    """Share of the gap between LSTD and the projection that each method closes, with a row for each seed."""
    errors = 10 ** log_errors(results["errors"], name, measure)
    gap = errors["lstd"] - errors["projection"]
    return errors.rsub(errors["lstd"], axis=0).div(gap, axis=0)


@table
def gap_closed(results):
    """Share of the gap between the errors of LSTD and the best approximation that is closed; medians over trials."""
    return by_method({name: closed(results, name).median() for name, _ in settings_in(results["errors"])}, METHODS)


def by_method(columns: dict[str, pd.Series], methods: dict[str, str]) -> pd.DataFrame:
    """A table with a row for each method and a column for each setting, by their names for readers."""
    frame = pd.DataFrame(columns).reindex(methods)
    return frame.rename(index=methods, columns=NAMES).rename_axis("method").reset_index()


@numbers
def headline(results):
    """Numbers that pages quote; NaN for a setting that is not in this run."""
    shown = {
        f"eta_{target}": rows_with(results["weights"], target=target).groupby("setting")["eta"].mean()
        for target in TARGETS
    }
    for measure in ("trimmed", "median"):
        shares = {
            name: closed(results, name, measure)["pretrained_values"].median() for name in compared(results["errors"])
        }
        shown[f"closed_{measure}"] = pd.Series(shares)
    names = [*NAMES, "other_start"]
    return {f"{key}_{name}": value for key, row in shown.items() for name, value in row.reindex(names).items()}


@figure
def coefficients(results):
    """Coefficients of the mean and of the rest of the next features.

    Dots are means over trials, with 95% intervals. A first-order step of eligibility has 1 and 1 (dotted lines). The
    axis is linear between -1 and 1, and logarithmic beyond.
    """
    looks = {
        "mean": {"label": r"$\eta_m$, mean", "color": LINES[2], "marker": "v"},
        "rest": {"label": r"$\eta_r$, rest", "color": LINES[1], "marker": "^"},
    }
    names = [name for name, _ in settings_in(results["parts"])]
    drawn, panels = panels_of(names, COEFFICIENTS.values(), "coefficient")
    for name, axes in panels.items():
        for place, (columns, method) in enumerate(COEFFICIENTS):
            for column, look in looks.items():
                trials = samples(results["parts"], column, setting=name, columns=columns, method=method)
                dot(axes, trials.dropna(), place, **look)
        axes.axvline(1, color="0.6", lw=0.7, ls=":")
        axes.set_xscale("symlog", linthresh=1, linscale=0.7)
        axes.set_xticks([-1, 0, 1, 10], ["-1", "0", "1", "10"])
        axes.set_xticks([], minor=True)
    legend(drawn)
    return drawn


@figure
def gaps(results):
    """Share of the gap between LSTD and the best approximation that each method closes.

    0 is the error of LSTD (trimmed means over tasks), 1 the least possible error. Dots are means over trials, with 95%
    intervals. Shares below -0.5 are drawn at -0.5.
    """
    names = [name for name, _ in settings_in(results["errors"])]
    constant = dict(settings_in(results["errors"], "constant"))
    drawn, panels = panels_of(names, METHODS.values(), "share closed")
    for name, axes in panels.items():
        looks = {name: {"label": "random features", "color": LINES[0], "marker": "o"}}
        if name in constant:
            looks[constant[name]] = {"label": "one feature constant", "color": LINES[1], "marker": "D"}
        for setting, look in looks.items():
            shares = closed(results, setting).clip(lower=-0.5)
            for place, method in enumerate(METHODS):
                dot(axes, shares[method], place, **look)
    legend(drawn)
    return drawn


def panels_of(names: list[str], rows: Collection[str], label: str) -> tuple:
    """A figure, and a panel for each setting with a labelled place for each row and a line at zero."""
    drawn, grid = plt.subplots(
        1, len(names), figsize=(WIDTH, 0.3 * len(rows) + 0.7), squeeze=False, sharex=True, sharey=True
    )
    panels = dict(zip(names, grid[0], strict=True))
    for name, axes in panels.items():
        axes.axvline(0, color="0.6", lw=0.7)
        axes.set(title=NAMES[name], xlabel=label)
    grid[0, 0].set_yticks(range(len(rows)), rows, fontsize=8)
    grid[0, 0].set_ylim(len(rows) - 0.5, -0.5)
    return drawn, panels


def dot(axes, trials: pd.Series, place: int, **look) -> None:
    """The mean over trials with its 95% interval, at a height of the vertical axis."""
    mean, low, high = bootstrap_mean(trials.to_numpy()).estimate()
    ends = np.nan_to_num([[mean - low], [high - mean]]).clip(min=0)
    axes.errorbar(mean, place, xerr=ends, ls="", ms=4, elinewidth=1, **look)
