"""Content of the figures of the experiments."""

import itertools
from statistics import geometric_mean

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from drawn import check_bands, check_lines, numbered, where
from PIL import Image

import ictd
from ictd.pipeline.grid import Cell
from ictd.report.figures import environment_diagrams, learning_curves, msve_curves, style, weight_maps
from ictd.statistics import bootstrap_mean

LENGTHS, TASKS_SEEN = [5, 10, 15], [1, 50]
METHODS = ("theta_td", "lstd", "zero", "constant")
NAMED = {"td": "multi-task TD", "mc": "multi-task MC"}
# Numbers of states, and how many of four trials diverged.
LOST = {4: 0, 3: 1, 5: 4}
PANELS = {f"$n = {n}$": [Cell(algo, "boyan", n, 6) for algo in NAMED] for n in LOST}


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def tables():
    """Result tables of cells with three numbers of states; those of runs that diverged are not to be drawn."""
    cells = {"algo": [*NAMED], "env": ["boyan"], "states": [*LOST], "depth": [6]}
    runs = cells | {"seed": range(4)}
    weights = numbered(runs, ["cosine"])
    learning = numbered(runs | {"tasks_seen": TASKS_SEEN}, ["cosine", "online_msve"])
    entries = []
    for n, (matrix, rows) in itertools.product(LOST, (("u", 1), ("A", None))):
        place = {"row": range(1, (rows or 2 * n) + 1), "column": range(1, 2 * n + 1)}
        own = cells | {"states": [n], "matrix": [matrix], "tasks_seen": TASKS_SEEN} | place
        entries.append(numbered(own, ["mean"]))
    entries = pd.concat(entries)
    # The length 0 stands for enumerated prompts.
    methods = {"method": [*NAMED, "zero"], "env": ["boyan", "any"], "states": [*LOST], "depth": [0, 6]}
    baselines = {"method": METHODS, "states": [*LOST], "depth": [0, 6], "seed": range(4)}
    return {
        "weights": weights.assign(diverged_at=9 * (weights["seed"] < weights["states"].map(LOST))),
        "unseen_msve": numbered(runs | {"context_length": LENGTHS}, ["msve"], 1),
        "unseen_baselines": numbered(baselines | {"context_length": LENGTHS}, ["msve"], 2),
        "over_tasks": numbered(methods | {"context_length": [0, *LENGTHS]}, ["median"]),
        "learning": learning.assign(cosine=2 * learning["cosine"] - 1),
        "mean_entries": entries.assign(mean=entries["mean"].mask(entries["states"] == 5)),
        "mean_weights": numbered(cells, ["pattern", "pattern_low", "pattern_high"]),
    }


def by_trial(table, column, by, **at):
    """Values (trials, places)."""
    return where(table, **at).pivot(index="seed", columns=by, values=column).to_numpy()


def test_msve_is_drawn_by_panels(tables):
    shown = [tables[name] for name in ("unseen_msve", "unseen_baselines", "over_tasks", "weights")]
    figure = msve_curves.msve_curves(PANELS, *shown)
    for axes, (n, lost) in zip(figure.axes, LOST.items(), strict=True):
        lines, bands, baselines = [], [], []
        for method in METHODS:
            at = {"method": method, "states": n, "depth": 6 * (method == "theta_td")}
            trials = by_trial(tables["unseen_baselines"], "msve", "context_length", **at)
            baselines.append((style.NAMES[method], LENGTHS, [geometric_mean(msve) for msve in trials.T]))
            if method == "zero":
                zero = trials
        for algo, name in NAMED.items() if lost < 4 else ():
            errors = by_trial(tables["unseen_msve"], "msve", "context_length", algo=algo, states=n)
            ratios = np.log10(errors / zero)[lost:]
            intervals = [bootstrap_mean(ratios[:, k]).estimate() for k in range(3)]
            value, low, high = 10 ** np.transpose(intervals) * [geometric_mean(msve) for msve in zero.T]
            medians = where(tables["over_tasks"], method=algo, env="boyan", states=n, depth=6)["median"][1:]
            lines += [(name, LENGTHS, value), (None, LENGTHS, medians)]
            bands.append((LENGTHS, low, high))
        medians = where(tables["over_tasks"], method="zero", env="any", states=n, depth=0)["median"][1:]
        check_lines(axes, [*lines, *baselines, (None, LENGTHS, medians)])
        check_bands(axes, bands)
        notes = f"TD: {lost} of 4 diverged MC: {lost} of 4 diverged" if lost else ""
        assert " ".join(axes.get_xlabel().splitlines()[1:]) == notes and axes.get_title() == f"$n = {n}$"


