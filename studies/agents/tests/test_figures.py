"""What the study's figures draw and its pages say, from tables of numbers of no meaning."""

import itertools

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from drawn import axes_of, check_bands, check_border, check_lines, numbered, where

from ictd.pipeline.storage import save_json
from ictd.pipeline.table_files import save_table
from ictd.report.figures.style import COLOURS, LINES, NAMES
from ictd.statistics import bootstrap_interval
from studies.agents import figures, pages
from studies.agents.grid import Setting

MAIN = Setting("boyan", 5, 30, 0.9)
LENGTHS = [5, 20, 100, 1000]
NAMED = {"td": "multi-task TD", "mc": "multi-task MC"}
SEEN = [10, 100, 1000]


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


def runs(settings, **axes):
    """Values of runs in some settings, each evaluated where it was pretrained unless told otherwise."""
    parts = []
    for i, setting in enumerate(settings):
        places = {"on_env": [setting.env], "on_discount": [setting.discount], **axes}
        names = {**{name: [value] for name, value in setting._asdict().items()}, **places}
        parts.append(
            numbered({"algo": ["td", "mc"], "seed": range(3), "context_length": LENGTHS, **names}, ["mean"], i)
        )
    return pd.concat(parts, ignore_index=True)


@pytest.fixture(scope="module")
def tables():
    others = [MAIN._replace(depth=3), MAIN._replace(states=3), MAIN._replace(env="loop"), MAIN._replace(discount=0.5)]
    trained = runs([MAIN], tasks_seen=SEEN, prompts=["contexts"])
    expected = trained[trained["tasks_seen"] < 1000].assign(
        algo=lambda t: "expected_" + t["algo"], mean=lambda t: t["mean"] / 3
    )
    everywhere = {"on_env": ["boyan", "loop"], "on_discount": [0.9, 0.5]}
    away = runs([MAIN, others[2], others[3]], tasks_seen=[100], prompts=["contexts"], **everywhere)
    values = pd.concat([
        trained, expected, runs(others, tasks_seen=[10, 100], prompts=["contexts"]),
        runs([MAIN], tasks_seen=[20, 200], prompts=["enumerated"]),
        away[(away["env"] != away["on_env"]) | (away["discount"] != away["on_discount"])],
    ], ignore_index=True)  # fmt: skip
    methods = [*figures.METHODS, "posterior_mean"]
    baselines = numbered(
        {"env": ["boyan", "loop"], "states": [5, 3], "discount": [0.9, 0.5], "method": methods,
         "context_length": LENGTHS},
        ["mean", "median"], 9,
    )  # fmt: skip
    levels = {"lstd": 2.0, "ce_uniform": 4.0, "bayes": 0.02}
    baselines["mean"] *= baselines["method"].map(levels).fillna(1.0)
    baselines = baselines[(baselines["env"] == "boyan") | (baselines["method"] != "bayes")]
    named = {**{name: [value] for name, value in MAIN._asdict().items()}, "algo": ["td", "mc", "expected_td"]}
    entries = numbered({**named, "row": range(1, 11), "column": range(1, 6)}, ["mean"], 5)
    entries["mean"] *= np.where(entries["row"] > 5, 9, -1)
    shapes = numbered({**named, "seed": range(3), "tasks_seen": SEEN}, ["alpha", "outside"], 6)
    chosen = numbered(
        {"env": ["boyan", "loop"], "states": [5], "discount": [0.9], "context_length": LENGTHS}, ["theta_td_step"], 7
    )
    attention = numbered(
        {"attention": ["linear", "soft_max"], "prompts": ["contexts", "enumerated"], "algo": ["mc", "td"],
         "seed": range(3), "context_length": [1000, 0, *LENGTHS[:3]]},
        ["mean", "least_of_one", "most_of_one"], 8,
    )  # fmt: skip
    return {
        "values": values, "baselines": baselines, "preconditioners": entries, "shapes": shapes, "chosen": chosen,
        "attention": attention,
    }  # fmt: skip


def band(rows, x):
    """Means of rows by a column, and the ends of their intervals."""
    groups = [(place, where(rows, **{x: place})["shown"].to_numpy()) for place in sorted(rows[x].unique())]
    ends = [bootstrap_interval(part) for _, part in groups]
    return [place for place, _ in groups], [part.mean() for _, part in groups], *zip(*ends, strict=True)


