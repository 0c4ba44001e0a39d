"""What the figures draw: the numbers behind their lines and images."""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest
from drawn import axes_of, check_bands, check_border, check_lines

import ictd
from ictd.decomposition import seen
from ictd.pipeline.grid import Cell
from ictd.pipeline.storage import save_arrays
from ictd.report.figures import environment_diagrams, style
from ictd.report.figures import learning_curves as curves
from ictd.report.figures import msve_curves as by_length
from ictd.report.figures import weight_maps as maps
from ictd.report.figures.environment_diagrams import circle_diagram, line_diagram
from ictd.report.figures.learning_curves import learning_curves
from ictd.report.figures.msve_curves import msve_curves
from ictd.report.figures.style import COLOURS, LINES, NAMES
from ictd.report.figures.weight_maps import weight_maps
from ictd.report.figures.workflow import BOXES, workflow

RNG = np.random.default_rng(4)


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


def test_msve_curves_show_mean_error_and_median():
    lengths, errors = np.array([5, 10, 15]), RNG.lognormal(size=(7, 3, 4))
    cell = Cell("mc", "boyan", 4, 6)
    baselines = {name: RNG.lognormal(size=(7, 3, 4)) for name in ("theta_td", "lstd", "zero")}
    figure = msve_curves(
        {"title": ({cell: {"context_lengths": lengths, "msve": errors, "diverged_at": np.zeros(7)}}, baselines)}
    )
    axes = figure.axes[0]
    assert axes.get_yscale() == "log"
    lines = {line.get_label(): line for line in axes.lines}
    trials = errors.mean(axis=-1)
    np.testing.assert_allclose(lines["multi-task MC, mean"].get_ydata(), trials.mean(axis=0))
    np.testing.assert_allclose(lines["multi-task MC, median"].get_ydata(), np.median(trials, axis=0))
    np.testing.assert_allclose(lines["LSTD"].get_ydata(), baselines["lstd"].mean(axis=(0, 2)))
    assert lines["multi-task MC, mean"].get_color() == COLOURS["mc"]
    band = axes.collections[0].get_paths()[0].vertices[:, 1]
    upper = trials.mean(axis=0) + trials.std(axis=0, ddof=1) / np.sqrt(7)
    assert band.max() == pytest.approx(upper.max())


def test_heat_maps_show_normalised_means():
    weights = ictd.Weights(RNG.normal(size=(5, 6)), RNG.normal(size=(5, 6, 6)))
    figure = weight_maps({"title": {"td": weights, "mc": weights[:2]}})
    for axes, of in zip(figure.axes, (ictd.theta_td(3)[None], weights, weights[:2]), strict=False):
        P, Q = of.P().mean(0), of.Q().mean(0)
        np.testing.assert_allclose(axes.images[0].get_array(), Q / np.abs(Q).max())
        np.testing.assert_allclose(axes.child_axes[0].images[0].get_array(), P[-1:] / np.abs(P).max())


def test_learning_curves_show_medians():
    result = {"tasks_seen": np.array([1, 10]), "online_msve": RNG.lognormal(size=(3, 2)), "cosine": RNG.random((3, 2))}
    result["diverged_at"] = np.zeros(3)
    figure = learning_curves({Cell("td", "loop", 3, 2): result})
    np.testing.assert_allclose(figure.axes[0].lines[0].get_ydata(), np.median(result["online_msve"], axis=0))
    np.testing.assert_allclose(figure.axes[1].lines[0].get_ydata(), np.median(result["cosine"], axis=0))


