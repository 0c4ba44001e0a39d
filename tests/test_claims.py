"""Measures of weights, statistics over trials, and the verdicts on claims."""

import itertools
import re

import naive
import numpy as np
import pandas as pd
import pytest
from projects import ROOT
from tolerances import ROUNDING

import ictd
from ictd.pattern import agreement_measures, pattern_measures, remainder
from ictd.pipeline.grid import Cell
from ictd.report import result_tables as tables
from ictd.report.claim import Statements, as_records
from ictd.report.claim_tables import claims_overview, claims_rows, what_fails
from ictd.report.compute import compute_table
from ictd.report.paper_claims import check_claims
from ictd.report.summaries import by_threshold, msve_summary, pattern_by_cell
from ictd.report.verdicts import LISTED, in_words, verdict
from ictd.statistics import (
    bootstrap_interval,
    bootstrap_means,
    correlation,
    discoveries,
    interval,
    rank_correlation,
    ranks,
    standard_error,
)

STATEMENTS = Statements(ROOT / "report/claims.toml")

MAIN = ("boyan", 3, 4)
GAMMA = 0.9


def test_measures_of_theta_td_itself():
    theta = ictd.theta_td(4)
    measures = pattern_measures(ictd.Weights(theta.u, 2.0 * theta.A))
    expected = {"cosine": 1, "cosine_top": 1, "cosine_A11": 1, "cosine_A12": 1, "alpha": 0.5, "diagonal_signs": 1}
    expected |= {"energy_A11": 0.5, "energy_A12": 0.5, "energy_A21": 0, "energy_A22": 0, "largest_u": 0}
    for name, value in expected.items():
        assert measures[name] == pytest.approx(value), name


def test_measures_tell_other_weights_apart():
    A = ictd.theta_td(2).A.copy()
    A[0, 0], A[2:, :2] = 3.0, 0.5
    measures = pattern_measures(ictd.Weights(np.array([0.1, -0.7, 0, 0]), A))
    assert measures["diagonal_signs"] == 0.75
    assert measures["largest_u"] == 0.7
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
    assert rank_correlation(np.array([1.0, 2.0, np.nan]), np.arange(3.0)) == 1


def test_bootstrap_interval_and_standard_error():
    samples = np.random.default_rng(1).normal(2.0, 3.0, 400)
    low, high = bootstrap_interval(samples)
    width = 1.96 * standard_error(samples)
    assert standard_error(samples) == pytest.approx(samples.std(ddof=1) / 20)
    assert low == pytest.approx(samples.mean() - width, abs=0.1 * width)
    assert high == pytest.approx(samples.mean() + width, abs=0.1 * width)
    assert bootstrap_interval(samples) == (low, high)
    assert standard_error(np.array([5.0])) == 0


def result_tables(A, msve, zero, u=None, settings=(MAIN,)):
    """Tables of a grid of cells, whose runs' weights have means A (2n, 2n) and u; MSVEs are (seeds, lengths).

    Runs, algorithms and validation tasks all differ, so that taking one for another shows.
    """
    seeds, lengths = np.arange(len(msve)), np.array([5, 10, 20])
    u = np.zeros(A.shape[-1]) if u is None else u
    apart = np.array([-0.1, 0.1, 0.0])[: len(seeds)]
    arrays = {"seeds": seeds, "u": u + apart[:, None], "A": A * (1 + apart[:, None, None])}
    course = np.array([0.5, 0.96, 1.0])[:, None]
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
    evaluations = {cell: evaluation for cell in runs}
    same = np.full((len(seeds), 3, 3), float(zero)) * spread
    beside = {
        "seeds": seeds,
        "context_lengths": lengths,
        **dict.fromkeys(("theta_td", "batch_td", "lstd", "zero"), same),
    }
    return {
        "msve": tables.msve_table(evaluations),
        "baselines": tables.baselines_table({(setting[1], setting[2]): beside for setting in settings}),
        "weights": tables.weights_table(runs, evaluations, GAMMA),
        "mean_weights": tables.mean_weights_table(runs, GAMMA),
        "agreement": tables.agreement_table(runs, GAMMA),
        "learning": tables.learning_table(runs, GAMMA),
        "truncation": tables.truncation_table([("boyan", 3)], 0.9, 200, {}),
    }


