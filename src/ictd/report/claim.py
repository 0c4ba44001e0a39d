"""A claim: a statistic with a threshold, and the verdict that follows.

What is claimed, by which statistic and with which threshold, stands in a file ``claims.toml``; the values
are computed.  Thresholds are ours where the paper's words give no number.  A pattern "emerges", or two are "similar",
when it holds more than half of the sum of squares (a squared cosine or correlation above one half); noise is "mild"
when its sum of squares is less than half of the pattern's; two are "at the same place" when their distance is below
half their norm.

A verdict on a mean over trials is wrong in favour of the claim with a chance of about a fortieth where trials are 20,
and more where they are few.  Where one claim is made of many settings some are then right by chance; so beside each
such verdict stands what is left of it when the share of those among the ones that hold is kept below that
(``discoveries``).  Other verdicts stand as they are.
"""

import math
import re
import tomllib
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd

from ictd.report.verdicts import KINDS
from ictd.statistics import bootstrap_means, discoveries, interval
from ictd.storage import save_json

# Share of the sum of squares that a pattern has to hold.
HALF = 0.5
# About the resolution of single precision, in which networks are usually trained.
NEGLIGIBLE = 1e-6
# Chance that an end of a 95% interval is on the wrong side.
LEVEL = 0.025
# A word in braces that is not an argument of a formula, as in x_{i} or \frac{a}{b}.
WORD = re.compile(r"(?<![\w^}])\{[a-z]\w*\}")


@dataclass(frozen=True)
class Claim:
    """One claim about one setting, with the statistic that decides it.

    ``where`` names the section and paragraph of the paper that says it, ``shown`` the figures that show it.  ``end``
    says which end of a 95% bootstrap interval, over trials, of the statistic the value is; it is empty where the value
    is the statistic itself.  ``p`` is the share of resamples that speak against it, where a mean over trials decides,
    else None.  Of ``trials`` by themselves, where there are such, ``trials_hold`` are on the claim's side.
    """

    id: str
    kind: str
    section: str
    setting: str
    statement: str
    statistic: str
    value: float
    relation: str
    threshold: float
    where: str = ""
    shown: str = ""
    end: str = ""
    p: float | None = None
    trials: int | None = None
    trials_hold: int | None = None

    def met(self, value):
        """Whether a value, or each of an array of them, is on the claim's side; one that is not a number is not."""
        return value < self.threshold if self.relation == "<" else value > self.threshold

    @property
    def verdict(self) -> str:
        """ "holds" or "fails"."""
        return "holds" if self.met(self.value) else "fails"

    def with_trials(self, values) -> "Claim":
        """The claim with the number of trials, given the statistic of each by itself."""
        return replace(self, trials=len(values), trials_hold=int(self.met(np.asarray(values)).sum()))


def has_pattern(cosine: pd.Series, threshold: float = HALF) -> pd.Series:
    """Whether a squared cosine is above a threshold, for cosines that are positive."""
    return (cosine > 0) & (cosine**2 > threshold)


def _is_text(value) -> bool:
    return isinstance(value, str) and bool(value)


# What a table of claims has, and what each may be.
KEYS = {
    "id": lambda value: _is_text(value) and "/" not in value,
    "kind": lambda value: value in KINDS,
    "where": lambda value: isinstance(value, str),
    "shown": lambda value: isinstance(value, str),
    "end": lambda value: value in ("", "lower", "upper"),
    "section": _is_text,
    "statement": _is_text,
    "statistic": _is_text,
    "relation": lambda value: value in ("<", ">"),
    "threshold": lambda value: type(value) in (int, float) and math.isfinite(value),
}


class Statements:
    """What is claimed, by name, with the statistic and the threshold that decide it.

    The TOML file ``path`` has a table a name: kind, section, statement, statistic, relation and threshold, ``where`` in
    the paper it is said, the figures that have it ``shown``, the ``end`` of an interval of the statistic that decides,
    and ``id`` where the claim's is not the name.  What stands before the tables is of all,
    and {words} are filled in.  A file that is not so, a name without a table and a word that is not filled in raise
    a ValueError.
    """

    def __init__(self, path: Path):
        try:
            found = tomllib.loads(path.read_text(encoding="utf-8"))
        except ValueError as error:
            raise ValueError(f"{path} is no valid TOML: {error}.") from None
        shared = {key: value for key, value in found.items() if not isinstance(value, dict)}
        self.path = path
        empty = {"where": "", "shown": "", "end": ""}
        self.tables = {name: {"id": name} | empty | shared | found[name] for name in found if name not in shared}
        for name, table in self.tables.items():
            wrong = [key for key in {**KEYS, **table} if key not in KEYS or not KEYS[key](table.get(key))]
            if wrong:
                raise ValueError(
                    f"{path}, table [{name}]: {wrong[0]!r} is missing, unknown or of no use; give section, statement"
                    f' and statistic as text, a kind of {", ".join(KINDS)}, relation as "<" or ">", threshold as a'
                    " number, and an id without a slash."
                )

    def claim(self, name: str, setting, value: float, /, **words) -> Claim:
        """A claim about a setting, a sequence of words and numbers."""
        if name not in self.tables:
            raise ValueError(f"{self.path} has no table [{name}].")
        text = dict(self.tables[name])
        for word, meaning in words.items():
            texts = {key: part.replace(f"{{{word}}}", str(meaning)) for key, part in text.items() if key != "threshold"}
            text |= texts
        left = WORD.search(" ".join(map(str, text.values())))
        if left:
            raise ValueError(f"{self.path}, table [{name}]: {left[0]} is no word that is filled in here.")
        setting = "-".join(map(str, setting))
        value = value if isinstance(value, int) else float(value)
        return Claim(setting=setting, value=value, **text | {"id": f"{text['id']}/{setting}"})

    def of_trials(self, name: str, setting, samples, /, **words) -> list[Claim]:
        """The claim that a mean over trials is on one side of the threshold; none for fewer than two trials.

        Decided is by an end of the 95% bootstrap interval, over trials, of what the statistic says.
        """
        if len(samples) < 2:
            return []
        made, means = self.claim(name, setting, math.nan, **words), bootstrap_means(np.asarray(samples, dtype=float))
        (low, high), more = interval(means), made.relation == ">"
        end, value = ("lower", low) if more else ("upper", high)
        p = float((1 + (~made.met(means)).sum()) / (1 + len(means)))
        return [replace(made, value=value, end=end, p=p).with_trials(samples)]


def as_records(claims: list[Claim]) -> list[dict]:
    """Claims with their verdicts, and those verdicts ``corrected`` for their number, as plain values; None stands for a
    value that is not finite."""
    kept, by = {}, {}
    for claim in claims:
        by.setdefault(claim.id.split("/")[0], []).append(claim)
    for group in by.values():
        decided = [claim for claim in group if claim.p is not None]
        found = discoveries(np.array([claim.p for claim in decided]), LEVEL) if decided else []
        kept |= {claim.id: bool(one) for claim, one in zip(decided, found, strict=True)}
    records = []
    for claim in claims:
        value, verdict = claim.value if math.isfinite(claim.value) else None, claim.verdict
        corrected = verdict if kept.get(claim.id, True) else "fails"
        records.append({**asdict(claim), "value": value, "verdict": verdict, "corrected": corrected})
    return records


def save_claims(path: Path, claims: list[Claim], others: list[dict] = ()) -> None:
    """Write claims with their verdicts as JSON, and after them records of others."""
    save_json(path, [*as_records(claims), *others])
