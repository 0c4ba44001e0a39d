"""Measures of weights, statistics over trials, and the verdicts on claims."""

import naive
import numpy as np
import pandas as pd
import pytest
from tolerances import ROUNDING

import ictd
from ictd import tables
from ictd.claims import as_records, check_claims
from ictd.grid import Cell
from ictd.measures import agreement_measures, pattern_measures, remainder
from ictd.statistics import bootstrap_interval, rank_correlation, ranks, standard_error

MAIN = ("boyan", 3, 4)


def test_measures_of_theta_td_itself():
    theta = ictd.theta_td(4)
    measures = pattern_measures(ictd.Weights(theta.u, 2.0 * theta.A))
    expected = {"cosine": 1, "cosine_top": 1, "cosine_A11": 1, "cosine_A12": 1, "alpha": 0.5, "diagonal_signs": 1}
    expected |= {"energy_A11": 0.5, "energy_A12": 0.5, "energy_A21": 0, "energy_A22": 0, "noise_A21": 0, "largest_u": 0}
    for name, value in expected.items():
        assert measures[name] == pytest.approx(value), name


def test_measures_tell_other_weights_apart():
    A = ictd.theta_td(2).A.copy()
    A[0, 0], A[2:, :2] = 3.0, 0.5
    measures = pattern_measures(ictd.Weights(np.array([0.1, -0.7, 0, 0]), A))
    assert measures["diagonal_signs"] == 0.75
    assert measures["largest_u"] == 0.7
    assert measures["noise_A21"] == pytest.approx(0.5 / np.mean([3, 1, 1, 1]))
    assert measures["cosine_A11"] == pytest.approx((-3 + 1) / np.sqrt(9 + 1) / np.sqrt(2))
    assert measures["energy_A21"] == pytest.approx(1 / (9 + 3 + 1))


def test_remainder_is_orthogonal_to_theta_td():
    A = np.random.default_rng(0).normal(size=(5, 6, 6))
    assert np.abs((remainder(A) * ictd.theta_td(3).A).sum(axis=(1, 2))).max() < ROUNDING
    assert np.abs(remainder(4.2 * ictd.theta_td(3).A)).max() < ROUNDING


def test_agreement_measures():
    A = np.random.default_rng(0).normal(size=(6, 6))
    same = agreement_measures(A, A)
    assert same["correlation"] == pytest.approx(1) and same["distance"] == 0
    opposite = agreement_measures(A, -A)
    assert opposite["correlation"] == pytest.approx(-1) and opposite["distance"] == pytest.approx(2)
    shifted = agreement_measures(A, A + 50 * ictd.theta_td(3).A)
    assert shifted["remainder_correlation"] == pytest.approx(1) and shifted["correlation"] < 0.9


def test_rank_correlation():
    rng = np.random.default_rng(0)
    first, second = rng.normal(size=(4, 9)), rng.normal(size=9)
    for row, value in zip(first, rank_correlation(first, second), strict=True):
        assert value == pytest.approx(naive.rank_correlation(row, second))
    assert rank_correlation(np.ones(5), np.arange(5.0)) == 0
    np.testing.assert_array_equal(ranks(np.array([3.0, 1.0, 3.0])), [1.5, 0, 1.5])


def test_bootstrap_interval_and_standard_error():
    samples = np.random.default_rng(1).normal(2.0, 3.0, 400)
    low, high = bootstrap_interval(samples)
    width = 1.96 * standard_error(samples)
    assert standard_error(samples) == pytest.approx(samples.std(ddof=1) / 20)
    assert low == pytest.approx(samples.mean() - width, abs=0.1 * width)
    assert high == pytest.approx(samples.mean() + width, abs=0.1 * width)
    assert bootstrap_interval(samples) == (low, high)


