"""Claims of the study on small tables whose verdicts are known, and its settings."""

import numpy as np
import pandas as pd
import pytest

from ictd.pipeline.config import load_config
from ictd.pipeline.provenance import PROJECT
from ictd.report.claim import Statements
from studies.features.claims import METHODS, check_features, last_rows
from studies.features.grid import compared, control_of, fitted, settings

SEEDS = 6
CONFIG = load_config({}, PROJECT)["features"]


def coefficients(**etas):
    """A table with the given mean of eta in each setting, after the last of two snapshots."""
    rows = [
        {"setting": name, "target": "values", "seed": seed, "tasks_seen": seen, "alpha": 1.0,
         "eta": eta + 0.01 * (seed - 2.5) if seen == 20 else -5.0, "four": 0.9}
        for name, eta in etas.items() for seed in range(SEEDS) for seen in (10, 20)
    ]  # fmt: skip
    return pd.DataFrame(rows)


def errors(**trimmed):
    rows = [
        {"setting": "main", "method": method, "seed": seed, "trimmed": value * (1 + 0.01 * seed)}
        for method, value in trimmed.items() for seed in range(SEEDS)
    ]  # fmt: skip
    return pd.DataFrame(rows)


def decided(**tables):
    best = pd.DataFrame({"setting": ["main"], "family": ["four_numbers"], "target": ["values"], "eta": [0.5]})
    given = {
        "coefficients": coefficients(main=0.5, rotated=0.1, constant=-0.2, shuffled=0.5, centred=-0.1),
        "best": best,
        "errors": errors(**dict.fromkeys(METHODS, 2.0), pretrained_values=1.0),
        "deflation": pd.DataFrame({"setting": "fixed", "target": "values", "seed": range(SEEDS), "own": 0.9}),
    } | tables
    claims = check_features(Statements(PROJECT / "studies/features/claims.toml"), settings(CONFIG), given)
    return {(claim.id.split("/")[0], claim.setting, claim.statement): claim for claim in claims}


def one(claims, name, word="", setting="main-values"):
    (claim,) = [
        claim
        for key, claim in claims.items()
        if key[0].partition(", ")[0] == name and word in key[2] and key[1] == setting
    ]
    return claim


def test_eta_is_compared_with_its_controls():
    claims = decided()
    assert one(claims, "second_positive").verdict == "holds"
    assert one(claims, "second_exceeds", "represent all values").value == pytest.approx(0.4)
    assert one(claims, "second_exceeds", "constant").value == pytest.approx(0.7)
    assert one(claims, "second_exceeds", "mean of zero").value == pytest.approx(0.6)
    assert one(claims, "second_exceeds", "other states").value == pytest.approx(0)
    assert one(claims, "second_positive", setting="constant-values").verdict == "refuted"
    assert not [
        key
        for key in claims
        if key[0].startswith("second_positive") and key[1] in ("rotated-values", "shuffled-values")
    ]


def test_predictions_and_patterns():
    claims = decided()
    assert one(claims, "predicted").verdict == "holds" and one(claims, "symmetric").verdict == "holds"
    far = decided(coefficients=coefficients(main=1.0))
    assert one(far, "predicted").verdict == "refuted"
    assert one(claims, "deflation", setting="fixed-values").value == pytest.approx(0.81)
    opposite = pd.DataFrame({"setting": "fixed", "target": "td", "seed": range(SEEDS), "own": -0.9})
    assert one(decided(deflation=opposite), "deflation", setting="fixed-td").verdict == "refuted"


def test_errors_are_compared_by_ratios():
    claims = decided()
    for words in METHODS.values():
        claim = one(claims, "beats", f"smaller error than {words}.")
        assert claim.value == pytest.approx(np.log10(0.5)) and claim.trials_hold == SEEDS
    worse = decided(errors=errors(**dict.fromkeys(METHODS, 2.0) | {"lstd_mean": 1.0}, pretrained_values=3.0))
    assert one(worse, "beats", f"smaller error than {METHODS['lstd']}.").verdict == "refuted"
    assert one(worse, "second_helps", METHODS["lstd_mean"], "main").verdict == "refuted"


def test_only_the_last_snapshot_counts():
    assert set(last_rows(coefficients(main=0.5))["tasks_seen"]) == {20}


def test_a_control_differs_in_nothing_else():
    found = settings(CONFIG)
    assert control_of(found, "dense", {"features": "rotated"}) == "dense_rotated"
    assert control_of(found, "main", {"prompts": "shuffled"}) == "shuffled"
    assert control_of(found, "d_6", {"features": "constant"}) is None
    assert control_of(found, "depth_3", {"features": "rotated"}) is None


def test_settings_differ_from_the_main_one_by_what_they_name():
    found = settings(CONFIG)
    assert found["loop"] == found["main"] | {"env": "loop"} and found["depth_3"]["depth"] == 3
    assert found["depth_3"]["seeds"] == CONFIG["others"]["seeds"]
    assert set(compared(CONFIG)) < set(fitted(CONFIG)) < set(found)
    assert "rotated" in fitted(CONFIG) and "one_hot" not in fitted(CONFIG)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"tasks": 3}, "features has an unknown key 'tasks'"),
        ({"main": {"env": "bayou"}}, "features.main.env is 'bayou'"),
        ({"main": {"discount": 1}}, "features.main.discount is 1; give at most 0.999"),
        ({"controls": [{"name": "a", "colour": 1}]}, "unknown key 'colour'"),
    ],
)
def test_bad_settings_are_named_in_one_sentence(given, message):
    with pytest.raises(ValueError) as raised:
        load_config({"features": given}, PROJECT)
    assert message in str(raised.value) and "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([{"name": "a"}, {"name": "a"}], "two settings 'a'"),
        ([{"name": "a", "features": "one_hot"}], "'a' has 4 one_hot features for 10 states"),
        ([{"name": "a", "dimension": 11}], "'a' has 11 normal features for 10 states"),
    ],
)
def test_settings_that_do_not_fit(given, message):
    with pytest.raises(ValueError, match=message):
        settings(CONFIG | {"controls": given})
