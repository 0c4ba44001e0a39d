"""Claims, tables and figures of made-up results."""

import itertools

import numpy as np
import pandas as pd
import pytest

from ictd.pipeline.grid import Cell
from ictd.report.claim import Trials
from ictd.statistics import bootstrap
from studies.sampled_prompts import results as study

LENGTHS, SEEDS = [5, 20, 100], 4
MAIN = {"env": "boyan", "states": 5, "depth": 30, "attention": "linear", "tasks": 10}
SETTINGS = {
    "main": MAIN,
    "more_tasks": MAIN | {"tasks": 100},
    "loop": MAIN | {"env": "loop"},
    "softmax": MAIN | {"attention": "softmax"},
}
CELLS = [Cell(algo, env, 5, 30) for env in ("boyan", "loop") for algo in ("td", "mc")]


@pytest.fixture(scope="module")
def made_up():
    """Random errors of all methods, and random fits."""
    rng = np.random.default_rng(0)
    names = []
    for at, method in itertools.product(("boyan-5", "loop-5"), study.BASELINES):
        if (at, method) != ("loop-5", "bayes"):
            names.append(("baseline", method, at.split("-")[0], 5, 0, "none", "any", at))
    names += [("paper", *cell, "enumerated", shown, "boyan-5") for cell in CELLS for shown in study.SHOWN]
    for (name, setting), algo, prompts, shown in itertools.product(
        SETTINGS.items(), ("td", "mc"), study.PROMPTS, study.SHOWN
    ):
        names.append((name, algo, setting["env"], 5, 30, prompts, shown, f"{setting['env']}-5"))
    columns = ["setting", "method", "env", "states", "depth", "prompts", "shown", "place", "context_length", "seed"]
    rows = [(*name, length, seed) for name in names for length in [0, *LENGTHS] for seed in range(SEEDS)]
    errors = pd.DataFrame(rows, columns=columns).sample(frac=1, random_state=0)
    errors[["mean", "median", "chosen"]] = rng.uniform(0.5, 2, (len(errors), 3))
    columns = ["setting", "method", "prompts", "form", "context_length", "seed"]
    fits = itertools.product(SETTINGS, ("td", "mc"), study.PROMPTS, study.FORMS, LENGTHS, range(SEEDS))
    fits = pd.DataFrame(fits, columns=columns)
    fits[["chosen", "explained"]] = rng.uniform(0.1, 1, (len(fits), 2))
    return {
        "errors": errors, "fits": fits, "settings": SETTINGS, "cells": CELLS, "main_cells": CELLS[:2],
        "algos": ["td", "mc"], "place": "boyan-5", "cell_env": "boyan", "lengths": LENGTHS, "few": LENGTHS,
    }  # fmt: skip


def trials(results, length, setting, method, prompts=None, shown=None, at="boyan-5", env=None):
    """Errors (S,) of a method, a row at a time."""
    found = {}
    for row in results["errors"].itertuples():
        same = (row.setting, row.method, row.context_length, row.place) == (setting, method, length, at)
        if same and prompts in (None, row.prompts) and shown in (None, row.shown) and env in (None, row.env):
            found[row.seed] = row.mean
    return np.array([found[seed] for seed in range(SEEDS)])


def ratio(first, second):
    return bootstrap(lambda a, b: {"ratio": a / b}, first, second)["ratio"].estimate()


