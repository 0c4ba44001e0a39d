"""Claims on pretraining on sampled contexts, and the study's page."""

import itertools
import json

import numpy as np
import pandas as pd
import pytest
from conftest import ROOT
from html_page import Page

from ictd.agents import at_home, check_agents, gap_closed, last_values, with_yardsticks

MAIN = ("boyan", 5, 30, 0.9)
SETTINGS = [MAIN, ("boyan", 5, 3, 0.9), ("loop", 5, 30, 0.9)]
COLUMNS = ["env", "states", "depth", "discount"]
LENGTHS = [5, 100, 1000]


@pytest.fixture
def tables():
    """Tables on which all claims hold: 4 trials, snapshots at 10, 100 and, in the main setting, 1,000 tasks."""
    rows = []
    places = [("boyan", 0.9), ("loop", 0.9)]
    for algo, setting, seed, length in itertools.product(["td", "mc"], SETTINGS, range(4), LENGTHS):
        named = dict(zip(COLUMNS, setting, strict=True)) | {"algo": algo, "seed": seed, "context_length": length}
        error = (1 + 0.01 * seed) * (5 if algo == "td" else 4) / length
        for (env, discount), seen in itertools.product(places, [10, 100, *([1000] if setting == MAIN else [])]):
            where = {"on_env": env, "on_discount": discount, "tasks_seen": seen, "prompts": "contexts"}
            rows.append({**named, **where, "mean": error * 100 / seen, "median": error})
        if setting == MAIN:
            where = {"on_env": "boyan", "on_discount": 0.9, "tasks_seen": 20, "prompts": "enumerated"}
            rows.append({**named, **where, "mean": 9.0, "median": 9.0})
    yardsticks = [
        {"env": env, "states": 5, "discount": 0.9, "method": method, "context_length": length, "mean": value / length}
        for env, length, (method, value) in itertools.product(
            ["boyan", "loop"], LENGTHS, [("lstd", 20), ("batch_td", 15), ("bayes", 2)]
        )
        if (env, method) != ("loop", "bayes")
    ]
    shapes = [
        {**dict(zip(COLUMNS, setting, strict=True)), "algo": "td", "seed": s, "tasks_seen": seen, "outside": 1 / seen}
        for setting, s, seen in itertools.product(SETTINGS, range(4), [10, 100])
    ]
    made = {"values": rows, "yardsticks": yardsticks, "shapes": shapes}
    return {name: pd.DataFrame(table) for name, table in made.items()}


def failing(tables):
    return {
        claim.id.split("/")[0] for claim in check_agents(tables, MAIN, 100, 100) if claim.verdict == "fails"
    }  # fmt: skip


def test_claims_that_hold(tables):
    assert failing(tables) == set()
    claims = check_agents(tables, MAIN, 100, 100)
    counts = pd.Series([claim.id.split("/")[0] for claim in claims]).value_counts().to_dict()
    assert counts == {
        "beats_lstd": 12, "beats_batch_td": 12, "above_the_floor": 8, "closes_half": 8, "beats_enumerated": 4,
        "mc_teaches_better": 2, "still_falls": 2, "transfers": 6, "structure": 3,
    }  # fmt: skip
    half = next(claim for claim in claims if claim.id == "closes_half/td-boyan-5-30-0.9-5 steps")
    # Means of trials lie between (20 - 5.15) / 18 and (20 - 5) / 18.
    assert (20 - 5.15) / 18 < half.value < (20 - 5) / 18


@pytest.mark.parametrize(
    ("table", "change", "expected"),
    [
        ("values", lambda t: t.assign(mean=17 / t["context_length"]), {
            "beats_batch_td", "closes_half", "mc_teaches_better", "beats_enumerated"}),
        ("values", lambda t: t.assign(mean=t["mean"].mask(t["context_length"] == 1000, 1.0)), {"still_falls"}),
        ("values", lambda t: t.assign(mean=t["mean"].mask(t["prompts"] == "enumerated", 0.01)), {"beats_enumerated"}),
        ("values", lambda t: t.assign(mean=t["mean"].mask(t["on_env"] != t["env"], 5.0)), {"transfers"}),
        ("values", lambda t: t.assign(mean=1 / t["context_length"]), {
            "above_the_floor", "mc_teaches_better", "beats_enumerated"}),
        ("yardsticks", lambda t: t.assign(mean=t["mean"].mask(t["method"] == "lstd", 3 / t["context_length"])), {
            "beats_lstd", "closes_half", "transfers"}),
        ("shapes", lambda t: t.assign(outside=0.2), {"structure"}),
    ],
)  # fmt: skip
def test_claims_that_fail(tables, table, change, expected):
    assert failing({**tables, table: change(tables[table])}) == expected


def test_what_is_compared(tables):
    values = last_values(tables["values"], 100)
    assert set(values["tasks_seen"]) == {100} and set(values["prompts"]) == {"contexts"}
    home = with_yardsticks(at_home(values), tables["yardsticks"])
    assert (home["env"] == home["on_env"]).all() and len(home) == 2 * 3 * 4 * 3
    one = home[(home["algo"] == "td") & (home["env"] == "boyan") & (home["depth"] == 3) & (home["seed"] == 0)].iloc[0]
    assert (one["lstd"], one["bayes"], one["mean"]) == (4.0, 0.4, 1.0)
    np.testing.assert_allclose(gap_closed(home)[home.index[0]], 3 / 3.6)
    assert home.loc[home["env"] == "loop", "bayes"].isna().all()


def test_the_study_is_made_as_a_page(under_conda):
    results = under_conda / "results-smoke/beyond"
    page = Page(results / "agents.html")
    assert page.headings[0] == "Prompts as an agent sees them" and not page.outside and len(page.images) == 3
    for name in ("agent_claims", "beside_yardsticks", "agent_values", "gaps", "transfer", "agent_shapes"):
        assert (ROOT / f"report/captions/{name}.rst").read_text().strip() in page.text
    claims = json.loads((results / "claims.json").read_text())
    assert {"beats_lstd", "above_the_floor", "beats_enumerated", "transfers", "structure"} <= {
        claim["id"].split("/")[0] for claim in claims
    }
    values = pd.read_csv(results / "values.csv")
    assert set(values["context_length"]) == {5, 20} and np.isfinite(values["mean"]).all()
    assert values.loc[values["prompts"] == "enumerated", "tasks_seen"].max() == 300
    assert "bayes" in set(pd.read_csv(results / "yardsticks.csv")["method"])
