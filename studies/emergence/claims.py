"""What pretraining makes emerge, as claims of our own with verdicts computed from tables.

Seeds are the unit: an interval is the 95% bootstrap interval of a mean over seeds, paired where two numbers of a seed
are compared.  Within a seed MSVE is the mean over tasks in one claim and the median in another, as some tasks have
errors many times those of others.
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from ictd.pipeline.grid import CELL
from ictd.prompt import ENUMERATED
from ictd.report.claim import Claim, Statements, save_claims
from ictd.tables import load_tables

# Claims on the MSVE of two variants, on enumerated prompts, or on the shortest contexts where their name says so.
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
# The same with controls, (variant, control), where a control of none is the variant as it is.
CONTROLLED = {
    "step_makes_up": (("theta", "scaled"), ("no_u", "none")),
    "structure_makes_up": (("structure", "scaled"), ("no_u", "none")),
    "preconditioner_at_best_step": (("theta", "scaled"), ("structure", "scaled")),
    "structure_converges": (("structure", "repeated_10"), ("structure", "none")),
    "outside_is_for_one_depth": (("no_u", "repeated_3"), ("no_u", "none")),
}
# Of whom residuals are compared.
PAIRS = {
    "algos": "multi-task TD and MC of one seed",
    "algos, seeds": "multi-task TD and MC of two seeds",
    "seeds": "two seeds of one algorithm",
}
# Claims on changes in long runs; those in LOGARITHMIC are changes of a logarithm.
CHANGES = {
    "alpha_grows": "alpha",
    "cosine_falls": "cosine",
    "structure_sharpens": "outside",
    "enumerated_improves": f"msve_{ENUMERATED}",
}
LOGARITHMIC = ("structure_sharpens", "enumerated_improves")


def main(statements: Path, tables: list[Path], output: Path) -> None:
    """Write one entry a claim, with id, section, setting, statement, statistic, value, relation, threshold and
    verdict, from the tables that ``check_emergence`` names."""
    save_claims(output, check_emergence(Statements(statements), load_tables(tables)))


def check_emergence(of: Statements, tables: dict[str, pd.DataFrame]) -> list[Claim]:
    """All claims on what emerges, as claims.toml states them.

    ``tables`` are measures, ablations, controls, baselines, correlations, course, phase and readings.
    """
    return [
        *_decomposition_claims(of, tables["measures"]),
        *_ablation_claims(of, tables["ablations"], tables["controls"], tables["baselines"]),
        *_correlation_claims(of, tables["correlations"]),
        *_course_claims(of, tables["course"]),
        *_phase_claims(of, tables["phase"]),
        *_reading_claims(of, tables["readings"]),
    ]


def _decomposition_claims(of: Statements, measures: pd.DataFrame) -> Iterator[Claim]:
    for cell, rows in measures.groupby(CELL, sort=False):
        yield from of.of_trials("structure", cell, rows["outside"])
        yield from of.of_trials("step_size", cell, rows["alpha"])


def _ablation_claims(
    of: Statements, ablations: pd.DataFrame, controls: pd.DataFrame, baselines: pd.DataFrame
) -> Iterator[Claim]:
    shortest = ablations.loc[ablations["context_length"] != ENUMERATED, "context_length"].min()
    joined = pd.concat([ablations.assign(control="none"), controls])
    for cell, rows in joined.groupby(CELL, sort=False):
        beside = baselines[(baselines[CELL] == list(cell)).all(axis=1)].set_index("context_length")
        for over in ("mean", "median"):
            every = np.log10(rows.pivot(index=["variant", "control", "context_length"], columns="seed", values=over))
            table = every.xs("none", level="control")
            best = np.log10(beside[f"best_{over}"])
            for name, (variant, other) in COMPARED.items():
                length = shortest if name.endswith("_short") else ENUMERATED
                ratio = table.loc[(variant, length)] - table.loc[(other, length)]
                yield from of.of_trials(name, cell, ratio, over=over, steps=shortest)
            for name, (one, other) in CONTROLLED.items():
                ratio = every.loc[(*one, ENUMERATED)] - every.loc[(*other, ENUMERATED)]
                yield from of.of_trials(name, cell, ratio, over=over)
            for name, length in (("beats_theta", ENUMERATED), ("beats_theta_short", shortest)):
                ratio = table.loc[("whole", length)] - best[length]
                yield from of.of_trials(name, cell, ratio, over=over, steps=shortest)


def _correlation_claims(of: Statements, correlations: pd.DataFrame) -> Iterator[Claim]:
    for (kind, *cell), rows in correlations.groupby(["kind", *CELL], sort=False):
        pair = PAIRS.get(kind, f"one seed at {kind.rpartition(' ')[2]} layers and at this depth")
        for name, null in (("residuals", "null_entries"), ("residuals_by_state", "null_states")):
            more = (rows["cosine"] - rows[null]).dropna()
            yield from of.of_trials(name, cell, more, kind=kind, pair=pair)


def _course_claims(of: Statements, course: pd.DataFrame) -> Iterator[Claim]:
    """From a tenth of some number of tasks to that number, for each at which an algorithm's long runs end."""
    ends = sorted(set(course.groupby("algo")["tasks_seen"].max()))
    for (algo, env), rows in course.groupby(["algo", "env"], sort=False):
        seen = rows["tasks_seen"].unique()
        for end in (end for end in ends if end <= seen.max()):
            first, last = (seen[np.abs(np.log(seen / tasks)).argmin()] for tasks in (end / 10, end))
            for name, measure in CHANGES.items():
                table = rows.pivot(index="tasks_seen", columns="seed", values=measure)
                table = np.log10(table) if name in LOGARITHMIC else table
                yield from of.of_trials(name, (algo, env, f"{first} to {last}"), table.loc[last] - table.loc[first])


def _phase_claims(of: Statements, phase: pd.DataFrame) -> Iterator[Claim]:
    for place, rows in phase.groupby(["algo", "states"], sort=False):
        yield of.claim("finite", place, (rows["diverged_at"] > 0).sum())
        yield from of.of_trials("structure_deep", place, rows.loc[rows["depth"] == rows["depth"].max(), "outside"])


def _reading_claims(of: Statements, readings: pd.DataFrame) -> Iterator[Claim]:
    """The first reading is the one that others are compared with."""
    verdicts = readings.pivot(index=["claim", "algo"], columns="reading", values="verdict")
    first, *others = readings["reading"].unique()
    held = verdicts[first] == "holds"
    for name in others:
        yield of.claim("reading", [name], (held & (verdicts[name] == "fails")).sum())