def test_tables_hold_means_over_tasks_and_seeds():
    made = result_tables(PATTERN, FALLING, zero=9.0)
    first = made["msve"].query("algo == 'td' and seed == 1 and context_length == 10")["msve"]
    assert first.tolist() == [pytest.approx(3.0)]
    assert made["baselines"]["msve"].to_numpy() == pytest.approx(9.0)
    assert made["weights"].query("algo == 'mc'")["enumerated_msve"].tolist() == pytest.approx([1.0, 2.0, 3.0])
    trials = shown(np.stack([PATTERN * 0.9, PATTERN * 1.1, PATTERN]))
    A, theta = trials.mean(axis=0), ictd.theta_td(3).A
    assert made["mean_weights"]["alpha"][0] == pytest.approx((A * theta).sum() / 6 / 3)
    raw = (PATTERN * theta).sum() / np.linalg.norm(PATTERN) / np.linalg.norm(theta)
    assert made["mean_weights"]["raw_cosine"][0] == pytest.approx(raw) != pytest.approx(made["weights"]["cosine"][0])
    mc = trials + shown(0.02 * np.eye(6) * (PATTERN != 0))
    expected = np.corrcoef(A.ravel(), mc.mean(axis=0).ravel())[0, 1]
    assert made["agreement"]["correlation"][0] == pytest.approx(expected) and expected < 1 - 1e-6
    apart = np.corrcoef(trials[[0, 2]].mean(axis=0).ravel(), mc[1].ravel())[0, 1]
    assert made["agreement"]["apart"][0] == pytest.approx(apart) != pytest.approx(expected, abs=1e-9)
    # Intervals over resamples of the trials, drawn again.
    taken = np.random.default_rng(0).integers(3, size=(10_000, 3))[:2000]
    squares = [
        np.vdot(trials[one].mean(axis=0), theta) ** 2 / (trials[one].mean(axis=0) ** 2).sum() / 6 for one in taken
    ]
    ends = made["mean_weights"][["pattern_low", "pattern_high"]].iloc[0].tolist()
    assert ends == pytest.approx(np.quantile(squares, [0.025, 0.975]).tolist())
    together = [np.corrcoef(trials[one].mean(axis=0).ravel(), mc[one].mean(axis=0).ravel())[0, 1] for one in taken]
    ends = made["agreement"][["correlation_low", "correlation_high"]].iloc[0].tolist()
    assert ends == pytest.approx(np.quantile(together, [0.025, 0.975]).tolist())
    row = made["learning"].query("algo == 'td' and seed == 1")
    assert row["to_go"].tolist() == pytest.approx([0.5, 0.04, 0])


def shown(A):
    """A (..., 6, 6) with lower halves of columns that sum to zero, as prompts do not see what is taken off."""
    a = np.array([-GAMMA] * 3 + [1.0] * 3)
    return A - a[:, None] * A[..., 3:, :].mean(axis=-2)[..., None, :]


def verdicts(made):
    return {claim.id: claim.verdict for claim in check_claims(STATEMENTS, made, MAIN)}


# A little noise, as the similarity of no noise at all is not defined.
PATTERN = ictd.theta_td(3).A + 0.05 * np.random.default_rng(2).normal(size=(6, 6))
FALLING = np.array([[9.0, 4.0, 1.0], [8.0, 3.0, 2.0], [7.0, 5.0, 1.5]])


def test_claims_hold_for_theta_td_and_falling_msve():
    made = verdicts(result_tables(PATTERN, FALLING, zero=9.0))
    assert len(made) == 2 * 13 + 5 + 1 + 1
    assert set(made.values()) == {"holds"}