def test_trials_that_diverged_break_the_line():
    rows = pd.DataFrame({"x": [2, 2, 1, 1, 3, 3], "y": [1.0, 3, 5, 9, 2, np.nan]})
    axes = plt.subplots()[1]
    figures.draw_trials(axes, rows, "x", "y", color="#0072B2", ls="--", label="name")
    check_lines(axes, [("name", "#0072B2", "--", [1, 2, 3], [7, 2, np.nan])])
    empty = plt.subplots()[1]
    figures.draw_trials(empty, rows[:0], "x", "y", color="#0072B2")
    check_lines(empty, [(None, "#0072B2", "-", [], [])])


def test_a_few_lengths_are_picked(tables):
    assert figures.picked_lengths(tables["values"], 100) == [5, 20, 100]
    assert figures.picked_lengths(tables["values"], 1000) == [5, 100, 1000]
    assert figures.picked_lengths(tables["values"], 99) == [5, 20]
    assert figures.picked_lengths(tables["values"], 2) == [5]


def test_runs_are_drawn_beside_baselines(tables):
    (axes,) = figures.beside_baselines(tables, MAIN, 100, [7, 300]).axes
    place = where(tables["baselines"], env="boyan", states=5, discount=0.9)
    lines = [
        (label, colour, style, LENGTHS, where(place, method=method)["mean"])
        for method, (label, colour, style) in figures.METHODS.items()
    ]
    values = where(tables["values"], **MAIN._asdict(), on_env="boyan", on_discount=0.9).assign(
        shown=lambda t: t["mean"]
    )
    bands = []
    for algo, colour in (("td", COLOURS["td"]), ("mc", COLOURS["mc"])):
        for prompts, seen, style, label in (
            ("contexts", 100, "-", "contexts"),
            ("enumerated", 200, "--", "enumerated"),
        ):
            rows = where(values, algo=algo, prompts=prompts, tasks_seen=seen)
            x, means, low, high = band(rows, "context_length")
            lines.append((f"{NAMED[algo]}, {label}", colour, style, x, means))
            bands.append((colour, x, low, high))
    check_lines(axes, lines)
    check_bands(axes, bands)
    wide = [line.get_linestyle() for line in axes.lines if line.get_linewidth() > 2]
    assert wide == ["-"] * sum(style == "-" for _, _, style in figures.METHODS.values())
    (shade,) = axes.patches
    assert (shade.get_x(), shade.get_x() + shade.get_width()) == (7, 300)
    assert axes_of(axes) == {"title": "", "xlabel": "context length $m$", "xscale": "log", "yscale": "log"}


def beside_best(tables, rows):
    """Rows with their MSVE over the least one of a baseline, and the floor's over it, NaN where there is none."""
    kept = []
    for row in rows.to_dict("records"):
        place = {name: row[name] for name in ("env", "states", "discount", "context_length")}
        of = where(tables["baselines"], **place).set_index("method")["mean"]
        best = of[
            ["lstd", "theta_td", "batch_td", "td_lambda", "certainty_equivalence", "ce_uniform", "lstd_prior"]
        ].min()
        kept.append({**row, "shown": row["mean"] / best, "floor": of.get("bayes", np.nan) / best})
    return pd.DataFrame(kept)


def test_ratios_to_the_best_baseline_are_drawn(tables):
    figure = figures.ratios(tables, MAIN, 100, 1000)
    home = where(tables["values"], prompts="contexts")
    home = home[(home["env"] == home["on_env"]) & (home["discount"] == home["on_discount"])]
    home = beside_best(tables, home[~home["algo"].str.startswith("expected")])
    for axes, name in zip(figure.axes, ("depth", "tasks_seen", "states"), strict=True):
        fixed = {key: value for key, value in MAIN._asdict().items() if key != name}
        rows = where(home, **fixed)
        rows = rows if name == "tasks_seen" else where(rows, tasks_seen=100)
        lines, bands, floors = [("best baseline", COLOURS["lstd"], "-", [0, 1], [1, 1])], [], {}
        for algo, length in itertools.product(["mc", "td"], [5, 100, 1000]):
            part = where(rows, algo=algo, context_length=length)
            x, means, low, high = band(part, name)
            style = {5: "-", 100: "--", 1000: ":"}[length]
            lines.append((f"{NAMED[algo]}, $m={length}$", COLOURS[algo], style, x, means))
            floor = [where(part, **{name: place})["floor"].iloc[0] for place in x]
            floors[length] = (f"Bayesian floor, $m={length}$", "#000000", style, x, floor)
            bands.append((COLOURS[algo], x, low, high))
        check_lines(axes, [*lines, *floors.values()])
        check_bands(axes, bands)
        assert axes.get_xscale() == axes.get_yscale() == "log"
        if name != "tasks_seen":
            assert sorted(axes.get_xticks()) == sorted(rows[name].unique()) and not len(axes.get_xticks(minor=True))
    assert [axes.get_xlabel() for axes in figure.axes] == ["layers $L$", "tasks seen", "states $n$"]
    assert [axes.get_ylabel() for axes in figure.axes] == ["MSVE / best baseline's", "", ""]


