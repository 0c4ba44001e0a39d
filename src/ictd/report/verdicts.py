"""Verdicts on claims, read from their records: how many hold, and where they do not.

The cells of notebooks import this module, so it imports nothing that takes long.
"""

import math
import re

from ictd.report.names import MEASURED, PARTS, WORDS

# Kinds of claims: tests of the paper's sentences, and our own claims.
KINDS = ("paper", "ours")
# Verdicts, and their CSS classes.
HOLDS, NOT_SHOWN, REFUTED = "holds", "not shown", "refuted"
VERDICTS = {HOLDS: "holds", NOT_SHOWN: "not-shown", REFUTED: "refuted"}
# A cell or a setting: algorithm, environment, numbers of states and of layers.
PLACE = re.compile(r"(?:([a-z]\w*)-)?([^\W\d]\w*)-(\d+)(?:-(\d+))?")
# The largest number of settings that a verdict names; the rows of a claim name all.
LISTED = 4


def verdict_by(
    relation: str, threshold: float, value: float | None, low: float | None = None, high: float | None = None
) -> str:
    """The verdict on the claim that a value is below ("<") or above (">") a threshold.

    With an interval, the claim holds if the whole interval is on its side of the threshold, it is refuted if the whole
    interval is on the other side, and it is not shown if the interval contains the threshold.  A number that is None or
    NaN shows nothing.
    """
    ends = [value] if low is None and high is None else [low, high]
    if any(end is None or math.isnan(end) for end in ends):
        return NOT_SHOWN
    met = [end < threshold if relation == "<" else end > threshold for end in ends]
    if all(met):
        return HOLDS
    # An interval contains its ends.
    contained = len(ends) == 2 and ends[0] <= threshold <= ends[1]
    return NOT_SHOWN if contained else REFUTED


def by_name(claims: list[dict]) -> dict[str, list[dict]]:
    """Records of each claim, one a setting, by its name: the paper's claims first, then our own."""
    groups = {}
    for claim in sorted(claims, key=lambda claim: KINDS.index(claim["kind"])):
        groups.setdefault(claim["id"].split("/")[0], []).append(claim)
    return groups


def holding(group: list[dict], judged: str = "verdict") -> int:
    """Number of settings in which a claim holds, by its "verdict" or its "corrected" verdict."""
    return sum(claim[judged] == HOLDS for claim in group)


def overall(verdicts: list[str]) -> str:
    """The verdict on what is tested in several parts or settings.

    It holds if all parts hold, and it is refuted if one part is.
    """
    if REFUTED in verdicts:
        return REFUTED
    return HOLDS if set(verdicts) == {HOLDS} else NOT_SHOWN


def verdict_on(group: list[dict]) -> str:
    """The verdict on a claim in all of its settings, by ``overall``."""
    return overall([claim["verdict"] for claim in group])


def count(claims: list[dict]) -> tuple[int, int]:
    """Number of claims, and number of claims that hold in all of their settings."""
    groups = by_name(claims).values()
    return len(groups), sum(verdict_on(group) == HOLDS for group in groups)


def verdict_in_words(group: list[dict]) -> str:
    """The verdicts on a claim in all of its settings, as a sentence without a full stop.

    It names the settings where the claim is not shown or refuted, unless these are all settings or more than LISTED.
    It counts the corrected verdicts if they differ.
    """
    place = PLACE.fullmatch(group[0]["setting"])
    places = "cells" if place and place[1] else "settings"
    parts = []
    for kind in (REFUTED, NOT_SHOWN):
        settings = [claim for claim in group if claim["verdict"] == kind]
        if not settings:
            continue
        if len(group) == 1:
            parts.append(kind)
            continue
        part = f"{kind} in {len(settings)} of {len(group)} {places}"
        if len(settings) < len(group) and len(settings) <= LISTED:
            part += ": " + "; ".join(f"{in_words(claim['setting'])} ({measured(claim)})" for claim in settings)
        parts.append(part)
    if not parts:
        parts.append(HOLDS if len(group) == 1 else f"{HOLDS} in all {len(group)} {places}")
    corrected = holding(group, "corrected")
    if corrected != holding(group):
        parts.append(f"it holds in {corrected} after correction for multiple testing")
    return "; ".join(parts)