def test_diverged_trials_are_left_out_and_counted():
    lengths, errors = np.array([5, 10]), RNG.lognormal(size=(4, 2, 3))
    errors[1] = np.nan
    some = {"context_lengths": lengths, "msve": errors, "diverged_at": np.array([0, 7, 0, 0])}
    none_left = {"context_lengths": lengths, "msve": errors + np.nan, "diverged_at": np.full(4, 2)}
    baselines = {name: RNG.lognormal(size=(4, 2, 3)) for name in ("theta_td", "lstd", "zero")}
    td, mc = Cell("td", "boyan", 4, 6), Cell("mc", "boyan", 4, 6)
    figure = msve_curves(
        {"a": ({td: none_left, mc: none_left}, baselines), "b": ({td: some, mc: none_left}, baselines)}
    )
    lost, kept = figure.axes[:2]
    assert lost.get_xlabel().splitlines()[1:] == ["TD: 4 of 4 diverged", "MC: 4 of 4 diverged"]
    assert kept.get_xlabel().splitlines()[1] == "TD: 1 of 4 diverged"
    line = next(line for line in kept.lines if line.get_label() == "multi-task TD, mean")
    np.testing.assert_allclose(line.get_ydata(), errors[[0, 2, 3]].mean(axis=(0, 2)))
    assert "multi-task TD, mean" in [text.get_text() for text in figure.legends[0].get_texts()]
    A = RNG.normal(size=(4, 6, 6))
    A[2] = np.nan
    figure = weight_maps({"title": {"td": ictd.Weights(np.zeros((4, 6)), A)}})
    assert [axes.child_axes[0].get_xlabel() for axes in figure.axes[:2]] == ["", "1 of 4 diverged"]
    mean = A[[0, 1, 3]].mean(axis=0)
    np.testing.assert_allclose(figure.axes[1].images[0].get_array()[:6, :6], mean / np.abs(mean).max())


@pytest.mark.parametrize("draw", [line_diagram, circle_diagram])
def test_diagrams_have_an_arrow_for_each_transition(draw):
    transition = ictd.sample_tasks("boyan", 5, 1, RNG).transition[0]
    patches = draw(transition).axes[0].patches
    arrows = [patch for patch in patches if type(patch).__name__ == "FancyArrowPatch"]
    assert len(arrows) == (transition > 0).sum()
    assert len(patches) - len(arrows) == 5


LENGTHS = np.array([5, 10, 15])
NAMED = {"td": "multi-task TD", "mc": "multi-task MC"}


@pytest.fixture
def shown(monkeypatch):
    """Figures that a step saves, and where."""
    found = []
    for module in (by_length, curves, maps, environment_diagrams):
        monkeypatch.setattr(module, "save", lambda figure, path: found.append((figure, path)))
    return found


@pytest.fixture
def results(tmp_path):
    """Evaluations, baselines and weights of cells with four numbers of states; with three a run diverged."""
    for n in (4, 3, 5, 2):
        for algo in NAMED:
            name, late = f"{algo}-boyan-{n}-6", np.array([0, 0, 9 * (n == 3), 0])
            save_arrays(
                tmp_path / f"evaluation/{name}.npz", context_lengths=LENGTHS, msve=RNG.lognormal(size=(4, 3, 2)),
                diverged_at=late,
            )  # fmt: skip
            save_arrays(
                tmp_path / f"weights/{name}.npz", u=RNG.normal(size=(4, 2 * n)), A=RNG.normal(size=(4, 2 * n, 2 * n)),
                history_u=RNG.normal(size=(4, 2, 2 * n)), history_A=RNG.normal(size=(4, 2, 2 * n, 2 * n)),
                tasks_seen=np.array([1, 50]), diverged_at=late,
                online_msve=RNG.lognormal(size=(4, 2)),
            )  # fmt: skip
        beside = {name: RNG.lognormal(size=(4, 3, 2)) for name in ("theta_td", "lstd", "zero")}
        save_arrays(tmp_path / f"baselines/{n}-6.npz", **beside)
    return tmp_path


CELLS = [f"{algo}-boyan-{n}-6" for n in (4, 3, 5, 2) for algo in NAMED]


def paths_of(results, folder):
    return [results / f"{folder}/{cell}.npz" for cell in CELLS]


