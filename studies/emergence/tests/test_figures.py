"""Content of the study's figures and pages, from tables of made-up numbers."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from drawn import check_bands, check_border, check_lines, numbered, where

from ictd.report.figures.style import NAMES
from studies.emergence import figures, pages

CELLS = {"algo": ["td", "mc"], "env": ["boyan", "loop"], "states": [3, 4], "depth": [5]}
HERE = {"env": "loop", "states": 3, "depth": 5}


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


def test_shares_add_up_to_one():
    measures = numbered({**CELLS, "seed": range(3)}, ["family_1", "family_2", "outside"])
    measures = measures.assign(outside=0.1, family_1=0.5, family_2=0.5 + 0.01 * measures["seed"])
    axes = figures.shares(measures).axes[0]
    widths = [[bar.get_width() for bar in bars] for bars in axes.containers]
    np.testing.assert_allclose([row[0] for row in widths], [0.45, 0.009, 0.441, 0.1])
    np.testing.assert_allclose(np.sum(widths, axis=0), 1)


def test_best_numbers_are_means_over_groups():
    at = {"env": ["boyan", "loop"], "states": [3, 5], "discount": [0.5, 0.9], "depth": [3, 10]}
    table = numbered({**at, "numbers": [1, 2], "group": range(3)}, ["mean"])
    drawn = figures.best_numbers(table, "loop", 5, 30, 0.9)
    chosen = {"env": "loop", "states": 5, "depth": 10, "discount": 0.9}
    for axes, varied in zip(drawn.axes, ("depth", "discount", "states"), strict=True):
        rows = where(table, **{name: value for name, value in chosen.items() if name != varied})
        for line, numbers in zip(axes.lines, (1, 2), strict=True):
            means = where(rows, numbers=numbers).groupby(varied)["mean"].mean()
            np.testing.assert_allclose(line.get_xdata(), means.index)
            np.testing.assert_allclose(line.get_ydata(), means)


def test_the_course_is_drawn_by_quartiles():
    names = ["identity", "ones", "cosine", "outside", "msve_0", "msve_20"]
    table = numbered({"algo": ["td"], "env": ["boyan"], "seed": range(5), "tasks_seen": [1, 10, 100]}, names)
    table.loc[table["seed"] == 2, "outside"] = 1e101
    for axes, name in zip(figures.course(table).axes, names, strict=True):
        groups = table[table[name] < 1e100].groupby("tasks_seen")[name]
        low, middle, high = (groups.quantile(q) for q in (0.25, 0.5, 0.75))
        check_lines(axes, [(f"{NAMES['td']}, Boyan's chain", [1, 10, 100], middle)])
        check_bands(axes, [([1, 10, 100], low, high)])


def test_the_plane_is_drawn_by_medians():
    at = {"algo": ["td"], "env": ["boyan"], "states": [4, 2, 3], "depth": [9, 3], "seed": range(3)}
    table = numbered(at, ["cosine", "outside", "msve", "theta_msve"]).assign(diverged_at=0)
    table.loc[(table["states"] == 4) & (table["depth"] == 3) & (table["seed"] == 1), "diverged_at"] = 1
    figure, table["gain"] = figures.phase(table), table["msve"] / table["theta_msve"]
    for axes, name in zip(figure.axes, ("cosine", "outside", "gain"), strict=False):
        of = table.pivot_table(index="states", columns="depth", values=name, aggfunc="median")
        np.testing.assert_allclose(axes.images[0].get_array(), of)
        check_lines(axes, [("trials diverged", [0], [2])])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("algos", "env", "lost"),
    [(["mc"], "boyan", False), (["td", "mc"], "random_walks_on_a_ring_that_step_either_way", True)],
)
def test_no_figure_has_ink_on_its_border(algos, env, lost, tmp_path):
    cells = {"algo": algos, "env": [env, "loop"][: 1 + lost], "states": [20], "depth": [5, 300], "seed": range(3)}
    course = numbered({**cells, "tasks_seen": [1, 10**6]}, [*(name for name, _ in figures.COURSE), "msve_100"])
    plane = numbered({**cells, "states": [2, 50], "depth": [1, 200]}, ["cosine", "outside", "msve", "theta_msve"])
    measures = numbered(cells, ["family_1", "family_2", "outside"]).assign(family_1=0.5, family_2=0.6, outside=0.1)
    best = {"env": [env], "states": [3, 20], "discount": [0.5, 0.99], "depth": [5, 300], "numbers": [1, 2, 3, 4]}
    for figure in (
        figures.shares(measures), figures.course(course), figures.phase(plane.assign(diverged_at=int(lost))),
        figures.best_numbers(numbered({**best, "group": range(2)}, ["mean"]), env, 20, 5, 0.9),
    ):  # fmt: skip
        check_border(figure, tmp_path)


def test_verdicts_by_reading():
    verdicts = {
        "as_is": ["holds", "holds", "holds"], "other_one": ["refuted", "not shown", "not shown"],
        "a_third": ["holds", "not shown", "holds"],
    }  # fmt: skip
    claims = [("pattern", "td"), ("pattern", "mc"), ("same", "both")]
    rows = [
        {"reading": name, "claim": claim, "algo": algo, "verdict": verdict, "value": 1.0}
        for name, of in verdicts.items()
        for (claim, algo), verdict in zip(claims, of, strict=True)
    ]
    rows[4]["value"] = np.nan
    table = pd.DataFrame(rows)
    assert pages.verdicts_by_reading(table).to_dict("list") == {
        "reading": ["as is", "other one", "a third"],
        "pattern": ["holds", "refuted TD, MC, diverged", "not shown MC"],
        "same": ["holds", "not shown", "holds"],
    }
