"""Content of the figures of the experiments."""

import itertools
from statistics import geometric_mean

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from drawn import check_bands, check_border, check_lines, numbered, where

import ictd
from ictd.pipeline.grid import Cell
from ictd.report.figures import environment_diagrams, learning_curves, msve_curves, style, weight_maps
from ictd.report.figures.environment_diagrams import circle_diagram, line_diagram
from ictd.report.figures.report import FIGURES
from ictd.report.figures.style import NAMES
from ictd.statistics import bootstrap_mean

RNG = np.random.default_rng(4)
LENGTHS, TASKS_SEEN = [5, 10, 15], [1, 50]
METHODS = ("theta_td", "lstd", "zero", "constant")
NAMED = {"td": "multi-task TD", "mc": "multi-task MC"}
STATES = (4, 3, 5, 2)
PATTERN = ["pattern", "pattern_low", "pattern_high"]


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def tables():
    """Result tables of cells with four numbers of states; with three states, one run diverged."""
    cells = {"algo": [*NAMED], "env": ["boyan"], "states": STATES, "depth": [6]}
    runs = cells | {"seed": range(4)}
    weights = numbered(runs, ["cosine"])
    learning = numbered(runs | {"tasks_seen": TASKS_SEEN}, ["cosine", "online_msve"])
    entries = []
    for n, (matrix, rows) in itertools.product(STATES, (("u", 1), ("A", None))):
        place = {"row": range(1, (rows or 2 * n) + 1), "column": range(1, 2 * n + 1)}
        own = cells | {"states": [n], "matrix": [matrix], "tasks_seen": TASKS_SEEN} | place
        entries.append(numbered(own, ["mean"]))
    # The length 0 stands for enumerated prompts.
    methods = {"method": [*NAMED, "zero"], "env": ["boyan", "any"], "states": STATES, "depth": [0, 6]}
    baselines = {"method": METHODS, "states": STATES, "depth": [0, 6], "seed": range(4)}
    return {
        "weights": weights.assign(diverged_at=9 * ((weights["states"] == 3) & (weights["seed"] == 2))),
        "unseen_msve": numbered(runs | {"context_length": LENGTHS}, ["msve"], 1),
        "unseen_baselines": numbered(baselines | {"context_length": LENGTHS}, ["msve"], 2),
        "over_tasks": numbered(methods | {"context_length": [0, *LENGTHS]}, ["median"]),
        "learning": learning.assign(cosine=2 * learning["cosine"] - 1),
        "mean_entries": pd.concat(entries),
        "mean_weights": numbered(cells, PATTERN),
    }


def kept_trials(table, column, by, algo, n):
    """Values (trials, places) of the runs of a cell that did not diverge."""
    values = where(table, algo=algo, states=n).pivot(index="seed", columns=by, values=column).to_numpy()
    return np.delete(values, [2], axis=0) if n == 3 else values


@pytest.fixture
def drawn(tables):
    """Draws a figure of the report, for a main setting with the first of some numbers of states."""

    def draw(name, *states):
        figure = FIGURES[name]
        shown = {table: tables[table] for table in (path.split("/")[1] for path in figure.tables)}
        run = {"algos": [*NAMED], "envs": ["boyan"], "states": states, "depths": [6], "vary": figure.vary}
        return figure.draw(shown, run)

    return draw


