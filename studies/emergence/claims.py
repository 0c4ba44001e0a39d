"""What pretraining makes emerge, as claims of our own with verdicts computed from tables.

Seeds are the unit: an interval is the 95% bootstrap interval of a mean over seeds, paired where two numbers of a seed
are compared.  Within a seed MSVE is the mean over tasks in one claim and the median in another, as some tasks have
errors many times those of others.
"""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

from ictd.pipeline.grid import CELL
from ictd.pipeline.table_files import load_tables
from ictd.report.claim import TENTH, Claim, claim_of_trials, named_claim, save_claims
from ictd.unseen_tasks import ENUMERATED

TITLE = "What emerges"
KINDS = {
    "algos": "multi-task TD and MC of one seed",
    "algos, seeds": "multi-task TD and MC of two seeds",
    "seeds": "two seeds of one algorithm",
}


def main(tables: list[Path], output: Path) -> None:
    """Write one entry a claim, with id, section, setting, statement, statistic, value, relation, threshold and
    verdict, from the tables that ``check_emergence`` names."""
    save_claims(output, check_emergence(load_tables(tables)))


def check_emergence(tables: dict[str, pd.DataFrame]) -> list[Claim]:
    """All claims on what emerges.

    Parameters
    ----------
    tables : measures, ablations, baselines, correlations, course, phase and readings
    """
    return [
        *_decomposition_claims(tables["measures"]),
        *_ablation_claims(tables["ablations"], tables["baselines"]),
        *_correlation_claims(tables["correlations"]),
        *_course_claims(tables["course"]),
        *_phase_claims(tables["phase"]),
        *_reading_claims(tables["readings"]),
    ]


_claim, _of_trials = partial(named_claim, TITLE), partial(claim_of_trials, TITLE)


def _decomposition_claims(measures: pd.DataFrame) -> Iterator[Claim]:
    for cell, rows in measures.groupby(CELL, sort=False):
        yield from _of_trials(
            "structure", cell, "A is close to $[G; H] [-I, I]$: columns form the TD error.",
            "the share of what is outside", rows["outside"], "<", TENTH,
        )  # fmt: skip
        yield from _of_trials("step_size", cell, "The step size is below one.", "alpha", rows["alpha"], "<", 1.0)


def _ablation_claims(ablations: pd.DataFrame, baselines: pd.DataFrame) -> Iterator[Claim]:
    shortest = ablations.loc[ablations["context_length"] != ENUMERATED, "context_length"].min()
    short, whole = f"on sampled contexts of {shortest} steps", "on enumerated prompts"
    cases = (
        ("noise_works", "theta", "whole", ENUMERATED, ">", 0.0, f"What the paper calls noise does work: {whole} MSVE is"
         " higher with theta^TD's part alone."),
        ("preconditioner_works", "theta", "structure", ENUMERATED, ">", 0.0, f"So does the preconditioner: {whole} MSVE"
         " is higher with theta^TD's part alone than with $[G; H] [-I, I]$."),
        ("outside_works", "structure", "whole", ENUMERATED, ">", 0.0, f"So does the rest: {whole} MSVE is higher with"
         " $[G; H] [-I, I]$ alone."),
        ("preconditioner_works_short", "theta", "structure", shortest, ">", 0.0, f"The preconditioner does so {short}"
         " too."),
        ("outside_harms_short", "structure", "whole", shortest, "<", 0.0, f"The rest does harm {short}: MSVE is lower"
         " with $[G; H] [-I, I]$ alone."),
        ("noise_harms_short", "theta", "whole", shortest, "<", 0.0, f"Both together do harm {short}: MSVE is lower with"
         " theta^TD's part alone."),
        ("u_is_idle", "no_u", "whole", ENUMERATED, "<", np.log10(1.1), f"Without u the MSVE {whole} rises by less than"
         " a tenth."),
    )  # fmt: skip
    for cell, rows in ablations.groupby(CELL, sort=False):
        beside = baselines[(baselines[CELL] == list(cell)).all(axis=1)].set_index("context_length")
        for over in ("mean", "median"):
            table = np.log10(rows.pivot(index=["variant", "context_length"], columns="seed", values=over))
            tail = f"MSVE ({over} over tasks)"
            for name, variant, other, length, relation, threshold, statement in cases:
                ratio = table.loc[(variant, length)] - table.loc[(other, length)]
                words = f"the log10 ratio of the two in {tail}"
                yield from _of_trials(f"{name}, {over}", cell, statement, words, ratio, relation, threshold)
            for name, length, place in (("beats_theta", ENUMERATED, whole), ("beats_theta_short", shortest, short)):
                ratio = table.loc[("whole", length)] - np.log10(beside.loc[length, f"best_{over}"])
                yield from _of_trials(
                    f"{name}, {over}", cell, f"Pretrained weights beat theta^TD with its best step size {place}.",
                    f"the log10 ratio of the two in {tail}", ratio, "<", 0.0,
                )  # fmt: skip