def test_transfer_is_drawn_as_ratios_to_uniform_smoothing(tables):
    figure = figures.transfer(tables, MAIN, 100)
    settings = [("boyan", 0.5), ("boyan", 0.9), ("loop", 0.9)]
    places = [("boyan", 0.5), ("boyan", 0.9), ("loop", 0.5), ("loop", 0.9)]
    for axes, algo in zip(figure.axes, NAMED, strict=False):
        table = np.empty((3, 4))
        for (i, (env, discount)), (j, (on_env, on_discount)) in itertools.product(
            enumerate(settings), enumerate(places)
        ):
            rows = where(
                tables["values"], algo=algo, env=env, discount=discount, on_env=on_env, on_discount=on_discount
            )
            rows = where(rows, tasks_seen=100, prompts="contexts", context_length=5, states=5, depth=30)
            place = where(tables["baselines"], env=on_env, states=5, discount=on_discount, context_length=5)
            smoothed = where(place, method="ce_uniform")["mean"].item()
            table[i, j] = np.log10(rows["mean"] / smoothed).mean()
        (image,) = axes.images
        np.testing.assert_allclose(image.get_array(), table)
        assert (image.norm.vmin, image.norm.vmax, image.get_cmap().name) == (-1, 1, "PuOr_r")
        texts = {text.get_position(): (text.get_text(), text.get_color()) for text in axes.texts}
        assert texts == {
            (j, i): (f"{table[i, j]:.2f}", "white" if abs(table[i, j]) > 0.6 else "black")
            for i in range(3) for j in range(4)
        }  # fmt: skip
        assert {colour for _, colour in texts.values()} == {"white", "black"}
        title = lambda place: f"{NAMES[place[0]]}, {place[1]}"  # noqa: E731
        assert [text.get_text() for text in axes.get_xticklabels()] == [*map(title, places)]
        assert [text.get_text() for text in axes.get_yticklabels()] == ([*map(title, settings)] if algo == "td" else [])
        assert axes.get_title() == NAMED[algo] and axes.get_xlabel() == r"evaluated on, $\gamma$"
    assert figure.axes[0].get_ylabel() == r"pretrained on, $\gamma$" and len(figure.axes) == 3


def test_teachers_are_drawn(tables):
    figure = figures.teachers(tables, MAIN, 100)
    values = where(tables["values"], **MAIN._asdict(), on_env="boyan", on_discount=0.9, prompts="contexts")
    assert len(figure.axes) == 3
    for axes, length in zip(figure.axes, (5, 20, 100), strict=True):
        lines, bands = [], []
        for algo, (prefix, style, more) in itertools.product(
            NAMED, (("", "-", ""), ("expected_", "--", ", expected updates"))
        ):
            rows = where(values, algo=prefix + algo, context_length=length).assign(shown=lambda t: t["mean"])
            x, means, low, high = band(rows, "tasks_seen")
            lines.append((NAMED[algo] + more, COLOURS[algo], style, x, means))
            bands.append((COLOURS[algo], x, low, high))
        for method in ("lstd", "ce_uniform", "lstd_prior", "bayes"):
            of = where(tables["baselines"], env="boyan", states=5, discount=0.9, method=method, context_length=length)
            label, colour, style = figures.METHODS[method]
            lines.append((label, colour, style, [0, 1], [of["mean"].item()] * 2))
        check_lines(axes, lines)
        check_bands(axes, bands)
        assert axes_of(axes) == {
            "title": f"context length ${length}$",
            "xlabel": "tasks seen",
            "xscale": "log",
            "yscale": "log",
        }
    assert [axes.get_ylabel() for axes in figure.axes] == ["MSVE", "", ""]


