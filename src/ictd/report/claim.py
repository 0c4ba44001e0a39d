"""A claim: a statistic with a threshold, and the verdict that follows.

A file ``claims.toml`` states what is claimed, by which statistic, and with which threshold; the values are computed.
Where the paper's words give no number, the threshold is ours.  A pattern "emerges", or two patterns are "similar", if
the pattern holds more than half of the sum of squares, that is, if a squared cosine or correlation is above one half.
Noise is "mild" if its sum of squares is less than half of the pattern's.  Two matrices are "at the same place" if their
distance is below half their norm.

A claim whose statistic has a 95% confidence interval holds if the whole interval is on the claim's side of the
threshold; it is refuted if the whole interval is on the other side, and not shown if the interval contains the
threshold.  Without an interval, the value alone decides.

The false positive rate of each end is about 2.5% with 20 trials, and higher with fewer.  A claim with many settings may
therefore hold, or be refuted, in some of them by chance.  The ``corrected`` verdicts of claims on means over trials are
those that remain at a false discovery rate of 2.5% (``ictd.statistics.discoveries``).  Other verdicts are not
corrected.
"""

import math
import re
import tomllib
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd

from ictd.report.verdicts import HOLDS, KINDS, NOT_SHOWN, REFUTED, by_name, verdict_by
from ictd.statistics import RESAMPLES, Estimate, bootstrap_mean, discoveries
from ictd.storage import save_json

# Share of the sum of squares that a pattern has to hold.
HALF = 0.5
# About the resolution of single precision, in which networks are usually trained.
NEGLIGIBLE = 1e-6
# False discovery rate: the probability that an end of a 95% interval is on the wrong side.
LEVEL = 0.025
# A word in braces that is not an argument of a formula, as in x_{i} or \frac{a}{b}.
WORD = re.compile(r"(?<![\w^}])\{[a-z]\w*\}")


