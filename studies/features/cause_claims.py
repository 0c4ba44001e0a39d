"""Claims on causes of eta: mean TD error and reversible chains.  Their trials are seeds."""

from collections.abc import Iterator

import numpy as np
import pandas as pd

from ictd.report.claim import Claim, Statements
from ictd.report.tables import rows_with
from studies.features.grid import CONTROLS, control_of, is_plain

# How eta is found, by the method without its number of layers, in words.
METHODS = {
    "limit": "In the limit of many layers",
    "two_numbers": "With the best α and η at finite depth",
    "pretrained": "Pretrained towards true values",
}
# How the coefficients of the mean and of the rest are found, by target and method: a short name, and words.
SPLITS = {
    ("values", "split"): ("two numbers", "With the best α, η_m and η_r at finite depth"),
    ("td", "split"): ("TD", "Where the expected update of TD is zero"),
    ("values", "limit"): ("limit", METHODS["limit"]),
    ("values", "pretrained"): (
        "pretrained, true values",
        "Pretrained towards true values on prompts that show both parts",
    ),
    ("td", "pretrained"): ("pretrained, TD", "Pretrained by TD on prompts that show both parts"),
    ("values", "pretrained_form"): (
        "nearest form, true values",
        "In the nearest weights of this form after pretraining towards true values on prompts that show both parts",
    ),
    ("td", "pretrained_form"): (
        "nearest form, TD",
        "In the nearest weights of this form after pretraining by TD on prompts that show both parts",
    ),
}


def mean_part_claims(statements: Statements, settings: dict[str, dict], table: pd.DataFrame) -> Iterator[Claim]:
    """Claims on the table of ``studies.features.mean_part``."""
    by_place = {place: rows for place, rows in table.groupby(["setting", "case"], sort=False)}
    for (name, case), rows in by_place.items():
        place, trials = [name, case], {key: own.set_index("seed") for key, own in rows.groupby(["target", "method"])}
        errors = np.log10(rows_with(rows, target="values").pivot(index="seed", columns="method", values="error"))
        if case == "reversible":
            yield from _reversible_claims(statements, place, trials, by_place[name, "weighted"])
        elif is_plain(settings[name]) or case == "without_constant":
            for key, (method, words) in SPLITS.items():
                if key in trials:
                    named = {"method": method, "words": words}
                    yield from statements.of_trials("split_mean", place, trials[key]["mean"], **named)
                    yield from statements.of_trials("split_rest", place, trials[key]["rest"], **named)
                    if key[1].startswith("pretrained"):
                        yield from statements.of_trials("split_share", place, trials[key]["share"], **named)
            middle = (errors["td"] + errors["split"]) / 2
            yield from statements.of_trials("split_mean_alone", place, errors["mean"] - middle)
            if "rest" in errors:
                yield from statements.of_trials("split_rest_alone", place, errors["rest"] - middle)
                yield from statements.of_trials("split_tied", place, errors["mean"] - errors["tied"])
                exchanged = trials["values", "exchanged"]["control"]
                yield from statements.of_trials("split_exchanged", place, exchanged)
        else:
            continue
        yield from statements.of_trials("split_own_states", place, errors["split"] - errors["other_states"])
    yield from _control_claims(statements, settings, by_place)


def _reversible_claims(
    statements: Statements, place: list[str], trials: dict, weighted: pd.DataFrame
) -> Iterator[Claim]:
    """Claims on reversible chains, beside own chains whose columns have the same weights."""
    for key in (("values", "split"), ("values", "limit")):
        method, words = SPLITS[key]
        rest, own = trials[key]["rest"], rows_with(weighted, target=key[0], method=key[1]).set_index("seed")["rest"]
        yield from statements.of_trials("split_sensitive", place, rest, method=method, words=words)
        yield from statements.of_trials("split_reversible", place, rest - own, method=method, words=words)


def _control_claims(statements: Statements, settings: dict[str, dict], by_place: dict) -> Iterator[Claim]:
    """Claims on the gain of the mean beside controls, and on pretrained weights without one part."""
    gains = {}
    for (name, case), rows in by_place.items():
        if case == "own":
            errors = rows.pivot(index="seed", columns=["target", "method"], values="error")
            gains[name] = np.log10(errors["values", "mean"] / errors["values", "td"])
            for target, words in {"values": "true values", "td": "TD"}.items():
                if is_plain(settings[name]) and (target, "without_mean") in errors:
                    ratio = np.log10(errors[target, "without_mean"] / errors[target, "without_rest"])
                    yield from statements.of_trials("split_taken_out", [name], ratio, target=words)
    for name, gain in gains.items():
        for short in ("constant", "centred"):
            words, changes = CONTROLS[short]
            control = gains.get(control_of(settings, name, changes))
            if control is not None and is_plain(settings[name]):
                yield from statements.of_trials("split_control", [name], gain - control, short=short, control=words)


def reversibility_claims(statements: Statements, table: pd.DataFrame) -> Iterator[Claim]:
    """Claims on the table of ``studies.features.reversibility``."""
    places = ["chain", "features", "discount"]
    for place, rows in table.groupby(places, sort=False):
        by_method = {method: trials.set_index(["drift", "seed"]) for method, trials in rows.groupby("method")}
        least, largest = rows["drift"].min(), rows["drift"].max()
        tabular = "tabular " if place[1] == "rotated" else ""
        for method, words in METHODS.items():
            if method in by_method:
                eta = by_method[method]["eta"]
                difference = (eta[least] - eta[largest]).dropna()
                named = {"method": tabular + method.replace("_", " "), "words": words}
                yield from statements.of_trials("reversible", place, difference, **named)
        if "three_numbers" in by_method:
            cosines = [by_method[method]["cosine"][largest] for method in ("three_numbers", "three_shuffled")]
            yield from statements.of_trials("reversed_block", place, cosines[0] - cosines[1])
