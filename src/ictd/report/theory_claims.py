"""Claims on the theory, which the tables of its checks decide."""

from collections.abc import Iterator

import numpy as np
import pandas as pd

from ictd.pipeline.grid import CELL
from ictd.report.claim import NEGLIGIBLE, Claim, Statements
from ictd.report.claim_tables import claims_overview
from ictd.report.tables import rows_with
from ictd.report.verdicts import by_name
from ictd.statistics import Estimate, bootstrap_mean
from ictd.theory.family import MEMBERS, contraction

# Decimal logarithm that stands for numbers beyond float64's range.
OVERFLOW = 308.0
NAMES = {"td": ("Theorem 2", "J"), "mc": ("Corollary 1", "J'")}


def check_theory(texts: Statements, tables: dict[str, pd.DataFrame], discount: float) -> list[Claim]:
    """Decide all claims on the theory.

    Parameters
    ----------
    texts : Statements, of report/theory_claims.toml
    tables : dict of tables
        By "statements", "neu", "pretrained", "repeated", "agreement", "precision", "family" and "family_updates".
    discount : float, gamma
    """
    return [
        *_statement_claims(texts, tables["statements"], discount),
        *_neu_claims(texts, tables["neu"], discount),
        *_family_claims(texts, tables["family"], tables["family_updates"], discount),
        *_pretrained_claims(texts, tables["pretrained"], tables["repeated"]),
        *_numerical_claims(texts, tables["agreement"], tables["precision"]),
    ]


def _statement_claims(texts: Statements, statements: pd.DataFrame, discount: float) -> Iterator[Claim]:
    """Theorem 1, and every inequality."""
    for name in texts.tables:
        of_statement = statements[statements["statement"] == name]
        for setting, layers in of_statement.groupby(["env", "states"], sort=False):
            first, last = layers.iloc[0], layers.iloc[-1]
            if name != "theorem_1":
                yield texts.claim(name, setting, layers["violations"].sum())
            elif discount ** last["layer"] < NEGLIGIBLE:
                yield texts.claim(name, setting, last["left_max"] / first["right_mean"], L=last["layer"])


def _neu_claims(texts: Statements, neu: pd.DataFrame, discount: float) -> Iterator[Claim]:
    """Theorem 2 and Corollary 1; limits and rates only where gamma^L is negligible."""
    for (algo, *setting), norms in neu.groupby(["algo", "env", "states"], sort=False):
        theorem, J = NAMES[algo]
        words = {"theorem": theorem, "J": J, "name": theorem.lower().replace(" ", "_")}
        looped = norms[norms["space"] == "looped"]
        separate = norms[norms["space"] == "separate"]
        yield texts.claim("bound", setting, (~(looped["norm"] <= looped["bound"])).sum(), **words)
        yield texts.claim("sharper", setting, (~(norms["norm"] <= norms["sharper"])).sum(), **words)
        depth = looped["layer"].iloc[-1]
        if discount**depth >= NEGLIGIBLE:
            continue
        yield texts.claim("limit", setting, _last_over_largest(looped["norm"]), L=depth, **words)
        yield texts.claim("separate", setting, _last_over_largest(separate["norm"]), L=depth, **words)
        if discount > 0:
            tail = looped[looped["layer"] >= 2 * depth / 3]
            rate = np.polyfit(tail["layer"], np.log(tail["norm"]), 1)[0] / np.log(discount)
            yield texts.claim("rate", setting, abs(rate - 1), L=tail["layer"].iloc[0], **words)


def _family_converges(discount: float, depth: int) -> bool:
    """Whether the depth is large enough for the limit of the random weights."""
    return contraction(discount) ** depth < NEGLIGIBLE


