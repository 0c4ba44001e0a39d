"""The study's claims on what emerges, with verdicts computed from tables.

Intervals are 95% bootstrap intervals of means over seeds, or over groups of tasks if there are no seeds.  Comparisons
of two numbers of the same seed are paired.
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from ictd.pipeline.grid import CELL
from ictd.report.claim import Claim, Statements, save_claims
from ictd.report.tables import load_tables, rows_with
from ictd.report.verdicts import HOLDS

# Numbers of tasks at which predictions are compared, at the nearest snapshots.
COMPARED_AT = (2_000, 20_000, 100_000)


def main(statements: Path, tables: list[Path], env: str, output: Path) -> None:
    """Write each claim with its value and its verdict, as JSON.  ``env`` is the environment of the predictions."""
    save_claims(output, check_emergence(Statements(statements), load_tables(tables), env))


def check_emergence(statements: Statements, tables: dict[str, pd.DataFrame], env: str) -> list[Claim]:
    """Decide all claims on what emerges.

    Parameters
    ----------
    statements : Statements of claims.toml
    tables : "measures", "best_numbers", "trained", "slow_mode", "dynamics", "course" and "readings"
    env : str, environment of the predictions
    """
    return [
        *_share_claims(statements, tables["measures"]),
        *_best_claims(statements, tables["best_numbers"]),
        *_trained_claims(statements, tables["trained"]),
        *_slow_mode_claims(statements, tables["slow_mode"]),
        *_dynamics_claims(statements, tables["dynamics"], rows_with(tables["course"], env=env)),
        *_reading_claims(statements, tables["readings"]),
    ]


def _share_claims(statements: Statements, measures: pd.DataFrame) -> Iterator[Claim]:
    for cell, trials in measures.groupby(CELL, sort=False):
        alpha, two = trials["family_1"], trials["family_2"]
        yield from statements.of_trials("ones", cell, (two - alpha) / (1 - alpha))


def _best_claims(statements: Statements, best: pd.DataFrame) -> Iterator[Claim]:
    for setting, rows in best.groupby(["env", "states", "discount", "depth"], sort=False):
        msve = np.log10(rows.pivot(index="group", columns="numbers", values="mean"))
        yield from statements.of_trials("best_two", setting, msve[2] - msve[1])


def _trained_claims(statements: Statements, trained: pd.DataFrame) -> Iterator[Claim]:
    for cell, rows in rows_with(trained, format="enumerated").groupby(CELL, sort=False):
        msve = np.log10(rows.pivot(index="seed", columns="method", values="mean"))
        yield from statements.of_trials("trained_two", cell, (msve["numbers_2"] - msve["all"]).dropna())


def _slow_mode_claims(statements: Statements, slow_mode: pd.DataFrame) -> Iterator[Claim]:
    """Decide the claim for each design, except for a constant slow mode."""
    for design, trials in slow_mode.groupby("design", sort=False):
        if design != "constant":
            yield from statements.of_trials("follows_slow_mode", [design], trials["excess"])


def _dynamics_claims(statements: Statements, dynamics: pd.DataFrame, course: pd.DataFrame) -> Iterator[Claim]:
    errors = prediction_errors(dynamics, course)
    for (algo, variables), rows in errors.groupby(["algo", "variables"], sort=False):
        words = "all entries of A" if variables == "all" else f"{variables} numbers"
        kept = rows_with(rows, noise="batches", rule="adam")
        yield statements.claim("dynamics", [algo, variables], kept["error"].max(), variables=words)


def prediction_errors(dynamics: pd.DataFrame, course: pd.DataFrame) -> pd.DataFrame:
    """The larger of the relative errors of the predicted alpha and beta, at the snapshots nearest to COMPARED_AT.

    Parameters
    ----------
    dynamics : table "dynamics"
    course : rows of table "course" on the environment of the predictions

    Returns
    -------
    DataFrame with algo, variables, noise, rule, tasks_seen, the predicted identity and ones, the medians over trials
    (identity_seen, ones_seen), and error
    """
    medians = course.groupby(["algo", "tasks_seen"])[["identity", "ones"]].median().reset_index()
    joined = dynamics.astype({"variables": str}).merge(medians, on=["algo", "tasks_seen"], suffixes=("", "_seen"))
    kept = []
    for _, rows in joined.groupby("algo", sort=False):
        snapshots = rows["tasks_seen"].unique()
        nearest = {snapshots[np.abs(np.log(snapshots / tasks)).argmin()] for tasks in COMPARED_AT}
        kept.append(rows[rows["tasks_seen"].isin(nearest)])
    errors = pd.concat(kept, ignore_index=True)
    relative = [(errors[name] / errors[f"{name}_seen"] - 1).abs() for name in ("identity", "ones")]
    return errors.assign(error=np.maximum(*relative))


def _reading_claims(statements: Statements, readings: pd.DataFrame) -> Iterator[Claim]:
    """Compare each reading with our reading, which is the first."""
    verdicts = readings.pivot(index=["claim", "algo"], columns="reading", values="verdict")
    ours, *others = readings["reading"].unique()
    held = verdicts[ours] == HOLDS
    for name in others:
        yield statements.claim("reading", [name], (held & (verdicts[name] != HOLDS)).sum())
