"""What the study's figures draw and its pages say, from tables of numbers of no meaning."""

import itertools

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from drawn import check_bands, check_border, check_lines, numbered, where

from ictd.report.figures.style import NAMES
from ictd.statistics import bootstrap_interval
from studies.agents import figures, pages
from studies.agents.grid import Setting

MAIN = Setting("boyan", 5, 30, 0.9)
LENGTHS = [5, 20, 100, 1000]
HOME = {"on_env": "boyan", "on_discount": 0.9}
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


def trials(rows, x):
    """Places, and means of trials there with the ends of their intervals."""
    groups = rows.groupby(x)["shown"]
    ends = [bootstrap_interval(part.to_numpy()) for _, part in groups]
    return list(groups.groups), groups.mean(), *zip(*ends, strict=True)


def test_trials_that_diverged_break_the_line():
    rows = pd.DataFrame({"x": [2, 2, 1, 1, 3, 3], "y": [1.0, 3, 5, 9, 2, np.nan]})
    axes = plt.subplots()[1]
    figures.draw_trials(axes, rows, "x", "y", color="#0072B2", ls="--", label="name")
    check_lines(axes, [("name", [1, 2, 3], [7, 2, np.nan])])


@pytest.mark.parametrize(("longest", "picked"), [(100, [5, 20, 100]), (1000, [5, 100, 1000]), (99, [5, 20]), (2, [5])])
def test_a_few_lengths_are_picked(tables, longest, picked):
    assert figures.picked_lengths(tables["values"], longest) == picked


def test_runs_are_drawn_beside_baselines(tables):
    (axes,) = figures.beside_baselines(tables, MAIN, 100, [7, 300]).axes
    place = where(tables["baselines"], env="boyan", states=5, discount=0.9)
    lines = [(look[0], LENGTHS, where(place, method=method)["mean"]) for method, look in figures.METHODS.items()]
    values, bands = where(tables["values"], **MAIN._asdict(), **HOME).assign(shown=lambda t: t["mean"]), []
    for algo, (prompts, seen) in itertools.product(("td", "mc"), (("contexts", 100), ("enumerated", 200))):
        rows = where(values, algo=algo, prompts=prompts, tasks_seen=seen)
        x, means, low, high = trials(rows, "context_length")
        lines.append((f"{NAMES[algo]}, {prompts}", x, means))
        bands.append((x, low, high))
    check_lines(axes, lines)
    check_bands(axes, bands)


def test_ratios_are_to_the_best_baseline(tables):
    figure = figures.ratios(tables, MAIN, 100, 1000)
    of = where(tables["baselines"], env="boyan", states=5, discount=0.9, context_length=100).set_index("method")["mean"]
    best = of.drop(["zero", "bayes", "posterior_mean"]).min()
    for axes, name, x in zip(figure.axes, ("depth", "tasks_seen", "states"), ([3, 30], SEEN, [3, 5]), strict=True):
        lines = {line.get_label(): line for line in axes.lines}
        algos = itertools.product(["mc", "td"], [5, 100, 1000])
        named = [f"{NAMES[algo]}, $m={length}$" for algo, length in algos]
        floors = [f"Bayesian floor, $m={length}$" for length in (5, 100, 1000)]
        assert list(lines) == ["best baseline", *named, *floors]
        own = lines[f"{NAMES['mc']}, $m=100$"]
        assert own.get_xdata().tolist() == x
        seen = {"tasks_seen": 100, "prompts": "contexts", "context_length": 100}
        mean = where(tables["values"], algo="mc", **MAIN._asdict(), **HOME, **seen)["mean"].mean()
        at = x.index(seen["tasks_seen"] if name == "tasks_seen" else getattr(MAIN, name))
        assert own.get_ydata()[at] == pytest.approx(mean / best)
        assert lines["Bayesian floor, $m=100$"].get_ydata()[at] == pytest.approx(of["bayes"] / best)


def test_transfer_is_drawn_as_ratios_to_uniform_smoothing(tables):
    figure = figures.transfer(tables, MAIN, 100)
    settings = [("boyan", 0.5), ("boyan", 0.9), ("loop", 0.9)]
    places = [("boyan", 0.5), ("boyan", 0.9), ("loop", 0.5), ("loop", 0.9)]
    values = where(tables["values"], tasks_seen=100, prompts="contexts", context_length=5, states=5, depth=30)
    for axes, algo in zip(figure.axes, ("td", "mc"), strict=False):
        table = np.empty((3, 4))
        for (i, (env, discount)), (j, (on_env, on)) in itertools.product(enumerate(settings), enumerate(places)):
            rows = where(values, algo=algo, env=env, discount=discount, on_env=on_env, on_discount=on)
            place = where(tables["baselines"], env=on_env, states=5, discount=on, context_length=5)
            table[i, j] = np.log10(rows["mean"] / where(place, method="ce_uniform")["mean"].item()).mean()
        np.testing.assert_allclose(axes.images[0].get_array(), table)
        assert [text.get_text() for text in axes.texts] == [f"{value:.2f}" for value in table.ravel()]


def test_teachers_preconditioners_and_kinds_of_attention_are_drawn(tables):
    panel = figures.teachers(tables, MAIN, 100).axes[1]
    lines = {line.get_label(): line.get_ydata() for line in panel.lines}
    values = where(tables["values"], **MAIN._asdict(), **HOME, prompts="contexts", context_length=20)
    for algo, label in (("td", NAMES["td"]), ("expected_mc", f"{NAMES['mc']}, expected updates")):
        np.testing.assert_allclose(lines[label], where(values, algo=algo).groupby("tasks_seen")["mean"].mean())
    *maps, steps = figures.preconditioners(tables, MAIN).axes[:3]
    for axes, algo in zip(maps, ("td", "mc"), strict=True):
        upper = where(tables["preconditioners"], algo=algo).query("row <= 5")["mean"]
        np.testing.assert_allclose(axes.images[0].get_array(), upper.to_numpy().reshape(5, 5))
    alpha = where(tables["shapes"], algo="mc", tasks_seen=1000)["alpha"].mean()
    assert steps.lines[2].get_ydata() == pytest.approx([5 * alpha] * 2)
    axes = figures.attentions(tables, MAIN).axes[1]
    rows = where(tables["attention"], attention="soft_max", prompts="enumerated", algo="mc")
    medians = rows.groupby("context_length")["mean"].median()
    parts = [line.get_ydata() for line in axes.lines if line.get_label() == "soft max"]
    np.testing.assert_allclose(np.concatenate(parts), medians[[0, *LENGTHS]])


@pytest.mark.slow
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


def test_trials_that_failed_are_counted(tables):
    """Those that diverged, or are more than five times the median on the prompts of pretraining."""
    attention = tables["attention"].assign(mean=1.0)
    linear = attention["attention"] == "linear"
    for algo, prompts, length, value in (("td", "contexts", 1000, np.nan), ("td", "enumerated", 0, 5.01),
                                         ("mc", "contexts", 1000, 5.0), ("mc", "enumerated", 1000, 9.0)):  # fmt: skip
        at = linear & (attention["algo"] == algo) & (attention["prompts"] == prompts) & (attention["seed"] == 1)
        attention.loc[at & (attention["context_length"] == length), "mean"] = value
    table = pages.attentions_page(attention).set_index(["attention", "prompts", "algo"])["failed"]
    assert table["linear"].to_dict() == {
        ("contexts", "td"): 1, ("contexts", "mc"): 0, ("enumerated", "td"): 1, ("enumerated", "mc"): 0,
    }  # fmt: skip
    assert (table["soft_max"] == 0).all()