def test_msve_is_drawn_by_panels(results, shown):
    of = {"one": ["states", *CELLS], "main": ["main", CELLS[2]]}
    by_length.main(of, paths_of(results, "evaluation")[::-1], [*(results / "baselines").iterdir()], results)
    (figure, path), (single, beside) = shown
    assert (path, beside) == (results / "one.png", results / "main.png")
    assert [axes.get_title() for axes in single.axes] == ["Boyan's chain, $n = 3$, $L = 6$"]
    assert [axes.get_visible() for axes in figure.axes] == [True] * 4 + [False] * 2
    assert [axes.get_ylabel() for axes in figure.axes] == ["MSVE", "", "", "MSVE", "", ""]
    for axes, n in zip(figure.axes, (4, 3, 5, 2), strict=False):
        lines, bands = [], []
        for algo in NAMED:
            found = np.load(results / f"evaluation/{algo}-boyan-{n}-6.npz")
            trials = found["msve"].mean(axis=-1)[found["diverged_at"] == 0]
            mean, error = trials.mean(axis=0), trials.std(axis=0, ddof=1) / np.sqrt(len(trials))
            lines.append((f"{NAMED[algo]}, mean", COLOURS[algo], "-", LENGTHS, mean))
            lines.append((f"{NAMED[algo]}, median", COLOURS[algo], ":", LENGTHS, np.median(trials, axis=0)))
            low = [max(one - off, one / 10) for one, off in zip(mean, error, strict=True)]
            bands.append((COLOURS[algo], LENGTHS, low, mean + error))
        beside = np.load(results / f"baselines/{n}-6.npz")
        for method, dashes in (("theta_td", "--"), ("lstd", "--"), ("zero", "-")):
            lines.append((NAMES[method], COLOURS[method], dashes, LENGTHS, beside[method].mean(axis=(0, 2))))
        check_lines(axes, lines)
        check_bands(axes, bands)
        notes = [f"\n{algo.upper()}: 1 of 4 diverged" for algo in NAMED] if n == 3 else []
        label = "context length (steps)" + "".join(notes)
        assert axes_of(axes) == {"title": f"$n = {n}$", "xlabel": label, "xscale": "linear", "yscale": "log"}


def test_a_band_is_cut_at_a_tenth_of_the_mean():
    errors = np.array([1.0, 1.0, 50.0])[:, None, None] * np.ones((3, 3, 1))
    cell, beside = Cell("td", "boyan", 2, 3), {name: np.ones((3, 3, 1)) for name in ("theta_td", "lstd", "zero")}
    result = {"context_lengths": LENGTHS, "msve": errors, "diverged_at": np.zeros(3)}
    (axes,) = by_length.msve_curves({"title": ({cell: result}, beside)}).axes
    mean, error = 52 / 3, np.std([1, 1, 50], ddof=1) / np.sqrt(3)
    check_bands(axes, [(COLOURS["td"], LENGTHS, [max(mean - error, mean / 10)] * 3, [mean + error] * 3)])
    result["msve"] = errors[[0, 2]] ** 3
    (axes,) = by_length.msve_curves({"title": ({cell: {**result, "diverged_at": np.zeros(2)}}, beside)}).axes
    assert min(axes.collections[0].get_paths()[0].vertices[:, 1]) == pytest.approx((1 + 50**3) / 20)


def test_learning_curves_are_drawn_by_algorithm(results, shown):
    curves.main(paths_of(results, "weights"), 0.9, results / "learning.png")
    ((figure, _),) = shown
    for column, algo in enumerate(NAMED):
        above, below = figure.axes[column], figure.axes[2 + column]
        lines = {above: [], below: []}
        # In the order of settings, whatever that of the files.
        looks = zip((2, 3, 4, 5), LINES, ("-", "--", ":", "-."), strict=False)
        for n, colour, style_ in looks:
            found = np.load(results / f"weights/{algo}-boyan-{n}-6.npz")
            kept = found["diverged_at"] == 0
            theta = ictd.theta_td(n).A
            cosine = [
                [(A * theta).sum() / np.sqrt((A**2).sum() * (theta**2).sum()) for A in run]
                for run in seen(ictd.Weights(found["history_u"], found["history_A"]), 0.9).A
            ]
            label = f"Boyan's chain, $n = {n}$, $L = 6$"
            online = np.median(found["online_msve"][kept], axis=0)
            lines[above].append((label, colour, style_, [1, 50], online))
            lines[below].append((label, colour, style_, [1, 50], np.median(np.array(cosine)[kept], axis=0)))
        for axes, wanted in lines.items():
            check_lines(axes, wanted)
        assert axes_of(above) == {"title": NAMED[algo], "xlabel": "", "xscale": "log", "yscale": "log"}
        said = "tasks seen\n1 of 16 diverged"
        assert axes_of(below) == {"title": "", "xlabel": said, "xscale": "log", "yscale": "linear"}
    assert [bool(axes.get_ylabel()) for axes in figure.axes] == [True, False, True, False]


