"""Claims of our own on what pretraining can find; trials are starts, seeds, or groups of tasks, as each says."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from ictd.report.claim import Claim, Statements, as_records, save_claims
from ictd.report.claim_tables import claims_overview, claims_rows
from ictd.report.html import save_frames
from ictd.storage import load_table, rows_with, save_tables
from studies.limits.grid import GAP, KINDS, LEAST

# Measures that claims compare, of one run and mark to another's; marks are the paper's number of tasks and the last.
COMPARED = {
    "gain_removes": ("outside_norm", ("gain", 0), ("td", 0)), "gain_lowers": ("msve", ("gain", 0), ("td", 0)),
    "start_removes": ("outside_norm", ("start", 0), ("td", 0)), "start_lowers": ("msve", ("start", 0), ("td", 0)),
    "inside_costs": ("msve", ("inside", 0), ("td", 0)), "inside_costs_later": ("msve", ("inside", 1), ("td", 1)),
    "outside_goes": ("outside", ("td", 1), ("td", 0)), "norm_goes": ("outside_norm", ("td", 1), ("td", 0)),
}  # fmt: skip
ROUNDING = 1e-16  # What is added to shares whose logarithm is taken.
BEYOND = [0.1, 0.9, -1]  # What is closed beyond nine tenths, of the MSVE of GAP and of another method.
SHIFTS = KINDS[1:4]  # Of tasks.
HEADS = {"uniform": [], "heads": ["second head"]}  # Kinds that are trained on uniform tasks, as settings say it.


def main(statements: Path, parts: list[Path], tasks: int, output: Path) -> None:
    """Write tables, joined from ``parts``, claims, and pages of these; ``tasks`` is the paper's number."""
    of, found = Statements(statements), {}
    for path in parts:
        name = {"rows": "descents", "spectrum": "spectra"}.get(path.stem, path.parent.name)
        found.setdefault(name, []).append(load_table(path))
    found = {name: pd.concat(tables, ignore_index=True) for name, tables in found.items()}
    save_tables(output, found)
    made = *descents(of, found["descents"]), *course(of, found["course"], tasks)
    save_claims(output / "claims.json", made := [*made, *shrinking(of, found["forms"], found["fits"])])
    shown = as_records(made)
    save_frames(output / "tables", {"claims": claims_overview(shown), "claims_all": claims_rows(shown)})


def reached(rows: pd.DataFrame) -> pd.DataFrame:
    """Descents of one setting that end near the least value, but for that within the family; ``LEAST`` is none."""
    return rows[(rows["start"] != "family") & (rows["value"] <= 2 * rows["value"].min() + LEAST)]


def descents(of: Statements, table: pd.DataFrame) -> Iterator[Claim]:
    """Claims on minimisers."""
    for place, rows in table.groupby(["env", "states", "depth"], sort=False):
        near, first, random = reached(rows), rows.iloc[0], rows_with(rows, start="random")
        yield from of.of_trials("nothing_outside", place, near["outside"])
        yield from of.of_trials("distinct", place, near.loc[near["start"] != "theta_td", "distance"])
        yield from of.of_trials("starts_reach", place, random.index.isin(near.index).astype(float))
        family = rows_with(rows, start="family").min(numeric_only=True)
        if first["depth"] > 1:  # With one layer the right half of A plays no part.
            yield of.claim("flat_as_the_family", place, abs(first["dimension"] - first["rank"] - family["dimension"]))
            yield of.claim("flat_along_the_family", place, np.log10(abs(first["along"]) + ROUNDING))
        within, least = family["value"] + LEAST, rows["value"].min() + LEAST
        yield of.claim("lower_off_the_family", place, np.log10(within / least))
        for algo, ends in rows[rows["start"].isin(["td", "mc"])].groupby("start"):
            yield from of.of_trials("below_pretrained", [algo, *place], np.log10(ends["held"] / ends["begin"]))


def explained(rows: pd.DataFrame, place: pd.Series) -> pd.Series:
    """Squared rank correlation of what is outside with a place, over the settings of each seed."""
    ranks = pd.DataFrame({"place": place, "outside": rows["outside"]}).groupby(rows["seed"]).rank()
    return pd.Series({seed: of["place"].corr(of["outside"]) ** 2 for seed, of in ranks.groupby(rows["seed"])})


def course(of: Statements, table: pd.DataFrame, tasks: int) -> Iterator[Claim]:
    """Claims on what is outside in trained runs; seeds are trials."""
    both, trained = ["discount", "depth"], table[table["run"].isin(["td", "mc"]) & (table["alpha"] > 0)]
    for (algo, seen), rows in trained.groupby(["run", "tasks"]):
        if min(rows[both].nunique()) > 1:
            layers, discount = rows["alpha"] * rows["depth"], 1 - rows["discount"]
            curve, *others = (explained(rows, place) for place in (layers * discount, layers, discount))
            yield from of.of_trials("one_curve", [algo, f"{seen} tasks"], curve)
            yield from of.of_trials("product_tells", [algo, f"{seen} tasks"], curve - np.max(others, axis=0))
    marks = table["tasks"].unique()
    marks = marks[np.abs(marks - tasks).argmin()], marks[-1]
    for (discount, depth), rows in table.groupby(both, sort=False):
        at = rows.pivot(index="seed", columns=["run", "tasks"])
        for name, (measure, *sides) in COMPARED.items():
            if marks[0] == marks[1] and any(when for _, when in sides):
                continue
            above, below = (at[measure, run, marks[when]] for run, when in sides)
            yield from of.of_trials(name, [f"gamma={discount}", f"L={depth}"], np.log10(above / below))


def shrinking(of: Statements, forms: pd.DataFrame, fits: pd.DataFrame) -> Iterator[Claim]:
    """Claims on forms, whose trials are groups of tasks, and on trained Transformers, whose trials are seeds."""
    for length, rows in forms.groupby("length", sort=False):
        by = rows.pivot(index="group", columns="method", values="msve")
        for form in by.columns.difference(GAP):
            yield from of.of_trials("closes", [f"{length} steps"], by[[*GAP, form]] @ BEYOND, form=form)
    for (algo, length), rows in fits.groupby(["algo", "length"], sort=False):
        of_kind = {kind: one.set_index("seed") for kind, one in rows.groupby("kind")}
        steps, plain = f"{length} steps", of_kind["uniform"]
        other = 1 - plain[["ridge", "unseen", "even"]].max(axis=1)
        for kind, heads in HEADS.items():
            yield from of.of_trials("trained_closes", [algo, *heads, steps], of_kind[kind][[*GAP, "msve"]] @ BEYOND)
        yield from of.of_trials("second_head_helps", [algo, steps], np.log10(of_kind["heads"]["msve"] / plain["msve"]))
        yield from of.of_trials("number_explains", [algo, steps], np.log10((1 - plain["number"]) / other))
        for kind in SHIFTS:
            moved = {one: of_kind[one][kind] - plain[kind] for one in SHIFTS}
            more = moved[kind] - np.max([moved[one].abs() for one in SHIFTS if one != kind], axis=0)
            yield from of.of_trials("follows", [algo, steps], more, kind=kind.replace("_", " "))
    for (kind, algo), rows in fits[fits["kind"].isin(HEADS)].groupby(["kind", "algo"]):
        number = rows.pivot(index="seed", columns="length", values="k")
        if len(number.columns) > 1:
            grown = np.log10(number[max(number)] / number[min(number)])
            yield from of.of_trials("number_grows", [algo, *HEADS[kind]], grown)
