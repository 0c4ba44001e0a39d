"""Verdicts on claims, read from their records: how many hold, and where they fail.

What a page says of a run needs no tables; so this needs nothing that takes long to import.
"""

import math
import re

# What a claim is: the paper's, one of our own, or a check of what is true by construction.
KINDS = ("paper", "ours", "check")
# A cell or a setting: algorithm, environment, numbers of states and of layers.
PLACE = re.compile(r"(?:(td|mc)-)?(\w+)-(\d+)(?:-(\d+))?")
# So many settings are named where a claim fails, as many as the paper has cells; of more the rows tell.
LISTED = 14


def by_name(claims: list[dict]) -> dict[str, list[dict]]:
    """A list of settings for each claim: the paper's first, then our own, then what checks, each in their order."""
    groups = {}
    for claim in sorted(claims, key=lambda claim: KINDS.index(claim["kind"])):
        groups.setdefault(claim["id"].split("/")[0], []).append(claim)
    return groups


def holding(group: list[dict], judged: str = "verdict") -> int:
    """In how many settings a claim holds, by its verdict or by the one that is ``corrected``."""
    return sum(claim[judged] == "holds" for claim in group)


def holds_everywhere(group: list[dict]) -> bool:
    """Whether a claim holds in every setting that it speaks of."""
    return holding(group) == len(group)


def count(claims: list[dict]) -> tuple[int, int]:
    """How many claims there are, whatever their settings, and how many hold in every setting."""
    groups = by_name(claims).values()
    return len(groups), sum(map(holds_everywhere, groups))


def verdict(group: list[dict]) -> str:
    """In how many cells or settings a claim holds, and where it fails, unless in all or in more than LISTED; and how
    many are left after the correction for their number, if that makes a difference."""
    failed = [claim for claim in group if claim["verdict"] == "fails"]
    found = PLACE.fullmatch(group[0]["setting"])
    places = "cells" if found and found[1] else "settings"
    kept = holding(group, "corrected")
    if not failed:
        said = "holds" if len(group) == 1 else f"holds in all {len(group)} {places}"
    elif len(group) == 1:
        said = "fails"
    else:
        where = [f"{in_words(claim['setting'])} ({number(claim['value'])})" for claim in failed]
        listed = f": {'; '.join(where)}" if len(failed) < len(group) and len(failed) <= LISTED else ""
        said = f"fails in {len(failed)} of {len(group)} {places}{listed}"
    return said if kept == len(group) - len(failed) else f"{said}. Corrected for their number it holds in {kept}"


def in_words(setting: str) -> str:
    """A setting as words; one that is no cell stays as it is."""
    found = PLACE.fullmatch(setting)
    if not found:
        return setting
    algo, env, states, depth = found.groups()
    return " ".join(filter(None, [algo and algo.upper(), env, f"n={states}", depth and f"L={depth}"]))


def number(value: float | None) -> str:
    """A value to three digits; None stands for one that is not finite."""
    return "not finite" if value is None or math.isnan(value) else f"{value:.3g}"
