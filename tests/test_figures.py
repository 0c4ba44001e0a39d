"""What the figures of the experiments draw."""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest
from drawn import check_bands, check_border, check_lines

import ictd
from ictd.anatomy import project_identifiable
from ictd.pipeline.grid import Cell
from ictd.report.figures import environment_diagrams, learning_curves, msve_curves, style, weight_maps
from ictd.report.figures.environment_diagrams import circle_diagram, line_diagram
from ictd.report.figures.style import NAMES
from ictd.report.figures.workflow import BOXES, workflow
from ictd.storage import save_arrays

RNG = np.random.default_rng(4)
LENGTHS = np.array([5, 10, 15])
NAMED = {"td": "multi-task TD", "mc": "multi-task MC"}
CELLS = [f"{algo}-boyan-{n}-6" for n in (4, 3, 5, 2) for algo in NAMED]
FIGURES = {"one": ["states", *CELLS], "main": ["main", CELLS[2]]}


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


@pytest.fixture
def shown(monkeypatch):
    """Figures that a step saves, by their names."""
    found = {}
    for module in (msve_curves, learning_curves, weight_maps, environment_diagrams):
        monkeypatch.setattr(module, "save", lambda figure, path: found.setdefault(path.stem, figure))
    return found


@pytest.fixture
def results(tmp_path):
    """Evaluations, baselines and weights of cells with four numbers of states; with three a run diverged."""
    for cell in map(Cell.parse, CELLS):
        n, late = cell.states, np.array([0, 0, 9 * (cell.states == 3), 0])
        msve, wide = RNG.lognormal(size=(4, 3, 2)), 2 * n
        # So far apart that a standard error reaches below a tenth of the mean.
        msve[3] *= 1000 if n == 5 else 1
        evaluation = {"context_lengths": LENGTHS, "msve": msve, "diverged_at": late}
        save_arrays(tmp_path / f"evaluation/{cell}.npz", **evaluation)
        A = np.where((late > 0)[:, None, None], np.nan, RNG.normal(size=(4, wide, wide)))
        save_arrays(
            tmp_path / f"weights/{cell}.npz", u=RNG.normal(size=(4, wide)), A=A,
            history_u=RNG.normal(size=(4, 2, wide)), history_A=RNG.normal(size=(4, 2, wide, wide)),
            tasks_seen=np.array([1, 50]), diverged_at=late, online_msve=RNG.lognormal(size=(4, 2)),
        )  # fmt: skip
        beside = {name: RNG.lognormal(size=(4, 3, 2)) for name in ("theta_td", "lstd", "zero")}
        save_arrays(tmp_path / f"baselines/{n}-6.npz", **beside)
    return tmp_path


def paths_of(results, folder):
    return [results / f"{folder}/{cell}.npz" for cell in CELLS]


def test_msve_is_drawn_by_panels(results, shown):
    baselines = sorted((results / "baselines").iterdir())
    msve_curves.main(FIGURES, paths_of(results, "evaluation")[::-1], baselines, results)
    assert list(shown) == ["one", "main"] and len(shown["main"].axes) == 1
    assert [axes.get_visible() for axes in shown["one"].axes] == [True] * 4 + [False] * 2
    for axes, n in zip(shown["one"].axes, (4, 3, 5, 2), strict=False):
        lines, bands = [], []
        for algo, name in NAMED.items():
            found = np.load(results / f"evaluation/{algo}-boyan-{n}-6.npz")
            trials = found["msve"].mean(axis=-1)[found["diverged_at"] == 0]
            mean, error = trials.mean(axis=0), trials.std(axis=0, ddof=1) / np.sqrt(len(trials))
            lines.append((f"{name}, mean", LENGTHS, mean))
            lines.append((f"{name}, median", LENGTHS, np.median(trials, axis=0)))
            assert (mean - error < mean / 10).any() == (n == 5)
            bands.append((LENGTHS, np.maximum(mean - error, mean / 10), mean + error))
        beside = np.load(results / f"baselines/{n}-6.npz")
        lines += [(NAMES[name], LENGTHS, beside[name].mean(axis=(0, 2))) for name in ("theta_td", "lstd", "zero")]
        check_lines(axes, lines)
        check_bands(axes, bands)
        notes = [f"{algo.upper()}: 1 of 4 diverged" for algo in NAMED] if n == 3 else []
        assert axes.get_xlabel().splitlines()[1:] == notes and axes.get_title() == f"$n = {n}$"


def test_a_panel_whose_runs_all_diverged_has_its_baselines():
    lost = {"context_lengths": LENGTHS, "msve": np.full((4, 3, 2), np.nan), "diverged_at": np.full(4, 2)}
    baselines = {name: np.ones((4, 3, 2)) for name in ("theta_td", "lstd", "zero")}
    (axes,) = msve_curves.msve_curves({"a": ({Cell("td", "boyan", 4, 6): lost}, baselines)}).axes
    assert axes.get_xlabel().splitlines()[1:] == ["TD: 4 of 4 diverged"] and len(axes.lines) == 3