@pytest.mark.parametrize(
    ("changes", "fails"),
    [
        ({"msve": FALLING[:, ::-1]}, "msve_falls/td-boyan-3-4"),
        ({"msve": np.array([[9, 4, 1], [1, 4, 9], [8, 3, 2.0]])}, "msve_falls/td-boyan-3-4"),
        ({"msve": np.array([[1, 4, np.nan]] * 3)}, "msve_falls/td-boyan-3-4"),
        ({"msve": np.array([[9, 4, 8], [9, 4, 1], [9, 4, 12.0]])}, "beats_zero/td-boyan-3-4"),
        ({"msve": np.array([[4, 9, 5], [4, 9, 4], [4, 9, 6.0]])}, "msve_lower/td-boyan-3-4"),
        ({"zero": 0.1}, "beats_zero/mc-boyan-3-4"),
        ({"A": -PATTERN}, "pattern/td-boyan-3-4"),
        ({"A": -PATTERN}, "signs/td-boyan-3-4"),
        ({"A": PATTERN[:, ::-1]}, "pattern_A11/td-boyan-3-4"),
        ({"A": PATTERN + 3 * np.kron([[0, 0], [1, 0]], np.eye(3) - 1 / 3)}, "pattern_A21/td-boyan-3-4"),
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
    made["agreement"] = made["agreement"].assign(correlation_low=-0.9, remainder_correlation_low=0.5, distance_high=1.2)
    made["truncation"] = tables.truncation_table([("boyan", 3)], 0.9, 20, {})
    made["baselines"] = made["baselines"].assign(
        msve=lambda frame: frame["msve"] * np.where(frame["method"] == "batch_td", 1 + 1e-6, 1)
    )
    decided = verdicts(made)
    for claim in ("same_pattern/boyan-3-4", "same_noise/boyan-3-4", "same_place/boyan-3-4", "truncation/boyan-3"):
        assert decided[claim] == "fails"
    assert decided["theta_td/3-4"] == "fails"


@pytest.mark.parametrize(
    ("other", "name"), [(("boyan", 3, 2), "depth"), (("boyan", 4, 4), "states"), (("loop", 3, 4), "env")]
)
def test_robustness_follows_from_the_cells(other, name):
    made = result_tables(PATTERN, FALLING, zero=9.0, settings=(MAIN, other))
    assert verdicts(made)[f"robust_{name}/all"] == "holds"
    there = (
        (made["msve"]["env"] == other[0]) & (made["msve"]["states"] == other[1]) & (made["msve"]["depth"] == other[2])
    )
    rising = made["msve"]["msve"].mask(there, made["msve"]["context_length"].astype(float))
    assert verdicts({**made, "msve": made["msve"].assign(msve=rising)})[f"robust_{name}/all"] == "fails"
    lost = made["mean_weights"].assign(pattern_low=[0.9, 0.9, 0.5, 0.5])
    assert verdicts({**made, "mean_weights": lost})[f"robust_{name}/all"] == "fails"


def test_one_bad_or_diverged_trial_is_not_consistent():
    made = result_tables(PATTERN, FALLING, zero=9.0)
    for bad in (0.1, -0.9, 0.7, np.nan):
        cosine = made["weights"]["cosine"].where(made["weights"].index != 1, bad)
        claims = check_claims(STATEMENTS, {**made, "weights": made["weights"].assign(cosine=cosine)}, MAIN)
        (one,) = (claim for claim in claims if claim.id == "consistent/td-boyan-3-4")
        assert (one.value, one.verdict) == (1, "fails")


def test_consistency_is_the_papers_claim_on_its_own_depth_only():
    made = check_claims(STATEMENTS, result_tables(PATTERN, FALLING, 9.0, settings=(MAIN, ("boyan", 3, 2))), MAIN)
    of = {claim.id: claim.kind for claim in made if claim.id.startswith(("consistent", "finite"))}
    wanted = {}
    for name, algo in itertools.product(("consistent", "finite"), ("td", "mc")):
        wanted |= {f"{name}/{algo}-boyan-3-4": "paper", f"{name}_at_depth/{algo}-boyan-3-2": "ours"}
    assert of == wanted


def test_parameters_that_change_have_not_converged():
    made = result_tables(PATTERN, FALLING, zero=9.0)
    later = made["learning"].assign(to_go=made["learning"]["to_go"] * 2.6)
    decided = verdicts({**made, "learning": later})
    assert decided["converged/td-boyan-3-4"] == decided["converged/mc-boyan-3-4"] == "fails"


def test_thresholds_and_trials_of_the_pattern_are_shown():
    made = result_tables(PATTERN, FALLING, zero=9.0)
    weights = made["weights"].assign(
        cosine=[0.9, -0.9, 0.72, 0.65, 0.72, np.nan], raw_cosine=[0.9, 0.6, 0.6, 0.9, 0.9, 0.9]
    )
    by_cell = pattern_by_cell(made["mean_weights"], weights)
    assert by_cell["trials with the pattern"].tolist() == ["2 of 3", "1 of 3"]
    assert by_cell["judged by A as it is"].tolist() == ["1 of 3", "3 of 3"]
    assert by_cell["squared cosine, as prompts see A"].tolist() == pytest.approx(
        (made["mean_weights"]["cosine"] ** 2).tolist()
    )
    mean = made["mean_weights"].assign(pattern_low=[0.47, 0.58], raw_cosine=[0.69, 0.72])
    agreement = made["agreement"].assign(correlation_low=0.73, remainder_correlation_low=-0.9)
    table = by_threshold(mean, weights.fillna({"cosine": 0.72}).assign(cosine=lambda t: t["cosine"].abs()), agreement)
    assert table["threshold"].tolist() == [0.4, 0.45, 0.5, 0.55, 0.6]
    assert table["pattern"].str[0].tolist() == ["2", "2", "1", "1", "0"]
    assert table["pattern, A as it is"].str[0].tolist() == ["2", "2", "1", "0", "0"]
    assert table["in every trial"].tolist() == ["2 of 2", "1 of 2", "1 of 2", "0 of 2", "0 of 2"]
    assert table["TD and MC have the same pattern"].str[0].tolist() == ["1", "1", "1", "0", "0"]
    assert set(table["the same noise pattern"]) == {"0 of 1"}


def test_the_share_of_wrong_discoveries_is_controlled():
    """Beside the definition, for every number of rejections; and that it is kept where every hypothesis is true."""
    rng, level = np.random.default_rng(0), 0.1
    for size in (1, 2, 7, 30):
        p = rng.uniform(size=size) ** rng.integers(1, 4, size)
        most = max(k for k in range(size + 1) if not k or np.sort(p)[k - 1] <= level * k / size)
        assert discoveries(p, level).tolist() == [bool(np.sum(p <= one) <= most) for one in p]
    wrong = np.mean([discoveries(rng.uniform(size=20), level).any() for _ in range(2000)])
    assert wrong < level + 0.03


def test_a_verdict_that_chance_may_have_made_is_corrected(tmp_path):
    (tmp_path / "claims.toml").write_text(TABLE)
    of, rng = Statements(tmp_path / "claims.toml"), np.random.default_rng(1)
    made = []
    for k in range(40):
        made += of.of_trials("more", (k,), rng.normal(1 + (3 if k == 0 else 0), 1, 20), what="it")
    records = as_records(made)
    assert records[0]["verdict"] == records[0]["corrected"] == "holds" and records[0]["p"] < 1e-3
    held = [one for one in records[1:] if one["verdict"] == "holds"]
    assert held and all(one["p"] < 0.03 for one in held)
    assert sum(one["corrected"] == "holds" for one in records) < 1 + len(held)
    (alone,) = as_records(made[held[0]["setting"] and int(held[0]["setting"]) :][:1])
    assert alone["corrected"] == "holds"
    plain = as_records([of.claim("more", ["a"], 2, what="it")])[0]
    assert plain["p"] is None and plain["corrected"] == plain["verdict"] == "holds"


@pytest.mark.parametrize(
    "given", ["kind = 'theirs'", "section = 3", 'section = ""', "id = 'a/b'", "relation = '='", "threshold = nan"]
)
def test_statements_of_another_kind_are_refused(given, tmp_path):
    rest = {
        "kind": "'ours'",
        "section": "'S'",
        "statement": "'T'",
        "statistic": "'U'",
        "relation": "'<'",
        "threshold": "1",
    }
    key, _, value = given.partition(" = ")
    (tmp_path / "claims.toml").write_text("[one]\n" + "".join(f"{k} = {v}\n" for k, v in (rest | {key: value}).items()))
    with pytest.raises(ValueError, match=rf"table \[one\]: '{key}' is missing, unknown or of no use"):
        Statements(tmp_path / "claims.toml")


def test_no_trend_is_claimed_without_trials_or_lengths():
    made = result_tables(PATTERN, FALLING, zero=9.0)
    for kept in ("seed == 0", "context_length == 20"):
        assert "msve_falls/td-boyan-3-4" not in verdicts({**made, "msve": made["msve"].query(kept)})


def test_overview_counts_and_names_what_fails():
    made = result_tables(PATTERN, np.array([[1, 4, np.nan]] * 3), zero=9.0)
    records = as_records(check_claims(STATEMENTS, made, MAIN))
    overview = claims_overview(records).set_index("claim")
    kinds = {record["statement"]: record["kind"] for record in records}
    assert list(overview.index) == sorted(kinds, key=lambda one: ("paper", "ours", "check").index(kinds[one]))
    of_paper = overview[[kinds[one] == "paper" for one in overview.index]]
    assert (of_paper["in the paper"] != "").all() and overview["in the paper"].iloc[0].endswith(", last paragraph")
    assert "in the paper" not in claims_overview([{**record, "where": ""} for record in records])
    falls = overview.loc["The MSVE falls as the context gets longer: it is ordered as the lengths are."]
    assert falls["verdict"] == "fails in 2 of 2 cells" and falls["trials"] == "0 of 6"
    assert falls["measured"].startswith("<b>1</b>; needs &lt; 0<br><small>upper end of the 95% bootstrap interval")
    assert falls["see"].startswith('<a href="#figure_01">Figure 1</a><br>')
    assert falls["see"].endswith('<a href="#rows-msve_falls">all rows</a>')
    finite = overview.loc["Pretraining runs into no numerical instability."]
    assert finite["verdict"] == "holds in all 2 cells" and finite["trials"] == "6 of 6"
    zero = next(overview.loc[one] for one in overview.index if "it beats predicting zero" in one)
    assert zero["measured"].startswith("<b>not finite</b>; needs")
    rows = claims_rows(records)
    assert rows.count("<details>") == len(kinds) and rows.count('<div id="rows-') == len(kinds)
    of_zero = rows[rows.index('<div id="rows-beats_zero">') :]
    assert re.search(r"TD boyan n=3 L=4</td><td [^>]*>not finite</td><td [^>]*>&lt; 0</td><td class='fails'", of_zero)
    assert "<summary>msve_falls: holds in 0 of 2</summary>" in rows
    assert what_fails(records).count("<li>") == sum("fails" in verdict for verdict in overview["verdict"])


def claimed(setting, value, **more):
    rest = {"id": f"more/{setting}", "kind": "ours", "statement": "S", "statistic": "T", "relation": ">", "end": ""}
    verdict = "holds" if value > 1 else "fails"
    rest |= {"threshold": 1, "where": "", "shown": "", "verdict": verdict, "corrected": verdict, "trials": None}
    return {**rest, "setting": setting, "value": value, **more}


def test_verdicts_in_words():
    place, other = claimed("td-loop-3-4", 2.0), claimed("boyan-5", 0.25)
    assert verdict([place]) == "holds" and verdict([other]) == "fails"
    assert verdict([place, other]) == "fails in 1 of 2 cells: boyan n=5 (0.25)"
    assert verdict([place, *[other] * LISTED]).count("boyan n=5 (0.25)") == LISTED
    assert verdict([place, *[other] * (LISTED + 1)]) == f"fails in {LISTED + 1} of {LISTED + 2} cells"
    assert verdict([place, place | {"corrected": "fails"}]) == (
        "holds in all 2 cells. Corrected for their number it holds in 1"
    )
    assert [in_words(one) for one in ("mc-boyan-3-30", "boyan-3-30", "all", "td-5 steps")] == [
        "MC boyan n=3 L=30", "boyan n=3 L=30", "all", "td-5 steps",
    ]  # fmt: skip
    (row,) = claims_overview(
        [claimed("a", 2.0, trials=20, trials_hold=17), claimed("b", 3.5, trials=5, trials_hold=5)]
    )[["measured", "trials"]].to_dict("records")
    assert row == {"measured": "<b>2 to 3.5</b>; needs &gt; 1<br><small>T</small>", "trials": "22 of 25"}


@pytest.mark.parametrize("relation", "<>")
def test_trials_are_counted_by_the_claims_threshold(relation, tmp_path):
    (tmp_path / "claims.toml").write_text(TABLE.replace('relation = ">"', f'relation = "{relation}"'))
    claim = Statements(tmp_path / "claims.toml").claim("more", ["a"], 2, what="it").with_trials([0, 1, 2, np.nan, 3, 4])
    assert (claim.trials, claim.trials_hold) == (6, 3 if relation == ">" else 1)


def test_compute_table_sums_times_and_takes_the_greatest_memory():
    parts = [pd.DataFrame({"s": [s], "cpu_time": [s / 2], "max_rss": [r]}) for s, r in ((4.0, 10.0), (2.0, 30.0))]
    row = compute_table({"tasks": parts}).iloc[0].tolist()
    assert row == ["tasks", "2", 6.0, 3.0, 30.0]


def test_msve_summary_takes_the_ends_and_drops_what_repeats():
    made = result_tables(PATTERN, FALLING, zero=9.0, settings=(MAIN, ("boyan", 3, 2)))
    table = msve_summary(made["msve"], made["baselines"], made["weights"])
    td = table.query("method == 'td' and depth == '4'").iloc[0]
    assert td["mean, context of 5"] == pytest.approx(8.0) and td["median, context of 20"] == pytest.approx(1.5)
    assert td["mean, enumerated prompt"] == pytest.approx(2.0)
    assert (table["method"] == "lstd").sum() == 1 and (table["method"] == "theta_td").sum() == 2


def test_records_are_plain_json():
    made = result_tables(PATTERN + np.nan, FALLING, zero=9.0)
    records = as_records(check_claims(STATEMENTS, made, MAIN))
    wanted = {
        "id", "kind", "where", "section", "setting", "statement", "statistic", "value", "relation", "threshold", "p",
        "verdict", "corrected", "shown", "end", "trials", "trials_hold",
    }  # fmt: skip
    assert all(set(record) == wanted for record in records)
    assert all(record["verdict"] == "fails" for record in records if record["value"] is None)


def test_every_statement_is_decided_and_its_words_are_filled_in():
    env, states, depth = MAIN
    settings = (MAIN, (env, states, depth + 1), (env, states + 1, depth), ("loop", states, depth))
    made = check_claims(STATEMENTS, result_tables(PATTERN, FALLING, zero=9.0, settings=settings), MAIN)
    assert {claim.id.split("/")[0] for claim in made} == set(STATEMENTS.tables)
    assert not [claim for claim in made if "{" in claim.section + claim.statement + claim.statistic]


def test_of_trials_is_decided_by_an_end_of_the_interval(tmp_path):
    text = """
[more]
id = "more of {what}"
kind = "ours"
section = "S"
statement = "There is more of {what}, $x_{i}$."
statistic = "the number of {what}"
relation = ">"
threshold = 1
"""
    (tmp_path / "claims.toml").write_text(text)
    of = Statements(tmp_path / "claims.toml")
    samples = np.arange(2.0, 9.0)
    (claim,) = of.of_trials("more", ("td", 5), samples, what="it")
    assert claim.value == bootstrap_interval(samples)[0] and claim.verdict == "holds"
    assert claim.id == "more of it/td-5" and claim.statement == "There is more of it, $x_{i}$."
    assert (claim.end, claim.statistic) == ("lower", "the number of it")
    assert (claim.trials, claim.trials_hold) == (7, 7)
    assert of.of_trials("more", ("td",), samples[:1], what="it") == []


TABLE = """[more]
kind = "ours"
section = "S"
statement = "There is more of {what}."
statistic = "its number"
relation = ">"
threshold = 1
"""


@pytest.mark.parametrize(
    ("was", "becomes", "said"),
    [
        ('relation = ">"', 'relation = ">="', "table .more.: 'relation' is missing, unknown or of no use"),
        ("threshold = 1", "threshold = true", "'threshold' is missing"),
        ("threshold = 1", "threshold = nan", "'threshold' is missing"),
        ("threshold = 1", "", "'threshold' is missing"),
        ('statistic = "its number"', "", "'statistic' is missing"),
        ("[more]", '[more]\nid = "a/b"', "'id' is missing"),
        ("[more]", '[more]\nnote = "b"', "'note' is missing"),
        ("[more]", "[more", "claims.toml is no valid TOML"),
        ("{what}", "{whom}", "table .more.: {whom} is no word that is filled in here"),
        ("[more]", "[less]", r"has no table \[more\]"),
    ],
)
def test_a_file_of_claims_that_is_not_so_is_answered_with_its_place(tmp_path, was, becomes, said):
    (tmp_path / "claims.toml").write_text(TABLE)
    assert Statements(tmp_path / "claims.toml").claim("more", ["a"], 2, what="it").verdict == "holds"
    (tmp_path / "claims.toml").write_text(TABLE.replace(was, becomes))
    with pytest.raises(ValueError, match=said):
        Statements(tmp_path / "claims.toml").claim("more", ["a"], 2, what="it")


def test_robustness_is_decided_whatever_the_sections_are_called(tmp_path):
    env, states, depth = MAIN
    settings = (MAIN, (env, states, depth + 1), (env, states + 1, depth), ("loop", states, depth))
    tables = result_tables(PATTERN, FALLING, zero=9.0, settings=settings)
    text = (ROOT / "report/claims.toml").read_text().replace('section = "{section}"', 'section = "Elsewhere"')
    (tmp_path / "claims.toml").write_text(text)
    made = check_claims(Statements(tmp_path / "claims.toml"), tables, MAIN)
    assert [claim.id for claim in made] == [claim.id for claim in check_claims(STATEMENTS, tables, MAIN)]


@pytest.mark.parametrize("wrong", [0, 1, 5, 6])
def test_wrong_signs_are_counted(wrong):
    A = PATTERN.copy()
    entries = [(i, i) for i in range(3)] + [(i, 3 + i) for i in range(3)]
    for entry in entries[:wrong]:
        A[entry] *= -1
    made = check_claims(STATEMENTS, result_tables(A, FALLING, zero=9.0), MAIN)
    assert {claim.value for claim in made if claim.id.startswith("signs/td")} == {wrong}


def test_bootstrap_is_10_000_draws_with_replacement():
    samples = np.random.default_rng(3).normal(size=(40, 2))
    taken = np.random.default_rng(0).integers(40, size=(10_000, 40))
    means = np.array([samples[draw].mean(axis=0) for draw in taken])
    np.testing.assert_allclose(bootstrap_means(samples), means, atol=ROUNDING)
    low, high = bootstrap_interval(samples[:, 0])
    inside = (means[:, 0] >= low) & (means[:, 0] <= high)
    assert (low, high) == interval(means[:, 0]) and inside.mean() == pytest.approx(0.95, abs=0.001)
    assert (means[:, 0] < low).mean() == pytest.approx(0.025, abs=0.001)


def test_correlations_with_a_constant_are_zero():
    rows = np.array([[1.0, 1, 1], [1, 2, 4]])
    np.testing.assert_allclose(correlation(rows, np.array([0.0, 1, 3])), [0, 1])
    np.testing.assert_allclose(correlation(rows, np.ones(3)), [0, 0])
    np.testing.assert_allclose(standard_error(np.array([[1.0, 2], [3, 2]])), [1, 0])
