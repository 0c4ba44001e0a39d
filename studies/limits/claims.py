"""Claims of the study.  Their trials are starts, seeds, or groups of tasks, as the statement of each claim says."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from ictd.report.claim import Claim, Statements, as_records, save_claims
from ictd.report.claim_tables import claims_overview, claims_rows
from ictd.report.html import save_frames
from ictd.report.tables import load_table, rows_with
from ictd.storage import save_tables
from studies.limits.grid import GAP, LEAST_MSVE

# Added to a share before its logarithm is taken.
ROUNDING = 1e-16
# Distributions of shifted tasks, which are also the names of the fitted shifts.
SHIFTS = ("steps", "last_row", "rewards")
# Kinds of Transformers trained on uniform tasks, with the words of their setting.
HEADS = {"uniform": [], "heads": ["second head"]}


class Comparison(NamedTuple):
    """The ratio of a measure between two runs, each after a number of tasks.

    ``mark`` and ``other_mark`` are "paper", for the number of tasks closest to the paper's, or "last".
    """

    measure: str
    run: str
    mark: str
    other_run: str
    other_mark: str


COMPARISONS = {
    "gain_removes": Comparison("outside_norm", "gain", "paper", "td", "paper"),
    "gain_lowers": Comparison("msve", "gain", "paper", "td", "paper"),
    "start_removes": Comparison("outside_norm", "start", "paper", "td", "paper"),
    "start_lowers": Comparison("msve", "start", "paper", "td", "paper"),
    "inside_costs": Comparison("msve", "in_family", "paper", "td", "paper"),
    "inside_costs_later": Comparison("msve", "in_family", "last", "td", "last"),
    "outside_goes": Comparison("outside", "td", "last", "td", "paper"),
    "norm_goes": Comparison("outside_norm", "td", "last", "td", "paper"),
}


def main(statements: Path, parts: list[Path], tasks: int, output: Path) -> None:
    """Join ``parts`` of tables, and write the tables, the claims, and pages of the claims.

    ``tasks`` is the paper's number of tasks.
    """
    names = {"rows": "descents", "spectrum": "spectra"}
    tables = {}
    for path in parts:
        name = names.get(path.stem, path.parent.name)
        tables.setdefault(name, []).append(load_table(path))
    tables = {name: pd.concat(of_name, ignore_index=True) for name, of_name in tables.items()}
    save_tables(output, tables)
    claims = check_limits(Statements(statements), tables, tasks)
    save_claims(output / "claims.json", claims)
    records = as_records(claims)
    save_frames(output / "tables", {"claims": claims_overview(records), "claims_all": claims_rows(records)})


def check_limits(statements: Statements, tables: dict[str, pd.DataFrame], tasks: int) -> list[Claim]:
    """Decide all claims.

    Parameters
    ----------
    statements : Statements of claims.toml
    tables : "descents", "course", "forms" and "fits"
    tasks : int, the paper's number of tasks
    """
    return [
        *_minimiser_claims(statements, tables["descents"]),
        *_curve_claims(statements, tables["course"]),
        *_comparison_claims(statements, tables["course"], tasks),
        *_form_claims(statements, tables["forms"]),
        *_trained_claims(statements, tables["fits"]),
        *_growth_claims(statements, tables["fits"]),
    ]


def reaching_least(descents: pd.DataFrame) -> pd.DataFrame:
    """Select the descents of one setting that end near the lowest MSVE, without descents within the family."""
    near = descents["msve"] <= 2 * descents["msve"].min() + LEAST_MSVE
    return descents[near & (descents["start"] != "family")]


def _minimiser_claims(statements: Statements, table: pd.DataFrame) -> Iterator[Claim]:
    for setting, descents in table.groupby(["env", "states", "depth"], sort=False):
        reaching = reaching_least(descents)
        from_theta_td = descents.iloc[0]
        random = rows_with(descents, start="random")
        family = rows_with(descents, start="family").min(numeric_only=True)
        yield from statements.of_trials("nothing_outside", setting, reaching["outside"])
        yield from statements.of_trials("starts_reach", setting, random.index.isin(reaching.index).astype(float))
        # With one layer, the right half of A has no effect.
        if from_theta_td["depth"] > 1:
            others = reaching[reaching["start"] != "theta_td"]
            yield from statements.of_trials("distinct", setting, others["distance"])
            flat_directions = from_theta_td["directions"] - from_theta_td["curved_directions"]
            yield statements.claim("flat_as_the_family", setting, abs(flat_directions - family["directions"]))
            curvature = np.log10(abs(from_theta_td["family_curvature"]) + ROUNDING)
            yield statements.claim("flat_along_the_family", setting, curvature)
        ratio = (family["msve"] + LEAST_MSVE) / (descents["msve"].min() + LEAST_MSVE)
        yield statements.claim("lower_off_the_family", setting, np.log10(ratio))
        pretrained = descents[descents["start"].isin(["td", "mc"])]
        for algo, trials in pretrained.groupby("start"):
            ratio = np.log10(trials["test_msve"] / trials["msve_before"])
            yield from statements.of_trials("below_pretrained", [algo, *setting], ratio)


def explained_share(runs: pd.DataFrame, quantity: pd.Series) -> pd.Series:
    """Squared rank correlation, by seed, of the share outside with a quantity, over settings."""
    compared = pd.DataFrame({"quantity": quantity, "outside": runs["outside"]})
    ranks = compared.groupby(runs["seed"]).rank()
    by_seed = ranks.groupby(runs["seed"])
    return pd.Series({seed: trial["quantity"].corr(trial["outside"]) ** 2 for seed, trial in by_seed})


def _curve_claims(statements: Statements, course: pd.DataFrame) -> Iterator[Claim]:
    """The part outside as a function of alpha L (1 - gamma), over settings, after each number of tasks."""
    runs = course[course["run"].isin(["td", "mc"]) & (course["alpha"] > 0)]
    for (algo, tasks), some_runs in runs.groupby(["run", "tasks"]):
        if min(some_runs[["discount", "depth"]].nunique()) == 1:
            continue
        step_layers = some_runs["alpha"] * some_runs["depth"]
        one_minus_gamma = 1 - some_runs["discount"]
        by_product = explained_share(some_runs, step_layers * one_minus_gamma)
        by_layers = explained_share(some_runs, step_layers)
        by_discount = explained_share(some_runs, one_minus_gamma)
        setting = [algo, f"{tasks} tasks"]
        yield from statements.of_trials("one_curve", setting, by_product)
        yield from statements.of_trials("product_tells", setting, by_product - np.maximum(by_layers, by_discount))


def _comparison_claims(statements: Statements, course: pd.DataFrame, tasks: int) -> Iterator[Claim]:
    numbers = course["tasks"].unique()
    marks = {"paper": numbers[np.abs(numbers - tasks).argmin()], "last": numbers[-1]}
    for (discount, depth), runs in course.groupby(["discount", "depth"], sort=False):
        by_run = runs.pivot(index="seed", columns=["run", "tasks"])
        for name, comparison in COMPARISONS.items():
            if marks["paper"] == marks["last"] and "last" in comparison:
                continue
            measure = by_run[comparison.measure]
            ratio = (
                measure[comparison.run, marks[comparison.mark]]
                / measure[comparison.other_run, marks[comparison.other_mark]]
            )
            yield from statements.of_trials(name, [f"gamma={discount}", f"L={depth}"], np.log10(ratio))


def closed_beyond(msve: pd.DataFrame, method: str) -> pd.Series:
    """Decrease of the MSVE from LSTD to a method, minus nine tenths of the decrease to LSTD with pseudo-counts."""
    return msve[[*GAP, method]] @ [0.1, 0.9, -1]


def _form_claims(statements: Statements, forms: pd.DataFrame) -> Iterator[Claim]:
    for length, rows in forms.groupby("length", sort=False):
        msve = rows.pivot(index="group", columns="method", values="msve")
        for form in msve.columns.difference(GAP):
            yield from statements.of_trials("closes", [f"{length} steps"], closed_beyond(msve, form), form=form)


def _trained_claims(statements: Statements, fits: pd.DataFrame) -> Iterator[Claim]:
    for (algo, length), trials in fits.groupby(["algo", "length"], sort=False):
        by_kind = {kind: of_kind.set_index("seed") for kind, of_kind in trials.groupby("kind")}
        uniform = by_kind["uniform"]
        steps = f"{length} steps"
        for kind, heads in HEADS.items():
            beyond = closed_beyond(by_kind[kind], "msve")
            yield from statements.of_trials("trained_closes", [algo, *heads, steps], beyond)
        ratio = by_kind["heads"]["msve"] / uniform["msve"]
        yield from statements.of_trials("second_head_helps", [algo, steps], np.log10(ratio))
        best_other = uniform[["explained_ridge", "explained_unvisited", "explained_uniform"]].max(axis=1)
        unexplained_ratio = (1 - uniform["explained_mean"]) / (1 - best_other)
        yield from statements.of_trials("number_explains", [algo, steps], np.log10(unexplained_ratio))
        for kind in SHIFTS:
            moved = {other: by_kind[other][kind] - uniform[kind] for other in SHIFTS}
            by_others = np.max([moved[other].abs() for other in SHIFTS if other != kind], axis=0)
            name = kind.replace("_", " ")
            yield from statements.of_trials("follows", [algo, steps], moved[kind] - by_others, kind=name)


def _growth_claims(statements: Statements, fits: pd.DataFrame) -> Iterator[Claim]:
    on_uniform_tasks = fits[fits["kind"].isin(HEADS)]
    for (kind, algo), trials in on_uniform_tasks.groupby(["kind", "algo"]):
        k = trials.pivot(index="seed", columns="length", values="k")
        if len(k.columns) > 1:
            growth = np.log10(k[max(k)] / k[min(k)])
            yield from statements.of_trials("number_grows", [algo, *HEADS[kind]], growth)