def test_msve_is_drawn_by_panels(tables, drawn):
    figure = drawn("figure_07", 9, 4, 3, 5, 2)
    assert len(drawn("figure_01", 3).axes) == 1
    assert [axes.get_visible() for axes in figure.axes] == [True] * 4 + [False] * 2
    for axes, n in zip(figure.axes, STATES, strict=False):
        lines, bands, baselines = [], [], []
        for method in METHODS:
            errors = where(tables["unseen_baselines"], method=method, states=n, depth=6 * (method == "theta_td"))
            trials = [where(errors, context_length=length)["msve"].to_numpy() for length in LENGTHS]
            baselines.append((NAMES[method], LENGTHS, [geometric_mean(msve) for msve in trials]))
            if method == "zero":
                zero = np.transpose(trials)
        for algo, name in NAMED.items():
            errors = kept_trials(tables["unseen_msve"], "msve", "context_length", algo, n)
            ratios = np.log10(errors / (np.delete(zero, [2], axis=0) if n == 3 else zero))
            intervals = [bootstrap_mean(ratios[:, k]).estimate() for k in range(3)]
            value, low, high = 10 ** np.transpose(intervals) * [geometric_mean(msve) for msve in zero.T]
            medians = where(tables["over_tasks"], method=algo, env="boyan", states=n, depth=6)["median"][1:]
            lines += [(name, LENGTHS, value), (None, LENGTHS, medians)]
            bands.append((LENGTHS, low, high))
        medians = where(tables["over_tasks"], method="zero", env="any", states=n, depth=0)["median"][1:]
        check_lines(axes, [*lines, *baselines, (None, LENGTHS, medians)])
        check_bands(axes, bands)
        # A dot marks the longest context, which decides.
        assert [line.get_markevery() for line in axes.lines[:4:2]] == [[-1]] * 2
        notes = "TD: 1 of 4 diverged MC: 1 of 4 diverged" if n == 3 else ""
        assert " ".join(axes.get_xlabel().splitlines()[1:]) == notes and axes.get_title() == f"$n = {n}$"
    assert len(figure.legends[0].get_texts()) <= 6


def diverged(tables, columns):
    """Tables of runs that all diverged, with empty values in some columns."""
    lost = {name: table.assign(**dict.fromkeys({*columns} & {*table}, np.nan)) for name, table in tables.items()}
    return lost | {"weights": tables["weights"].assign(diverged_at=2), "unseen_baselines": tables["unseen_baselines"]}


def test_a_panel_whose_runs_all_diverged_has_its_baselines(tables):
    lost = diverged(tables, ["msve"])
    shown = [lost[name] for name in ("unseen_msve", "unseen_baselines", "over_tasks", "weights")]
    (axes,) = msve_curves.msve_curves({"a": [Cell("td", "boyan", 4, 6)]}, *shown).axes
    assert axes.get_xlabel().splitlines()[1:] == ["TD: 4 of 4", "diverged"] and len(axes.lines) == len(METHODS) + 1


def test_learning_curves_are_drawn_by_algorithm(tables, drawn):
    figure = drawn("learning", 4)
    for column, algo in enumerate(NAMED):
        above, below = [], []
        # In the order of settings, for any order of the table.
        for n in sorted(STATES):
            msve, cosines = (
                kept_trials(tables["learning"], name, "tasks_seen", algo, n) for name in ("online_msve", "cosine")
            )
            above.append((None, TASKS_SEEN, np.median(msve, axis=0)))
            below.append((None, TASKS_SEEN, np.median(np.where(cosines > 0, cosines**2, 0), axis=0)))
        axes = figure.axes
        for panel in (axes[column], axes[2 + column]):
            widths = [line.get_linewidth() for line in panel.lines]
            assert np.argmax(widths) == 2 and sorted(widths)[-2] < max(widths)
            assert {text.get_text() for text in panel.texts} == {"$n = 2$", "$n = 3$", "main", "$n = 5$"}
        check_lines(axes[column], above)
        check_lines(axes[2 + column], below)
        assert axes[2 + column].get_xlabel().endswith("\n1 of 16 diverged") and axes[column].get_title() == NAMED[algo]