def _family_claims(texts: Statements, errors: pd.DataFrame, updates: pd.DataFrame, discount: float) -> Iterator[Claim]:
    """Which weights have the limit v.  At discount 0 the weights with N [I, I] added have it, too."""
    for (env, states), of_setting in errors.groupby(["env", "states"], sort=False):
        setting = (env, states)
        inside, beyond, with_u = (of_setting[of_setting["member"] == member] for member in MEMBERS)
        yield texts.claim("family", setting, inside.groupby("draw")["violations"].first().sum())
        depth = of_setting["layer"].max()
        if not _family_converges(discount, depth):
            continue
        yield texts.claim("family_limit", setting, inside.loc[inside["layer"] == depth, "error"].max(), L=depth)
        yield texts.claim("family_u", setting, with_u.loc[with_u["layer"] == depth, "error"].max(), L=depth)
        if discount > 0:
            # An error that is not a number has overflowed.
            last_errors = beyond.loc[beyond["layer"] == depth, "error"].fillna(np.inf)
            yield texts.claim("beyond_family", setting, min(last_errors.min(), 10**OVERFLOW), L=depth)
        for algo, of_algo in rows_with(updates, env=env, states=states).groupby("algo", sort=False):
            norms = of_algo.pivot(index="layer", columns="draw", values="norm")
            largest = max(_last_over_largest(norms[draw]) for draw in norms)
            yield texts.claim("family_update", setting, largest, name=algo, J=NAMES[algo][1], L=depth)


def _last_over_largest(norms: pd.Series) -> float:
    """The last of some norms over the largest; zero if all are zero."""
    return norms.iloc[-1] / norms.max() if norms.any() else 0.0


def _pretrained_claims(texts: Statements, line: pd.DataFrame, repeated: pd.DataFrame) -> Iterator[Claim]:
    """J or J' at the pretrained weights and between them and theta^TD, where the paper proves nothing; over trials."""
    for cell, of_cell in line.groupby(CELL, sort=False):
        # (trials, positions)
        log_norms = np.log10(of_cell.pivot(index="seed", columns="position", values="looped_norm").to_numpy())
        if len(log_norms) > 1:
            log_norms = log_norms[~np.isnan(log_norms).any(axis=1)]
            fall = log_norms[:, 0] - log_norms[:, -1]
            yield texts.claim("pretrained_lower", cell, _mean(fall)).with_trials(fall)
            barrier = log_norms[:, 1:-1].max(axis=1) - log_norms[:, [0, -1]].max(axis=1)
            yield texts.claim("barrier", cell, _mean(barrier)).with_trials(barrier)
    for cell, of_cell in repeated.groupby(CELL, sort=False):
        trained_depth = cell[-1]
        norms = of_cell.pivot(index="seed", columns="layer", values="looped_norm")
        depth = norms.columns.max()
        if len(norms) > 1 and depth > trained_depth:
            norms = norms[norms[trained_depth].notna()]
            # A norm that is not a number has overflowed.
            growth = np.log10(norms[depth].fillna(np.inf) / norms[trained_depth]).clip(upper=OVERFLOW)
            yield texts.claim("pretrained_repeated", cell, _mean(growth.to_numpy()), L=depth).with_trials(growth)


def _mean(samples: np.ndarray) -> Estimate:
    """The mean over the trials that did not diverge; NaN, which shows nothing, for fewer than two."""
    return bootstrap_mean(samples).estimate() if len(samples) > 1 else Estimate(np.nan, np.nan, np.nan)


def _numerical_claims(texts: Statements, agreement: pd.DataFrame, precision: pd.DataFrame) -> Iterator[Claim]:
    """The accuracy of gradients, of both sides of lemmas, and of updates."""
    for way in ("compiled", "appendix"):
        yield texts.claim(f"gradients_{way}", ["all"], agreement[way].max(skipna=False))
    for quantity, values in precision[precision["layer"] > 0].groupby("quantity", sort=False):
        words = {"name": quantity, "statement": quantity.replace("_", " ").capitalize(), "L": values["layer"].max()}
        if quantity in ("lemma_1", "lemma_4"):
            yield texts.claim("tail", ["all"], values["ratio"].max(skipna=False) - 1, **words)
        else:
            yield texts.claim("update", ["all"], values["difference"].max(skipna=False), **words)


def theory_overview(claims: list[dict], statements: pd.DataFrame) -> pd.DataFrame:
    """Extend ``claims_overview`` by the section of the paper, and by the least ratio of the bound to what was measured.

    Parameters
    ----------
    claims : list of records of claims
    statements : table of both sides of each statement
    """
    groups = by_name(claims)
    overview = claims_overview(claims)
    tightest = statements[statements["layer"] > 0].groupby("statement")["tightest"].min()
    ratios = [f"{tightest[name]:.3g}" if tightest.get(name, 0) > 0 else "" for name in groups]
    overview.insert(2, "least bound / measured", ratios)
    overview.insert(0, "section", [group[0]["section"] for group in groups.values()])
    return overview