@dataclass(frozen=True)
class Claim:
    """One claim about one setting, with the statistic that decides it.

    Parameters
    ----------
    id : str, "NAME/SETTING"
    kind : str, one of ``ictd.report.verdicts.KINDS``
    section : str, section of the paper
    setting : str
    statement, statistic : str, in words
    value : float
        The statistic, or its estimate.
    relation : str, "<" or ">"
    threshold : float
    low, high : float or None
        Both ends of the 95% confidence interval of the statistic, if it has one.
    shown : str, names of the figures that show it
    p : float or None
        p-value of the opposite of the claim, if a mean over trials decides.
    trials, trials_hold : int or None
        Number of trials, and of those whose own statistic meets the threshold.
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
    low: float | None = None
    high: float | None = None
    shown: str = ""
    p: float | None = None
    trials: int | None = None
    trials_hold: int | None = None

    def met(self, value):
        """Whether a value, or each value of an array, meets the threshold; NaN does not."""
        return value < self.threshold if self.relation == "<" else value > self.threshold

    @property
    def verdict(self) -> str:
        """One of ``ictd.report.verdicts.VERDICTS``, by ``ictd.report.verdicts.verdict_by``."""
        return verdict_by(self.relation, self.threshold, self.value, self.low, self.high)

    def with_trials(self, values) -> "Claim":
        """The claim with its numbers of trials, given the statistic of each trial."""
        return replace(self, trials=len(values), trials_hold=int(self.met(np.asarray(values)).sum()))


def has_pattern(cosine: pd.Series, threshold: float = HALF) -> pd.Series:
    """Whether each cosine is positive and its square above a threshold."""
    return (cosine > 0) & (cosine**2 > threshold)


def _is_text(value) -> bool:
    return isinstance(value, str) and bool(value)


# The keys of a table in claims.toml, and whether a value is allowed.
KEYS = {
    "id": lambda value: _is_text(value) and "/" not in value,
    "kind": lambda value: value in KINDS,
    "shown": lambda value: isinstance(value, str),
    "section": _is_text,
    "statement": _is_text,
    "statistic": _is_text,
    "relation": lambda value: value in ("<", ">"),
    "threshold": lambda value: type(value) in (int, float) and math.isfinite(value),
}


class Statements:
    """The statements of a file of claims, by name.

    The TOML file has a table for each name, with kind, section, statement, statistic, relation and threshold; and, if
    there is need, the figures that have it ``shown``, and an ``id`` other than the name.  Keys before the first table
    apply to all tables.  Words in braces are filled in by ``claim``.

    Parameters
    ----------
    path : Path

    Raises
    ------
    ValueError
        If the file is not valid TOML, or a table lacks a key or has an unknown one.
    """

    def __init__(self, path: Path):
        try:
            content = tomllib.loads(path.read_text(encoding="utf-8"))
        except ValueError as error:
            raise ValueError(f"{path} is no valid TOML: {error}.") from None
        tables = {name: table for name, table in content.items() if isinstance(table, dict)}
        shared = {key: value for key, value in content.items() if key not in tables}
        self.path = path
        self.tables = {name: {"id": name, "shown": "", **shared, **table} for name, table in tables.items()}
        for name, table in self.tables.items():
            wrong = [key for key in {**KEYS, **table} if key not in KEYS or not KEYS[key](table.get(key))]
            if wrong:
                raise ValueError(
                    f"{path}, table [{name}]: {wrong[0]!r} is missing, unknown or of no use; give section, statement"
                    f' and statistic as text, a kind of {", ".join(KINDS)}, relation as "<" or ">", threshold as a'
                    " number, and an id without a slash."
                )

    def claim(self, name: str, setting, value: float | Estimate, /, **words) -> Claim:
        """Make the claim ``name`` about a setting.

        Parameters
        ----------
        name : str, name of a table
        setting : sequence of words and numbers
        value : float, or an Estimate with its interval
        **words : what replaces each word in braces

        Raises
        ------
        ValueError
            If there is no such table, or a word in braces is not given.
        """
        if name not in self.tables:
            raise ValueError(f"{self.path} has no table [{name}].")
        table = self.tables[name]
        texts = {key: text for key, text in table.items() if key != "threshold"}
        for word, meaning in words.items():
            texts = {key: text.replace(f"{{{word}}}", str(meaning)) for key, text in texts.items()}
        missing = WORD.search(" ".join(texts.values()))
        if missing:
            raise ValueError(f"{self.path}, table [{name}]: {missing[0]} is no word that is filled in here.")
        place = "-".join(map(str, setting))
        texts["id"] = f"{texts['id']}/{place}"
        if isinstance(value, Estimate):
            numbers = value._asdict()
        else:
            numbers = {"value": value if isinstance(value, int) else float(value)}
        return Claim(setting=place, threshold=table["threshold"], **numbers, **texts)

    def of_trials(self, name: str, setting, samples, /, **words) -> list[Claim]:
        """Make the claim that the mean over trials is on one side of the threshold.

        The mean's 95% BCa interval decides.

        Parameters
        ----------
        name, setting, **words : as of ``claim``
        samples : (S,) array, the statistic of each trial

        Returns
        -------
        list of one Claim, or of none if there are fewer than two trials
        """
        if len(samples) < 2:
            return []
        resampled = bootstrap_mean(samples)
        claim = self.claim(name, setting, resampled.estimate(), **words)
        p = resampled.level_below(claim.threshold)
        p = p if claim.relation == ">" else 1 - p
        # Resamples do not resolve smaller probabilities.
        p = float(np.clip(p, 1 / (1 + RESAMPLES), RESAMPLES / (1 + RESAMPLES)))
        return [replace(claim, p=p).with_trials(samples)]


def as_records(claims: list[Claim]) -> list[dict]:
    """Claims as plain values, with their verdicts and their ``corrected`` verdicts.

    The verdicts of all settings of one claim are corrected together: those that hold, and those that are refuted.  A
    number that is not finite becomes None.
    """
    records = []
    for claim in claims:
        numbers = {name: _finite(getattr(claim, name)) for name in ("value", "low", "high")}
        records.append({**asdict(claim), **numbers, "verdict": claim.verdict, "corrected": claim.verdict})
    for group in by_name(records).values():
        decided = [record for record in group if record["p"] is not None]
        p = np.array([record["p"] for record in decided])
        for verdict, p_values in ((HOLDS, p), (REFUTED, 1 - p)):
            kept = discoveries(p_values, LEVEL)
            for record, is_kept in zip(decided, kept, strict=True):
                if record["verdict"] == verdict and not is_kept:
                    record["corrected"] = NOT_SHOWN
    return records


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def save_claims(path: Path, claims: list[Claim], others: list[dict] = ()) -> None:
    """Write claims with their verdicts as JSON, followed by the records of other claims."""
    save_json(path, [*as_records(claims), *others])