def test_preconditioners_are_drawn(tables):
    figure = figures.preconditioners(tables, MAIN)
    *maps, steps = figure.axes[:3]
    upper = tables["preconditioners"].query("row <= 5 and algo != 'expected_td'")
    for axes, algo in zip(maps, NAMED, strict=True):
        (image,) = axes.images
        G = where(upper, algo=algo)["mean"].to_numpy().reshape(5, 5)
        np.testing.assert_allclose(image.get_array(), G)
        largest = upper["mean"].abs().max()
        assert (image.norm.vmin, image.norm.vmax) == (-largest, largest)
        assert image.get_extent() == [0.5, 5.5, 5.5, 0.5]
        assert axes.get_title() == f"$G$, {NAMED[algo]}" and axes.get_xlabel() == "state of the estimate"
        for axis in (axes.xaxis, axes.yaxis):
            assert all(place == int(place) for place in axis.get_major_locator()())
    assert [axes.get_ylabel() for axes in maps] == ["state of the error", ""]
    lines = [
        (NAMES["theta_td"], COLOURS["theta_td"], "-", LENGTHS, where(tables["chosen"], env="boyan")["theta_td_step"])
    ]
    for algo in NAMED:
        alpha = where(tables["shapes"], algo=algo, tasks_seen=1000)["alpha"].mean()
        lines.append((f"{NAMED[algo]}, all lengths", COLOURS[algo], "-", [0, 1], [5 * alpha] * 2))
    check_lines(steps, lines)
    assert axes_of(steps) == {
        "title": "step size",
        "xlabel": "context length $m$",
        "xscale": "log",
        "yscale": "linear",
    }
    assert steps.get_ylim()[0] == 0


def test_kinds_of_attention_are_drawn(tables):
    figure = figures.attentions(tables, MAIN)
    place = where(tables["baselines"], env="boyan", states=5, discount=0.9)
    for axes, prompts in zip(figure.axes, ("contexts", "enumerated"), strict=True):
        lines = []
        for kind, label, colour in (("linear", "linear", LINES[1]), ("soft_max", "soft max", LINES[2])):
            rows = where(tables["attention"], attention=kind, prompts=prompts, algo="mc")
            medians = [where(rows, context_length=length)["mean"].median() for length in (0, *LENGTHS)]
            lines.append((label, colour, "-", [0], medians[:1]))
            lines.append((label, colour, "-", [1, 2, 3, 4], medians[1:]))
        for method, style in (("zero", ":"), ("ce_uniform", "-."), ("lstd_prior", "--"), ("bayes", "-")):
            line = where(place, method=method)["mean"]
            lines.append((figures.METHODS[method][0], "#000000", style, [1, 2, 3, 4], line))
        check_lines(axes, lines)
        title = {"contexts": "contexts", "enumerated": "enumerated prompts"}[prompts]
        assert axes_of(axes) == {
            "title": f"pretrained on {title}", "xlabel": "context length $m$", "xscale": "linear", "yscale": "log"
        }  # fmt: skip
        assert [text.get_text() for text in axes.get_xticklabels()] == ["enumerated", *map(str, LENGTHS)]
        assert axes.get_ylim()[1] == pytest.approx(3 * where(place, method="zero")["mean"].max())
    assert [axes.get_ylabel() for axes in figure.axes] == ["MSVE", ""]


@pytest.mark.parametrize(
    ("algos", "env"), [(["mc"], "boyan"), (["td", "mc"], "random_walks_on_a_ring_that_step_either_way")]
)
def test_no_figure_has_ink_on_its_border(tables, algos, env, tmp_path):
    found = {}
    for name, table in tables.items():
        kept = table[table["algo"].str.removeprefix("expected_").isin(algos)] if "algo" in table else table
        found[name] = kept.replace({"env": {"boyan": env}, "on_env": {"boyan": env}})
    here = MAIN._replace(env=env)
    for figure in (
        figures.beside_baselines(found, here, 100, [5, 100]), figures.ratios(found, here, 100, 1000),
        figures.transfer(found, here, 100), figures.teachers(found, here, 100),
        figures.preconditioners(found, here), figures.attentions(found, here),
    ):  # fmt: skip
        check_border(figure, tmp_path)


