"""Content of the figures of the theory's checks."""

import matplotlib.pyplot as plt
import pytest
from drawn import check_band, check_lines, numbered, where

from ictd.report.figures import theory as figures

SETTINGS = {"env": ["boyan", "loop"], "states": [3, 5]}
HERE = {"env": "loop", "states": 5}
SIDES = numbered(
    {"statement": [*figures.LEMMAS, "theorem_1"], **SETTINGS, "layer": range(70)},
    ["left_mean", "right_mean", "tightest"],
)
BOUND = [0, 1], [1, 1]


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


def test_theorem_1():
    """Beyond 55 layers, the bound is below the accuracy of float64."""
    _, axes = figures.theorem_1(SIDES, 0.6).axes
    rows = SIDES.query("statement == 'theorem_1' and env == 'loop' and layer < 55")
    shares = [rows["left_mean"][rows["states"] == n] / rows["right_mean"] for n in (3, 5)]
    check_lines(axes, *((range(55), share.dropna()) for share in shares), BOUND)


def test_lemmas():
    sides = SIDES[(SIDES["statement"] != "lemma_3") | (SIDES["layer"] < 65)]
    (axes,) = figures.lemmas(sides, "loop", 5).axes
    here = where(sides, **HERE).query("1 <= layer < 65")
    ratios = [where(here, statement=name)["tightest"] for name in figures.LEMMAS]
    check_lines(axes, *((range(1, 65), ratio) for ratio in ratios), BOUND)


@pytest.mark.parametrize(("algo", "error"), [("td", "lemma_1"), ("mc", "lemma_4")])
def test_expected_updates(algo, error):
    axes = {"algo": ["td", "mc"], **SETTINGS, "space": ["looped", "separate"], "layer": range(70)}
    neu = numbered(axes, ["norm", "standard_error", "bound", "sharper"])
    left, right = figures.expected_update(neu, SIDES, algo, "loop", 5).axes
    rows, layers = where(neu, algo=algo, **HERE).query("layer > 0"), range(1, 70)
    looped, separate = (where(rows, space=space) for space in ("looped", "separate"))
    check_lines(
        left,
        *((layers, line) for line in (looped["norm"], separate["norm"], looped["bound"], looped["sharper"])),
    )
    early, first = looped[:60], layers[:60]
    sides = [where(SIDES, statement=one, **HERE)["left_mean"][1:61] for one in (error, "lemma_3")]
    check_lines(right, *((first, line / line.max()) for line in (early["norm"], *sides)))
    edges = [(early["norm"] + sign * early["standard_error"]) / early["norm"].max() for sign in (-1, 1)]
    check_band(*right.collections, first, *edges)
    falling = figures.expected_update(neu.assign(norm=0.9 ** neu["layer"]), SIDES, algo, "loop", 5).axes[1]
    assert "rises first" in right.get_title() and "falls" in falling.get_title()


def test_the_family():
    axes = {"member": [*figures.MEMBERS], **SETTINGS, "draw": [0, 1]}
    members = numbered({**axes, "layer": range(9)}, ["error", "bound"])
    members = members[members["member"].isin(["inside", "beyond"]) | (members["draw"] == 0)]
    members.loc[members["member"].isin(["inside", "beyond"]) & (members["layer"] == 8), "error"] = 1e101
    updates = numbered({"algo": ["td", "mc"], **SETTINGS, "draw": [0, 1], "layer": [1, 4, 8]}, ["norm"], 1)
    left, right = figures.family(members, updates, "loop", 5).axes
    courses = [of_draw for _, of_draw in where(members, **HERE).groupby(["member", "draw"], sort=False)]
    lines = [(range(8), course["error"][:8]) for course in courses[:4]]
    lines += [(range(9), course["error"]) for course in courses[4:]]
    check_lines(left, *lines, (range(9), courses[0]["bound"]))
    draws = where(updates, **HERE).groupby(["algo", "draw"], sort=False)["norm"]
    check_lines(right, *(([1, 4, 8], norms) for _, norms in draws))