def test_weights_are_mapped_by_setting_and_algorithm(results, shown):
    of = {"one": ["states", *CELLS], "main": ["main", CELLS[2]]}
    maps.main(of, paths_of(results, "weights")[::-1], results)
    (figure, path), (single, beside) = shown
    assert (path, beside) == (results / "one.png", results / "main.png")
    assert single.axes[0].get_ylabel() == "Boyan's chain,\n$n = 3$, $L = 6$"
    axes = iter(figure.axes)
    names = {"theta_td": r"$\theta^{\mathrm{TD}}$", "td": "multi-task TD, mean", "mc": "multi-task MC, mean"}
    for row, n in enumerate((4, 3, 5, 2)):
        for algo, name in names.items():
            of = ictd.theta_td(n)[None]
            if algo in NAMED:
                found = np.load(results / f"weights/{algo}-boyan-{n}-6.npz")
                of = ictd.Weights(found["u"], found["A"])
            panel = next(axes)
            (strip,) = panel.child_axes
            P, Q = of.P().mean(axis=0), of.Q().mean(axis=0)
            for shown_in, whole, part in ((panel, Q, Q), (strip, P, P[-1:])):
                (image,) = shown_in.images
                np.testing.assert_allclose(image.get_array(), part / np.abs(whole).max())
                assert (image.norm.vmin, image.norm.vmax) == (-1, 1)
                assert all(spine.get_visible() for spine in shown_in.spines.values())
                across = [line.get_xdata()[0] for line in shown_in.lines if line.get_xdata()[0]]
                assert across == [n - 0.5, 2 * n - 0.5]
            assert {line.get_ydata()[0] for line in panel.lines} == {0, n - 0.5, 2 * n - 0.5}
            assert panel.get_title() == ("" if row else name)
            assert panel.get_ylabel() == (f"$n = {n}$" if algo == "theta_td" else "")
            ticks = [0, n, 2 * n]
            for axis in (panel.yaxis, strip.xaxis):
                assert axis.get_ticklocs().tolist() == ticks
                assert [text.get_text() for text in axis.get_ticklabels()] == [str(tick + 1) for tick in ticks]
            assert [text.get_text() for text in strip.get_yticklabels()] == ["$P$"]
    assert next(axes).get_xlabel().startswith("entry over the largest absolute one")
    zero = maps.weight_maps({"a, $n = 2$": {"td": ictd.Weights(np.zeros((1, 4)), np.zeros((1, 4, 4)))}})
    assert (zero.axes[1].images[0].get_array() == 0).all() and zero.axes[0].get_ylabel() == "a,\n$n = 2$"


def circles_and_arrows(figure):
    axes = figure.axes[0]
    arrows = [patch for patch in axes.patches if type(patch).__name__ == "FancyArrowPatch"]
    circles = [patch for patch in axes.patches if patch not in arrows]
    return axes, np.array([circle.get_center() for circle in circles]), arrows


