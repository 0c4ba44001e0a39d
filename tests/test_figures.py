"""What the figures draw: the numbers behind their lines and images."""

import matplotlib.pyplot as plt
import numpy as np
import pytest

import ictd
from ictd.pipeline.grid import Cell
from ictd.report.figures.environment_diagrams import circle_diagram, line_diagram
from ictd.report.figures.learning_curves import learning_curves
from ictd.report.figures.msve_curves import msve_curves
from ictd.report.figures.style import COLOURS
from ictd.report.figures.weight_maps import weight_maps

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
    images = [axes.images[0].get_array() for axes in figure.axes if axes.images]
    expected = [weights.P().mean(0), weights.Q().mean(0), weights[:2].P().mean(0), weights[:2].Q().mean(0)]
    for image, matrix in zip(images, expected, strict=False):
        np.testing.assert_allclose(image, matrix / np.abs(matrix).max())
    assert len(images) >= 4


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
    assert lost.get_xlabel().splitlines()[1:] == ["multi-task TD: 4 of 4 diverged", "multi-task MC: 4 of 4 diverged"]
    assert kept.get_xlabel().splitlines()[1] == "multi-task TD: 1 of 4 diverged"
    line = next(line for line in kept.lines if line.get_label() == "multi-task TD, mean")
    np.testing.assert_allclose(line.get_ydata(), errors[[0, 2, 3]].mean(axis=(0, 2)))
    assert "multi-task TD, mean" in [text.get_text() for text in figure.legends[0].get_texts()]
    A = RNG.normal(size=(4, 6, 6))
    A[2] = np.nan
    figure = weight_maps({"title": {"td": ictd.Weights(np.zeros((4, 6)), A)}})
    assert [axes.get_xlabel() for axes in figure.axes[:2]] == ["1 of 4 diverged"] * 2
    mean = A[[0, 1, 3]].mean(axis=0)
    np.testing.assert_allclose(figure.axes[1].images[0].get_array()[:6, :6], mean / np.abs(mean).max())


@pytest.mark.parametrize("draw", [line_diagram, circle_diagram])
def test_diagrams_have_an_arrow_for_each_transition(draw):
    transition = ictd.sample_tasks("boyan", 5, 1, RNG).transition[0]
    patches = draw(transition).axes[0].patches
    arrows = [patch for patch in patches if type(patch).__name__ == "FancyArrowPatch"]
    assert len(arrows) == (transition > 0).sum()
    assert len(patches) - len(arrows) == 5
