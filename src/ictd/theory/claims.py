"""The theory's statements as claims, decided by the tables of its checks."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from ictd.pipeline.grid import CELL
from ictd.report import html
from ictd.report.claim import NEGLIGIBLE, Claim, Statements, as_records, save_claims
from ictd.report.claim_tables import claims_overview
from ictd.report.verdicts import by_name
from ictd.statistics import bootstrap_interval
from ictd.tables import load_tables
from ictd.theory.family import MEMBERS, contraction

# Orders of magnitude about which float64 overflows.
LARGEST = 308.0
NAMES = {"td": ("Theorem 2", "J"), "mc": ("Corollary 1", "J'")}


def main(statements: Path, tables: list[Path], discount: float, claims: Path, page: Path) -> None:
    """Write one entry a claim as JSON, and as HTML a table with a row a kind of claim."""
    of = load_tables(tables)
    found = check_theory(Statements(statements), of, discount)
    save_claims(claims, found)
    html.save(page, "theory", html.table(theory_overview(as_records(found), of["statements"])))


def check_theory(of: Statements, tables: dict[str, pd.DataFrame], discount: float) -> list[Claim]:
    """All claims on the theory, as report/theory_claims.toml states them.

    ``tables`` are statements, neu, pretrained, repeated, agreement, precision, family and family_updates; ``discount``
    is gamma.
    """
    return [
        *_statement_claims(of, tables["statements"], discount),
        *_neu_claims(of, tables["neu"], discount),
        *_family_claims(of, tables["family"], tables["family_updates"], discount),
        *_pretrained_claims(of, tables["pretrained"], tables["repeated"]),
        *_numerical_claims(of, tables["agreement"], tables["precision"]),
    ]


def _statement_claims(of: Statements, statements: pd.DataFrame, discount: float) -> Iterator[Claim]:
    """Theorem 1, and every inequality."""
    for name in of.tables:
        rows_of_name = statements[statements["statement"] == name]
        for setting, rows in rows_of_name.groupby(["env", "states"], sort=False):
            last = rows.iloc[-1]
            if name != "theorem_1":
                yield of.claim(name, setting, rows["violations"].sum())
            elif discount ** last["layer"] < NEGLIGIBLE:
                yield of.claim(name, setting, last["left_max"] / rows.iloc[0]["right_mean"], L=last["layer"])


def _neu_claims(of: Statements, neu: pd.DataFrame, discount: float) -> Iterator[Claim]:
    """Theorem 2 and Corollary 1; limits and rates only where gamma^L is small enough to tell."""
    for (algo, *setting), rows in neu.groupby(["algo", "env", "states"], sort=False):
        theorem, J = NAMES[algo]
        words = {"theorem": theorem, "J": J, "name": theorem.lower().replace(" ", "_")}
        looped, separate = (rows[rows["space"] == space] for space in ("looped", "separate"))
        yield of.claim("bound", setting, (~(looped["norm"] <= looped["bound"])).sum(), **words)
        yield of.claim("sharper", setting, (~(rows["norm"] <= rows["sharper"])).sum(), **words)
        depth = looped["layer"].iloc[-1]
        if discount**depth >= NEGLIGIBLE:
            continue
        yield of.claim("limit", setting, _left_over(looped["norm"]), L=depth, **words)
        yield of.claim("separate", setting, _left_over(separate["norm"]), L=depth, **words)
        if discount > 0:
            tail = looped[looped["layer"] >= 2 * depth / 3]
            rate = np.polyfit(tail["layer"], np.log(tail["norm"]), 1)[0] / np.log(discount)
            yield of.claim("rate", setting, abs(rate - 1), L=tail["layer"].iloc[0], **words)


def _family_converges(discount: float, depth: int) -> bool:
    """Whether so many layers are enough to tell a limit of the weights that are drawn."""
    return contraction(discount) ** depth < NEGLIGIBLE


def _family_claims(of: Statements, family: pd.DataFrame, updates: pd.DataFrame, discount: float) -> Iterator[Claim]:
    """Which weights have the limit v; at discount 0 nothing is beyond them."""
    for setting, rows in family.groupby(["env", "states"], sort=False):
        inside, beyond = (rows[rows["member"] == member] for member in MEMBERS)
        yield of.claim("family", setting, inside.groupby("draw")["violations"].first().sum())
        depth = rows["layer"].max()
        if not _family_converges(discount, depth):
            continue
        yield of.claim("family_limit", setting, inside.loc[inside["layer"] == depth, "error"].max(), L=depth)
        if discount > 0:
            # What overflows is far away.
            last = beyond.loc[beyond["layer"] == depth, "error"].fillna(np.inf)
            yield of.claim("beyond_family", setting, min(last.min(), 10**LARGEST), L=depth)
        here = updates[(updates["env"] == setting[0]) & (updates["states"] == setting[1])]
        for algo, of_algo in here.groupby("algo", sort=False):
            norms = of_algo.pivot(index="layer", columns="draw", values="norm")
            left = max(_left_over(norms[draw]) for draw in norms)
            yield of.claim("family_update", setting, left, name=algo, J=NAMES[algo][1], L=depth)


def _left_over(norms: pd.Series) -> float:
    """The last of norms over the greatest; zero if all are."""
    return norms.iloc[-1] / norms.max() if norms.any() else 0.0


def _pretrained_claims(of: Statements, pretrained: pd.DataFrame, repeated: pd.DataFrame) -> Iterator[Claim]:
    """Where the paper proves nothing: at the pretrained weights, and between them and theta^TD; over trials."""
    for cell, rows in pretrained.groupby(CELL, sort=False):
        line = np.log10(rows.pivot(index="seed", columns="position", values="looped_norm").to_numpy())
        if len(line) > 1:
            line = line[~np.isnan(line).any(axis=1)]
            lower = line[:, 0] - line[:, -1]
            yield of.claim("pretrained_lower", cell, _interval(lower)[1]).with_trials(lower)
            above = line[:, 1:-1].max(axis=1) - line[:, [0, -1]].max(axis=1)
            yield of.claim("barrier", cell, _interval(above)[0]).with_trials(above)
    for cell, rows in repeated.groupby(CELL, sort=False):
        trials = rows.pivot(index="seed", columns="layer", values="looped_norm")
        depth = trials.columns.max()
        if len(trials) > 1 and depth > cell[-1]:
            kept = trials[trials[cell[-1]].notna()]
            # What overflows has grown.
            ratios = np.log10(kept[depth].fillna(np.inf) / kept[cell[-1]]).clip(upper=LARGEST)
            low = _interval(ratios.to_numpy())[0]
            yield of.claim("pretrained_repeated", cell, low, L=depth).with_trials(ratios)


def _interval(samples: np.ndarray) -> tuple[float, float]:
    """95% bootstrap interval of the trials that did not diverge; NaN, which fails, if fewer than two are left."""
    return bootstrap_interval(samples) if len(samples) > 1 else (np.nan, np.nan)


def _numerical_claims(of: Statements, agreement: pd.DataFrame, precision: pd.DataFrame) -> Iterator[Claim]:
    """What the numbers themselves are worth."""
    for way in ("fused", "appendix"):
        yield of.claim(f"gradients_{way}", ["all"], agreement[way].max(skipna=False))
    for quantity, rows in precision[precision["layer"] > 0].groupby("quantity", sort=False):
        words = {"name": quantity, "statement": quantity.replace("_", " ").capitalize(), "L": rows["layer"].max()}
        if quantity in ("lemma_1", "lemma_4"):
            yield of.claim("tail", ["all"], rows["ratio"].max(skipna=False) - 1, **words)
        else:
            yield of.claim("update", ["all"], rows["difference"].max(skipna=False), **words)


def theory_overview(claims: list[dict], statements: pd.DataFrame) -> pd.DataFrame:
    """As ``claims_overview``, with the section of the paper, and the least ratio of bound to measured over tasks,
    layers and settings."""
    groups, table = by_name(claims), claims_overview(claims)
    tightest = statements[statements["layer"] > 0].groupby("statement")["tightest"].min()
    ratios = [f"{tightest[name]:.3g}" if tightest.get(name, 0) > 0 else "" for name in groups]
    table.insert(2, "least bound / measured", ratios)
    table.insert(0, "section", [group[0]["section"] for group in groups.values()])
    return table