def test_learning_curves_are_drawn_by_algorithm(tables):
    axes = learning_curves.learning_curves(tables["learning"], tables["weights"], Cell("td", "boyan", 4, 6)).axes
    for column, algo in enumerate(NAMED):
        above, below = [], []
        # In the order of settings, for any order of the table.
        for n in (3, 4):
            msve, cosines = (
                by_trial(tables["learning"], name, "tasks_seen", algo=algo, states=n)[LOST[n] :]
                for name in ("online_msve", "cosine")
            )
            above.append((None, TASKS_SEEN, np.median(msve, axis=0)))
            below.append((None, TASKS_SEEN, np.median(np.where(cosines > 0, cosines**2, 0), axis=0)))
        for panel, lines in ((axes[column], above), (axes[2 + column], below)):
            check_lines(panel, lines)
            assert panel.lines[0].get_linewidth() < panel.lines[1].get_linewidth()
            assert {text.get_text() for text in panel.texts} == {"$n = 3$", "main"}
        assert axes[2 + column].get_xlabel().endswith("\n5 of 12 diverged") and axes[column].get_title() == NAMED[algo]


def test_weights_are_mapped_by_setting_and_algorithm(tables):
    shown = [tables[name] for name in ("mean_entries", "mean_weights", "weights")]
    axes = iter(weight_maps.weight_maps(PANELS, *shown).axes)
    for n, algo in itertools.product(LOST, ("theta_td", *NAMED)):
        panel = next(axes)
        weights = ictd.theta_td(n)
        if algo in NAMED:
            last = where(tables["mean_entries"], algo=algo, states=n, tasks_seen=TASKS_SEEN[-1])
            u, A = (where(last, matrix=name)["mean"].to_numpy() for name in "uA")
            weights = ictd.Weights(u, A.reshape(2 * n, 2 * n))
        (strip,) = panel.child_axes
        for shown_in, whole, part in ((panel, weights.Q(), slice(None)), (strip, weights.P(), slice(-1, None))):
            (image,) = shown_in.images
            # Weights of runs that all diverged are not finite, and shown as missing.
            found = image.get_array().filled(np.nan)
            np.testing.assert_allclose(found, whole[part] / np.abs(whole).max())
            assert (image.norm.vmin, image.norm.vmax) == (-1, 1)
        below = "{pattern:.3f} ({pattern_low:.3f}, {pattern_high:.3f})"
        shares = where(tables["weights"], algo=algo, states=n)["cosine"] ** 2
        below += f"\n{(shares > 0.5).sum()} of 4 trials" + (f"\n{LOST[n]} of 4 diverged" if LOST[n] else "")
        measured = where(tables["mean_weights"], algo=algo, states=n).to_dict("records")
        assert strip.get_xlabel() == "".join(below.format(**row) for row in measured)
        assert panel.get_ylabel() == (f"$n = {n}$" if algo == "theta_td" else "")


@pytest.mark.parametrize("layout", ["line", "circle"])
@pytest.mark.parametrize(("env", "states"), [("boyan", 2), ("boyan", 9), ("loop", 6)])
def test_diagrams_have_an_arrow_for_each_transition(layout, env, states):
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


def test_no_figure_of_a_run_has_ink_on_its_border(smoke):
    figures = sorted((smoke / "results-smoke/figures").glob("*.png"))
    assert figures
    for path in figures:
        opacity = np.asarray(Image.open(path).convert("RGBA"))[..., -1]
        for edge in (opacity[0], opacity[-1], opacity[:, 0], opacity[:, -1]):
            assert (edge == 0).all(), path
