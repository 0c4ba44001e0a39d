"""Content of the figures of the experiments."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from drawn import check_band, check_lines, numbered, where
from PIL import Image

import ictd
from ictd.baselines import shown_baselines
from ictd.pipeline.grid import Cell
from ictd.report.figures import environment_diagrams, msve_curves, style, weight_maps
from ictd.statistics import bootstrap_mean

LENGTHS, TASKS_SEEN = [5, 10, 15], [1, 50]
ALGOS, METHODS = ("td", "mc"), shown_baselines()
# One of four trials diverged with 3 states, and all with 5.
PANELS = {f"$n = {n}$": [Cell(algo, "boyan", n, 6) for algo in ALGOS] for n in (3, 5)}


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def tables():
    """Result tables; those of runs that diverged are not to be drawn."""
    cells = {"algo": [*ALGOS], "env": ["boyan"], "states": [5, 3], "depth": [6]}
    runs = cells | {"seed": range(4)}
    weights = numbered(runs, ["cosine"])
    column = range(1, 7)
    entries = cells | {"states": [3], "tasks_seen": TASKS_SEEN, "matrix": ["u", "A"], "row": column, "column": column}
    # The length 0 stands for enumerated prompts.
    methods = {"method": [*ALGOS, "zero"], "env": ["boyan", "any"], "states": [3, 5], "depth": [0, 6]}
    baselines = {"method": METHODS, "states": [3, 5], "depth": [0, 6], "seed": range(4)}
    return {
        "weights": weights.assign(diverged_at=9 * (weights["seed"] < weights["states"].map({3: 1, 5: 4}))),
        "unseen_msve": numbered(runs | {"context_length": LENGTHS}, ["msve"], 1),
        "unseen_baselines": numbered(baselines | {"context_length": LENGTHS}, ["msve"], 2),
        "over_tasks": numbered(methods | {"context_length": [0, *LENGTHS]}, ["median"]),
        "mean_entries": numbered(entries, ["mean"]).query("matrix == 'A' or row == 1"),
        "mean_weights": numbered(cells, ["pattern", "pattern_low", "pattern_high"]),
    }


def by_trial(table, column, by, **at):
    """Values (trials, places)."""
    return where(table, **at).pivot(index="seed", columns=by, values=column).to_numpy()


def test_msve_is_drawn_by_panels(tables):
    panels = {title: (cells, tables) for title, cells in PANELS.items()}
    panel, lost = msve_curves.msve_curves(panels, tables["weights"], " on Loop").axes
    assert panel.get_ylabel().startswith("MSVE on Loop")
    means, lines, medians = {}, [], tables["over_tasks"].query("states == 3 and context_length > 0")
    for method in METHODS:
        at = {"method": method, "states": 3, "depth": 6 * (method == "theta_td")}
        means[method] = by_trial(tables["unseen_baselines"], "msve", "context_length", **at)
    for algo, band in zip(ALGOS, panel.collections, strict=True):
        errors = by_trial(tables["unseen_msve"], "msve", "context_length", algo=algo, states=3)
        intervals = [bootstrap_mean(ratios).estimate() for ratios in np.log10(errors / means["zero"])[1:].T]
        value, low, high = 10 ** (np.transpose(intervals) + np.log10(means["zero"]).mean(axis=0))
        check_band(band, LENGTHS, low, high)
        lines += [value, where(medians, method=algo, env="boyan", depth=6)["median"]]
    lines += [10 ** np.log10(errors).mean(axis=0) for errors in means.values()]
    lines.append(where(medians, method="zero", env="any", depth=0)["median"])
    check_lines(panel, *((LENGTHS, line) for line in lines))
    assert panel.get_xlabel().count("1 of 4") == lost.get_xlabel().count("4 of 4") == 2
    assert len(lost.lines) == 5 and not lost.collections


def test_weights_are_mapped_by_setting_and_algorithm(tables):
    shown = [tables[name] for name in ("mean_entries", "mean_weights", "weights")]
    maps = weight_maps.weight_maps(dict([*PANELS.items()][:1]), *shown).axes
    last = where(tables["mean_entries"], algo="mc", tasks_seen=TASKS_SEEN[-1])
    u, A = (where(last, matrix=name)["mean"].to_numpy() for name in "uA")
    (strip,) = maps[2].child_axes
    for panel, weights in ((maps[0], ictd.theta_td(3)), (maps[2], ictd.Weights(u, A.reshape(6, 6)))):
        for axes, matrix in ((panel, weights.Q()), (*panel.child_axes, weights.P()[-1:])):
            np.testing.assert_allclose(axes.images[0].get_array(), matrix / np.abs(matrix).max())
    below = "{pattern:.3f} ({pattern_low:.3f}, {pattern_high:.3f})"
    (measured,) = where(tables["mean_weights"], algo="mc", states=3).to_dict("records")
    good = (where(tables["weights"], algo="mc", states=3)["cosine"] ** 2 > 0.5).sum()
    assert strip.get_xlabel() == f"{below.format(**measured)}\n{good} of 4 trials\n1 of 4 diverged"


@pytest.mark.parametrize(("layout", "env"), [("line", "boyan"), ("circle", "loop")])
def test_diagrams_have_an_arrow_for_each_transition(layout, env):
    axes = environment_diagrams.environment_diagram(env, {}, layout, 6).axes[0]
    (transition,) = ictd.sample_tasks(env, 6, 1, ictd.generator(0, env, 6, "diagram")).transition
    arrows = [patch for patch in axes.patches if type(patch).__name__ == "FancyArrowPatch"]
    centers = [patch.get_center() for patch in axes.patches if patch not in arrows]
    np.testing.assert_allclose([text.get_position() for text in axes.texts], centers)
    # Circles stand evenly, and apart by a diameter or more.
    gaps = np.linalg.norm(np.diff(centers, axis=0), axis=1)
    assert gaps.min() > 4 * environment_diagrams.RADIUS and np.ptp(gaps) < 1e-9
    for i, j, arrow in zip(*np.nonzero(transition), arrows, strict=True):
        if i != j:
            assert (arrow.patchA.get_center(), arrow.patchB.get_center()) == (centers[i], centers[j])


def test_figures_are_the_same_bytes(tmp_path):
    for name in "ab":
        figure, grid = plt.subplots(1, 2)
        for axes in grid:
            axes.plot([1, 2], label="same")
        style.legend(figure)
        assert len(figure.legends[0].get_texts()) == 1
        style.save(figure, tmp_path / f"{name}.png")
    for ending in ("png", "svg"):
        assert (tmp_path / f"a.{ending}").read_bytes() == (tmp_path / f"b.{ending}").read_bytes()


def test_labels_of_lines_are_in_the_order_of_their_ends_and_do_not_overlap():
    values = [3.0, 1.0, 1.001, 1.002, 2.0, 1e-9, 50.0]
    figure, axes = plt.subplots()
    axes.set(yscale="log", ylim=(0.5, 4))
    style.label_ends(axes, [(str(value), value, "black") for value in values])
    heights = {float(text.get_text()): text.xyann[1] for text in axes.texts}
    least = style.LABEL_HEIGHT / (axes.bbox.height / figure.dpi)
    assert (np.diff([heights[value] for value in sorted(values)]) > 0.999 * least).all()
    # Labels without close neighbours are at the ends of their lines, or at the panel's edge.
    wanted = {2.0: np.log(4) / np.log(8), 3.0: np.log(6) / np.log(8), 1e-9: 0, 50.0: 1}
    np.testing.assert_allclose([heights[value] for value in wanted], [*wanted.values()], atol=1e-9)


def test_no_figure_of_a_run_has_ink_on_its_border(smoke):
    figures = sorted((smoke / "results-smoke/figures").glob("*.png"))
    assert figures
    for path in figures:
        opacity = np.asarray(Image.open(path).convert("RGBA"))[..., -1]
        assert not any(edge.any() for edge in (opacity[[0, -1]], opacity[:, [0, -1]])), path
