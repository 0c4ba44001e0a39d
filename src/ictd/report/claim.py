"""A claim: a statistic with a threshold, and the verdict that follows.

Thresholds are ours where the paper's words give no number.  A pattern "emerges", or two are "similar", when it holds
more than half of the sum of squares (a squared cosine or correlation above one half); noise is "mild" when its sum of
squares is less than half of the pattern's; two are "at the same place" when their distance is below half their norm.
"""

import math
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from ictd.pipeline.storage import save_json
from ictd.statistics import bootstrap_interval

HALF = 0.5
# A structure is close when less than this share of the sum of squares is outside; in random weights half of it is.
TENTH = 0.1
# About the resolution of single precision, in which networks are usually trained.
NEGLIGIBLE = 1e-6
# What rounding may do to two ways of computing the same MSVE.
ROUNDING = 1e-9


@dataclass(frozen=True)
class Claim:
    """One claim about one setting, with the statistic that decides it."""

    id: str
    section: str
    setting: str
    statement: str
    statistic: str
    value: float
    relation: str
    threshold: float

    @property
    def verdict(self) -> str:
        """ "holds" or "fails"; a value that is not a number fails."""
        met = self.value < self.threshold if self.relation == "<" else self.value > self.threshold
        return "holds" if met else "fails"


def named_claim(
    section: str, name: str, setting, statement: str, statistic: str, value: float, relation: str, threshold: float
) -> Claim:
    """A claim whose setting is a sequence of words and numbers."""
    setting = "-".join(map(str, setting))
    return Claim(f"{name}/{setting}", section, setting, statement, statistic, float(value), relation, threshold)


def claim_of_trials(
    section: str, name: str, setting, statement: str, words: str, samples, relation: str, threshold: float
) -> list[Claim]:
    """The claim that a mean over trials is on one side of a threshold; none for fewer than two trials."""
    if len(samples) < 2:
        return []
    low, high = bootstrap_interval(np.asarray(samples))
    end, value = ("lower", low) if relation == ">" else ("upper", high)
    statistic = f"{end} end of the 95% bootstrap interval, over trials, of {words}"
    return [named_claim(section, name, setting, statement, statistic, value, relation, threshold)]


def as_records(claims: list[Claim]) -> list[dict]:
    """Claims with their verdicts as plain values; None stands for a value that is not finite."""
    records = []
    for claim in claims:
        value = claim.value if math.isfinite(claim.value) else None
        records.append({**asdict(claim), "value": value, "verdict": claim.verdict})
    return records


def save_claims(path: Path, claims: list[Claim], others: list[dict] = ()) -> None:
    """Write claims with their verdicts as JSON, and after them records of others."""
    save_json(path, [*as_records(claims), *others])
