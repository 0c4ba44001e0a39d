"""Claims on pretraining with sampled contexts, on made-up tables, and the study's page."""

import itertools
from collections import Counter
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from drawn import check_border, check_lines, numbered, where
from html_page import Page

from ictd.report.claim import Statements
from studies.sampled_prompts import figures, pages
from studies.sampled_prompts.claims import check_sampled_prompts
from studies.sampled_prompts.grid import SETTING, Setting
from studies.sampled_prompts.selection import (
    evaluated_as_trained,
    latest,
    ratio_to_baseline,
    sampled_updates,
    with_baselines,
)

STUDY = Path(__file__).parents[1]
STATEMENTS = Statements(STUDY / "claims.toml")
MAIN = Setting("boyan", 5, 30, 0.9)
SETTINGS = [MAIN, MAIN._replace(depth=3), MAIN._replace(env="loop")]
LENGTHS = [5, 100, 1000]


@pytest.fixture
def tables():
    """Tables on which all claims hold: 4 trials, snapshots at 10, 100 and, in the main setting, 1,000 tasks.

    Errors fall with layers, tasks and context length; errors of expected updates are half as large.
    """
    rows = []
    places = [("boyan", 0.9), ("loop", 0.9)]
    for algo, setting, seed, length in itertools.product(["td", "mc"], SETTINGS, range(4), LENGTHS):
        named = dict(zip(SETTING, setting, strict=True)) | {"algo": algo, "seed": seed, "context_length": length}
        error = (1 + 0.01 * seed) * (5 if algo == "td" else 4) / length * (1 + 1 / setting[2])
        for (env, discount), seen in itertools.product(places, [10, 100, *([1000] if setting == MAIN else [])]):
            at = {"on_env": env, "on_discount": discount, "tasks_seen": seen, "prompts": "contexts"}
            rows.append({**named, **at, "mean": error * 100 / seen, "median": error})
        if setting == MAIN:
            at = {"on_env": "boyan", "on_discount": 0.9, "tasks_seen": 100, "prompts": "contexts"}
            rows.append({**named, **at, "algo": f"expected_{algo}", "mean": error / 2, "median": error / 2})
            at = {"on_env": "boyan", "on_discount": 0.9, "tasks_seen": 20, "prompts": "enumerated"}
            rows.append({**named, **at, "mean": 30.0, "median": 30.0})
    levels = {"zero": 9000, "lstd": 20, "ce_uniform": 15, "lstd_prior": 12, "bayes": 2}
    baselines = [
        {"env": env, "states": 5, "discount": 0.9, "method": method, "context_length": length, "mean": level / length,
         "median": level / length}
        for env, length, (method, level) in itertools.product(["boyan", "loop"], LENGTHS, levels.items())
        if (env, method) != ("loop", "bayes")
    ]  # fmt: skip
    weights = [
        {**dict(zip(SETTING, setting, strict=True)), "algo": "td", "seed": s, "tasks_seen": seen, "outside": 1 / seen,
         "outside_shortest": 1 / seen, "alpha": 0.2 + 0.01 * s, "predecessors": 0.5 + 0.1 * s, "successors": -0.2}
        for setting, s, seen in itertools.product(SETTINGS, range(4), [10, 100])
    ]  # fmt: skip
    in_main = {"env": "boyan", "states": 5, "discount": 0.9}
    tuned = [{**in_main, "context_length": length, "theta_td_step": 1.0} for length in LENGTHS]
    attention = [
        {"attention": kind, "prompts": prompts, "algo": "td", "seed": seed, "context_length": length,
         "mean": (1 + 0.01 * seed) * factor / (length + 1)}
        for (kind, factor), prompts, seed, length in itertools.product(
            [("linear", 6), ("softmax", 5)], ["contexts", "enumerated"], range(4), [0, *LENGTHS])
    ]  # fmt: skip
    over_tasks = [
        {**dict(zip(SETTING, setting, strict=True)), "algo": algo, "on_env": setting[0], "on_discount": 0.9,
         "tasks_seen": 100, "context_length": length, "baseline": baseline, "value": high - 0.1,
         "low": high - 0.2, "high": high}
        for algo, setting, length, (baseline, high) in itertools.product(
            ["td", "mc", "expected_td", "expected_mc"], SETTINGS, LENGTHS,
            {"lstd": 0.3, "ce_uniform": 0.6, "best": 0.9, "td": 0.95}.items())
        if baseline != "td" or "mc" in algo
    ]  # fmt: skip
    formats = [
        {"prompts": prompts, "algo": "td", "env": "boyan", "states": 5, "depth": 30, "shown": shown,
         "context_length": length, "mean": 15 / length, "standard_error": 1 / length, "median": 5 / length,
         "lstd": 10 / length, "low": 0.8, "high": 0.9, "enumerated_ratio": 0.75,
         "enumerated_low": 0.7, "enumerated_high": 0.8}
        for prompts, shown, length in itertools.product(
            ["paper", "enumerated", "contexts", "grouped"], ["step", "grouped", "pseudo"], [5, 100])
    ]  # fmt: skip
    made = {
        "formats": formats,
        "over_tasks": over_tasks,
        "values": rows,
        "baselines": baselines,
        "weights": weights,
        "tuned": tuned,
    }
    return {name: pd.DataFrame(table) for name, table in (made | {"attention": attention}).items()}