def in_words(setting: str) -> str:
    """A setting, whose parts are separated by "-", in words, such as "TD, Boyan's chain, n = 5, L = 30"."""
    # The first parts that are whole numbers are those of states and layers.
    place = re.fullmatch(r"(?:(.*?)-)??(\d+)(?:-(\d+))?(?:-(.*))?", setting)
    before, states, depth, after = place.groups(default="") if place else ("", "", "", setting)
    numbers = [states and f"n = {states}", depth and f"L = {depth}"]
    parts = [*map(words, before.split("-")), *numbers, *map(_part_in_words, after.split("-"))]
    return ", ".join(filter(None, parts))


def words(name: str) -> str:
    """A name of the code in words: WORDS, or else ``_part_in_words``."""
    return WORDS.get(name) or _part_in_words(name)


def _part_in_words(name: str) -> str:
    """The words between spaces and underscores of a name, with PARTS for each."""
    return " ".join(
        PARTS.get(part) or " ".join(PARTS.get(word, word) for word in part.split("_")) for part in name.split(" ")
    )


def measured(claim: dict) -> str:
    """The value of a claim in its unit (``ictd.report.claim.Claim``), and its interval if it has one."""
    ends = [end for end in (claim["low"], claim["high"]) if end is not None]
    values = [claim["value"], *ends]
    if not claim["unit"] or None in values:
        value = number(claim["value"], claim["threshold"])
        return f"{value}, {interval(claim)}" if interval(claim) else value
    after = ""
    if claim["unit"] == "%":
        shown = [f"{value:.0%}" for value in values]
    else:
        ratios = [10**value for value in values]
        if max(ratios) <= 1 or 1 <= min(ratios) <= max(ratios) <= 2:
            ends.sort(key=abs)
            shown = [f"{abs(10**value - 1):.0%}" for value in (values[0], *ends)]
            after = f" {'better' if max(ratios) <= 1 else 'worse'} than {claim['unit']}"
        else:
            shown, after = [f"{ratio:.3g}" for ratio in ratios], f" times as bad as {claim['unit']}"
    return f"{shown[0]}{after}" + (f", {' to '.join(shown[1:])}" if ends else "")


def needs(claim: dict) -> str:
    """What the value of a claim needs to be, in its unit."""
    if claim["unit"] not in ("", "%"):
        return "better"
    threshold = f"{claim['threshold']:.0%}" if claim["unit"] else number(claim["threshold"])
    return f"{claim['relation']} {threshold}"


def outcome(claim: dict) -> str:
    """What a test measures (MEASURED, or its name), its value, and what it needs unless the value says so."""
    name = claim["id"].split("/")[0]
    said = f"{MEASURED.get(name) or words(name)}: {measured(claim)}"
    return said if needs(claim) == "better" else f"{said}; needs {needs(claim)}"


def counts_in_words(group: list[dict]) -> str:
    """In how many settings a claim has each verdict."""
    verdicts = [claim["verdict"] for claim in group]
    return ", ".join(f"{one} in {verdicts.count(one)}" for one in VERDICTS if one in verdicts) + f" of {len(group)}"


def closest(claims: list[dict]) -> dict:
    """The claim that is closest to its threshold, or farthest beyond it, among those with the worst verdict.

    The distance is that of the nearer end of the interval, relative to the threshold unless this is zero.
    """

    def distance(claim: dict) -> float:
        end = claim["high" if claim["relation"] == "<" else "low"]
        end = claim["value"] if end is None else end
        if end is None:
            return -math.inf
        beyond = end - claim["threshold"]
        return (beyond if claim["relation"] == ">" else -beyond) / (abs(claim["threshold"]) or 1)

    return min(claims, key=lambda claim: ((REFUTED, NOT_SHOWN, HOLDS).index(claim["verdict"]), distance(claim)))


def interval(claim: dict) -> str:
    """The interval of a claim; empty if it has none."""
    if claim["low"] is None or claim["high"] is None:
        return ""
    return f"{number(claim['low'], claim['threshold'])} to {number(claim['high'], claim['threshold'])}"


def number(value: float | None, threshold: float | None = None) -> str:
    """A value with three digits; None stands for a value that is not finite.

    A value that these digits would round to the threshold, which it is above or below, gets more digits.
    """
    if value is None or math.isnan(value):
        return "not finite"
    digits = 3
    shown_threshold = None if threshold is None else float(f"{threshold:.3g}")
    while digits < 8 and value != threshold and float(f"{value:.{digits}g}") == shown_threshold:
        digits += 1
    return f"{value:.{digits}g}"