def _correlation_claims(correlations: pd.DataFrame) -> Iterator[Claim]:
    for (kind, *cell), rows in correlations.groupby(["kind", *CELL], sort=False):
        words = KINDS.get(kind, f"one seed at {kind.rpartition(' ')[2]} layers and at this depth")
        for name, null, end, over in (
            ("residuals", "null_entries", "not noise", "entries"),
            ("residuals by state", "null_states", "also in what tells states apart", "states"),
        ):
            more = (rows["cosine"] - rows[null]).dropna()
            yield from _of_trials(
                f"{name} ({kind})", cell,
                f"What is left without theta^TD is more alike than by chance for {words}, {end}.",
                f"its cosine less the 97.5% quantile over random orders of the {over}", more, ">", 0.0,
            )  # fmt: skip


def _course_claims(course: pd.DataFrame) -> Iterator[Claim]:
    cases = (
        ("alpha_grows", "alpha", ">", "The step size grows over the last tenfold of tasks.", "the change of alpha"),
        ("cosine_falls", "cosine", "<", "The cosine to theta^TD falls over the last tenfold of tasks.", "its change"),
        ("structure_sharpens", "outside", "<", "The structure $[G; H] [-I, I]$ gets sharper over the last tenfold of"
         " tasks.", "the log10 ratio of what is outside"),
        ("enumerated_improves", f"msve_{ENUMERATED}", "<", "MSVE on enumerated prompts falls over the last tenfold of"
         " tasks.", "the log10 ratio of MSVE"),
    )  # fmt: skip
    ends = sorted(set(course.groupby("algo")["tasks_seen"].max()))
    for (algo, env), rows in course.groupby(["algo", "env"], sort=False):
        seen = rows["tasks_seen"].unique()
        for end in (end for end in ends if end <= seen.max()):
            first, last = (seen[np.abs(np.log(seen / tasks)).argmin()] for tasks in (end / 10, end))
            for name, measure, relation, statement, words in cases:
                table = rows.pivot(index="tasks_seen", columns="seed", values=measure)
                table = table if words.startswith(("the change", "its")) else np.log10(table)
                change = table.loc[last] - table.loc[first]
                setting = (algo, env, f"{first} to {last}")
                yield from _of_trials(name, setting, statement, words, change, relation, 0.0)


def _phase_claims(phase: pd.DataFrame) -> Iterator[Claim]:
    for (algo, states), rows in phase.groupby(["algo", "states"], sort=False):
        deepest = rows[rows["depth"] == rows["depth"].max()]
        yield _claim(
            "finite", (algo, states), "Pretraining runs into no numerical instability, whatever the depth.",
            "number of trials that diverged", (rows["diverged_at"] > 0).sum(), "<", 1,
        )  # fmt: skip
        yield from _of_trials(
            "structure_deep", (algo, states), "A is close to $[G; H] [-I, I]$ in the deepest Transformers.",
            "the share of what is outside", deepest["outside"], "<", TENTH,
        )  # fmt: skip


def _reading_claims(readings: pd.DataFrame) -> Iterator[Claim]:
    """The first reading is the one that others are compared with."""
    verdicts = readings.pivot(index=["claim", "algo"], columns="reading", values="verdict")
    first, *others = readings["reading"].unique()
    held = verdicts[first] == "holds"
    for name in others:
        yield _claim(
            "reading", [name], "What the paper claims of the main setting, and holds under our readings, holds under"
            " this one.", "number of claims that hold under ours and fail under it",
            (held & (verdicts[name] == "fails")).sum(), "<", 1,
        )  # fmt: skip