def failing(tables):
    claims = check_sampled_prompts(STATEMENTS, tables, MAIN, 100, 100)
    return {claim.id.split("/")[0] for claim in claims if claim.verdict != "holds"}


def test_claims_that_hold(tables):
    assert failing(tables) == set()
    claims = check_sampled_prompts(STATEMENTS, tables, MAIN, 100, 100)
    assert Counter(claim.id.split("/")[0] for claim in claims) == {
        "below_lstd": 4, "visits": 1, "training_pays": 2, "beats_lstd": 12, "beats_uniform": 12, "beats_best": 12,
        "more_tasks_help": 4, "mc_beats_td": 4, "transfers": 6, "structure": 3, "structure_shortest": 3, "traces": 3,
        "emerges": 6,
    }  # fmt: skip
    visits = next(claim for claim in claims if claim.id.startswith("visits/"))
    assert visits.value == pytest.approx(1.5) and visits.id == "visits/td-boyan-5-30-100 steps"


@pytest.mark.parametrize(
    ("table", "change", "expected"),
    [
        ("formats", lambda t: t.assign(high=t["high"].mask(t["shown"] == "grouped", 1.1)), {"below_lstd"}),
        ("formats", lambda t: t.assign(high=t["high"].mask(t["shown"] == "pseudo", 1.1)), set()),
        ("formats", lambda t: t.assign(high=t["high"].mask(t["prompts"] != "paper", 1.1)), set()),
        ("formats", lambda t: t.assign(high=t["high"].mask(t["shown"] == "grouped", 2.1)), {"below_lstd", "visits"}),
        ("formats", lambda t: t.assign(mean=t["mean"].mask(t["context_length"] == 5, 99.0)), set()),
        ("formats", lambda t: t.assign(enumerated_high=1.1), {"training_pays"}),
        ("formats", lambda t: t.assign(enumerated_high=t["enumerated_high"].mask(t["prompts"] != "contexts", 1.1)),
            set()),
        ("values", lambda t: t.assign(mean=17 / t["context_length"]), {"transfers", "more_tasks_help"}),
        ("values", lambda t: t.assign(mean=t["mean"].mask(t["on_env"] != t["env"], 5.0)), {"transfers"}),
        ("values", lambda t: t.assign(mean=t["mean"].mask(t["tasks_seen"] == 1000, 5.0)), {"more_tasks_help"}),
        ("baselines", lambda t: t.assign(mean=t["mean"].mask(t["method"] == "ce_uniform", 3 / t["context_length"])), {
            "transfers"}),
        ("baselines", lambda t: t.assign(mean=t["mean"].mask(t["method"] == "zero", 9.0)), {"emerges"}),
        ("over_tasks", lambda t: t.assign(high=t["high"].mask(t["baseline"] == "lstd", 1.1)), {"beats_lstd"}),
        ("over_tasks", lambda t: t.assign(high=t["high"].mask(t["baseline"] != "lstd", 1.1)), {
            "beats_uniform", "beats_best", "mc_beats_td"}),
        ("weights", lambda t: t.assign(outside=0.2), {"structure"}),
        ("weights", lambda t: t.assign(outside_shortest=0.2), {"structure_shortest"}),
        ("weights", lambda t: t.assign(predecessors=-0.3), {"traces"}),
        ("weights", lambda t: t.assign(predecessors=-0.1), {"traces"}),
        ("weights", lambda t: t.assign(successors=0.9), {"traces"}),
        ("attention", lambda t: t.assign(mean=5000.0), {"emerges"}),
    ],
)  # fmt: skip
def test_claims_that_fail(tables, table, change, expected):
    assert failing({**tables, table: change(tables[table])}) == expected