def test_values_page(tables):
    table = pages.values_page(tables, MAIN, 100).set_index("method")
    assert list(table) == [*map(str, LENGTHS)]
    methods = [*figures.METHODS, "posterior_mean"]
    trained = [f"{algo} on {prompts}" for prompts in ("enumerated prompts", "contexts") for algo in ("TD", "MC")]
    assert list(table.index) == [*methods, *trained]
    place = where(tables["baselines"], env="boyan", states=5, discount=0.9)
    for method, length in itertools.product(methods, LENGTHS):
        assert table.loc[method, str(length)] == where(place, method=method, context_length=length)["mean"].item()
    values = where(tables["values"], **MAIN._asdict(), on_env="boyan", on_discount=0.9)
    for prompts, seen, label in (("enumerated", 200, "enumerated prompts"), ("contexts", 100, "contexts")):
        for algo, length in itertools.product(NAMED, LENGTHS):
            rows = where(values, prompts=prompts, tasks_seen=seen, algo=algo, context_length=length)
            assert table.loc[f"{algo.upper()} on {label}", str(length)] == pytest.approx(rows["mean"].mean())


def test_ratios_page(tables):
    values = where(tables["values"], prompts="contexts")
    values.loc[(values["algo"] == "td") & (values["seed"] == 1) & (values["depth"] == 3), "mean"] = np.nan
    keys = ["algo", *Setting._fields, "tasks_seen", "context_length"]
    best = values[values["seed"] == 0][[*keys, "on_env", "on_discount"]].assign(low=0.25, high=0.5, baseline="best")
    best["high"] += best["context_length"] / 1e4
    over_tasks = pd.concat([best.assign(baseline="lstd", low=9.0), best])
    table = pages.ratios_page({**tables, "values": values, "over_tasks": over_tasks}, 100)
    assert {"5", "20", "100"} == set(table) - set(keys) and len(table) == 2 * 5 + 2
    row = table[(table["algo"] == "mc") & (table["depth"] == 30) & (table["states"] == 5) & (table["discount"] == 0.9)]
    row = row[row["env"] == "boyan"]
    assert row["tasks_seen"].item() == 1000
    setting = {**MAIN._asdict(), "on_env": "boyan", "on_discount": 0.9, "tasks_seen": 1000, "context_length": 20}
    own = beside_best(tables, where(values, algo="mc", **setting))
    low, high = bootstrap_interval(own["shown"].to_numpy())
    place = where(tables["baselines"], env="boyan", states=5, discount=0.9, context_length=20)
    name = place[~place["method"].isin(["zero", "bayes", "posterior_mean"])].set_index("method")["mean"].idxmin()
    assert row["20"].item() == f"{own['shown'].mean():.2f} ({low:.2f} to {high:.2f}), tasks 0.25 to 0.50; {name}"
    lost = table[(table["algo"] == "td") & (table["depth"] == 3)]
    assert lost["5"].item().startswith("1 of 3 diverged, tasks 0.25 to 0.50; ")


def test_shapes_page(tables):
    table = pages.shapes_page(tables["shapes"], 100)
    assert table["algo"].tolist() == ["td", "mc", "expected_td"] and not {"seed", "tasks_seen"} & set(table)
    np.testing.assert_allclose(
        table["outside"][1], where(tables["shapes"], algo="mc", tasks_seen=100)["outside"].mean()
    )


