"""What pretraining makes emerge, as claims of our own with verdicts computed from tables.

Seeds are the unit: an interval is the 95% bootstrap interval of a mean over seeds, paired where two numbers of a seed
are compared.
"""

from collections.abc import Iterator

import numpy as np
import pandas as pd

from ictd.claims import HALF, Claim
from ictd.grid import CELL
from ictd.statistics import bootstrap_interval
from ictd.validation import ENUMERATED

SECTION = "What emerges"
LOW, HIGH = (
    "lower end of the 95% bootstrap interval, over trials, of ",
    "upper end of the 95% bootstrap interval, over trials, of ",
)
KINDS = {
    "algos": "multi-task TD and MC of one seed",
    "algos, seeds": "multi-task TD and MC of two seeds",
    "seeds": "two seeds of one algorithm",
}


def check_emergence(tables: dict[str, pd.DataFrame]) -> list[Claim]:
    """All claims on what emerges.

    Parameters
    ----------
    tables : measures, ablations, correlations, course, phase and readings
    """
    return [
        *_decomposition_claims(tables["measures"]),
        *_ablation_claims(tables["ablations"], tables["yardsticks"]),
        *_correlation_claims(tables["correlations"]),
        *_course_claims(tables["course"]),
        *_phase_claims(tables["phase"]),
        *_reading_claims(tables["readings"]),
    ]


def _claim(name: str, setting, statement: str, statistic: str, value: float, relation: str, threshold: float) -> Claim:
    setting = "-".join(map(str, setting))
    return Claim(f"{name}/{setting}", SECTION, setting, statement, statistic, float(value), relation, threshold)


def _decomposition_claims(measures: pd.DataFrame) -> Iterator[Claim]:
    for cell, rows in measures.groupby(CELL, sort=False):
        if len(rows) < 2:
            continue
        yield _claim(
            "structure", cell, "A is close to $[G; H] [-I, I]$: columns form the TD error.",
            HIGH + "the share of what is outside", bootstrap_interval(rows["outside"].to_numpy())[1], "<", HALF,
        )  # fmt: skip
        yield _claim(
            "step_size", cell, "The step size is below one.", HIGH + "alpha",
            bootstrap_interval(rows["alpha"].to_numpy())[1], "<", 1.0,
        )  # fmt: skip


def _ablation_claims(ablations: pd.DataFrame, yardsticks: pd.DataFrame) -> Iterator[Claim]:
    shortest = ablations.loc[ablations["context_length"] != ENUMERATED, "context_length"].min()
    short = f"On sampled contexts of {shortest} steps"
    cases = (
        (
            "noise_works", "theta", ENUMERATED, ">",
            "What the paper calls noise does work: on enumerated prompts MSVE is higher with theta^TD's part alone.",
        ),
        (
            "outside_works", "structure", ENUMERATED, ">",
            "So does what is outside $[G; H] [-I, I]$: on enumerated prompts MSVE is higher without it.",
        ),
        ("noise_harms", "theta", shortest, "<", f"{short} it does harm: MSVE is lower with theta^TD's part alone."),
        (
            "outside_harms", "structure", shortest, "<",
            f"{short} MSVE is lower without what is outside $[G; H] [-I, I]$.",
        ),
        ("u_is_idle", "no_u", ENUMERATED, "<", "Without u the MSVE on enumerated prompts rises by less than a tenth."),
    )  # fmt: skip
    for cell, rows in ablations.groupby(CELL, sort=False):
        table = rows.pivot(index=["variant", "context_length"], columns="seed", values="mean")
        if table.shape[1] < 2:
            continue
        for name, variant, length, relation, statement in cases:
            ratio = np.log10(table.loc[(variant, length)] / table.loc[("whole", length)]).to_numpy()
            low, high = bootstrap_interval(ratio)
            side, value = (LOW, low) if relation == ">" else (HIGH, high)
            threshold = np.log10(1.1) if name == "u_is_idle" else 0.0
            statistic = side + "the log10 ratio of its MSVE to that of the whole"
            yield _claim(name, cell, statement, statistic, value, relation, threshold)
        best = yardsticks[(yardsticks[CELL] == list(cell)).all(axis=1)].set_index("context_length")["best_mean"]
        for length in (ENUMERATED, shortest):
            place = "On enumerated prompts" if length == ENUMERATED else short
            ratio = np.log10(table.loc[("whole", length)] / best[length]).to_numpy()
            yield _claim(
                "beats_theta" if length == ENUMERATED else "beats_theta_sampled", cell,
                f"{place} MSVE is lower than that of theta^TD with its best step size.",
                HIGH + "the log10 ratio of these", bootstrap_interval(ratio)[1], "<", 0.0,
            )  # fmt: skip


