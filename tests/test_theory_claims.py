"""Claims on the theory, decided on made-up tables; each claim can hold and fail."""

import numpy as np
import pytest
from drawn import numbered, where
from html_page import Page
from paper import changed, claims_in, results_of

from ictd.report.paper import theory_claims, views
from ictd.statistics import bootstrap_mean

GAMMA, DEPTH, LONG = 0.9, 150, 300
SETTINGS = {"env": ["loop", "boyan"], "states": [5, 3]}
OF_STATEMENTS = ["theorem_1", "lemma_1", "lemma_3", "lemma_4"]
TRIALS = range(4)


@pytest.fixture
def tables():
    """Tables on which all claims hold."""
    cells = {"algo": ["td", "mc"], **SETTINGS, "depth": [6], "seed": TRIALS}
    sides = numbered({"statement": OF_STATEMENTS, **SETTINGS, "layer": range(DEPTH + 1)}, ["tightest"])
    sides = sides.assign(left_max=GAMMA ** sides["layer"], right_mean=1.0, violations=0)
    sides["tightest"] += 1
    neu = numbered({"algo": ["td", "mc"], **SETTINGS, "space": ["looped", "separate"], "layer": range(DEPTH + 1)}, [])
    neu = neu.assign(norm=GAMMA ** neu["layer"], bound=2.0, sharper=1.5)
    line = numbered({**cells, "position": [0.0, 0.25, 0.5, 1.0]}, [])
    line["looped_norm"] = line["position"].map({0.0: 1.0, 0.25: 5.0, 0.5: 9.0, 1.0: 3.0})
    repeated = numbered({**cells, "layer": [1, 6, 30]}, [])
    repeated["looped_norm"] = np.where(repeated["layer"] == 6, 1.0, 10.0)
    members = numbered({"member": ["beyond", "inside", "with_u"], **SETTINGS, "draw": [1, 0], "layer": [0, LONG]}, [])
    members["error"] = np.where((members["member"] != "beyond") & (members["layer"] > 0), 1e-12, 1.0)
    steps = numbered({"algo": ["td", "mc"], **SETTINGS, "draw": [1, 0], "layer": [1, 9, LONG]}, [])
    return {
        "statements": sides, "neu": neu, "pretrained": line, "repeated": repeated,
        "family": members.assign(violations=0),
        "family_updates": steps.assign(norm=np.exp(-0.1 * steps["layer"])),
    }  # fmt: skip


def decided(tables, discount=GAMMA):
    """Claims by their names, with their verdicts and values."""
    return claims_in(theory_claims, results_of({}, tables, discount=discount))


def failing(tables, discount=GAMMA):
    return {name for name, claim in decided(tables, discount).items() if claim.verdict != "holds"}


def kinds(names):
    return {name.split("/")[0] for name in names}


def test_claims_that_hold(tables):
    made = decided(tables)
    assert not failing(tables)
    # For each statement and setting; five for each setting on J and J'; six on the family.
    of_settings = len(OF_STATEMENTS) + 2 * 5 + 6
    assert len(made) == 4 * of_settings + 3 * len(where(tables["repeated"], seed=0, layer=1))


PLACE = {"env": "loop", "states": 5}


@pytest.mark.parametrize(
    ("table", "column", "value", "at", "expected"),
    [
        ("statements", "violations", 1, {"statement": "lemma_1", "layer": 3}, "lemma_1/loop-5"),
        ("statements", "left_max", 1e-3, {"statement": "theorem_1", "layer": DEPTH}, "theorem_1/loop-5"),
        ("statements", "right_mean", 1e-2, {"statement": "theorem_1", "layer": 0}, "theorem_1/loop-5"),
        ("neu", "bound", 0.0, {"algo": "td", "space": "looped", "layer": 9}, "theorem_2_bound/loop-5"),
        ("neu", "bound", np.nan, {"algo": "mc", "space": "looped", "layer": 9}, "corollary_1_bound/loop-5"),
        ("neu", "bound", 0.0, {"algo": "mc", "space": "separate", "layer": 9}, None),
        ("neu", "sharper", 0.0, {"algo": "mc", "space": "looped", "layer": 30}, "corollary_1_sharper/loop-5"),
        ("neu", "sharper", 0.0, {"algo": "mc", "space": "separate", "layer": 30}, "corollary_1_sharper/loop-5"),
        ("neu", "norm", 1e-3, {"algo": "td", "space": "separate", "layer": DEPTH}, "theorem_2_separate/loop-5"),
        ("family", "violations", 2, {"member": "inside", "draw": 1}, "family/loop-5"),
        ("family", "violations", 2, {"member": "beyond", "draw": 1}, None),
        ("family", "error", 1e-3, {"member": "inside", "draw": 0, "layer": LONG}, "family_limit/loop-5"),
        ("family", "error", 1e-3, {"member": "with_u", "draw": 0, "layer": LONG}, "family_u/loop-5"),
        ("family", "error", 1e-9, {"member": "beyond", "draw": 0, "layer": LONG}, "beyond_family/loop-5"),
        ("family", "error", np.nan, {"member": "beyond", "layer": LONG}, None),
        ("family_updates", "norm", 1e-3, {"algo": "td", "draw": 0, "layer": LONG}, "family_update_td/loop-5"),
        ("pretrained", "looped_norm", 0.5, {"algo": "td", "position": 1.0}, "pretrained_lower/td-loop-5-6"),
        ("pretrained", "looped_norm", np.nan, {"algo": "mc", "seed": 0}, None),
        ("pretrained", "looped_norm", np.nan, {"algo": "td", "position": 0.25},
         "barrier/td-loop-5-6 pretrained_lower/td-loop-5-6"),
        ("repeated", "looped_norm", 0.1, {"algo": "td", "layer": 30}, "pretrained_repeated/td-loop-5-6"),
        ("repeated", "looped_norm", np.nan, {"algo": "td", "layer": 30}, None),
    ],
)  # fmt: skip
def test_claims_that_fail(tables, table, column, value, at, expected):
    """One setting is changed, and only claims on this setting fail; norms that overflowed count as growth."""
    place = PLACE if "env" in tables[table] else {}
    tables[table] = changed(tables[table], column, value, **place, **at)
    assert failing(tables) == {*(expected or "").split()}