def test_attentions_page(tables):
    attention = tables["attention"].copy()
    of = (attention["attention"] == "linear") & (attention["algo"] == "td") & (attention["seed"] > 0)
    for prompts, length, values in (("contexts", 1000, [np.nan, 1.0]), ("enumerated", 0, [5.01, 1.0])):
        attention.loc[of & (attention["prompts"] == prompts) & (attention["context_length"] == length), "mean"] = values
    exact = (attention["attention"] == "linear") & (attention["algo"] == "mc") & (attention["prompts"] == "contexts")
    attention.loc[exact & (attention["context_length"] == 1000), "mean"] = [5.0, 1.0, 1.0]
    attention.loc[of & (attention["prompts"] == "enumerated") & (attention["context_length"] == 0), "mean"] = [
        5.01,
        1.0,
    ]
    first = (attention["attention"] == "linear") & (attention["algo"] == "td") & (attention["seed"] == 0)
    attention.loc[first & (attention["prompts"] == "enumerated") & (attention["context_length"] == 0), "mean"] = 0.5
    table = pages.attentions_page(attention).set_index(["attention", "prompts", "algo"])
    assert set(table) == {
        "enumerated",
        *(f"{length} steps" for length in LENGTHS),
        "failed",
        "least_of_one",
        "most_of_one",
    }
    for key, row in table.iterrows():
        rows = where(attention, **dict(zip(table.index.names, key, strict=True)))
        for length in (0, *LENGTHS):
            median = where(rows, context_length=length)["mean"].median()
            assert row[f"{length} steps" if length else "enumerated"] == pytest.approx(median)
        assert row["least_of_one"] == rows["least_of_one"].min() and row["most_of_one"] == rows["most_of_one"].max()
        own = where(rows, context_length=0 if key[1] == "enumerated" else 1000)["mean"]
        assert row["failed"] == sum(not value <= 5 * own.median() for value in own)
    assert table.loc["linear"]["failed"].tolist()[:4] == [0, 1, table["failed"].iloc[2], 1]


def test_each_figure_and_page_is_of_its_settings(tables, tmp_path, monkeypatch):
    values = where(tables["values"], prompts="contexts")
    over_tasks = values[values["seed"] == 0].assign(baseline="best", low=0.25, high=0.5)
    of = {**tables, "over_tasks": over_tasks}
    for name, table in of.items():
        save_table(tmp_path / f"{name}.csv", table)
    files, drawn = [tmp_path / f"{name}.csv" for name in of], {}
    monkeypatch.setattr(figures, "save", lambda figure, path: drawn.setdefault(path, figure))
    for name in ("beside_baselines", "ratios", "transfer", "teachers", "preconditioners", "attentions"):
        monkeypatch.setattr(figures, name, lambda tables, *given, name=name: (name, set(tables), given))
    figures.main(files, MAIN._asdict(), 7, [5, 100], tmp_path)
    given = {
        "beside_baselines": (MAIN, 7, [5, 100]), "ratios": (MAIN, 7, 100), "transfer": (MAIN, 7),
        "teachers": (MAIN, 100), "preconditioners": (MAIN,), "attentions": (MAIN,),
    }  # fmt: skip
    names = {name: name.replace("preconditioners", "preconditioner") for name in given}
    assert drawn == {tmp_path / f"{names[name]}.png": (name, set(of), given[name]) for name in given}
    claims = [{"id": "a/b", "statement": "s", "statistic": "t", "relation": "<", "threshold": 1, "verdict": "holds",
               "setting": "b", "value": 0.5, "kind": "ours", "where": "", "p": None, "corrected": "holds",
               "shown": "", "end": "", "trials": None, "trials_hold": None}]  # fmt: skip
    save_json(tmp_path / "claims.json", claims)
    made = {}
    monkeypatch.setattr(pages.html, "save_frames", lambda folder, frames: made.update(frames))
    pages.main(tmp_path / "claims.json", files, MAIN._asdict(), 100, [5, 100], tmp_path)
    assert list(made) == ["claims", "claims_all", "values", "ratios_by_setting", "shapes", "attention_runs"]
    assert len(made["claims"]) == made["claims_all"].count("<details>") == 1
    pd.testing.assert_frame_equal(made["values"], pages.values_page(of, MAIN, 100))
    pd.testing.assert_frame_equal(made["ratios_by_setting"], pages.ratios_page(of, 100))
    pd.testing.assert_frame_equal(made["shapes"], pages.shapes_page(of["shapes"], 100))
    pd.testing.assert_frame_equal(made["attention_runs"], pages.attentions_page(of["attention"]))


def test_a_run_that_diverged_leaves_no_mean(tables):
    values = tables["values"].copy()
    at = (values["algo"] == "td") & (values["seed"] == 1) & (values["context_length"] == 20)
    values.loc[at & (values["prompts"] == "contexts"), "mean"] = np.nan
    table = pages.values_page({**tables, "values": values}, MAIN, 100).set_index("method")
    assert table.isna().sum().sum() == 1 and np.isnan(table.loc["TD on contexts", "20"])
    shapes = tables["shapes"].assign(alpha=lambda t: t["alpha"].mask((t["algo"] == "mc") & (t["seed"] == 2)))
    assert pages.shapes_page(shapes, 100)["alpha"].isna().tolist() == [False, True, False]
