"""Content of the figures of the theory's checks."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from drawn import check_bands, check_lines, numbered, where

from ictd.pipeline.grid import Cell
from ictd.report.figures import pretrained, style
from ictd.report.figures import theory as figures

SETTINGS = {"env": ["boyan", "loop"], "states": [3, 5]}
SIDES = numbered(
    {"statement": [*figures.LEMMAS, "theorem_1"], **SETTINGS, "layer": range(70)},
    ["left_mean", "right_mean", "tightest"],
)
SIDES = SIDES.drop(SIDES.index[SIDES["statement"].isin(["lemma_3", "bounded_gradient"]) & (SIDES["layer"] > 64)])


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


def test_theorem_1():
    """Beyond 55 layers, the bound is below the accuracy of float64."""
    figure = figures.theorem_1(SIDES, 0.6)
    for axes, env in zip(figure.axes, ("boyan", "loop"), strict=True):
        lines = []
        for states in (3, 5):
            rows = where(SIDES, statement="theorem_1", env=env, states=states)[:55]
            lines.append((None, np.arange(55), rows["left_mean"] / rows["right_mean"]))
        check_lines(axes, [*lines, (None, [0, 1], [1, 1])])
        assert {text.get_text() for text in axes.texts} == {"$n = 3$", "$n = 5$"}


def test_lemmas():
    (axes,) = figures.lemmas(SIDES.assign(tightest=SIDES["tightest"].mask(SIDES["layer"] > 60)), "loop", 5).axes
    here = where(SIDES, env="loop", states=5).query("1 <= layer <= 60")
    ratios = [where(here, statement=name) for name in figures.LEMMAS]
    check_lines(axes, [*((None, rows["layer"], rows["tightest"]) for rows in ratios), (None, [0, 1], [1, 1])])
    assert {text.get_text() for text in axes.texts} == {*figures.LEMMAS.values()}


@pytest.mark.parametrize(("algo", "J", "error"), [("td", "$J$", "lemma_1"), ("mc", "$J'$", "lemma_4")])
def test_expected_updates(algo, J, error):
    at = {"env": "boyan", "states": 3}
    axes = {"algo": ["td", "mc"], **SETTINGS, "space": ["looped", "separate"], "layer": range(70)}
    neu = numbered(axes, ["norm", "standard_error", "bound", "sharper"])
    left, right = figures.expected_update(neu, SIDES, algo, "boyan", 3).axes
    rows, layers = where(neu, algo=algo, **at).query("layer > 0"), np.arange(1, 70)
    looped, separate = (where(rows, space=space) for space in ("looped", "separate"))
    lines = [(f"{J} of $\\theta_L^{{\\mathrm{{TD}}}}$", layers, looped["norm"])]
    lines.append(("the same, separate layers", layers, separate["norm"]))
    lines += [("the paper's bound", layers, looped["bound"]), ("our bound", layers, looped["sharper"])]
    check_lines(left, lines)
    early, first = looped.query("layer <= 60"), layers[:60]
    greatest, spread = early["norm"].max(), early["standard_error"]
    lines = [(None, first, early["norm"] / greatest)]
    for statement, label in ((error, f"expected {algo.upper()} error"), ("lemma_3", "norm of the gradient")):
        side = where(SIDES, statement=statement, **at)["left_mean"][1:61]
        lines.append((label, first, side / side.max()))
    check_lines(right, lines)
    check_bands(right, [(first, (early["norm"] - spread) / greatest, (early["norm"] + spread) / greatest)])
    falling = figures.expected_update(neu.assign(norm=0.9 ** neu["layer"]), SIDES, algo, "boyan", 3)
    assert [axes.get_title() for axes in (right, falling.axes[1])] == [f"why {J} rises first", f"why {J} falls"]


def test_the_family():
    names = ["inside", "beyond", "theta_td", *figures.ALGORITHMS]
    members = numbered({"member": names, **SETTINGS, "draw": [0, 1], "layer": range(9)}, ["error"])
    members = members[members["member"].isin(["inside", "beyond"]) | (members["draw"] == 0)]
    members = members.assign(bound=np.arange(len(members)))
    members.loc[members["layer"] == 8, "error"] = 1e101
    updates = numbered({"algo": ["td", "mc"], **SETTINGS, "draw": [0, 1], "layer": [1, 4, 8]}, ["norm"], 1)
    at = {"env": "loop", "states": 3}
    left, right = figures.family(members, updates, "loop", 3).axes
    lines = []
    for member, label in (("inside", "$A = [G; H][-I, I]$"), ("beyond", "the same $+ N [I, I]$")):
        for draw in (0, 1):
            lines.append((label, range(8), where(members, member=member, draw=draw, **at)["error"][:8]))
    algorithms = {
        "theta_td": r"$\theta^{\mathrm{TD}}$",
        "residual_gradient": "residual gradient",
        "deflated_td": "deflated TD",
    }
    for algorithm, label in algorithms.items():
        lines.append((label, range(9), where(members, member=algorithm, **at)["error"]))
    bound = where(members, member="inside", draw=0, **at)["bound"]
    check_lines(left, [*lines, (r"bound, $c^L \Vert r\Vert_\infty / (1 - \gamma)$", range(9), bound)])
    lines = []
    for algo in figures.NORMS:
        for draw in (0, 1):
            lines.append((None, [1, 4, 8], where(updates, algo=algo, draw=draw, **at)["norm"]))
    check_lines(right, lines)
    assert {text.get_text() for text in right.texts} == {*figures.NORMS.values()}


def test_pretrained_weights():
    cells = {"algo": ["mc", "td"], "env": ["boyan"], "states": [3], "depth": [4, 6], "seed": range(3)}
    line = numbered({**cells, "position": [0.0, 0.25, 0.5, 1.0]}, ["looped_norm"])
    repeated = numbered({**cells, "layer": [1, 4, 6, 20, 40]}, ["looped_norm"])
    repeated.loc[repeated["layer"] == 20, "looped_norm"] *= 1e102
    repeated.loc[(repeated["layer"] == 40) & (repeated["seed"] == 1), "looped_norm"] = np.nan
    figure = pretrained.pretrained(line, repeated, Cell("", "boyan", 3, 6))
    for column, algo in enumerate(("td", "mc")):
        above, below = [], []
        for depth in (4, 6):
            of = {"algo": algo, "depth": depth}
            for lines, table, name, start, places in (
                (above, line, "position", 0, [0, 0.25, 0.5, 1]),
                (below, repeated, "layer", depth, [1, 4, 6, 20]),
            ):
                ratios = [where(table, **of, seed=seed).set_index(name)["looped_norm"] for seed in range(3)]
                growth = [np.log10([trial[place] / trial[start] for trial in ratios]).mean() for place in places]
                lines.append((None, places, growth))
            below.append((None, [depth], [0]))
            assert below[-2][2][-1] > 100
        zero = (None, [0, 1], [0, 0])
        check_lines(figure.axes[column], [*above, zero])
        check_lines(figure.axes[2 + column], [*below, zero])
        assert figure.axes[column].get_title().startswith(style.NAMES[algo])
        for axes in figure.axes[column::2]:
            assert {text.get_text() for text in axes.texts} == {"$L = 4$", "main"}
    gone = pretrained.pretrained(
        line.assign(looped_norm=np.nan), repeated.assign(looped_norm=np.nan), Cell("", "boyan", 3, 6)
    )
    assert len(gone.axes) == 4