def _correlation_claims(correlations: pd.DataFrame) -> Iterator[Claim]:
    for (kind, *cell), rows in correlations.groupby(["kind", *CELL], sort=False):
        words = KINDS.get(kind, f"one seed at {kind.rpartition(' ')[2]} layers and at this depth")
        if len(rows) < 2:
            continue
        for name, null, end, over in (
            ("residuals", "null_entries", "not noise", "entries"),
            ("residuals by state", "null_states", "in what tells states apart too", "states"),
        ):
            yield _claim(
                f"{name} ({kind})", cell, f"What is left without theta^TD is alike for {words}, {end}.",
                LOW + f"its cosine less the 97.5% quantile over random orders of the {over}",
                bootstrap_interval((rows["cosine"] - rows[null]).to_numpy())[0], ">", 0.0,
            )  # fmt: skip


def _course_claims(course: pd.DataFrame) -> Iterator[Claim]:
    cases = (
        (
            "alpha_grows", "alpha", ">", "The step size is still growing in the last nine tenths of the tasks.",
            "the log10 ratio of alpha",
        ),
        (
            "cosine_falls", "cosine", "<", "The cosine to theta^TD falls with more tasks.",
            "the difference of the cosine",
        ),
        (
            "structure_sharpens", "outside", "<", "The structure $[G; H] [-I, I]$ gets sharper with more tasks.",
            "the log10 ratio of what is outside",
        ),
        (
            "enumerated_improves", f"msve_{ENUMERATED}", "<", "MSVE on enumerated prompts falls with more tasks.",
            "the log10 ratio of MSVE",
        ),
    )  # fmt: skip
    for setting, rows in course.groupby(["algo", "env"], sort=False):
        seen, last = rows["tasks_seen"].unique(), rows["tasks_seen"].max()
        first = seen[np.abs(np.log(seen / (last / 10))).argmin()]
        for name, measure, relation, statement, words in cases:
            table = rows.pivot(index="tasks_seen", columns="seed", values=measure)
            start, end = table.loc[first], table.loc[last]
            change = (end - start if measure == "cosine" else np.log10(end / start)).to_numpy()
            if len(change) > 1:
                low, high = bootstrap_interval(change)
                side, value = (LOW, low) if relation == ">" else (HIGH, high)
                statistic = f"{side}{words} at {last:,} tasks to that at {first:,}"
                yield _claim(name, setting, statement, statistic, value, relation, 0.0)


def _phase_claims(phase: pd.DataFrame) -> Iterator[Claim]:
    for (algo, states), rows in phase.groupby(["algo", "states"], sort=False):
        deepest = rows[rows["depth"] == rows["depth"].max()]
        yield _claim(
            "finite", (algo, states), "Pretraining runs into no numerical instability, whatever the depth.",
            "number of trials that diverged", (rows["diverged_at"] > 0).sum(), "<", 1,
        )  # fmt: skip
        if len(deepest) > 1:
            yield _claim(
                "structure_everywhere", (algo, states), "A is close to $[G; H] [-I, I]$ in deep Transformers too.",
                HIGH + f"the share of what is outside, with {rows['depth'].max()} layers",
                bootstrap_interval(deepest["outside"].to_numpy())[1], "<", HALF,
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