@pytest.mark.parametrize(("draw", "layout"), [(line_diagram, "line"), (circle_diagram, "circle")])
@pytest.mark.parametrize(("env", "states"), [("boyan", 2), ("boyan", 5), ("boyan", 9), ("loop", 6)])
def test_diagrams_are_laid_out_as_said(draw, layout, env, states, shown):
    options = {"threshold": 0.7} if env == "loop" else {}
    environment_diagrams.main({"diagram": [env, options, layout]}, states, Path())
    ((figure, path),) = shown
    rng = ictd.generator(0, env, states, "diagram")
    transition = ictd.sample_tasks(env, states, 1, rng, **options).transition[0]
    axes, centers, arrows = circles_and_arrows(figure)
    assert path == Path("diagram.png") and len(arrows) == (transition > 0).sum()
    assert [text.get_text() for text in axes.texts] == [f"$s_{{{i + 1}}}$" for i in range(states)]
    np.testing.assert_allclose([text.get_position() for text in axes.texts], centers)
    gaps = np.linalg.norm(np.diff(centers, axis=0), axis=1)
    # Circles stand apart by a diameter or more, and evenly.
    assert (gaps > 4 * environment_diagrams.RADIUS).all() and np.ptp(gaps) < 1e-9
    if layout == "line":
        assert (centers[:, 1] == 0).all() and (np.diff(centers[:, 0]) > 0).all()
    else:
        angles = np.pi / 2 - np.unwrap(np.arctan2(centers[:, 1], centers[:, 0]), period=2 * np.pi)
        np.testing.assert_allclose(angles, 2 * np.pi * np.arange(states) / states, atol=1e-9)
    (left, right), (bottom, top) = axes.get_xlim(), axes.get_ylim()
    edge = environment_diagrams.RADIUS
    assert left <= centers[:, 0].min() - edge and right >= centers[:, 0].max() + edge
    assert bottom <= centers[:, 1].min() - edge and top >= centers[:, 1].max() + edge
    pairs = [(i, j) for i, j in zip(*np.nonzero(transition), strict=True)]
    for (i, j), arrow in zip(pairs, arrows, strict=True):
        assert i == j or (
            (arrow.patchA.get_center() == centers[i]).all() and (arrow.patchB.get_center() == centers[j]).all()
        )
        bend = arrow.get_connectionstyle().rad
        if i == j:
            continue
        if layout == "line":
            assert bend == 0 if j == i + 1 else bend < 0
            # Bent to the left of its way, which is above for steps ahead.
            reach = -bend * abs(centers[j, 0] - centers[i, 0]) / 2
            assert env == "loop" or (reach <= top if j > i else -reach >= bottom)
        else:
            assert (bend > 0) == (transition[j, i] > 0)


def test_style(tmp_path):
    assert style.env_name("boyan") == "Boyan's chain" and style.env_name("ring") == "Ring"
    assert style.env_name("ring_that_steps_either_way") == "Ring that steps\neither way"
    cell = Cell("td", "loop", 4, 6)
    assert [style.setting_title(cell, vary) for vary in ("main", "depths", "states", "envs")] == [
        "Loop, $n = 4$, $L = 6$", "$L = 6$", "$n = 4$", "trained on Loop",
    ]  # fmt: skip
    others = [Cell("td", *key) for key in (("a", 9, 9), ("loop", 4, 7), ("boyan", 2, 1))]
    looks = style.setting_looks([cell, cell._replace(algo="mc"), *others])
    assert looks == style.setting_looks([*others, cell]) and [of.env for of in looks] == ["a", "boyan", "loop", "loop"]
    assert looks[cell._replace(algo="")] == {
        "color": LINES[2], "ls": ":", "lw": 1.2, "label": "Loop, $n = 4$, $L = 6$",
    }  # fmt: skip
    many = style.setting_looks(cell._replace(depth=depth) for depth in range(28)).values()
    assert len({(look["color"], look["ls"]) for look in many}) == 28
    assert style.diverged_note(np.array([True, False, True])) == "2 of 3 diverged"
    assert style.diverged_note(np.zeros(3, bool)) == ""
    for name in ("a.png", "b.png"):
        figure, grid = plt.subplots(1, 2)
        for axes in grid:
            axes.plot([1, 2], label="same")
        grid[1].plot([2, 1], label="other")
        height = figure.get_figheight()
        style.legend(figure, ncols=2)
        (legend,) = figure.legends
        assert figure.get_figheight() == pytest.approx(height + legend.get_window_extent().height / figure.dpi)
        assert [text.get_text() for text in legend.get_texts()] == ["same", "other"] and legend._ncols == 2
        style.save(figure, tmp_path / name)
        assert not plt.fignum_exists(figure.number)
    figure, axes = plt.subplots(figsize=(2, 2))
    axes.plot([1], label="long, as names may be, or longer")
    axes.plot([1], label="another one")
    style.legend(figure)
    assert figure.legends[0]._ncols == 1 and len(figure.legends) == 1
    empty, _ = plt.subplots(figsize=(2, 2))
    style.legend(empty)
    assert not empty.legends and empty.get_figheight() == 2
    for ending in ("png", "svg"):
        assert (tmp_path / f"a.{ending}").read_bytes() == (tmp_path / f"b.{ending}").read_bytes()


