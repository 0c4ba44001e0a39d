"""The study's claims on made-up tables, and its page."""

import numpy as np
import pandas as pd
import pytest

from ictd.report.part import statements_in
from studies.emergence import results as page

CELL = {"algo": "td", "env": "boyan", "states": 5, "depth": 10}
SEEDS = np.arange(6)


@pytest.fixture
def results():
    """Results on which all claims hold."""
    best = {"env": "boyan", "states": 5, "discount": 0.9, "depth": 3}
    rows = [{**best, "numbers": k, "group": g, "mean": (1 + g) / 50**k} for k in (1, 2) for g in range(6)]
    minima = {
        "states": 5,
        "depth": 10,
        "start": range(3),
        "msve": 1e-6,
        "test_msve": [2e-6, 1e-6, 3e-6],
        "outside": 0.0,
    }
    descents = pd.DataFrame({**minima, "distance": [0, 1e-5, 0.5], "point": [0, 0, 1]})
    designs = {"falling": 0.1, "rising": 0.2}
    return {
        "main": {"env": "boyan", "states": 5, "depth": 10},
        "discount": 0.9,
        "shares": pd.DataFrame({**CELL, "seed": SEEDS, "family_1": 0.6, "family_2": 0.85 + 0.01 * SEEDS, "msve": 0.05}),
        "best_numbers": pd.DataFrame(rows),
        "minimisers": pd.concat(
            descents.assign(set=name, least_curvature=[1.0, 1.0, np.nan]) for name in ("2", "family", "all")
        ).reset_index(drop=True),
        "slow_mode": pd.concat(
            pd.DataFrame({"design": k, "seed": SEEDS, "slow": 0.9, "ones": 0.9 - v}) for k, v in designs.items()
        ),
    }


def decided(results):
    own = [statement for statement in statements_in(page) if statement.compute.__module__ == page.__name__]
    return [claim for statement in own for claim in statement.decide(results)]


def test_claims_that_hold(results):
    claims = decided(results)
    assert {claim.id for claim in claims if claim.verdict == "holds"} == {
        "ones/td-boyan-5-10", "best_two/3 layers", "pretraining_stops_short/td-10 layers",
        "one_minimum/family-5 states-10 layers", "one_minimum/all-5 states-10 layers",
        "follows_slow_mode/falling", "follows_slow_mode/rising",
    }  # fmt: skip
    assert len(claims) == 7


@pytest.mark.parametrize(
    ("table", "change", "expected"),
    [
        ("shares", {"family_2": 0.79}, "ones"),
        ("shares", {"msve": 9e-6}, "pretraining_stops_short"),
        ("best_numbers", {"mean": 0.1}, "best_two"),
        ("minimisers", {"least_curvature": 1.0}, "one_minimum"),
        ("slow_mode", {"ones": 0.95}, "follows_slow_mode"),
    ],
)
def test_claims_that_fail(results, table, change, expected):
    failing = {claim.id.split("/")[0] for claim in decided(results | {table: results[table].assign(**change)})
               if claim.verdict != "holds"}  # fmt: skip
    assert failing == {expected}


def test_minima_are_counted_and_the_lowest_descent_is_shown(results):
    table = results["minimisers"]
    table.loc[(table["set"] == "all") & (table["start"] == 2), ["msve", "least_curvature"]] = 1e-7, 0.5
    table = pd.concat([table, *(table[table["set"] == "2"].assign(set=name) for name in ("1", "4", "8"))])
    row = page.minimisers.make(results | {"minimisers": table.reset_index(drop=True)}).iloc[0]
    assert (row["two numbers"], row["all weights"]) == (2e-6, 3e-6)
    assert (row["minima, family"], row["minima, all"]) == (1, 2)