def test_claims_compare_the_methods_that_they_name(made_up):
    def cell(algo, shown, length, env="boyan"):
        return trials(made_up, length, "paper", algo, shown=shown, env=env)

    def run(algo, length, name="main", prompts="step", shown="step", at="boyan-5"):
        return trials(made_up, length, name, algo, prompts, shown, at)

    def baseline(name, length, at="boyan-5"):
        return trials(made_up, length, "baseline", name, at=at)

    step, grouped = study.SHOWN["step"], study.SHOWN["grouped"]
    expected = {
        ("below_lstd", ("mc", grouped, "100 steps")): ratio(cell("mc", "grouped", 100), baseline("lstd", 100)),
        ("below_constant", ("td", step, "5 steps")): ratio(cell("td", "step", 5), baseline("constant_tuned", 5)),
        ("visits", "td-loop-5-30"): ratio(cell("td", "grouped", 100, "loop"), baseline("lstd", 100)),
        ("own_format", ("td", study.PROMPTS["grouped"])): ratio(
            run("td", 100, prompts="grouped"), run("td", 100, prompts="grouped", shown="grouped")
        ),
        ("training_pays", ("main", "mc", "20 steps")): ratio(
            run("mc", 20), run("mc", 20, "main", "enumerated", "grouped")
        ),
        ("beats_constant", ("main", "mc", "20 steps")): ratio(run("mc", 20), baseline("constant_tuned", 20)),
        ("beats_lstd", ("main", "td", "5 steps")): ratio(run("td", 5), baseline("lstd", 5)),
        ("beats_uniform", ("loop", "td", "5 steps")): ratio(
            run("td", 5, "loop", at="loop-5"), baseline("ce_uniform", 5, "loop-5")
        ),
        ("beats_prior", ("main", "td", "100 steps")): ratio(run("td", 100), baseline("lstd_prior", 100)),
        ("more_tasks_help", ("td", "5 steps")): np.log10(run("td", 5, "more_tasks") / run("td", 5)),
        ("mc_beats_td", "5 steps"): ratio(run("mc", 5, "more_tasks"), run("td", 5, "more_tasks")),
        ("softmax", ("td", "enumerated prompts")): ratio(
            run("td", 0, "softmax", "enumerated"), run("td", 0, prompts="enumerated")
        ),
        ("softmax", ("mc", "100 steps")): ratio(run("mc", 100, "softmax"), run("mc", 100)),
    }
    for (name, setting), value in expected.items():
        found = dict(getattr(study, name).compute(made_up))[setting]
        np.testing.assert_allclose(found.samples if isinstance(found, Trials) else found, value, err_msg=name)


def test_claims_on_the_fitted_prior(made_up):
    fits = made_up["fits"].set_index(["setting", "method", "prompts", "form", "context_length"]).sort_index()

    def of(form, length, column):
        return fits.loc[("main", "td", "step", form, length), column].to_numpy()

    larger = np.maximum(of("lstd", 20, "explained"), of("ce_uniform", 20, "explained"))
    found = dict(study.shrinks.compute(made_up))["td", "20 steps"]
    np.testing.assert_allclose(found.samples, of("lstd_prior", 20, "explained") - larger)
    found = dict(study.prior_grows.compute(made_up))["td"]
    k = [of("lstd_prior", length, "chosen") for length in (100, 5)]
    np.testing.assert_allclose(found.samples, np.log10(k[0] / k[1]))


def test_there_are_at_most_fourteen_claims_and_six_entries_in_a_legend(made_up):
    shown = vars(study).values()
    assert len([value for value in shown if hasattr(value, "compute")]) <= 14
    for value in [value for value in shown if getattr(value, "kind", None) == "figure"]:
        figure = value.make(made_up)
        lines = [line for axes in figure.axes for line in axes.lines if not line.get_label().startswith("_")]
        entries = {line.get_label(): (line.get_color(), line.get_linestyle()) for line in lines}
        assert 1 < len(entries) <= 6 and len(set(entries.values())) == len(entries)


def test_quoted_numbers_are_means_over_trials_and_counts_of_intervals(made_up):
    found = study.quoted.make(made_up)
    assert found["paper_grouped_long"] == pytest.approx(
        trials(made_up, 100, "paper", "td", shown="grouped", env="boyan").mean()
    )
    lstd = trials(made_up, 5, "baseline", "lstd")
    ratios = [ratio(trials(made_up, 5, "paper", one.algo, shown="step", env=one.env), lstd) for one in CELLS]
    assert found["cells_step_below_lstd_short"] == sum(one.high < 1 for one in ratios)
    assert found["cells_step_above_lstd_short"] == sum(one.low > 1 for one in ratios)
    assert found["largest_step_to_lstd_short"] == pytest.approx(max(one.value for one in ratios))