def result_tables(A, msve, zero, u=None):
    """Tables of one grid of two cells whose runs all have weights A (2n, 2n), and MSVEs (seeds, lengths)."""
    seeds, lengths = np.arange(len(msve)), np.array([5, 10, 20])
    u = np.zeros(A.shape[-1]) if u is None else u
    arrays = {"seeds": seeds, "u": np.tile(u, (len(seeds), 1)), "A": np.tile(A, (len(seeds), 1, 1))}
    evaluation = {"seeds": seeds, "context_lengths": lengths, "msve": msve[..., None]}
    evaluation["enumerated_msve"] = np.ones((len(seeds), 1))
    runs = {Cell(algo, *MAIN): arrays for algo in ("td", "mc")}
    evaluations = {cell: evaluation for cell in runs}
    beside = dict.fromkeys(("theta_td", "batch_td", "lstd", "zero"), np.full((len(seeds), 3, 1), zero))
    return {
        "msve": tables.msve_table(evaluations),
        "baselines": tables.baselines_table({(3, 4): {"seeds": seeds, "context_lengths": lengths, **beside}}),
        "weights": tables.weights_table(runs, evaluations),
        "mean_weights": tables.mean_weights_table(runs),
        "agreement": tables.agreement_table(runs),
        "truncation": tables.truncation_table([("boyan", 3)], 0.9, 200, {}),
    }


def verdicts(made):
    return {claim.id: claim.verdict for claim in check_claims(made, MAIN)}


# A little noise, as the similarity of no noise at all is not defined.
PATTERN = ictd.theta_td(3).A + 0.05 * np.random.default_rng(2).normal(size=(6, 6))
FALLING = np.array([[9.0, 4.0, 1.0], [8.0, 3.0, 2.0], [7.0, 5.0, 1.5]])


def test_claims_hold_for_theta_td_and_falling_msve():
    made = verdicts(result_tables(PATTERN, FALLING, zero=9.0))
    assert len(made) == 2 * 11 + 3 + 1 + 1
    assert set(made.values()) == {"holds"}


@pytest.mark.parametrize(
    ("changes", "fails"),
    [
        ({"msve": FALLING[:, ::-1]}, "msve_falls/td-boyan-3-4"),
        ({"zero": 0.1}, "beats_zero/mc-boyan-3-4"),
        ({"A": -PATTERN}, "pattern/td-boyan-3-4"),
        ({"A": -PATTERN}, "signs/td-boyan-3-4"),
        ({"A": PATTERN[:, ::-1]}, "pattern_A11/td-boyan-3-4"),
        ({"A": PATTERN + PATTERN[::-1]}, "pattern_A21/td-boyan-3-4"),
        ({"A": PATTERN + np.nan}, "finite/td-boyan-3-4"),
        ({"A": PATTERN + np.nan}, "pattern/td-boyan-3-4"),
        ({"u": np.full(6, 0.3)}, "pattern_P/td-boyan-3-4"),
    ],
)
def test_claims_fail_where_they_should(changes, fails):
    settings = {"A": PATTERN, "msve": FALLING, "zero": 9.0, **changes}
    assert verdicts(result_tables(**settings))[fails] == "fails"


def test_claims_on_agreement_and_truncation_can_fail():
    made = result_tables(PATTERN, FALLING, zero=9.0)
    made["agreement"] = made["agreement"].assign(correlation=-0.9, remainder_correlation=0.5, distance=1.2)
    made["truncation"] = tables.truncation_table([("boyan", 3)], 0.9, 20, {})
    made["baselines"] = made["baselines"].assign(
        msve=lambda frame: frame["msve"] * np.where(frame["method"] == "batch_td", 1 + 1e-6, 1)
    )
    decided = verdicts(made)
    for claim in ("same_pattern/boyan-3-4", "same_noise/boyan-3-4", "same_place/boyan-3-4", "truncation/boyan-3"):
        assert decided[claim] == "fails"
    assert decided["theta_td/3-4"] == "fails"


def test_robustness_follows_from_the_cells():
    made = result_tables(PATTERN, FALLING, zero=9.0)
    other = {name: table.assign(depth=2) if "depth" in table else table for name, table in made.items()}
    failing = other["msve"].assign(msve=lambda frame: frame["context_length"].astype(float))
    both = {name: pd.concat([made[name], other[name]]) for name in made}
    assert verdicts(both)["robust_depth/all"] == "holds"
    assert verdicts({**both, "msve": pd.concat([made["msve"], failing])})["robust_depth/all"] == "fails"


def test_records_are_plain_json():
    made = result_tables(PATTERN + np.nan, FALLING, zero=9.0)
    records = as_records(check_claims(made, MAIN))
    wanted = {"id", "section", "setting", "statement", "statistic", "value", "relation", "threshold", "verdict"}
    assert all(set(record) == wanted for record in records)
    assert all(record["verdict"] == "fails" for record in records if record["value"] is None)
