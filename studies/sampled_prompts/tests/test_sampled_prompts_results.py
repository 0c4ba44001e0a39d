"""Claims, tables and figures of made-up results."""

import numpy as np
import pandas as pd
import pytest
from drawn import numbered, where

from ictd.pipeline.grid import Cell
from ictd.statistics import bootstrap
from studies.sampled_prompts import results as study
from studies.sampled_prompts.evaluate import MEASURES

LENGTHS, SEEDS = [5, 20, 100], 4
MAIN = {"env": "boyan", "states": 5, "depth": 30, "tasks": 10}
SETTINGS = {"main": MAIN, "more_tasks": MAIN | {"tasks": 100}, "loop": MAIN | {"env": "loop"}}
CELLS = [Cell(algo, env, 5, 30) for env in ("boyan", "loop") for algo in ("td", "mc")]


KEYS = ["setting", "method", "prompts", "shown", "env"]


@pytest.fixture(scope="module")
def made_up():
    """Random errors of all methods, and random fits."""
    rng = np.random.default_rng(0)
    names = [("baseline", method, "none", "any", env) for env in ("boyan", "loop") for method in study.BASELINES]
    of_cells = [(cell.algo, cell.env) for cell in CELLS] + [("theta_td", "any")]
    names += [("paper", algo, "enumerated", shown, env) for algo, env in of_cells for shown in [*study.SHOWN, "ones"]]
    names += [
        (name, algo, prompts, shown, setting["env"])
        for name, setting in SETTINGS.items() for algo in ("td", "mc")
        for prompts in study.PROMPTS for shown in study.SHOWN
    ]  # fmt: skip
    rows = [(*name, length, seed) for name in names for length in [0, *LENGTHS] for seed in range(SEEDS)]
    errors = pd.DataFrame(rows, columns=[*KEYS, "context_length", "seed"]).sample(frac=1, random_state=0)
    measures = [*MEASURES, "chosen"]
    errors[measures] = rng.uniform(0.5, 2, (len(errors), len(measures)))
    axes = {"setting": SETTINGS, "method": ["td", "mc"], "prompts": study.PROMPTS, "form": study.FORMS}
    axes |= {"context_length": LENGTHS, "seed": range(SEEDS)}
    return {
        "errors": errors.assign(states=5, depth=30, place=errors["env"] + "-5"),
        "fits": numbered(axes, ["chosen", "explained"]),
        "settings": SETTINGS, "cells": CELLS, "main_cells": CELLS[:2],
        "algos": ["td", "mc"], "place": "boyan-5", "cell_env": "boyan", "lengths": LENGTHS,
        "ends": (5, 100), "few": LENGTHS,
    }  # fmt: skip


def trials(results, length, method):
    """Errors (S,) of a method, by the words of ``KEYS``, of which the environment is boyan unless it is given."""
    names = dict(zip(KEYS, [*method.split(), "boyan"], strict=False))
    rows = where(results["errors"], context_length=length, **names)
    return rows.set_index("seed")["mean"].loc[range(SEEDS)].to_numpy()


def ratio(first, second):
    return bootstrap(lambda a, b: {"ratio": a / b}, first, second)["ratio"].estimate()


@pytest.mark.parametrize(
    ("name", "setting", "length", "first", "second"),
    [
        ("below_constant", ("td", study.SHOWN["step"], "5 steps"), 5, "paper td enumerated step", "constant_tuned"),
        ("visits", "td-loop-5-30", 100, "paper td enumerated grouped loop", "lstd"),
        ("own_format", ("td", study.PROMPTS["grouped"]), 100, "main td grouped step",
         "main td grouped grouped"),
        ("training_pays", ("main", "mc", "20 steps"), 20, "main mc step step", "main mc enumerated grouped"),
        ("beats_constant", ("main", "mc", "20 steps"), 20, "main mc step step", "constant_tuned"),
        ("beats_lstd", ("main", "td", "5 steps"), 5, "main td step step", "lstd"),
        ("below_lstd", ("td", study.SHOWN["centred_tuned"], "5 steps"), 5, "paper td enumerated centred_tuned", "lstd"),
        ("below_theta_td", ("mc", study.SHOWN["step_tuned"], "20 steps"), 20, "paper mc enumerated step_tuned",
         "paper theta_td enumerated step_tuned any"),
        ("beats_prior", ("main", "td", "100 steps"), 100, "main td step step", "lstd_prior"),
        ("mc_beats_td", "5 steps", 5, "more_tasks mc step step", "more_tasks td step step"),
    ],
)  # fmt: skip
def test_claims_compare_the_methods_that_they_name(made_up, name, setting, length, first, second):
    second = second if " " in second else f"baseline {second} none any"
    found = dict(getattr(study, name).compute(made_up))[setting]
    np.testing.assert_allclose(found, ratio(*(trials(made_up, length, method) for method in (first, second))))


def test_claims_on_more_tasks_and_on_the_fitted_prior(made_up):
    def of(form, length, column):
        names = {"setting": "main", "method": "td", "prompts": "step", "form": form, "context_length": length}
        return where(made_up["fits"], **names)[column].to_numpy()

    larger = np.maximum(of("lstd", 20, "explained"), of("ce_uniform", 20, "explained"))
    more, fewer = (trials(made_up, 5, f"{name} td step step") for name in ("more_tasks", "main"))
    expected = {
        ("shrinks", ("td", "20 steps")): of("lstd_prior", 20, "explained") - larger,
        ("prior_grows", "td"): np.log10(of("lstd_prior", 100, "chosen") / of("lstd_prior", 5, "chosen")),
        ("more_tasks_help", ("td", "5 steps")): np.log10(more / fewer),
    }
    for (name, setting), samples in expected.items():
        found = dict(getattr(study, name).compute(made_up))[setting]
        np.testing.assert_allclose(found.samples, samples, err_msg=name)


def test_the_table_of_gains_has_means_medians_and_the_share_of_the_level(made_up):
    row = where(study.gain.make(made_up), cell="mc-boyan-5-30", steps=20).iloc[0]

    def of(shown, column):
        names = {"setting": "paper", "method": "mc", "env": "boyan", "shown": shown, "context_length": 20}
        return where(made_up["errors"], **names)[column].mean()

    assert (
        row["paper: divided by the gain of the state"]
        == f"{of('per_state', 'mean'):.3g} ({of('per_state', 'median'):.3g})"
    )
    assert row["theta^TD: tuned factor"] == "{:.3g} ({:.3g})".format(
        *where(made_up["errors"], method="theta_td", shown="step_tuned", context_length=20)[["mean", "median"]].mean()
    )
    measured = row[["gain", "share of the level in the MSVE", "correlation"]].astype(float)
    level = of("step", "level") / of("step", "mean")
    np.testing.assert_allclose(measured, [of("ones", "typical"), level, of("step", "correlation")])