def test_what_is_compared(tables):
    values = sampled_updates(latest(tables["values"], 100))
    assert set(values["tasks_seen"]) == {100} and set(values["prompts"]) == {"contexts"}
    home = with_baselines(evaluated_as_trained(values), tables["baselines"])
    assert (home["env"] == home["on_env"]).all() and len(home) == 2 * 3 * 4 * 3
    one = home[(home["algo"] == "td") & (home["env"] == "boyan") & (home["depth"] == 3) & (home["seed"] == 0)].iloc[0]
    np.testing.assert_allclose([one["lstd_mean"], one["bayes_median"], one["mean"]], [4, 0.4, 4 / 3])
    np.testing.assert_allclose([one["best_mean"], one["best_median"]], 2.4)
    assert set(home["best_is"]) == {"lstd_prior"}
    np.testing.assert_allclose(ratio_to_baseline(home)[one.name], 4 / 3 / 2.4)
    np.testing.assert_allclose(ratio_to_baseline(home, "lstd", "median")[one.name], one["median"] / 4)
    assert home.loc[home["env"] == "loop", "bayes_mean"].isna().all()
    # Baselines are those of the place of evaluation.
    others = tables["baselines"].assign(mean=lambda t: t["mean"].mask(t["env"] == "loop", 7.0))
    away = with_baselines(values[(values["env"] == "boyan") & (values["on_env"] == "loop")], others)
    assert set(away["lstd_mean"]) == {7.0}
    # The best baseline has the lowest mean, for any median.
    better = tables["baselines"].assign(mean=lambda t: t["mean"].mask(t["method"] == "lstd", 0.001))
    beside = with_baselines(evaluated_as_trained(values), better)
    assert set(beside["best_is"]) == {"lstd"} and (beside["best_median"] == beside["lstd_median"]).all()


def test_no_claims_on_traces_of_two_states_or_a_single_layer(tables):
    weights = tables["weights"]
    two = check_sampled_prompts(STATEMENTS, {**tables, "weights": weights.assign(states=2)}, MAIN, 100, 100)
    assert {claim.id.split("/")[0] for claim in two} & {"structure", "traces"} == {"structure"}
    one = check_sampled_prompts(STATEMENTS, {**tables, "weights": weights.assign(depth=1)}, MAIN, 100, 100)
    assert not {claim.id.split("/")[0] for claim in one} & {"structure", "traces"}


def test_trials_that_diverged_break_the_line():
    rows = pd.DataFrame({"x": [2, 2, 1, 1, 3, 3], "y": [1.0, 3, 5, 9, 2, np.nan]})
    axes = plt.subplots()[1]
    figures.draw_trials(axes, rows, "x", "y", color="#0072B2", ls="--", label="name")
    check_lines(axes, [("name", [1, 2, 3], [7, 2, np.nan])])


