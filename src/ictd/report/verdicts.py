"""Verdicts on claims, read from their records: how many hold, and where they fail.

The cells of notebooks import this module, so it imports nothing that takes long.
"""

import math
import re

# Kinds of claims: the paper's, our own, and checks of what is true by construction.
KINDS = ("paper", "ours", "check")
# A cell or a setting: algorithm, environment, numbers of states and of layers.
PLACE = re.compile(r"(?:(td|mc)-)?(\w+)-(\d+)(?:-(\d+))?")
# The largest number of failing settings that a verdict names, which is the paper's number of cells.
LISTED = 14


def by_name(claims: list[dict]) -> dict[str, list[dict]]:
    """Records of each claim, one a setting, by its name: the paper's claims first, then our own, then checks."""
    groups = {}
    for claim in sorted(claims, key=lambda claim: KINDS.index(claim["kind"])):
        groups.setdefault(claim["id"].split("/")[0], []).append(claim)
    return groups


def holding(group: list[dict], judged: str = "verdict") -> int:
    """Number of settings in which a claim holds, by its "verdict" or its "corrected" verdict."""
    return sum(claim[judged] == "holds" for claim in group)


def holds_everywhere(group: list[dict]) -> bool:
    """Whether a claim holds in all of its settings."""
    return holding(group) == len(group)


def count(claims: list[dict]) -> tuple[int, int]:
    """Number of claims, and number of claims that hold in all of their settings."""
    groups = by_name(claims).values()
    return len(groups), sum(map(holds_everywhere, groups))


def verdict(group: list[dict]) -> str:
    """The verdict on a claim in all of its settings, as a sentence without a full stop.

    It names the settings where the claim fails, unless these are all settings or more than LISTED.  It counts the
    corrected verdicts if they differ.
    """
    failed = [claim for claim in group if claim["verdict"] == "fails"]
    place = PLACE.fullmatch(group[0]["setting"])
    places = "cells" if place and place[1] else "settings"
    if not failed:
        sentence = "holds" if len(group) == 1 else f"holds in all {len(group)} {places}"
    elif len(group) == 1:
        sentence = "fails"
    else:
        sentence = f"fails in {len(failed)} of {len(group)} {places}"
        if len(failed) < len(group) and len(failed) <= LISTED:
            values = [f"{in_words(claim['setting'])} ({number(claim['value'])})" for claim in failed]
            sentence += f": {'; '.join(values)}"
    corrected = holding(group, "corrected")
    if corrected != holding(group):
        sentence += f". It holds in {corrected} after correction for multiple testing"
    return sentence


def in_words(setting: str) -> str:
    """A setting in words, such as "TD boyan n=5 L=30"; a text that names no setting is returned unchanged."""
    place = PLACE.fullmatch(setting)
    if not place:
        return setting
    algo, env, states, depth = place.groups()
    return " ".join(filter(None, [algo and algo.upper(), env, f"n={states}", depth and f"L={depth}"]))


def number(value: float | None) -> str:
    """A value with three digits; None stands for a value that is not finite."""
    return "not finite" if value is None or math.isnan(value) else f"{value:.3g}"