@pytest.mark.parametrize(
    ("power", "expected"),
    [(1.0, set()), (0.95, {"theorem_2_rate", "corollary_1_rate"}),
     (0.0, {f"{name}{kind}" for name in ("theorem_2", "corollary_1") for kind in ("", "_rate", "_separate")})],
)  # fmt: skip
def test_norms_fall_as_powers_of_gamma(tables, power, expected):
    tables["neu"]["norm"] = GAMMA ** (power * tables["neu"]["layer"])
    assert kinds(failing(tables)) == expected


def test_no_claim_is_made_without_enough_data(tables):
    """Limits need depths at which gamma^L, or the family's rate, is below a millionth; intervals need two trials."""
    limits = {"theorem_1"} | {f"{one}{kind}" for one in ("theorem_2", "corollary_1") for kind in ("", "_separate")}
    rates = {"theorem_2_rate", "corollary_1_rate"}
    of_family = {"family_limit", "family_u", "beyond_family", "family_update_td", "family_update_mc"}
    every = kinds(decided(tables))

    def left_out(discount=GAMMA, **parts):
        return every - kinds(decided(tables | parts, discount))

    # 0.9^131 is just above a millionth, 0.9^132 below it.
    short = {name: tables[name].query("layer <= 131") for name in ("statements", "neu")}
    assert left_out(**short) == limits | rates
    assert not left_out(**{name: tables[name].query("layer <= 132") for name in short})
    assert left_out(family=tables["family"].replace({"layer": {LONG: 260}})) == of_family
    assert left_out(0.0) == rates | {"beyond_family"}
    single = {name: tables[name].query("seed == 0") for name in ("pretrained", "repeated")}
    assert left_out(**single) == {"pretrained_lower", "barrier", "pretrained_repeated"}
    assert left_out(repeated=tables["repeated"].query("layer <= 6")) == {"pretrained_repeated"}


def test_claims_have_the_values_of_their_tables(tables):
    rng = np.random.default_rng(0)
    for name, column in (("neu", "norm"), ("pretrained", "looped_norm"), ("repeated", "looped_norm")):
        tables[name][column] *= rng.uniform(0.5, 2, len(tables[name]))
    at, cell = {"algo": "td", **PLACE}, "td-loop-5-6"
    # Overflows count as float64's largest number, and runs that diverged in training are not counted.
    tables["pretrained"] = changed(tables["pretrained"], "looped_norm", np.nan, seed=0, position=0.25)
    tables["repeated"] = changed(tables["repeated"], "looped_norm", np.nan, seed=0, layer=30)
    tables["repeated"] = changed(tables["repeated"], "looped_norm", np.nan, seed=1)
    made = decided(tables)
    norms = where(tables["neu"], **at, space="looped")["norm"].to_numpy()
    slope = np.polyfit(np.arange(100, DEPTH + 1), np.log(norms[100:]), 1)[0]
    assert made["theorem_2_rate/loop-5"].value == pytest.approx(abs(slope / np.log(GAMMA) - 1))
    assert made["theorem_2/loop-5"].value == pytest.approx(norms[-1] / norms.max())
    line = where(tables["pretrained"], **at).pivot(index="seed", columns="position", values="looped_norm").dropna()
    deep = where(tables["repeated"], **at).pivot(index="seed", columns="layer", values="looped_norm")
    growth = np.log10(deep[30] / deep[6])[[0, 2, 3]].fillna(308)
    for name, samples in (
        ("pretrained_lower", np.log10(line[0.0] / line[1.0])),
        ("barrier", np.log10(line[[0.25, 0.5]].max(axis=1) / line[[0.0, 1.0]].max(axis=1))),
        ("pretrained_repeated", growth),
    ):
        assert made[f"{name}/{cell}"].trials == len(samples) == 3
        assert made[f"{name}/{cell}"].low == pytest.approx(bootstrap_mean(samples.to_numpy()).estimate().low)


def test_the_overview_has_the_least_bound_of_each_statement(tables):
    results = results_of({}, tables)
    made = claims_in(theory_claims, results)
    rows = Page(views.theory.make(results)).rows()
    ratios = tables["statements"].query("layer > 0").groupby("statement")["tightest"].min()
    assert {f"{ratio:.3g}" for ratio in ratios} == {row[3] for row in rows} - {""}
    assert len(rows) == len(kinds(made))
