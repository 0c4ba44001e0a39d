"""What the study's figures draw and its pages say."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from drawn import axes_of, check_bands, check_border, check_lines, numbered, where
from matplotlib.colors import to_hex

from ictd.pipeline.storage import save_arrays, save_json
from ictd.pipeline.table_files import save_table
from ictd.prompts import ENUMERATED
from ictd.report.figures.style import COLOURS, LINES, NAMES
from ictd.statistics import bootstrap_interval
from studies.emergence import figures, pages

NAMED = {"td": "multi-task TD", "mc": "multi-task MC"}
CELLS = {"algo": ["td", "mc"], "env": ["boyan", "loop"], "states": [3, 4], "depth": [5]}


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


def test_decompositions_are_bars_of_mean_shares():
    table = numbered({**CELLS, "seed": range(3)}, ["theta", "preconditioner", "outside"])
    (axes,) = figures.decompositions(table).axes
    cells = [dict(zip(CELLS, key, strict=True)) for key in table[list(CELLS)].drop_duplicates().to_numpy()]
    parts = {"theta": COLOURS["theta_td"], "preconditioner": LINES[2], "outside": LINES[1]}
    bars = iter(axes.patches)
    left = dict.fromkeys(range(8), 0)
    for part, colour in parts.items():
        for i, cell in enumerate(cells):
            bar, mean = next(bars), where(table, **cell)[part].mean()
            assert to_hex(bar.get_facecolor()) == to_hex(colour)
            assert (bar.get_x(), bar.get_width()) == pytest.approx((left[i], mean))
            assert bar.get_y() + bar.get_height() / 2 == pytest.approx(i)
            left[i] += mean
    assert [text.get_text() for text in axes.get_yticklabels()][:3] == [
        "multi-task TD, Boyan's chain, $n=3$, $L=5$",
        "multi-task TD, Boyan's chain, $n=4$, $L=5$",
        "multi-task TD, Loop, $n=3$, $L=5$",
    ]
    assert axes.get_xlim() == (0, 1) and axes.yaxis_inverted()


def test_ablations_are_means_with_intervals():
    table = numbered({**CELLS, "seed": range(4), "context_length": [5, 0], "variant": list(figures.VARIANTS)}, ["mean"])
    baselines = numbered({**CELLS, "context_length": [5, 0]}, ["best_mean"])
    figure = figures.ablations(table, baselines, ("loop", 3, 5))
    at = {"env": "loop", "states": 3, "depth": 5}
    for axes, (length, title) in zip(figure.axes, ((0, "enumerated"), (5, "5 steps")), strict=True):
        assert axes_of(axes) == {"title": title, "xlabel": "MSVE", "xscale": "log", "yscale": "linear"}
        rows, lines = where(table, context_length=length, **at), []
        ranges = iter(axes.collections)
        for algo, shift in (("td", -0.15), ("mc", 0.15)):
            trials = [where(rows, algo=algo, variant=name)["mean"].to_numpy() for name in figures.VARIANTS]
            lines.append((None, COLOURS[algo], "None", [one.mean() for one in trials], np.arange(10) + shift))
            for place, (segment, one) in enumerate(zip(next(ranges).get_segments(), trials, strict=True)):
                np.testing.assert_allclose(segment[:, 0], bootstrap_interval(one))
                np.testing.assert_allclose(segment[:, 1], place + shift)
        best = where(baselines, algo="td", context_length=length, **at)["best_mean"].item()
        lines.append((NAMES["theta_td"], COLOURS["theta_td"], "--", [best, best], [0, 1]))
        check_lines(axes, lines)
        assert [one.get_label() for one in axes.containers] == list(NAMED.values())
    assert [text.get_text() for text in figure.axes[0].get_yticklabels()] == list(figures.VARIANTS.values())
    assert figure.axes[0].get_yticks().tolist() == list(range(10)) and figure.axes[0].yaxis_inverted()


def test_controls_are_means_of_what_is_shown():
    names = list(figures.CONTROLLED)
    axes_of_rows = {**CELLS, "seed": range(4), "context_length": [5, 0]}
    plain = numbered({**axes_of_rows, "variant": list(figures.VARIANTS)}, ["mean"])
    table = numbered(
        {**axes_of_rows, "variant": names, "control": ["scaled", "repeated_3", "repeated_10"]}, ["mean"], 3
    )
    table.loc[(table["variant"] == "no_u") & (table["control"] == "repeated_10"), "mean"] = 1e9
    table.loc[(table["variant"] == "no_u") & (table["control"] == "repeated_3") & (table["seed"] == 1), "mean"] = np.nan
    figure = figures.controls(plain, table, ("loop", 3, 5))
    at = {"env": "loop", "states": 3, "depth": 5, "context_length": 0}
    for axes, algo in zip(figure.axes, NAMED, strict=True):
        assert axes.get_title() == NAMED[algo] and axes.get_xscale() == "log" and axes.get_xlim()[1] == 1e3
        for line, control in zip(axes.lines, ("none", "scaled", "repeated_3", "repeated_10"), strict=True):
            rows = (
                where(plain, algo=algo, **at) if control == "none" else where(table, algo=algo, control=control, **at)
            )
            means = [where(rows, variant=name)["mean"].mean() for name in names]
            if control.startswith("repeated"):
                means[-1] = where(rows, variant="no_u")["mean"].mean() if control == "repeated_3" else 1e3
            np.testing.assert_allclose(line.get_xdata(), means)
            assert line.get_ydata().tolist() == [0, 1, 2, 3] and line.get_label() == figures.SYMBOLS[control][1]
    labels = [text.get_text() for text in figure.axes[0].get_yticklabels()]
    assert labels == [figures.VARIANTS[name] for name in names] and figure.axes[0].yaxis_inverted()


@pytest.mark.parametrize("steep", [False, True])
def test_the_course_is_drawn_by_quartiles(steep):
    names = ["alpha", "cosine", "outside", "bellman", "msve_0", "msve_20", "msve_5"]
    table = numbered(
        {"algo": ["td", "mc"], "env": ["boyan", "loop"], "seed": range(5), "tasks_seen": [1, 10, 100]}, names
    )
    table["alpha"] *= 1 if steep else 0.005
    table["outside"] *= 1 if steep else -1
    table.loc[table["seed"] == 2, "bellman"] = 1e101
    figure = figures.course(table)
    titles = [title for _, title in figures.COURSE] + ["MSVE, 20 steps"]
    for i, (axes, name, title) in enumerate(zip(figure.axes, names, titles, strict=False)):
        lines, bands = [], []
        for algo in NAMED:
            for env, style, place in (("boyan", "-", "Boyan's chain"), ("loop", "--", "Loop")):
                rows = where(table, algo=algo, env=env)
                rows = rows[rows[name] < 1e100]
                of = [where(rows, tasks_seen=seen)[name].to_numpy() for seen in (1, 10, 100)]
                low, middle, high = (np.array([np.quantile(one, q) for one in of]) for q in (0.25, 0.5, 0.75))
                lines.append((f"{NAMED[algo]}, {place}", COLOURS[algo], style, [1, 10, 100], middle))
                bands.append((COLOURS[algo], [1, 10, 100], low, high))
        check_lines(axes, lines)
        check_bands(axes, bands)
        linear = name == "cosine" or (name == "outside" and not steep)
        assert axes_of(axes) == {
            "title": title, "xlabel": "tasks seen" if i > 2 else "", "xscale": "log",
            "yscale": "linear" if linear else "log",
        }  # fmt: skip
    assert (figure.axes[0].get_ylim()[0] == 1e-3) == steep and figure.axes[2].get_ylim()[0] != 1e-3
    assert {text.get_text() for text in figure.legends[0].get_texts()} == {line[0] for line in lines}


def test_the_plane_is_drawn_by_medians():
    at = {"algo": ["mc", "td"], "env": ["boyan"], "states": [4, 2, 3], "depth": [9, 3], "seed": range(3)}
    table = numbered(at, ["cosine", "outside", "msve", "theta_msve"]).assign(diverged_at=0)
    table.loc[(table["states"] == 4) & (table["depth"] == 3) & (table["seed"] == 1), "diverged_at"] = 1
    table.loc[(table["algo"] == "mc") & (table["depth"] == 9), ["cosine", "outside", "msve"]] = np.nan
    figure = figures.phase(table)
    table["gain"] = table["msve"] / table["theta_msve"]
    limits = {"cosine": (0, 1), "outside": (0, 1), "gain": (1e-2, 1e2)}
    for row, algo in enumerate(("td", "mc")):
        for column, name in enumerate(limits):
            axes = figure.axes[3 * row + column]
            (image,) = axes.images
            of = [[where(table, algo=algo, states=n, depth=L)[name].median() for L in (3, 9)] for n in (2, 3, 4)]
            np.testing.assert_allclose(image.get_array(), of)
            assert (image.norm.vmin, image.norm.vmax) == limits[name] and image.origin == "lower"
            assert image.get_cmap().name == ("PuOr" if name == "gain" else "viridis")
            check_lines(axes, [("trials diverged", "k", "None", [0], [2])])
            assert [text.get_text() for text in axes.get_xticklabels()] == (["3", "9"] if row else [])
            assert [text.get_text() for text in axes.get_yticklabels()] == ([] if column else ["2", "3", "4"])
            assert axes.get_title() == ("" if row else dict(figures.PHASE)[name])
            assert axes.get_xlabel() == ("layers $L$" if row else "")
            assert axes.get_ylabel() == ("" if column else f"{NAMED[algo]}\nstates $n$")
    bars = figure.axes[6:]
    for bar, ends in zip(bars, limits.values(), strict=True):
        assert bar.get_xlim() == pytest.approx(ends)


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
    at = (env, 20, 5)
    for figure in (
        figures.decompositions(numbered(cells, list(figures.SHARES))), figures.course(course),
        figures.ablations(pretrained, numbered(prompts, ["best_mean"]), at),
        figures.controls(pretrained, numbered(controls, ["mean"]).assign(mean=1e9 if lost else 1.0), at),
        figures.phase(plane.assign(diverged_at=int(lost))),
    ):  # fmt: skip
        check_border(figure, tmp_path)


def test_the_slider_has_the_long_runs_that_did_not_diverge(tmp_path):
    rng, seen = np.random.default_rng(0), np.array([1, 1000, 20_000])
    A = rng.normal(size=(2, 3, 3, 6, 6))
    A[0, 1, 2] = np.nan
    for i, algo in enumerate(("td", "mc")):
        for seed in range(3):
            save_arrays(tmp_path / f"{algo}-loop/{seed}.npz", tasks_seen=seen, A=A[i, seed])
    cells = {"algo": ["td", "mc"], "env": ["loop", "boyan"], "seed": range(3), "tasks_seen": seen}
    course = numbered(cells, ["cosine", f"msve_{ENUMERATED}"], 1)
    made = pages.courses_data(course, sorted(tmp_path.glob("*/*.npz")))
    assert set(made) == {"td-loop", "mc-loop"} and made["td-loop"]["tasks"] == seen.tolist()
    for i, algo, kept in ((0, "td", [0, 2]), (1, "mc", [0, 1, 2])):
        mean = A[i, kept].mean(axis=0)
        greatest = np.abs(mean).max(axis=(1, 2), keepdims=True)
        np.testing.assert_array_equal(made[f"{algo}-loop"]["A"], np.round(100 * mean / greatest).reshape(3, -1))
        rows = where(course, algo=algo, env="loop")
        rows = rows[rows["seed"].isin(kept)].groupby("tasks_seen").median(numeric_only=True)
        for curve, name in zip(made[f"{algo}-loop"]["curves"], ("cosine", f"msve_{ENUMERATED}"), strict=True):
            assert curve["values"] == [f"{value:.3g}" for value in rows[name]]


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


def test_medians_of_runs():
    names = ["alpha", "theta", "outside", "beyond_P", "beyond_Q", "msve_0", "msve_5", "msve_20", "msve_50"]
    runs = numbered({"reading": ["b_c", "a"], "algo": ["td", "mc"], "seed": range(3)}, names).assign(diverged_at=0)
    runs.loc[[0, 1, 4], "diverged_at"] = [1, 7, 1]
    table = pages.medians(runs)
    assert list(table) == ["reading", "algo", "diverged", *names[:7], "msve_50"]
    assert table[["reading", "algo", "diverged"]].to_numpy().tolist() == [
        ["b c", "TD", "2 of 3"], ["b c", "MC", "1 of 3"], ["a", "TD", "0 of 3"], ["a", "MC", "0 of 3"],
    ]  # fmt: skip
    for i, (reading, algo) in enumerate((("b_c", "td"), ("b_c", "mc"), ("a", "td"), ("a", "mc"))):
        np.testing.assert_allclose(table.loc[i, "msve_50"], where(runs, reading=reading, algo=algo)["msve_50"].median())
    two = pages.medians(runs.drop(columns=["msve_20", "msve_50"]))
    assert list(two)[-2:] == ["msve_0", "msve_5"]


def test_each_figure_and_page_is_of_its_tables(tmp_path, monkeypatch):
    names = (
        "measures",
        "ablations",
        "controls",
        "baselines",
        "course",
        "phase",
        "correlations",
        "readings",
        "reading_runs",
    )
    for name in names:
        save_table(tmp_path / f"{name}.csv", pd.DataFrame({"of": [name]}))
    drawn = {}
    shown = lambda part: part["of"].item() if isinstance(part, pd.DataFrame) else part  # noqa: E731
    monkeypatch.setattr(figures, "save", lambda figure, path: drawn.setdefault(path, figure))
    for name in ("decompositions", "ablations", "controls", "course", "phase"):
        monkeypatch.setattr(figures, name, lambda *given, name=name: (name, *map(shown, given)))
    figures.main([tmp_path / f"{name}.csv" for name in names], "loop", 4, 6, tmp_path)
    assert drawn == {
        tmp_path / "decompositions.png": ("decompositions", "measures"),
        tmp_path / "ablations.png": ("ablations", "ablations", "baselines", ("loop", 4, 6)),
        tmp_path / "controls.png": ("controls", "ablations", "controls", ("loop", 4, 6)),
        tmp_path / "course.png": ("course", "course"),
        tmp_path / "phase.png": ("phase", "phase"),
    }
    cells = {"algo": ["td", "mc"], "env": ["loop", "boyan"], "states": [3], "depth": [5], "seed": range(3)}
    measures = numbered(cells, ["theta", "u"])
    pairs = numbered({"kind": ["seeds", "algos"], **cells}, ["cosine", "null_entries", "null_states"], 1)
    for name, table in (("measures", measures), ("correlations", pairs)):
        save_table(tmp_path / f"{name}.csv", table)
    save_json(tmp_path / "claims.json", [])
    made = {}
    monkeypatch.setattr(pages, "save_frames", lambda folder, frames: made.update(frames))
    monkeypatch.setattr(pages, "claims_overview", lambda claims: claims)
    monkeypatch.setattr(pages, "claims_rows", lambda claims: claims)
    monkeypatch.setattr(pages, "courses_data", lambda course, runs: {})
    monkeypatch.setattr(pages, "verdicts_by_reading", shown)
    monkeypatch.setattr(pages, "medians", shown)
    pages.main(tmp_path / "claims.json", [tmp_path / f"{name}.csv" for name in names], [], tmp_path)
    assert (tmp_path / "slider.html").exists() and made["claims_all"] == []
    assert (made["claims"], made["other_readings"], made["reading_runs"]) == ([], "readings", "reading_runs")
    assert list(made["measures"]) == ["algo", "env", "states", "depth", "theta", "u"]
    assert made["measures"]["env"].tolist() == ["loop", "boyan"] * 2
    np.testing.assert_allclose(made["measures"]["u"][1], where(measures, algo="td", env="boyan")["u"].mean())
    assert made["correlations"]["kind"].tolist() == ["seeds"] * 4 + ["algos"] * 4 and "seed" not in made["correlations"]
    of = where(pairs, kind="seeds", algo="mc", env="loop")
    np.testing.assert_allclose(made["correlations"]["null_states"][2], of["null_states"].mean())