def test_weights_are_mapped_by_setting_and_algorithm(tables, drawn):
    axes = iter(drawn("figure_06", 9, 4, 3, 5, 2).axes)
    for n, algo in itertools.product(STATES, ("theta_td", *NAMED)):
        panel = next(axes)
        weights = ictd.theta_td(n)
        if algo in NAMED:
            last = where(tables["mean_entries"], algo=algo, states=n, tasks_seen=TASKS_SEEN[-1])
            u, A = (where(last, matrix=name)["mean"].to_numpy() for name in "uA")
            weights = ictd.Weights(u, A.reshape(2 * n, 2 * n))
        (strip,) = panel.child_axes
        for shown_in, whole, part in ((panel, weights.Q(), slice(None)), (strip, weights.P(), slice(-1, None))):
            (image,) = shown_in.images
            np.testing.assert_allclose(image.get_array(), whole[part] / np.abs(whole).max())
            assert (image.norm.vmin, image.norm.vmax) == (-1, 1)
        below = "{pattern:.3f} ({pattern_low:.3f}, {pattern_high:.3f})"
        shares = where(tables["weights"], algo=algo, states=n).get("cosine") ** 2
        below += f"\n{(shares > 0.5).sum()} of 4 trials" + ("\n1 of 4 diverged" if n == 3 else "")
        measured = where(tables["mean_weights"], algo=algo, states=n).to_dict("records")
        assert strip.get_xlabel() == "".join(below.format(**row) for row in measured)
        assert panel.get_ylabel() == (f"$n = {n}$" if algo == "theta_td" else "")
    cells, measured = {"a": [Cell("td", "boyan", 4, 6)]}, tables["mean_weights"]
    zero = weight_maps.weight_maps(cells, tables["mean_entries"].assign(mean=0.0), measured, tables["weights"])
    assert (zero.axes[1].images[0].get_array() == 0).all()
    lost = diverged(tables, ["mean"])
    empty = weight_maps.weight_maps(cells, lost["mean_entries"], measured, lost["weights"])
    assert empty.axes[1].images[0].get_array().mask.all()
    assert empty.axes[1].child_axes[0].get_xlabel().endswith("\n4 of 4 diverged")


@pytest.mark.parametrize(("draw", "layout"), [(line_diagram, "line"), (circle_diagram, "circle")])
@pytest.mark.parametrize(("env", "states"), [("boyan", 2), ("boyan", 9), ("loop", 6)])
def test_diagrams_have_an_arrow_for_each_transition(draw, layout, env, states):
    options = {"threshold": 0.7} if env == "loop" else {}
    figure = environment_diagrams.environment_diagram(env, options, layout, states)
    rng = ictd.generator(0, env, states, "diagram")
    transition = ictd.sample_tasks(env, states, 1, rng, **options).transition[0]
    axes = figure.axes[0]
    arrows = [patch for patch in axes.patches if type(patch).__name__ == "FancyArrowPatch"]
    centers = np.array([patch.get_center() for patch in axes.patches if patch not in arrows])
    assert [text.get_text() for text in axes.texts] == [f"$s_{{{i + 1}}}$" for i in range(states)]
    np.testing.assert_allclose([text.get_position() for text in axes.texts], centers)
    gaps = np.linalg.norm(np.diff(centers, axis=0), axis=1)
    # Circles stand apart by a diameter or more, and evenly.
    assert (gaps > 4 * environment_diagrams.RADIUS).all() and np.ptp(gaps) < 1e-9
    for i, j, arrow in zip(*np.nonzero(transition), arrows, strict=True):
        if i != j:
            assert (arrow.patchA.get_center() == centers[i]).all() and (arrow.patchB.get_center() == centers[j]).all()


def test_figures_are_the_same_bytes(tmp_path):
    for name in ("a", "b"):
        figure, grid = plt.subplots(1, 2)
        for axes in grid:
            axes.plot([1, 2], label="same")
        style.legend(figure)
        assert [text.get_text() for text in figure.legends[0].get_texts()] == ["same"]
        style.save(figure, tmp_path / f"{name}.png")
        assert not plt.fignum_exists(figure.number)
    for ending in ("png", "svg"):
        assert (tmp_path / f"a.{ending}").read_bytes() == (tmp_path / f"b.{ending}").read_bytes()


