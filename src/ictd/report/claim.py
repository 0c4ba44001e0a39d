"""A claim: a statistic with a threshold, and the verdict that follows.

A function with the decorator ``claim`` computes a statistic; its docstring says what is claimed and by which statistic,
the decorator has the threshold, and a comment gives the reason for the threshold.

Where the paper's words give no number, the threshold is ours.  A pattern "emerges", or two patterns are "similar", if
the pattern holds more than half of the sum of squares, that is, if a squared cosine or correlation is above one half.
Noise is "mild" if its sum of squares is less than half of the pattern's.  Two matrices are "at the same place" if their
distance is below half their norm.

A claim whose statistic has a 95% confidence interval holds if the whole interval is on the claim's side of the
threshold; it is refuted if the whole interval is on the other side, and not shown if the interval contains the
threshold.  A value without an interval decides only if the claim is *exact*: an identity, a proved bound, or a count
without chance.  Otherwise it is not shown.

An exact claim that two computations agree compares their difference with what rounding may do (``rounding``), and
holds if the ratio is below 1.

The false positive rate of each end is about 2.5% with 20 trials, and higher with fewer.  A claim with many settings may
therefore hold, or be refuted, in some of them by chance.  The ``corrected`` verdicts of claims on means over trials are
those that remain at a false discovery rate of 2.5% (``ictd.statistics.discoveries``).  Other verdicts are not
corrected.
"""

import inspect
import math
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import NamedTuple

import numpy as np
import pandas as pd

from ictd.report.verdicts import HOLDS, NOT_SHOWN, REFUTED, by_name, verdict_by
from ictd.statistics import RESAMPLES, Estimate, bootstrap_mean, discoveries

# Share of the sum of squares that a pattern has to hold.
HALF = 0.5
# About the resolution of single precision, in which networks are usually trained.
NEGLIGIBLE = 1e-6
# False discovery rate: the probability that an end of a 95% interval is on the wrong side.
LEVEL = 0.025


@dataclass(frozen=True)
class Claim:
    """One claim about one setting, with the statistic that decides it.

    Parameters
    ----------
    id : str, "NAME/SETTING"
    kind : str, one of ``ictd.report.verdicts.KINDS``
    section : str, section of the paper, for claims on the theory
    setting : str
    statement, statistic : str, in words
    value : float
        The statistic, or its estimate.
    relation : str, "<" or ">"
    threshold : float
    low, high : float or None
        Both ends of the 95% confidence interval of the statistic, if it has one.
    shown : str, names of the figures that show it
    unit : str
        How readers see the values: "" for numbers, "%" for shares; otherwise what the MSVE is compared with, in words,
        by log10 of the ratio of both.
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
    unit: str = ""
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


def rounding(terms: int | pd.Series, layers: int | pd.Series) -> float | pd.Series:
    """Relative rounding error of a result of L layers in float64, an upper estimate unless terms cancel.

    Each layer has sums of a number of terms, forward and backward.  Each term is rounded by at most 2^-53.
    """
    return 2 * terms * layers * 2.0**-53


def has_pattern(cosine: pd.Series, threshold: float = HALF) -> pd.Series:
    """Whether each cosine is positive and its square above a threshold."""
    return (cosine > 0) & (cosine**2 > threshold)


class Trials(NamedTuple):
    """The statistic of each trial; the mean, with its 95% BCa interval, decides.

    Parameters
    ----------
    samples : (S,) array
    """

    samples: np.ndarray


@dataclass(frozen=True)
class Statement:
    """What is claimed: a statement, the statistic and the threshold that decide it, and the function that computes it.

    Parameters
    ----------
    compute : function
        A generator of pairs of a setting and a value.  The setting is a text or a sequence of words and numbers.  The
        value is an ``Estimate`` with its interval, ``Trials``, or a number, which shows nothing unless it is exact.  A
        third item is an array of statistics of trials, of which those are counted that meet the threshold; by default
        they are those of ``Trials``.
    claim : Claim
        Without a setting and a value; its id is the name of the statement.
    kind : str, or function of results, id and setting that returns it
    exact : bool, whether numbers are exact
    """

    compute: Callable
    claim: Claim
    kind: str | Callable
    exact: bool

    @property
    def id(self) -> str:
        """The name of the statement, without a slash."""
        return self.claim.id

    def decide(self, results) -> list[Claim]:
        """Make the claims on all settings; ``Trials`` with fewer than two samples make no claim."""
        claims = []
        for setting, value, *counted in self.compute(results):
            place = setting if isinstance(setting, str) else "-".join(map(str, setting))
            kind = self.kind if isinstance(self.kind, str) else self.kind(results, self.id, place)
            claim = replace(self.claim, id=f"{self.id}/{place}", setting=place, kind=kind)
            if isinstance(value, Trials):
                if len(value.samples) < 2:
                    continue
                counted = counted or [value.samples]
                resampled = bootstrap_mean(np.asarray(value.samples))
                value = resampled.estimate()
                p = resampled.level_below(claim.threshold)
                p = p if claim.relation == ">" else 1 - p
                # Resamples do not resolve smaller probabilities.
                claim = replace(claim, p=float(np.clip(p, 1 / (1 + RESAMPLES), RESAMPLES / (1 + RESAMPLES))))
            if not isinstance(value, Estimate):
                end = None if self.exact else np.nan
                value = Estimate(value if isinstance(value, int) else float(value), end, end)
            claim = replace(claim, **value._asdict())
            for trials in counted:
                hold = int(claim.met(np.asarray(trials)).sum())
                claim = replace(claim, trials=len(trials), trials_hold=hold)
            claims.append(claim)
        return claims


def claim(
    relation: str,
    threshold: float,
    *,
    kind: str | Callable = "ours",
    exact: bool = False,
    section: str = "",
    shown: str = "",
    unit: str = "",
    id: str | None = None,
    statement: str | None = None,
) -> Callable[[Callable], Statement]:
    """Make a ``Statement`` of a function, as a decorator.

    The first paragraph of the function's docstring is the statement, and the second is the statistic.

    Parameters
    ----------
    relation : str, "<" or ">", of the statistic to the threshold
    threshold : float
    kind, exact : as of ``Statement``
    section, shown, unit : as of ``Claim``
    id, statement : str, optional
        In place of the function's name and of the first paragraph, for a function that is used several times.
    """

    def made(compute: Callable) -> Statement:
        said = paragraphs(compute)
        statistic = said[-1].rstrip(".")
        statistic = statistic[0].lower() + statistic[1:] if statistic[1:2].islower() else statistic
        undecided = Claim(
            id=id or compute.__name__,
            kind="",
            section=section,
            setting="",
            statement=statement or said[0],
            statistic=statistic,
            value=np.nan,
            relation=relation,
            threshold=threshold,
            shown=shown,
            unit=unit,
        )
        return Statement(compute, undecided, kind, exact)

    return made


def paragraphs(function: Callable) -> list[str]:
    """The paragraphs of a function's docstring, each in one line."""
    return [" ".join(part.split()) for part in inspect.getdoc(function).split("\n\n")]


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