def test_figures_draw_the_tables(tables):
    values, place = where(tables["values"], **MAIN._asdict()), where(tables["baselines"], env="boyan")
    at_home = where(values, on_env="boyan", algo="td")
    (axes,) = figures.msve_by_length(tables, MAIN, 100, [5, 100]).axes
    lines = {line.get_label(): line.get_ydata() for line in axes.lines}
    np.testing.assert_allclose(lines["LSTD, best ridge"], where(place, method="lstd")["mean"])
    for prompts, seen in (("contexts", 100), ("enumerated", 20)):
        own = where(at_home, prompts=prompts, tasks_seen=seen).groupby("context_length")["mean"].mean()
        np.testing.assert_allclose(lines[f"multi-task TD, {prompts}"], own)
    panels = figures.ratios(tables, MAIN, 100, 1000).axes
    ratio = where(at_home, prompts="contexts", tasks_seen=100, context_length=5)["mean"].mean() / (12 / 5)
    for axes, at in zip(panels, (30, 100, 5), strict=True):
        line = next(line for line in axes.lines if line.get_label() == "multi-task TD, $m=5$")
        assert dict(zip(line.get_xdata(), line.get_ydata(), strict=True))[at] == pytest.approx(ratio)
    away = where(values, on_env="loop", algo="td", tasks_seen=100, context_length=5, prompts="contexts")
    table = figures.transfer(tables, MAIN, 100).axes[0].images[0].get_array()
    assert table[0, 1] == pytest.approx(np.log10(away["mean"] / (15 / 5)).mean())
    lines = {line.get_label(): line.get_ydata() for line in figures.targets(tables, MAIN, 100).axes[0].lines}
    assert lines["multi-task MC, expected updates"] == pytest.approx([ratio * (12 / 5) * 4 / 5 / 2])
    steps, grouped = figures.formats(tables, MAIN).axes
    for axes, shown in ((steps, "step"), (grouped, "grouped")):
        own = where(tables["formats"], shown=shown, prompts="contexts")
        lines = {bars.get_label(): bars[0].get_ydata(orig=False) for bars in axes.containers}
        np.testing.assert_allclose(lines["multi-task TD, contexts"], own["mean"])
    plt.close("all")


@pytest.mark.slow
@pytest.mark.parametrize("env", ["boyan", "random_walks_on_a_ring_that_step_either_way"])
def test_no_figure_has_ink_on_its_border(tables, env, tmp_path):
    entries = numbered({**{name: [one] for name, one in MAIN._asdict().items()}, "algo": ["td"], "row": range(1, 11),
                        "column": range(1, 6)}, ["mean"])  # fmt: skip
    tables = {name: table.replace("boyan", env) for name, table in {**tables, "preconditioners": entries}.items()}
    here = MAIN._replace(env=env)
    for figure in (
        figures.msve_by_length(tables, here, 100, [5, 100]), figures.ratios(tables, here, 100, 1000),
        figures.transfer(tables, here, 100), figures.targets(tables, here, 100),
        figures.preconditioners(tables, here), figures.attentions(tables, here), figures.formats(tables, here),
    ):  # fmt: skip
        check_border(figure, tmp_path)
    plt.close("all")


def test_trials_that_failed_are_counted():
    """Failed trials diverged, or have more than five times the median MSVE on the prompts of pretraining."""
    axes = {"attention": ["linear"], "prompts": ["contexts", "enumerated"], "algo": ["td", "mc"], "seed": range(3)}
    table = numbered({**axes, "context_length": [0, 1000]}, ["least_response", "greatest_response"]).assign(mean=1.0)
    for algo, prompts, length, value in (("td", "contexts", 1000, np.nan), ("td", "enumerated", 0, 5.01),
                                         ("mc", "contexts", 1000, 5.0), ("mc", "enumerated", 1000, 9.0)):  # fmt: skip
        table.loc[where(table, algo=algo, prompts=prompts, context_length=length, seed=1).index, "mean"] = value
    failed = pages.attention_page(table).set_index(["algo", "prompts"])["failed"]
    assert (failed["td"] == 1).all() and (failed["mc"] == 0).all()


@pytest.mark.slow
def test_the_study_is_made_as_a_page(under_conda):
    results = under_conda / "results-smoke/sampled_prompts"
    page = Page(results / "sampled_prompts.html")
    assert page.headings[0] == "Sampled prompts" and not page.outside and len(page.images) == 7
    for caption in STUDY.glob("captions/*.rst"):
        # Superscripts are tags, which the text of a page lacks.
        assert caption.read_text().strip().replace("theta^TD", "θTD") in page.text
    values = pd.read_csv(results / "values.csv")
    assert set(values["context_length"]) == {5, 20} and np.isfinite(values["mean"]).all()
    # Runs in the main setting have more tasks, and are compared after the same number of tasks as the other runs.
    assert {100, 300} <= set(values.loc[values["prompts"] == "contexts", "tasks_seen"])
    over_tasks = pd.read_csv(results / "over_tasks.csv")
    assert (over_tasks["low"] < over_tasks["high"]).all()
