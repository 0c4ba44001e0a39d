"""Claims of the study.  Their trials are seeds, each with pretraining and held-out tasks of its own."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from ictd.report.claim import Claim, Statements, as_records, save_claims
from ictd.report.claim_tables import claims_overview, claims_rows
from ictd.report.html import save_frames
from ictd.report.tables import load_tables, rows_with
from studies.features.cause_claims import mean_part_claims, reversibility_claims
from studies.features.grid import CONTROLS, EXACT, ROTATION_INVARIANT, control_of

# Methods that pretrained weights are compared with, in words.
METHODS = {
    "theta_td": "theta^TD with its best step",
    "residual_gradient": "residual gradient with its best step",
    "two_numbers": "the best alpha and eta",
    "td_lambda": "TD(lambda) with its best lambda and step",
    "lstd": "LSTD",
    "lstd_ridge": "LSTD with its best ridge",
    "lstd_second": "LSTD with its best eta and ridge",
    "lstd_mean": "LSTD with mean features in the test functions",
    "lstd_lambda": "LSTD(lambda) with its best lambda and ridge",
}
# Targets of pretraining, in words.
TARGETS = {"td": "TD", "mc": "MC", "values": "true values"}


def main(statements: Path, settings: dict, tables: list[Path], claims: Path, pages: list[Path]) -> None:
    """Write all claims with their verdicts as JSON, and their two tables as HTML."""
    found, by_name = Statements(statements), load_tables(tables)
    decided = [
        *check_features(found, settings, by_name),
        *mean_part_claims(found, settings, by_name["mean_part"]),
        *reversibility_claims(found, by_name["reversibility"]),
    ]
    save_claims(claims, decided)
    records = as_records(decided)
    save_frames(pages[0].parent, {"claims": claims_overview(records), "claims_all": claims_rows(records)})


def check_features(statements: Statements, settings: dict[str, dict], tables: dict[str, pd.DataFrame]) -> list[Claim]:
    """Decide all claims.

    Parameters
    ----------
    statements : Statements of claims.toml
    settings : dict of ``grid.settings``
    tables : DataFrames "coefficients", "best", "errors" and "deflation", by name
    """
    coefficients = last_rows(tables["coefficients"])
    return [
        *_coefficient_claims(statements, settings, coefficients, tables["best"]),
        *_error_claims(statements, tables["errors"]),
        *_deflation_claims(statements, tables["deflation"]),
    ]


def last_rows(coefficients: pd.DataFrame) -> pd.DataFrame:
    """The rows after all updates of each setting."""
    last = coefficients.groupby("setting")["tasks_seen"].transform("max")
    return coefficients[coefficients["tasks_seen"] == last]


def _coefficient_claims(
    statements: Statements, settings: dict[str, dict], coefficients: pd.DataFrame, best: pd.DataFrame
) -> Iterator[Claim]:
    by_setting = {key: rows.set_index("seed") for key, rows in coefficients.groupby(["setting", "target"], sort=False)}
    computed = rows_with(best, family="four_numbers").set_index(["setting", "target"])["eta"]
    for (name, target), trials in by_setting.items():
        place, kind, words = [name, target], settings[name]["features"], {"target": TARGETS[target]}
        if kind in ROTATION_INVARIANT:
            yield from statements.of_trials("symmetric", place, trials["four"])
            expected = computed.get((name, "td" if target == "td" else "values"), np.nan)
            if np.isfinite(expected):
                yield from statements.of_trials("predicted", place, (trials["eta"] - expected).abs(), **words)
        if kind in (*EXACT, "fixed") or settings[name]["prompts"] == "shuffled":
            continue
        yield from statements.of_trials("second_positive", place, trials["eta"], **words)
        for short, (control_words, changes) in CONTROLS.items():
            control = by_setting.get((control_of(settings, name, changes), target))
            if control is not None and (kind, settings[name]["prompts"]) == ("normal", "enumerated"):
                difference = (trials["eta"] - control["eta"]).dropna()
                yield from statements.of_trials(
                    "second_exceeds", place, difference, short=short, control=control_words, **words
                )


def _error_claims(statements: Statements, errors: pd.DataFrame) -> Iterator[Claim]:
    for name, rows in errors.groupby("setting", sort=False):
        trimmed = np.log10(rows.pivot(index="seed", columns="method", values="trimmed"))
        for method, words in METHODS.items():
            for pretrained in [column for column in trimmed if column.startswith("pretrained_")]:
                target = pretrained.removeprefix("pretrained_")
                difference = trimmed[pretrained] - trimmed[method]
                named = {"short": method.replace("_", " "), "method": words, "target": TARGETS[target]}
                yield from statements.of_trials("beats", [name, target], difference, **named)
        for method in ("lstd_ridge", "lstd_mean", "lstd_lambda"):
            difference = trimmed["lstd_second"] - trimmed[method]
            named = {"short": method.replace("_", " "), "method": METHODS[method]}
            yield from statements.of_trials("second_helps", [name], difference, **named)


def _deflation_claims(statements: Statements, deflation: pd.DataFrame) -> Iterator[Claim]:
    known = deflation.dropna(subset="own")
    for (name, target), trials in known.groupby(["setting", "target"], sort=False):
        yield from statements.of_trials("deflation", [name, target], trials["own"].clip(lower=0) ** 2)
