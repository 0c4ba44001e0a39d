"""Claims, tables and figures on the policies that critics lead to.

A *share* is the value of a policy on a scale from 0, the value of the uniform policy, to 1, the optimal value: a ratio
of means over processes.  The 95% interval over processes of a mean over seeds decides each claim, and its trials are
the seeds.  All methods use the same processes and transitions.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from ictd.pipeline.grid import variants
from ictd.report.claim import Trials
from ictd.report.figures.style import COLOURS, NAMES, WIDTH, label_ends, legend
from ictd.report.part import claim, figure, numbers, table
from ictd.statistics import bootstrap
from ictd.storage import load_named

# Suffixes of the names of methods for the evaluation prompts.
FORMATS = {"": "transitions", " grouped": "grouped", " grouped pseudo_counts": "grouped, pseudo-counts"}
BASELINES = ("rewards", "theta_td", "lspi", "smoothed")


@dataclass
class Results:
    """Results of the study.

    Parameters
    ----------
    variants : dict of the settings of each variant by its name; the first is the main variant
    lengths : list of M ints, numbers of transitions
    shares : dict by place and method of (seeds, M, K+1, N) arrays, after each iteration
    parameters : dict by place and method of (M,) arrays, the tuned parameters
    """

    variants: dict[str, dict]
    lengths: list[int]
    shares: dict[tuple[str, str], np.ndarray]
    parameters: dict[tuple[str, str], np.ndarray]

    @property
    def main(self) -> str:
        """Name of the main variant."""
        return next(iter(self.variants))

    @property
    def shown(self) -> list[int]:
        """Indices of the shortest, the middle and the longest batch."""
        last = len(self.lengths) - 1
        return sorted({0, last // 2, last})

    def place(self, name: str) -> str:
        """The place of a variant; for a baseline, the place of the main variant."""
        return self.variants.get(name, self.variants[self.main])["place"]

    def share(self, method: str, place: str = "", iteration: int = -1) -> np.ndarray:
        """Shares (seeds, M, N) of a method, in a variant's own place by default."""
        return self.shares[place or self.place(method.split()[0]), method][:, :, iteration]

    def by_depth(self) -> tuple[list[int], list[str]]:
        """Numbers of layers, ascending, and the variants that differ from the main variant only in this number."""
        names = sorted(self.only("depth"), key=lambda name: self.variants[name]["depth"])
        return [self.variants[name]["depth"] for name in names], names

    def only(self, *keys: str) -> list[str]:
        """Names of the variants that differ from the main variant in these keys at most."""
        main = self.variants[self.main]
        return [
            name
            for name, variant in self.variants.items()
            if all(variant[key] == main[key] for key in main if key not in keys)
        ]


def load(folder: Path, settings: dict) -> Results:
    """Read the results of the step ``evaluate``."""
    results = Results(variants(settings["main"], settings["variants"]), [], {}, {})
    for place in variants({}, settings["places"]):
        names = "method", "parameter", "mean_value", "context_lengths", "optimal"
        arrays = load_named(folder / f"places/{place}.npz", *names)
        optimal, mean_value = arrays["optimal"], arrays["mean_value"]
        uniform = mean_value[0, 0, 0]
        results.lengths = arrays["context_lengths"].tolist()
        for method in dict.fromkeys(arrays["method"].tolist()):
            rows = arrays["method"] == method
            results.shares[place, method] = 1 - (optimal - mean_value[rows]) / (optimal - uniform).mean()
            results.parameters[place, method] = arrays["parameter"][rows][0]
    return results


def decided(results: Results, name: str, difference: np.ndarray) -> Iterator[tuple]:
    """Settings and trials of a claim, from differences (seeds, M, N), for three numbers of transitions m."""
    for k in results.shown:
        samples = difference[:, k]
        yield (name, f"m = {results.lengths[k]}"), Trials(samples.mean(axis=0)), samples.mean(axis=1)


def minus_baseline(results: Results, names: list[str], baseline: str, prompts: str = "") -> Iterator[tuple]:
    """Settings and trials of a claim on variants minus a baseline in their places."""
    for name in names:
        difference = results.share(name + prompts) - results.share(baseline, results.place(name))
        yield from decided(results, name, difference)