@pytest.mark.parametrize("scale", ["linear", "log"])
def test_labels_of_lines_are_in_the_order_of_their_ends_and_do_not_overlap(scale):
    values = [3.0, 1.0, 1.001, 1.002, 2.0, 1e-9, 50.0]
    figure, axes = plt.subplots()
    axes.set(yscale=scale, ylim=(0.5, 4))
    style.label_ends(axes, [(str(value), value, "black") for value in values])
    found = {float(text.get_text()): text.xyann[1] for text in axes.texts}
    heights = np.array([found[value] for value in sorted(values)])
    least = style.LABEL_HEIGHT / (axes.bbox.height / figure.dpi)
    assert (np.diff(heights) > 0.999 * least).all()
    # Labels without close neighbours are at the ends of their lines, or at the panel's edge.
    expected = [axes.transAxes.inverted().transform(axes.transData.transform((0, value)))[1] for value in (2.0, 3.0)]
    np.testing.assert_allclose([found[2.0], found[3.0], found[1e-9], found[50.0]], [*expected, 0, 1], atol=1e-9)


@pytest.mark.parametrize(
    ("cell", "label"),
    [
        (Cell("mc", "boyan", 5, 30), "main"),
        (Cell("td", "boyan", 5, 60), "$L = 60$"),
        (Cell("", "loop", 3, 30), "Loop, $n = 3$"),
        (Cell("", "random_walks_on_a_ring", 5, 30), "Random walks …"),
    ],
)
def test_labels_of_settings_name_what_differs(cell, label):
    assert style.difference(cell, Cell("td", "boyan", 5, 30)) == label


LONG = "random_walks_on_a_ring_that_step_either_way"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("algos", "vary", "settings", "lost"),
    [
        (["td", "mc"], "main", [("boyan", 5, 30)], 0),
        (["mc"], "main", [(LONG, 20, 30)], 11),
        (["td", "mc"], "envs", [("loop", 2, 30), (LONG, 2, 30), ("boyan", 2, 30)], 11),
        (["td", "mc"], "depths", [("boyan", 4, depth) for depth in (5, 10, 60, 500)], 20),
    ],
)
def test_no_figure_has_ink_on_its_border(algos, vary, settings, lost, tmp_path):
    cells = [Cell(algo, *setting) for setting in settings for algo in algos]
    envs, (states, *_), depths = map(set, zip(*settings, strict=True))

    def of_cells(columns, **axes):
        return pd.DataFrame(cells).merge(numbered(axes, columns), how="cross")

    places = {"states": [states], "depth": [0, *depths], "context_length": LENGTHS}
    baselines = numbered({"method": METHODS, "seed": range(20), **places}, ["msve"])
    over_tasks = numbered({"method": [*NAMED, "zero"], "env": [*envs, "any"], **places}, ["median"])
    weights = of_cells(["cosine"], seed=range(20))
    weights["diverged_at"] = 1 * (weights["seed"] < lost)
    msve = of_cells(["msve"], seed=range(20), context_length=LENGTHS)
    learning = of_cells(["cosine", "online_msve"], seed=range(20), tasks_seen=[1, 20_000])
    wide = range(2 * states)
    entries = [
        of_cells(["mean"], matrix=[name], row=rows, column=wide, tasks_seen=[20_000])
        for name, rows in (("u", [1]), ("A", wide))
    ]
    entries = pd.concat(entries).assign(**{"mean": np.nan} if lost == 20 else {})
    panels = style.panels_of(cells, vary)
    for figure in (
        msve_curves.msve_curves(panels, msve.assign(msve=1e9 * msve["msve"]), baselines, over_tasks, weights),
        weight_maps.weight_maps(panels, entries, of_cells(PATTERN), weights),
        learning_curves.learning_curves(learning, weights, cells[0]),
    ):
        check_border(figure, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("states", [2, 20])
@pytest.mark.parametrize(("draw", "env"), [(line_diagram, "boyan"), (circle_diagram, "loop")])
def test_no_diagram_has_ink_on_its_border(draw, env, states, tmp_path):
    check_border(draw(ictd.sample_tasks(env, states, 1, RNG).transition[0]), tmp_path)
