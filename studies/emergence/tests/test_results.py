"""The study's claims on made-up results."""

import numpy as np
import pandas as pd
import pytest

from ictd.report.part import statements_in
from studies.emergence import results as page
from studies.emergence import symmetry_results
from studies.emergence.constants import outside_by_law, stiffness
from studies.emergence.few_numbers import basis

CELL = {"algo": "td", "env": "boyan", "states": 5, "depth": 10}
SEEDS, GAMMA, STATES, DEPTH = np.arange(8), 0.9, 3, 4
# s of alpha = 0.9 and beta = 0.3.
S = 1.8
ALL_PARTS = {"averaged": symmetry_results.PARTS, "label_free": True}


@pytest.fixture
def results():
    """Results on which all claims hold."""
    best = {"env": "boyan", "states": 5, "discount": GAMMA, "depth": 3}
    rows = [{**best, "numbers": k, "group": g, "mean": (1 + g) / 50**k} for k in (1, 2) for g in range(6)]
    minima = {"states": 5, "depth": 10, "start": range(3), "msve": 1e-6, "test_msve": [2e-6, 1e-6, 3e-6]}
    descents = pd.DataFrame({**minima, "outside": 0.0, "point": [0, 0, 1]})
    sets = [descents.assign(set=name, least_curvature=[1.0, 1.0, np.nan]) for name in ("2", "family", "all")]
    noise = 0.001 * np.random.default_rng(0).normal(size=(2, 8, 2 * STATES, 2 * STATES))
    t = outside_by_law(S, GAMMA, DEPTH)
    runs = STATES * np.tensordot([0.9, 0.3, t, 0, 0, 0], basis(8, STATES), axes=1) + noise
    median = np.full((2, 2, 7, 8), 0.01) + 1e-4 * SEEDS
    median[0, 1] *= 30
    cell = {"A": runs, "median": median}
    slope = np.outer([1, stiffness(S, t, GAMMA, DEPTH)], [1, STATES, GAMMA]).ravel()[[0, 1, 3, 4, 2, 5]]
    hessians = np.outer(slope, slope) * np.ones((8, 1, 1))
    equation = {"runs": runs[0][:, None].copy(), "equation": runs[:1, 0].copy(), "hessians": hessians}
    space = pd.MultiIndex.from_product([[0, 1], SEEDS], names=["corner", "seed"]).to_frame(index=False)
    space = space.assign(**CELL, pattern=0.2 + 0.4 * space.corner + 0.01 * space.seed)
    drift = {"states": 5, "discount": GAMMA, "depth": 3, "formula": 2.0, "mc": 2.0, "td": 2 * (1 - GAMMA)}
    return {
        "main": {"env": "boyan", "states": 5, "depth": 10},
        "discount": GAMMA,
        "shares": pd.DataFrame({**CELL, "seed": SEEDS, "family_1": 0.6, "family_2": 0.85 + 0.01 * SEEDS, "msve": 0.05}),
        "best_numbers": pd.DataFrame(rows),
        "minimisers": pd.concat(sets, ignore_index=True),
        "runs": {"td-boyan-3-4": cell, "td-loop-3-4": cell},
        "main_cell": "td-boyan-3-4",
        "lengths": [5, 20, 100],
        "equations": {"td": {"depth": DEPTH, "discount": GAMMA} | ALL_PARTS | equation},
        "equivariance": pd.DataFrame({"engine": ["compiled"], "states": 5, "permuted": 1e-15, "negative": 0}),
        "drift": pd.DataFrame([drift]),
        "diversity": pd.concat(
            pd.DataFrame({"env": "boyan", "states": 5, "depth": 30, "seed": SEEDS, "tasks": tasks, "mean": mean})
            for tasks, mean in ((256, 0.05 + 1e-3 * SEEDS), (0, 0.04))
        ),
        "space": space,
    }


def failing(results):
    """Names of the claims that do not hold, and the number of all."""
    claims = [claim for statement in statements_in(page) for claim in statement.decide(results)]
    return {claim.id.split("/")[0] for claim in claims if claim.verdict != "holds"}, len(claims)


@pytest.mark.parametrize(
    ("name", "place", "value", "expected"),
    [
        ("main", "env", "boyan", set()),
        ("shares", "msve", 9e-6, {"pretraining_stops_short"}),
        ("best_numbers", "mean", 0.1, {"best_two"}),
        ("minimisers", "least_curvature", 1.0, {"one_minimum"}),
        ("drift", "mc", 2.1, {"identities"}),
        ("equivariance", "permuted", 1e-12, {"identities"}),
        ("equivariance", "negative", np.nan, {"identities"}),
        ("A", np.s_[1, :, 0], 2.0, {"mean_outside", "two_numbers", "pinned"}),
        ("A", np.s_[0, :, 0, 1], 2.0, {"mean_outside"}),
        ("median", np.s_[:], 0.01, {"lost_order"}),
        ("A", np.s_[1, :, :3, 3:], 2.0, {"pinned"}),
        ("hessians", np.s_[:], 1 + np.eye(6), {"stiff"}),
        ("space", "pattern", 0.4, {"whole_space", "corner_decides"}),
        ("equation", np.s_[:, 0], 0.0, {"prediction"}),
        ("diversity", "mean", np.repeat([0.5, 0.04], 8), {"enough_tasks"}),
    ],
)
def test_claims_that_hold_and_fail(results, name, place, value, expected):
    known = results | results["equations"]["td"] | results["runs"]["td-boyan-3-4"]
    known[name][place] = value
    assert failing(results) == (expected, 21)


def test_ratios_of_errors_are_those_of_a_format(results):
    results["runs"]["td-boyan-3-4"]["median"][0, 1, 6] *= 2
    for form, ratio in (("enumerated", 30), ("100 steps", 30), ("100 grouped", 60)):
        np.testing.assert_allclose(symmetry_results.order_ratios(results, form)["td-boyan-3-4"], ratio)