# All thresholds are 0: policies are better or worse on average, by however little.


@claim(">", 0)
def beats_rewards(results):
    """The Transformer as critic leads to better policies than the observed rewards alone.

    The difference of mean shares over processes.
    """
    yield from minus_baseline(results, results.only("place", "algo", "tasks"), "rewards")


@claim("<", 0)
def behind_lspi(results):
    """The Transformer as critic leads to worse policies than least-squares policy iteration.

    The difference of mean shares over processes.
    """
    yield from minus_baseline(results, results.only("place", "algo", "tasks"), "lspi")


@claim("<", 0)
def behind_smoothed(results):
    """The Transformer as critic leads to worse policies than planning in the smoothed model.

    The difference of mean shares over processes.
    """
    yield from minus_baseline(results, results.only("place", "algo", "tasks"), "smoothed")


@claim("<", 0)
def behind_smoothed_with_pseudo_counts(results):
    """With grouped prompts and pseudo-counts, the Transformer leads to worse policies than the smoothed model.

    The difference of mean shares over processes.
    """
    yield from minus_baseline(results, results.only("place", "prompts"), "smoothed", " grouped pseudo_counts")


@claim(">", 0)
def pseudo_counts_help(results):
    """Pseudo-counts in grouped prompts lead to better policies.

    The difference of mean shares over processes.
    """
    for name in results.only("prompts"):
        difference = results.share(f"{name} grouped pseudo_counts") - results.share(f"{name} grouped")
        yield from decided(results, name, difference)


@claim(">", 0)
def grouping_helps(results):
    """A column for each observed pair leads to better policies than one for each transition, with the same weights.

    The difference of mean shares over processes.
    """
    for name in results.only("prompts"):
        yield from decided(results, name, results.share(f"{name} grouped") - results.share(name))


@claim(">", 0)
def transitions_over_other_prompts(results):
    """Pretraining with a column for each transition leads to better policies than pretraining on other prompts.

    The difference of mean shares over processes; weights of other prompts are evaluated on grouped prompts.
    """
    for name in results.only("prompts")[1:]:
        yield from decided(results, name, results.share(results.main) - results.share(f"{name} grouped"))


@claim(">", 0)
def deeper(results):
    """More layers lead to better policies.

    The difference of mean shares over processes.
    """
    for (few, shallower), (many, deep) in pairwise(zip(*results.by_depth(), strict=True)):
        yield from decided(results, f"{few} to {many} layers", results.share(deep) - results.share(shallower))


@claim(">", 0)
def iterations_help(results):
    """Iterations after the first lead to better policies.

    The difference of mean shares over processes.
    """
    for method in (*results.only("place"), "lspi", "smoothed"):
        yield from decided(results, method, results.share(method) - results.share(method, iteration=1))


def means(results: Results, rows: list[tuple[dict, np.ndarray]]) -> pd.DataFrame:
    """A table with a row for each of some shares (seeds, M, N): given columns, and a mean for each m."""
    return pd.DataFrame(
        [
            columns | {f"m = {m}": float(samples[:, k].mean()) for k, m in enumerate(results.lengths)}
            for columns, samples in rows
        ]
    )


@table
def shares(results):
    """Shares after m transitions in the main place; each Transformer is shown a column for each transition."""
    methods = [name for name in results.variants if results.place(name) == results.place(results.main)]
    rows = [({"method": method}, results.share(method)) for method in (*methods, *BASELINES)]
    once = {"method": f"{results.main}, one iteration"}, results.share(results.main, iteration=1)
    return means(results, [*rows[:1], once, *rows[1:]])


@table
def formats(results):
    """Shares after m transitions, by the prompts of pretraining and the evaluation prompts."""
    rows = []
    for name in results.only("prompts"):
        for suffix, prompts in FORMATS.items():
            columns = {"pretrained on": results.variants[name]["prompts"], "evaluated on": prompts}
            rows.append((columns, results.share(name + suffix)))
    return means(results, rows)


