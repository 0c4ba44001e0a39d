"""The paper's claims, decided on the tables of made-up runs, of which each can hold and fail."""

import itertools

import numpy as np
import pytest

import ictd
from ictd.pipeline.grid import Cell
from ictd.pipeline.provenance import PROJECT
from ictd.report import result_tables as tables
from ictd.report.claim import Statements
from ictd.report.paper_claims import check_claims
from ictd.report.summaries import by_threshold, pattern_by_cell

STATEMENTS = Statements(PROJECT / "report/claims.toml")
MAIN = ("boyan", 3, 4)
GAMMA = 0.9
# A little noise, as the similarity of no noise at all is not defined.
PATTERN = ictd.theta_td(3).A + 0.05 * np.random.default_rng(2).normal(size=(6, 6))
FALLING = np.array([[9.0, 4.0, 1.0], [8.0, 3.0, 2.0], [7.0, 5.0, 1.5]])


def result_tables(A=PATTERN, msve=FALLING, zero=9.0, u=0.0, tau=200, settings=(MAIN,)):
    """Tables of a grid of cells, whose runs' weights have means A (2n, 2n) and u; MSVEs are (seeds, lengths).

    Runs, algorithms and validation tasks all differ, so that taking one for another shows.
    """
    seeds, lengths = np.arange(len(msve)), np.array([5, 10, 20])
    apart = np.array([-0.1, 0.1, 0.0])[:, None]
    course = np.array([0.5, 0.96, 1.0])[:, None]
    arrays = {"seeds": seeds, "u": np.full(6, u) + apart, "A": A * (1 + apart[..., None])}
    arrays["tasks_seen"] = np.array([1, 6, 12])
    arrays["history_u"] = arrays["u"][:, None] * course
    arrays["history_A"] = arrays["A"][:, None] * course[..., None]
    arrays["online_msve"] = np.ones((len(seeds), 3))
    arrays["diverged_at"] = np.isnan(arrays["A"]).any(axis=(1, 2)) * 7
    other = {**arrays, "A": arrays["A"] + 0.02 * np.eye(len(A)) * (A != 0)}
    spread = np.array([0.5, 0.7, 1.8])
    evaluation = {"seeds": seeds, "context_lengths": lengths, "msve": msve[..., None] * spread}
    evaluation["enumerated_msve"] = np.outer(seeds + 1.0, spread)
    runs = {Cell(algo, *setting): arrays if algo == "td" else other for setting in settings for algo in ("td", "mc")}
    evaluations = dict.fromkeys(runs, evaluation)
    same = np.full((len(seeds), 3, 3), float(zero)) * spread
    methods = dict.fromkeys(("theta_td", "batch_td", "lstd", "zero"), same)
    beside = {"seeds": seeds, "context_lengths": lengths, **methods}
    return {
        "msve": tables.msve_table(evaluations),
        "baselines": tables.baselines_table({(setting[1], setting[2]): beside for setting in settings}),
        "weights": tables.weights_table(runs, evaluations, GAMMA),
        "mean_weights": tables.mean_weights_table(runs, GAMMA),
        "agreement": tables.agreement_table(runs, GAMMA),
        "learning": tables.learning_table(runs, GAMMA),
        "truncation": tables.truncation_table([("boyan", 3)], GAMMA, tau, {}),
    }


def claims_of(made):
    return {claim.id: claim for claim in check_claims(STATEMENTS, made, MAIN)}


def verdicts(made):
    return {name: claim.verdict for name, claim in claims_of(made).items()}


def test_claims_hold_for_theta_td_and_falling_msve():
    made = verdicts(result_tables())
    assert len(made) == 2 * 13 + 5 + 1 + 1
    assert set(made.values()) == {"holds"}


TD = "td-boyan-3-4"


@pytest.mark.parametrize(
    ("changes", "fails"),
    [
        ({"msve": FALLING[:, ::-1]}, f"msve_falls/{TD}"),
        ({"msve": np.array([[9, 4, 1], [1, 4, 9], [8, 3, 2.0]])}, f"msve_falls/{TD}"),
        ({"msve": np.array([[1, 4, np.nan]] * 3)}, f"msve_falls/{TD}"),
        ({"msve": np.array([[9, 4, 8], [9, 4, 1], [9, 4, 12.0]])}, f"beats_zero/{TD}"),
        ({"msve": np.array([[4, 9, 5], [4, 9, 4], [4, 9, 6.0]])}, f"msve_lower/{TD}"),
        ({"zero": 0.1}, "beats_zero/mc-boyan-3-4"),
        ({"A": -PATTERN}, f"pattern/{TD}"),
        ({"A": -PATTERN}, f"signs/{TD}"),
        ({"A": PATTERN[:, ::-1]}, f"pattern_A11/{TD}"),
        ({"A": PATTERN + 3 * np.kron([[0, 0], [1, 0]], np.eye(3) - 1 / 3)}, f"pattern_A21/{TD}"),
        ({"A": PATTERN + np.nan}, f"finite/{TD}"),
        ({"A": PATTERN + np.nan}, f"pattern/{TD}"),
        ({"u": 0.3}, f"pattern_P/{TD}"),
        ({"tau": 20}, "truncation/boyan-3"),
    ],
)
def test_claims_fail_where_they_should(changes, fails):
    assert verdicts(result_tables(**changes))[fails] == "fails"