LONG = "random_walks_on_a_ring_that_step_either_way"


@pytest.mark.parametrize(
    ("algos", "vary", "settings", "lost"),
    [
        (["td", "mc"], "main", [("boyan", 5, 30)], 0),
        (["mc"], "main", [(LONG, 20, 30)], 11),
        (["td"], "envs", [("loop", 5, 30)], 0),
        (["td", "mc"], "envs", [("loop", 2, 30), (LONG, 2, 30), ("boyan", 2, 30)], 11),
        (["td", "mc"], "states", [("boyan", 3, 100), ("boyan", 20, 100)], 20),
        (["td", "mc"], "depths", [("boyan", 4, depth) for depth in (5, 10, 60, 500)], 0),
    ],
)
def test_no_figure_has_ink_on_its_border(algos, vary, settings, lost, tmp_path):
    late = np.arange(20) < lost
    by_title, weights, runs = {}, {}, {}
    for setting in settings:
        n = setting[1]
        beside = {name: RNG.lognormal(size=(20, 3, 2)) for name in ("theta_td", "lstd", "zero")}
        cells = [Cell(algo, *setting) for algo in algos]
        result = {"context_lengths": LENGTHS, "msve": 1e9 * RNG.lognormal(size=(20, 3, 2)), "diverged_at": late}
        by_title[style.setting_title(cells[0], vary)] = dict.fromkeys(cells, result), beside
        A = np.where(late[:, None, None], np.nan, RNG.normal(size=(20, 2 * n, 2 * n)))
        weights[style.setting_title(cells[0], vary)] = dict.fromkeys(algos, ictd.Weights(RNG.random((20, 2 * n)), A))
        seen = {"tasks_seen": np.array([1, 20_000]), "diverged_at": late, "cosine": RNG.random((20, 2))}
        runs |= {cell: {**seen, "online_msve": RNG.lognormal(size=(20, 2))} for cell in cells}
    for figure in (msve_curves(by_title), weight_maps(weights), learning_curves(runs)):
        check_border(figure, tmp_path)


@pytest.mark.parametrize("states", [2, 20])
@pytest.mark.parametrize(
    ("draw", "env"), [(line_diagram, "boyan"), (circle_diagram, "boyan"), (circle_diagram, "loop")]
)
def test_no_diagram_has_ink_on_its_border(draw, env, states, tmp_path):
    check_border(draw(ictd.sample_tasks(env, states, 1, RNG).transition[0]), tmp_path)


def test_the_workflow_has_a_box_for_each_name_and_its_jobs():
    rules = [rule for *_, rules in BOXES.values() for rule in rules.split()]
    figure = workflow(dict.fromkeys(rules, 1) | {"pretrain": 280})
    said = [text.get_text() for text in figure.axes[0].texts]
    assert {*BOXES} <= {*said} and "280 jobs" in said and "1 job" in said and "6 jobs" in said
    assert len(rules) == len({*rules})