@table
def places(results):
    """Shares after m transitions in all places; each Transformer is pretrained for its place."""
    rows = []
    for name in results.only("place"):
        place = results.place(name)
        for method in (name, *BASELINES):
            label = "Transformer" if method == name else method
            rows.append(({"place": place, "method": label}, results.share(method, place)))
    return means(results, rows)


@table
def parameters(results):
    """Tuned parameters for m transitions: a ridge, a step size, or a number of pseudo-counts."""
    tuned = {key: row for key, row in results.parameters.items() if row.any()}
    frame = pd.DataFrame(tuned, index=[f"m = {m}" for m in results.lengths]).T
    return frame.rename_axis(["place", "method"]).reset_index()


def intervals(samples):
    """95% BCa intervals (X, 2) over processes of the means over seeds of samples (seeds, X, N)."""
    columns = bootstrap(lambda means: dict(enumerate(means.T)), samples.mean(axis=0).T)
    return np.array([column.estimate()[1:] for column in columns.values()])


@numbers
def differences(results):
    """Differences of shares with their intervals, for the shortest and the longest batch."""
    main = results.main
    compared = {f"minus_{name}": results.share(main) - results.share(name) for name in ("rewards", "theta_td")}
    compared["minus_one_iteration"] = results.share(main) - results.share(main, iteration=1)
    for name in results.only("prompts"):
        if results.variants[name]["prompts"] == "enumerated":
            share = results.share(f"{name} grouped pseudo_counts")
            compared["enumerated_minus_smoothed"] = share - results.share("smoothed")
    found = {}
    for name, samples in compared.items():
        ends = intervals(samples)
        for length, k in (("short", 0), ("long", -1)):
            found[f"{name}_{length}"] = float(samples[:, k].mean())
            found[f"{name}_{length}_low"], found[f"{name}_{length}_high"] = ends[k].tolist()
    return found


@figure
def critics(results):
    """Critics in policy iteration.

    Shares on unseen processes, with 95% intervals over processes.  Left: the share minus that of the smoothed model,
    the line at zero, after m transitions.  "One iteration" is the Transformer's policy after the first iteration, and
    "pseudo-counts" the Transformer with grouped prompts and pseudo-counts.  Right: the Transformer's share, by the
    number of layers.
    """
    made, (left, right) = plt.subplots(1, 2, figsize=(WIDTH, 2.4))

    def draw(axes, x, samples, label, color, ls="-"):
        """Draw the means of samples (seeds, X, N)."""
        axes.plot(x, samples.mean(axis=(0, 2)), label=label, color=color, ls=ls, lw=1.2, marker="o", ms=2)
        low, high = intervals(samples).T
        axes.fill_between(x, low, high, color=color, alpha=0.15, lw=0)
        axes.set(xscale="log", xticks=x, xticklabels=x)
        axes.xaxis.minorticks_off()

    main, lengths = results.main, results.lengths
    for label, share, *look in (
        ("Transformer", results.share(main), COLOURS["td"]),
        ("one iteration", results.share(main, iteration=1), COLOURS["td"], ":"),
        ("pseudo-counts", results.share(f"{main} grouped pseudo_counts"), COLOURS["td"], "--"),
        ("LSPI", results.share("lspi"), COLOURS["lstd"]),
        (NAMES["theta_td"], results.share("theta_td"), COLOURS["theta_td"]),
        ("observed rewards", results.share("rewards"), COLOURS["zero"]),
    ):
        draw(left, lengths, share - results.share("smoothed"), label, *look)
    depths, names = results.by_depth()
    stacked = np.stack([results.share(name) for name in names], axis=2)  # (seeds, M, X, N)
    for k in results.shown:
        draw(right, depths, stacked[:, k], None, COLOURS["td"])
    left.set(xlabel="transitions $m$", ylabel="share minus\nsmoothed model's")
    right.set(xlabel="layers", ylabel="share")
    label_ends(right, [(f"$m = {lengths[k]}$", stacked[:, k, -1].mean(), COLOURS["td"]) for k in results.shown])
    legend(made)
    return made