@pytest.mark.parametrize(
    ("table", "change", "fails"),
    [
        ("agreement", lambda t: t.assign(correlation_low=-0.9), {"same_pattern/boyan-3-4"}),
        ("agreement", lambda t: t.assign(residual_correlation_low=0.5), {"same_noise/boyan-3-4"}),
        ("agreement", lambda t: t.assign(distance_high=1.2), {"same_place/boyan-3-4"}),
        ("agreement", lambda t: t.assign(apart=-0.9), {"same_pattern_apart/boyan-3-4"}),
        ("agreement", lambda t: t.assign(residual_apart=0.5), {"same_noise_apart/boyan-3-4"}),
        ("baselines", lambda t: t.assign(msve=t["msve"] * (1 + 1e-6 * (t["method"] == "batch_td"))), {"theta_td/3-4"}),
        ("learning", lambda t: t.assign(to_go=2.6 * t["to_go"]), {f"converged/{TD}", "converged/mc-boyan-3-4"}),
        *(("weights", lambda t, bad=bad: t.assign(cosine=t["cosine"].where(t.index != 1, bad)), {f"consistent/{TD}"})
          for bad in (0.1, -0.9, 0.7, np.nan)),
    ],
)  # fmt: skip
def test_claims_fail_by_their_tables(table, change, fails):
    made = result_tables()
    assert {name for name, said in verdicts(made | {table: change(made[table])}).items() if said == "fails"} == fails


@pytest.mark.parametrize(
    ("other", "name"), [(("boyan", 3, 2), "depth"), (("boyan", 4, 4), "states"), (("loop", 3, 4), "env")]
)
def test_robustness_follows_from_the_cells(other, name):
    made = result_tables(settings=(MAIN, other))
    assert verdicts(made)[f"robust_{name}/all"] == "holds"
    there = (made["msve"][["env", "states", "depth"]] == list(other)).all(axis=1)
    rising = made["msve"]["msve"].mask(there, made["msve"]["context_length"].astype(float))
    lost = {
        "msve": made["msve"].assign(msve=rising),
        "mean_weights": made["mean_weights"].assign(pattern_low=[0.9, 0.9, 0.5, 0.5]),
    }
    for table, changed in lost.items():
        assert verdicts(made | {table: changed})[f"robust_{name}/all"] == "fails"


def test_consistency_is_the_papers_claim_on_its_own_depth_only():
    made = claims_of(result_tables(settings=(MAIN, ("boyan", 3, 2))))
    found = {name: claim.kind for name, claim in made.items() if name.startswith(("consistent", "finite"))}
    wanted = {}
    for name, algo in itertools.product(("consistent", "finite"), ("td", "mc")):
        wanted |= {f"{name}/{algo}-boyan-3-4": "paper", f"{name}_at_depth/{algo}-boyan-3-2": "ours"}
    assert found == wanted


def test_every_statement_is_decided_and_its_words_are_filled_in():
    env, states, depth = MAIN
    settings = (MAIN, (env, states, depth + 1), (env, states + 1, depth), ("loop", states, depth))
    made = claims_of(result_tables(settings=settings))
    assert {name.split("/")[0] for name in made} == set(STATEMENTS.tables)
    assert not [claim for claim in made.values() if "{" in claim.section + claim.statement + claim.statistic]
    sections = {claim.section.partition(": ")[2] for claim in made.values() if claim.setting == "td-loop-3-4"}
    assert sections == {"MRP"}


@pytest.mark.parametrize("kept", ["seed == 0", "context_length == 20"])
def test_no_trend_is_claimed_without_trials_or_lengths(kept):
    made = result_tables()
    assert f"msve_falls/{TD}" not in verdicts(made | {"msve": made["msve"].query(kept)})


@pytest.mark.parametrize("wrong", [0, 1, 5, 6])
def test_wrong_signs_are_counted(wrong):
    A = PATTERN.copy()
    entries = [(i, i) for i in range(3)] + [(i, 3 + i) for i in range(3)]
    for entry in entries[:wrong]:
        A[entry] *= -1
    assert claims_of(result_tables(A))[f"signs/{TD}"].value == wrong


def test_thresholds_and_trials_of_the_pattern_are_shown():
    made = result_tables()
    cosines = [0.9, -0.9, 0.72, 0.65, 0.72, np.nan]
    weights = made["weights"].assign(cosine=cosines, raw_cosine=[0.9, 0.6, 0.6, 0.9, 0.9, 0.9])
    by_cell = pattern_by_cell(made["mean_weights"], weights)
    assert by_cell["trials with the pattern"].tolist() == ["2 of 3", "1 of 3"]
    assert by_cell["by the full A"].tolist() == ["1 of 3", "3 of 3"]
    mean = made["mean_weights"].assign(pattern_low=[0.47, 0.58], raw_cosine=[0.69, 0.72])
    agreement = made["agreement"].assign(correlation_low=0.73, residual_correlation_low=-0.9)
    table = by_threshold(mean, weights.assign(cosine=weights["cosine"].fillna(0.72).abs()), agreement)
    assert table["threshold"].tolist() == [0.4, 0.45, 0.5, 0.55, 0.6]
    assert table["pattern"].str[0].tolist() == ["2", "2", "1", "1", "0"]
    assert table["pattern, full A"].str[0].tolist() == ["2", "2", "1", "0", "0"]
    assert table["in every trial"].tolist() == ["2 of 2", "1 of 2", "1 of 2", "0 of 2", "0 of 2"]
    assert table["TD and MC have the same pattern"].str[0].tolist() == ["1", "1", "1", "0", "0"]
    assert set(table["the same noise pattern"]) == {"0 of 1"}
