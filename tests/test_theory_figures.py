"""Content of the figures of the theory's checks."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from drawn import check_bands, check_border, check_lines, numbered, where

from ictd.pipeline.grid import Cell
from ictd.report.figures import pretrained, style
from ictd.report.figures import theory as figures

SETTINGS = {"env": ["boyan", "loop"], "states": [3, 5]}
NAMES = [panel[0] for panel in figures.PANELS]
SIDES = numbered(
    {"statement": [*NAMES, "theorem_1", "bounded_gradient"], **SETTINGS, "layer": range(70)},
    ["left_mean", "right_mean", "tightest"],
)
SIDES = SIDES.drop(SIDES.index[(SIDES["statement"] == "lemma_3") & (SIDES["layer"] > 64)])


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


def test_theorem_1():
    """Beyond 55 layers, the bound is below the accuracy of float64."""
    figure = figures.theorem_1(SIDES, 0.6)
    layers = np.arange(55)
    bound = r"bound, $\gamma^L \Vert v\Vert_\infty$"
    for column, env in enumerate(("boyan", "loop")):
        for row, falling in enumerate((0.6, 1.0)):
            lines = []
            for states in (3, 5):
                rows = where(SIDES, statement="theorem_1", env=env, states=states)[:55]
                lines.append((None, layers, rows["left_mean"] / rows["right_mean"] * falling**layers))
            lines.append((bound, layers, falling**layers))
            check_lines(figure.axes[2 * row + column], lines)
            labels = {text.get_text() for text in figure.axes[2 * row + column].texts}
            assert labels == ({"$n = 3$", "$n = 5$"} if row else set())


def test_lemmas():
    figure = figures.lemmas(SIDES.assign(tightest=SIDES["tightest"].mask(SIDES["layer"] > 60)), "loop", 5)
    here = where(SIDES, env="loop", states=5).query("1 <= layer <= 64")
    ratios = []
    for axes, (name, *_) in zip(figure.axes, figures.PANELS, strict=False):
        rows, ours = where(here, statement=name), where(here, statement="bounded_gradient")
        lines = [("measured", rows["layer"], rows["left_mean"])]
        lines += [("the paper's bound", rows["layer"], rows["right_mean"])]
        lines += [("our bound", ours["layer"], ours["right_mean"])] * (name == "lemma_3")
        check_lines(axes, lines)
        clear = rows.query("layer <= 60")
        ratios.append((None, clear["layer"], clear["tightest"]))
    check_lines(figure.axes[5], ratios)
    numbers = [title.removeprefix("Lemma ") for _, title, *_ in figures.PANELS]
    labels = [text.get_text() for text in figure.axes[5].texts]
    assert sorted("; ".join(labels).split("; ")) == sorted(numbers)
    same = figures.lemmas(SIDES.assign(tightest=1.0), "loop", 5)
    assert [text.get_text() for text in same.axes[5].texts] == ["; ".join(numbers)]


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
    names = ["inside", "beyond", *figures.ALGORITHMS]
    members = numbered({"member": names, **SETTINGS, "draw": [0, 1], "layer": range(9)}, ["error"])
    members = members[members["member"].isin(["inside", "beyond"]) | (members["draw"] == 0)]
    members = members.assign(bound=np.arange(len(members)))
    members.loc[members["layer"] == 8, "error"] = 1e101
    updates = numbered({"algo": ["td", "mc"], **SETTINGS, "draw": [0, 1], "layer": [1, 4, 8]}, ["norm"], 1)
    neu = numbered({"algo": ["td", "mc"], **SETTINGS, "space": ["looped", "separate"], "layer": range(9)}, ["norm"], 2)
    at = {"env": "loop", "states": 3}
    left, right = figures.family(members, updates, neu, "loop", 3).axes
    lines = []
    for member, label in (("inside", "$A = [G; H][-I, I]$"), ("beyond", "the same $+ N [I, I]$")):
        for draw in (0, 1):
            lines.append((label, range(8), where(members, member=member, draw=draw, **at)["error"][:8]))
    theta_td = r"$\theta_L^{\mathrm{TD}}$"
    algorithms = {"theta_td": theta_td, "residual_gradient": "residual gradient", "deflated_td": "deflated TD"}
    for algorithm, label in algorithms.items():
        lines.append((label, range(9), where(members, member=algorithm, **at)["error"]))
    bound = where(members, member="inside", draw=0, **at)["bound"]
    check_lines(left, [*lines, (r"bound, $c^L \Vert r\Vert_\infty / (1 - \gamma)$", range(9), bound)])
    lines = []
    for algo in figures.NORMS:
        for draw in (0, 1):
            lines.append((None, [1, 4, 8], where(updates, algo=algo, draw=draw, **at)["norm"]))
        td = where(neu, algo=algo, space="looped", **at)["norm"][1:]
        lines.append((theta_td, range(1, 9), td))
    check_lines(right, lines)
    assert {text.get_text() for text in right.texts} == {*figures.NORMS.values()}


def test_pretrained_weights():
    cells = {"algo": ["mc", "td"], "env": ["boyan"], "states": [3], "depth": [4, 6], "seed": range(3)}
    line = numbered({**cells, "position": [0.0, 0.25, 0.5, 1.0]}, ["looped_norm", "theta_td"])
    repeated = numbered({**cells, "layer": [1, 4, 6, 20, 40]}, ["looped_norm"])
    line.loc[(line["depth"] == 6) & (line["position"] == 0.5), "looped_norm"] = 1e101
    repeated.loc[repeated["layer"] == 40, "looped_norm"] = 1e101
    main = Cell("", "boyan", 3, 6)
    figure = pretrained.pretrained(line, repeated, main)
    for column, algo in enumerate(("td", "mc")):
        above, below = [], []
        for depth, places in ((4, [0, 0.25, 0.5, 1]), (6, [0, 0.25, 1])):
            of = {"algo": algo, "depth": depth}
            medians = where(line, **of).groupby("position")["looped_norm"].median()
            above.append((None, places, medians[places]))
            medians = where(repeated, **of).groupby("layer")["looped_norm"].median()
            below.append((None, [1, 4, 6, 20], medians[[1, 4, 6, 20]]))
            below.append((None, [depth], [medians[depth]]))
        assert figure.axes[column].get_title().startswith(style.NAMES[algo])
        check_lines(figure.axes[column], above)
        check_lines(figure.axes[2 + column], [*below, ("as many layers as in training", [], [])])
    own = repeated[repeated["layer"] == repeated["depth"]]["looped_norm"]
    assert figure.axes[2].get_ylim() == pytest.approx((own.min() / 30, own.max() * 1e4))
    assert {text.get_text() for text in figure.axes[1].texts} == {"$L = 4$", "main setting"}
    gone = pretrained.pretrained(line.assign(looped_norm=np.nan), repeated.assign(looped_norm=np.nan), main)
    assert len(gone.axes) == 4


@pytest.mark.slow
def test_no_figure_has_ink_on_its_border(tmp_path):
    """With long names, long settings and many layers."""
    env = "random_walks_on_a_ring_that_step_either_way"
    at, layers = {"env": [env, "boyan"], "states": [3, 20, 50]}, {"layer": range(301)}
    sides = numbered({"statement": SIDES["statement"].unique(), **at, **layers}, ["left_mean", "right_mean"])
    both = {"algo": ["td", "mc"], **at}
    neu = numbered({**both, "space": ["looped", "separate"], **layers}, ["norm", "standard_error", "bound", "sharper"])
    names = ["inside", "beyond", *figures.ALGORITHMS]
    members = numbered({"member": names, **at, "draw": [0, 1], **layers}, ["error", "bound"])
    updates, cells = numbered({**both, "draw": [0, 1], **layers}, ["norm"]), {**both, "depth": [5, 300], "seed": [0, 1]}
    line = numbered({**cells, "position": [0.0, 0.5, 1.0]}, ["looped_norm", "theta_td"])
    repeated = numbered({**cells, "layer": [1, 5, 30, 300]}, ["looped_norm"])
    for figure in (
        figures.theorem_1(sides, 0.9), figures.lemmas(sides.assign(tightest=1.0), env, 3),
        figures.expected_update(neu, sides, "mc", env, 3), figures.family(members, updates, neu, env, 3),
        pretrained.pretrained(line, repeated, Cell("", env, 20, 300)),
    ):  # fmt: skip
        check_border(figure, tmp_path)
