"""The study's claims on what emerges, with verdicts computed from tables.

Intervals are 95% bootstrap intervals of means over seeds, paired if two numbers of a seed are compared.  Each claim on
the MSVE is made for means and for medians over tasks, because the errors on some tasks are many times those on others.
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from ictd.pipeline.grid import CELL
from ictd.prompt import ENUMERATED
from ictd.report.claim import Claim, Statements, save_claims
from ictd.report.tables import load_tables, rows_with

STATISTICS = ("mean", "median")  # Over tasks.
# Pairs of variants by the claims that compare their MSVE on enumerated prompts, or on the shortest contexts ("_short").
COMPARED = {
    "noise_is_missed": ("theta", "whole"),
    "preconditioner_first": ("theta", "structure"),
    "outside_first": ("theta", "theta_outside"),
    "preconditioner_last": ("theta_outside", "no_u"),
    "outside_last": ("structure", "no_u"),
    "preconditioner_first_short": ("theta", "structure"),
    "preconditioner_last_short": ("theta_outside", "no_u"),
    "outside_harms_first_short": ("theta", "theta_outside"),
    "outside_harms_last_short": ("structure", "no_u"),
    "u_is_idle": ("no_u", "whole"),
}
# The same with pairs of (variant, control); the control "none" is the variant without a change.
CONTROLLED = {
    "step_makes_up": (("theta", "scaled"), ("no_u", "none")),
    "structure_makes_up": (("structure", "scaled"), ("no_u", "none")),
    "preconditioner_at_best_step": (("theta", "scaled"), ("structure", "scaled")),
    "structure_converges": (("structure", "repeated_10"), ("structure", "none")),
    "outside_is_for_one_depth": (("no_u", "repeated_3"), ("no_u", "none")),
}
# The runs whose residuals are compared, in words.
PAIRS = {
    "algos": "multi-task TD and MC of one seed",
    "algos, seeds": "multi-task TD and MC of two seeds",
    "seeds": "two seeds of one algorithm",
}
# Measures of the long runs by the claims on their changes; those in LOGARITHMIC are changes of a logarithm.
CHANGES = {
    "alpha_grows": "alpha",
    "cosine_falls": "cosine",
    "structure_sharpens": "outside",
    "enumerated_improves": f"msve_{ENUMERATED}",
}
LOGARITHMIC = ("structure_sharpens", "enumerated_improves")


def main(statements: Path, tables: list[Path], output: Path) -> None:
    """Write each claim with its value and its verdict, as JSON."""
    save_claims(output, check_emergence(Statements(statements), load_tables(tables)))


def check_emergence(statements: Statements, tables: dict[str, pd.DataFrame]) -> list[Claim]:
    """Decide all claims on what emerges.

    Parameters
    ----------
    statements : Statements of claims.toml
    tables : "measures", "ablations", "controls", "baselines", "correlations", "course", "phase" and "readings"
    """
    return [
        *_decomposition_claims(statements, tables["measures"]),
        *_ablation_claims(statements, tables["ablations"], tables["controls"], tables["baselines"]),
        *_correlation_claims(statements, tables["correlations"]),
        *_course_claims(statements, tables["course"]),
        *_phase_claims(statements, tables["phase"]),
        *_reading_claims(statements, tables["readings"]),
    ]


def _decomposition_claims(statements: Statements, measures: pd.DataFrame) -> Iterator[Claim]:
    for cell, trials in measures.groupby(CELL, sort=False):
        yield from statements.of_trials("structure", cell, trials["outside"])
        yield from statements.of_trials("step_size", cell, trials["alpha"])


def _ablation_claims(
    statements: Statements, ablations: pd.DataFrame, controls: pd.DataFrame, baselines: pd.DataFrame
) -> Iterator[Claim]:
    shortest = ablations.loc[ablations["context_length"] != ENUMERATED, "context_length"].min()
    joined = pd.concat([ablations.assign(control="none"), controls])
    for cell, trials in joined.groupby(CELL, sort=False):
        cell_baselines = rows_with(baselines, **dict(zip(CELL, cell, strict=True))).set_index("context_length")
        for statistic in STATISTICS:
            index = ["variant", "control", "context_length"]
            msve = np.log10(trials.pivot(index=index, columns="seed", values=statistic))
            plain = msve.xs("none", level="control")
            best_theta = np.log10(cell_baselines[f"best_{statistic}"])
            for name, (variant, other) in COMPARED.items():
                length = shortest if name.endswith("_short") else ENUMERATED
                ratio = plain.loc[(variant, length)] - plain.loc[(other, length)]
                yield from statements.of_trials(name, cell, ratio, over=statistic, steps=shortest)
            for name, (controlled, other) in CONTROLLED.items():
                ratio = msve.loc[(*controlled, ENUMERATED)] - msve.loc[(*other, ENUMERATED)]
                yield from statements.of_trials(name, cell, ratio, over=statistic)
            for name, length in (("beats_theta", ENUMERATED), ("beats_theta_short", shortest)):
                ratio = plain.loc[("whole", length)] - best_theta[length]
                yield from statements.of_trials(name, cell, ratio, over=statistic, steps=shortest)


def _correlation_claims(statements: Statements, correlations: pd.DataFrame) -> Iterator[Claim]:
    for (kind, *cell), trials in correlations.groupby(["kind", *CELL], sort=False):
        pair = PAIRS.get(kind, f"one seed at {kind.rpartition(' ')[2]} layers and at this depth")
        for name, null in (("residuals", "null_entries"), ("residuals_by_state", "null_states")):
            excess = (trials["cosine"] - trials[null]).dropna()
            yield from statements.of_trials(name, cell, excess, kind=kind, pair=pair)


def _course_claims(statements: Statements, course: pd.DataFrame) -> Iterator[Claim]:
    """Decide claims on the last tenfold of tasks, for each number of tasks at which an algorithm's long runs end."""
    ends = sorted(set(course.groupby("algo")["tasks_seen"].max()))
    for (algo, env), trials in course.groupby(["algo", "env"], sort=False):
        tasks_seen = trials["tasks_seen"].unique()
        for end in ends:
            if end > tasks_seen.max():
                continue
            first, last = (tasks_seen[np.abs(np.log(tasks_seen / tasks)).argmin()] for tasks in (end / 10, end))
            for name, measure in CHANGES.items():
                values = trials.pivot(index="tasks_seen", columns="seed", values=measure)
                values = np.log10(values) if name in LOGARITHMIC else values
                setting = (algo, env, f"{first} to {last}")
                yield from statements.of_trials(name, setting, values.loc[last] - values.loc[first])


def _phase_claims(statements: Statements, phase: pd.DataFrame) -> Iterator[Claim]:
    for setting, trials in phase.groupby(["algo", "states"], sort=False):
        yield statements.claim("finite", setting, (trials["diverged_at"] > 0).sum())
        deepest = trials[trials["depth"] == trials["depth"].max()]
        yield from statements.of_trials("structure_deep", setting, deepest["outside"])


def _reading_claims(statements: Statements, readings: pd.DataFrame) -> Iterator[Claim]:
    """Compare each reading with the first, which is ours."""
    verdicts = readings.pivot(index=["claim", "algo"], columns="reading", values="verdict")
    ours, *others = readings["reading"].unique()
    held = verdicts[ours] == "holds"
    for name in others:
        yield statements.claim("reading", [name], (held & (verdicts[name] == "fails")).sum())