def test_learning_curves_are_drawn_by_algorithm(results, shown):
    learning_curves.main(paths_of(results, "weights"), 0.9, results / "learning.png")
    for column, algo in enumerate(NAMED):
        above, below = [], []
        # In the order of settings, whatever that of the files.
        for n in (2, 3, 4, 5):
            found, theta = np.load(results / f"weights/{algo}-boyan-{n}-6.npz"), ictd.theta_td(n).A
            kept = found["diverged_at"] == 0
            A = project_identifiable(ictd.Weights(found["history_u"], found["history_A"]), 0.9).A[kept]
            cosine = (A * theta).sum(axis=(2, 3)) / np.sqrt((A**2).sum(axis=(2, 3)) * (theta**2).sum())
            label = f"Boyan's chain, $n = {n}$, $L = 6$"
            above.append((label, [1, 50], np.median(found["online_msve"][kept], axis=0)))
            below.append((label, [1, 50], np.median(cosine, axis=0)))
        axes = shown["learning"].axes
        check_lines(axes[column], above)
        check_lines(axes[2 + column], below)
        assert axes[2 + column].get_xlabel().endswith("\n1 of 16 diverged") and axes[column].get_title() == NAMED[algo]


def test_weights_are_mapped_by_setting_and_algorithm(results, shown):
    weight_maps.main(FIGURES, paths_of(results, "weights")[::-1], results)
    assert list(shown) == ["one", "main"]
    axes = iter(shown["one"].axes)
    for n in (4, 3, 5, 2):
        for algo in ("theta_td", "td", "mc"):
            of, late, panel = ictd.theta_td(n)[None], 0, next(axes)
            if algo in NAMED:
                found = np.load(results / f"weights/{algo}-boyan-{n}-6.npz")
                late = found["diverged_at"]
                of = ictd.Weights(found["u"], found["A"])[late == 0]
            (strip,) = panel.child_axes
            P, Q = of.P().mean(axis=0), of.Q().mean(axis=0)
            for shown_in, whole, part in ((panel, Q, Q), (strip, P, P[-1:])):
                (image,) = shown_in.images
                np.testing.assert_allclose(image.get_array(), part / np.abs(whole).max())
                assert (image.norm.vmin, image.norm.vmax) == (-1, 1)
            assert strip.get_xlabel() == ("1 of 4 diverged" if np.any(late) else "")
            assert panel.get_ylabel() == (f"$n = {n}$" if algo == "theta_td" else "")
    zero = weight_maps.weight_maps({"a": {"td": ictd.Weights(np.zeros((1, 4)), np.zeros((1, 4, 4)))}})
    assert (zero.axes[1].images[0].get_array() == 0).all()


@pytest.mark.parametrize(("draw", "layout"), [(line_diagram, "line"), (circle_diagram, "circle")])
@pytest.mark.parametrize(("env", "states"), [("boyan", 2), ("boyan", 9), ("loop", 6)])
def test_diagrams_have_an_arrow_for_each_transition(draw, layout, env, states, shown):
    options = {"threshold": 0.7} if env == "loop" else {}
    environment_diagrams.main({"diagram": [env, options, layout]}, states, Path())
    rng = ictd.generator(0, env, states, "diagram")
    transition = ictd.sample_tasks(env, states, 1, rng, **options).transition[0]
    axes = shown["diagram"].axes[0]
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


def test_settings_look_different_and_figures_are_the_same_bytes(tmp_path):
    many = style.setting_looks(Cell("td", "loop", 4, depth) for depth in range(28)).values()
    assert len({(look["color"], look["ls"]) for look in many}) == 28
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


def test_the_workflow_has_a_box_for_each_name_and_its_jobs():
    rules = [rule for *_, rules in BOXES.values() for rule in rules.split()]
    figure = workflow(dict.fromkeys(rules, 1) | {"pretrain": 280})
    said = {text.get_text() for text in figure.axes[0].texts}
    assert {*BOXES, "280 jobs", "1 job"} <= said and len(rules) == len({*rules})


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
    late = np.arange(20) < lost
    by_title, weights, runs = {}, {}, {}
    for setting in settings:
        n, cells = setting[1], [Cell(algo, *setting) for algo in algos]
        beside = {name: RNG.lognormal(size=(20, 3, 2)) for name in ("theta_td", "lstd", "zero")}
        result = {"context_lengths": LENGTHS, "msve": 1e9 * RNG.lognormal(size=(20, 3, 2)), "diverged_at": late}
        title = style.setting_title(cells[0], vary)
        by_title[title] = dict.fromkeys(cells, result), beside
        A = np.where(late[:, None, None], np.nan, RNG.normal(size=(20, 2 * n, 2 * n)))
        weights[title] = dict.fromkeys(algos, ictd.Weights(RNG.random((20, 2 * n)), A))
        curve = {"tasks_seen": np.array([1, 20_000]), "diverged_at": late, "cosine": RNG.random((20, 2))}
        runs |= {cell: {**curve, "online_msve": RNG.lognormal(size=(20, 2))} for cell in cells}
    figures = (msve_curves.msve_curves(by_title), weight_maps.weight_maps(weights))
    for figure in (*figures, learning_curves.learning_curves(runs)):
        check_border(figure, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("states", [2, 20])
@pytest.mark.parametrize(("draw", "env"), [(line_diagram, "boyan"), (circle_diagram, "loop")])
def test_no_diagram_has_ink_on_its_border(draw, env, states, tmp_path):
    check_border(draw(ictd.sample_tasks(env, states, 1, RNG).transition[0]), tmp_path)
