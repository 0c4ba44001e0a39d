"""The study's claims, its page, and its runs."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from html_page import Page
from tolerances import ROUNDING

import ictd
from ictd.pretraining import pretrain_history
from ictd.report.claim import Statements
from studies.emergence.claims import check_emergence, prediction_errors

STUDY = Path(__file__).parents[1]


@pytest.mark.slow
def test_our_reading_reproduces_the_runs_of_the_main_setting(under_conda):
    results = under_conda / "results-smoke"
    for i, algo in enumerate(("td", "mc")):
        reading = np.load(results / "emergence/readings/as_is.npz")
        main, evaluated = (np.load(results / f"{kind}/{algo}-boyan-4-6.npz") for kind in ("weights", "evaluation"))
        np.testing.assert_allclose(reading["A"][i], main["A"], rtol=ROUNDING)
        np.testing.assert_allclose(reading["msve"][i], evaluated["msve"], rtol=1e-9)
        np.testing.assert_allclose(reading["enumerated_msve"][i], evaluated["enumerated_msve"], rtol=1e-9)


@pytest.mark.slow
def test_blocks_of_long_pretraining_equal_one_run(under_conda):
    """A run of several blocks is one run of the engine over all of their tasks."""
    *_, last = sorted(under_conda.glob("results-smoke/emergence/runs/td-boyan/*.npz"))
    run = np.load(last)
    assert run["seeds"][-1] == 1
    streams = [ictd.generator(1, "boyan", 4, f"course {name}") for name in ("tasks", "unrolls")]
    tasks, unrolls = [], []
    for size in (10_000, 2_000):
        tasks.append(ictd.sample_tasks("boyan", 4, size, streams[0]))
        unrolls.append(ictd.unroll(tasks[-1], 64, 0.9, 1, streams[1]))
    whole = [
        kind(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))
        for kind, parts, names in (
            (ictd.Tasks, tasks, ("transition", "reward", "stationary")),
            (ictd.BatchStatistics, unrolls, ("visits", "transitions", "return_sums")),
        )
    ]
    start = ictd.initial_weights(4, 0.1, ictd.generator(1, "boyan", 4, "weights"))
    history = pretrain_history(*whole, "td", 6, 0.9, 1e-3, start, tasks_seen=run["tasks_seen"])
    np.testing.assert_array_equal(history.weights.A, run["A"][-1])


CELL = {"algo": "td", "env": "boyan", "states": 5, "depth": 30}
SEEDS = np.arange(6)


@pytest.fixture
def tables():
    """Tables on which all claims hold."""
    trials = pd.DataFrame({**CELL, "seed": SEEDS})
    best = {"env": "boyan", "states": 5, "discount": 0.9, "depth": 3}
    best_rows = [{**best, "numbers": k, "group": g, "mean": (1 + g) / 50**k} for k in (1, 2) for g in range(6)]
    trained = [
        trials.assign(method=method, format=name, mean=value)
        for method, value in (("all", 0.1), ("numbers_2", 0.01)) for name in ("enumerated", "steps")
    ]  # fmt: skip
    designs = {"constant": 0.0, "falling": 0.1, "rising": 0.2, "blocks": 0.3}
    course = pd.concat([trials.assign(tasks_seen=tasks, identity=0.1, ones=0.02) for tasks in (2000, 20000, 99999)])
    dynamics = pd.DataFrame({
        "algo": "td", "variables": "all", "noise": "batches", "rule": "adam", "tasks_seen": [1, 2000, 20000, 99999],
        "identity": [9.0, 0.11, 0.1, 0.1], "ones": [9.0, 0.02, 0.02, 0.017],
    })  # fmt: skip
    course = pd.concat([course, trials.assign(tasks_seen=1, identity=1.0, ones=1.0)])
    return {
        "measures": trials.assign(family_1=0.6, family_2=0.85 + 0.01 * SEEDS),
        "best_numbers": pd.DataFrame(best_rows),
        "trained": pd.concat(trained, ignore_index=True),
        "slow_mode": pd.concat([trials[["seed"]].assign(design=k, excess=v) for k, v in designs.items()]),
        "dynamics": dynamics,
        "course": course,
        "readings": pd.DataFrame({"reading": ["ours", "other"], "claim": "pattern", "algo": "td", "verdict": "holds"}),
    }


def found(tables):
    return check_emergence(Statements(STUDY / "claims.toml"), tables, "boyan")


def failing(tables):
    return {claim.id.split("/")[0] for claim in found(tables) if claim.verdict != "holds"}


def test_claims_that_hold(tables):
    assert failing(tables) == set()
    settings = {claim.id for claim in found(tables)}
    assert settings == {
        "ones/td-boyan-5-30", "best_two/boyan-5-0.9-3", "trained_two/td-boyan-5-30", "follows_slow_mode/falling",
        "follows_slow_mode/rising", "follows_slow_mode/blocks", "dynamics/td-all", "reading/other",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("table", "change", "expected"),
    [
        ("measures", lambda t: t.assign(family_2=0.79), "ones"),
        ("best_numbers", lambda t: t.assign(mean=t["mean"].mask(t["numbers"] == 2, 0.01)), "best_two"),
        ("trained", lambda t: t.assign(mean=t["mean"].mask(t["method"] == "all", 0.01)), "trained_two"),
        ("slow_mode", lambda t: t.assign(excess=t["excess"].mask(t["design"] == "rising", -0.01)), "follows_slow_mode"),
        ("dynamics", lambda t: t.assign(ones=0.015), "dynamics"),
        ("dynamics", lambda t: t.assign(identity=[0.1, 0.1, 0.1, 0.13]), "dynamics"),
        ("readings", lambda t: t.assign(verdict=["holds", "not shown"]), "reading"),
    ],
)
def test_claims_that_fail(tables, table, change, expected):
    assert failing({**tables, table: change(tables[table])}) == {expected}


def test_predictions_are_compared_at_the_nearest_snapshots(tables):
    errors = prediction_errors(tables["dynamics"], tables["course"])
    assert errors["tasks_seen"].tolist() == [2000, 20000, 99999]
    np.testing.assert_allclose(errors["error"], [0.1, 0, 0.15])


def test_claims_that_fail_under_our_reading_are_not_counted_as_lost(tables):
    assert failing({**tables, "readings": tables["readings"].assign(verdict="refuted")}) == set()


@pytest.mark.slow
def test_the_study_is_made_as_a_page(under_conda):
    results = under_conda / "results-smoke/emergence"
    page = Page(results / "emergence.html")
    assert page.headings[:2] == ["What emerges", "Answer"] and not page.outside and len(page.images) == 4
    for caption in STUDY.glob("captions/*.rst"):
        assert caption.read_text().strip() in page.text
    phase = pd.read_csv(results / "phase.csv")
    assert phase["diverged_at"].eq(0).all() and np.isfinite(phase["msve"]).all()
