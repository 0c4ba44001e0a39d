"""What the study's figures draw and its pages say, from tables of made-up numbers."""

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


def test_ablations_and_controls_are_means_over_trials():
    names, controls, algos = list(figures.CONTROLLED), ["scaled", "repeated_3", "repeated_10"], ("td", "mc")
    axes_of_rows = {**CELLS, "seed": range(4), "context_length": [5, 0]}
    plain = numbered({**axes_of_rows, "variant": list(figures.VARIANTS)}, ["mean"])
    baselines = numbered({**CELLS, "context_length": [5, 0]}, ["best_mean"], 1)
    table = numbered({**axes_of_rows, "variant": names, "control": controls}, ["mean"], 3)
    for axes, length in zip(figures.ablations(plain, baselines, HERE).axes, (0, 5), strict=True):
        for line, algo in zip(axes.lines, algos, strict=False):
            means = where(plain, algo=algo, context_length=length, **HERE).groupby("variant")["mean"].mean()
            np.testing.assert_allclose(line.get_xdata(), means[list(figures.VARIANTS)])
        best = where(baselines, algo="td", context_length=length, **HERE)["best_mean"].item()
        assert axes.lines[2].get_xdata() == [best, best]
    for axes, algo in zip(figures.controls(plain, table, HERE).axes, algos, strict=True):
        for line, control in zip(axes.lines, ("none", *controls), strict=True):
            of = plain if control == "none" else where(table, control=control)
            means = where(of, algo=algo, context_length=0, **HERE).groupby("variant")["mean"].mean()
            np.testing.assert_allclose(line.get_xdata(), means[names])


def test_the_course_is_drawn_by_quartiles():
    names = ["alpha", "cosine", "outside", "bellman", "msve_0", "msve_20"]
    table = numbered({"algo": ["td"], "env": ["boyan"], "seed": range(5), "tasks_seen": [1, 10, 100]}, names)
    table.loc[table["seed"] == 2, "bellman"] = 1e101
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
    prompts = {**cells, "context_length": [0, 5, 100]}
    controls = {**prompts, "variant": list(figures.CONTROLLED), "control": ["scaled", "repeated_3", "repeated_10"]}
    pretrained = numbered({**prompts, "variant": list(figures.VARIANTS)}, ["mean"])
    course = numbered({**cells, "tasks_seen": [1, 10**6]}, [*(name for name, _ in figures.COURSE), "msve_100"])
    plane = numbered({**cells, "states": [2, 50], "depth": [1, 200]}, ["cosine", "outside", "msve", "theta_msve"])
    at = {"env": env, "states": 20, "depth": 5}
    for figure in (
        figures.decompositions(numbered(cells, list(figures.SHARES))), figures.course(course),
        figures.ablations(pretrained, numbered(prompts, ["best_mean"]), at),
        figures.controls(pretrained, numbered(controls, ["mean"]).assign(mean=1e9 if lost else 1.0), at),
        figures.phase(plane.assign(diverged_at=int(lost))),
    ):  # fmt: skip
        check_border(figure, tmp_path)


def test_verdicts_by_reading():
    verdicts = {
        "as_is": ["holds", "holds", "holds"], "other_one": ["fails", "fails", "fails"],
        "a_third": ["holds", "fails", "holds"],
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
        "pattern": ["holds", "fails TD, MC, diverged", "fails MC"],
        "same": ["holds", "fails", "holds"],
    }
