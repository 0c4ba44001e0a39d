"""The paper's claims on the tables of made-up runs; each claim can hold and fail."""

import re

import numpy as np
import pandas as pd
import pytest
from html_page import Page
from paper import SENTENCES, claims_in, results_of

import ictd
from ictd.baselines import BASELINES
from ictd.pipeline.grid import Cell
from ictd.report.claim import as_records
from ictd.report.paper import claims, views
from ictd.report.paper.sentence_tables import sentences_overview, sentences_that_do_not_hold
from ictd.report.paper.sentences import counted, decide, in_one_sentence, load_sentences
from ictd.report.part import statements_in
from ictd.steps import metrics
from ictd.weight_measures import unidentifiable_direction

pytestmark = pytest.mark.usefixtures("few_resamples")

NAMES = {statement.id for statement in statements_in(claims)}
MAIN = ("boyan", 3, 4)
GAMMA = 0.9
# A little noise, because the similarity of residuals is not defined without noise.
PATTERN = ictd.theta_td(3).A + 0.05 * np.random.default_rng(2).normal(size=(6, 6))
# A change of A that changes no output.
NO_OUTPUT = 3 * np.outer(unidentifiable_direction(3, GAMMA), np.ones(6))
FALLING = np.array([[9.0, 4.0, 1.0], [8.0, 3.0, 2.0], [7.0, 5.0, 1.5]])


def result_tables(A=PATTERN, msve=FALLING, zero=9.0, u=0.0, tau=200, settings=(MAIN,)):
    """Tables of a grid of cells, whose runs' weights have means A (2n, 2n) and u; MSVEs are (seeds, lengths).

    Runs, algorithms and validation tasks all differ, so that tests detect if they are confused.
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
    methods = dict.fromkeys(BASELINES, same)
    beside = {"seeds": seeds, "context_lengths": lengths, **methods}
    sizes = [("zero", "any", n, 0) for n in {states for _, states, _ in settings}]
    methods_of_medians = pd.DataFrame([*runs, *sizes], columns=["method", "env", "states", "depth"])
    medians = {"context_length": 20, "median": np.where(methods_of_medians["env"] == "any", zero, msve.mean())}
    layers = pd.DataFrame([(*cell, seed) for cell in runs for seed in seeds], columns=[*Cell._fields, "seed"])
    sizes = {(states, depth): beside for _, states, depth in settings}
    baselines = metrics.baselines_table(sizes)
    made = {
        "unseen_msve": metrics.msve_table(evaluations),
        "unseen_baselines": baselines,
        "baselines": baselines,
        "weights": metrics.weights_table(runs, evaluations, GAMMA),
        "mean_weights": metrics.mean_weights_table(runs, GAMMA),
        "agreement": metrics.agreement_table(runs, GAMMA),
        "learning": metrics.learning_table(runs, GAMMA),
        "truncation": metrics.truncation_table([("boyan", 3)], GAMMA, tau, {"boyan": {}}),
    }
    return {
        name: pd.concat(map(pd.DataFrame, parts), ignore_index=True).infer_objects() for name, parts in made.items()
    } | {
        "over_tasks": methods_of_medians.assign(**medians),
        "layers": layers.assign(layer_is_td=0.8 + layers["seed"] / 100, converging=0.9 - layers["seed"] / 100),
    }


def claims_of(made):
    return claims_in(claims, results_of(made, {}, MAIN))


def verdicts(made):
    return {name: claim.verdict for name, claim in claims_of(made).items()}


def test_claims_hold_for_theta_td_and_falling_msve():
    made = verdicts(result_tables())
    assert len(made) == 2 * 19 + 5 + 1 + 1
    others = {name: verdict for name, verdict in made.items() if verdict != "holds"}
    undecided = {f"{name}/{algo}-boyan-3-4" for name in ("consistent", "finite") for algo in ("td", "mc")}
    # Of three seeds, disjoint halves have one each.
    undecided |= {"same_pattern_apart/boyan-3-4", "same_noise_apart/boyan-3-4"}
    assert others == dict.fromkeys(undecided, "not shown")


TD = "td-boyan-3-4"


@pytest.mark.parametrize(
    ("changes", "name", "verdict"),
    [
        ({"msve": FALLING[:, ::-1]}, f"msve_falls/{TD}", "refuted"),
        ({"msve": np.array([[9, 4, 1], [1, 4, 9], [8, 3, 2.0]])}, f"msve_falls/{TD}", "not shown"),
        ({"msve": np.array([[1, 4, np.nan]] * 3)}, f"msve_lower/{TD}", "not shown"),
        ({"msve": np.array([[9, 4, 8], [9, 4, 1], [9, 4, 12.0]])}, f"beats_zero/{TD}", "not shown"),
        ({"msve": np.array([[4, 9, 5], [4, 9, 4.5], [4, 9, 6.0]])}, f"msve_lower/{TD}", "refuted"),
        ({"zero": 0.1}, "beats_zero/mc-boyan-3-4", "refuted"),
        ({"zero": 0.1}, "beats_zero_by_medians/mc-boyan-3-4", "refuted"),
        ({"zero": 0.1}, "beats_constant/mc-boyan-3-4", "refuted"),
        ({"A": -PATTERN}, f"pattern/{TD}", "refuted"),
        ({"A": -PATTERN}, f"signs/{TD}", "refuted"),
        ({"A": PATTERN[:, ::-1]}, f"pattern_A11/{TD}", "refuted"),
        ({"A": PATTERN + NO_OUTPUT}, f"pattern/{TD}", "holds"),
        ({"A": PATTERN + NO_OUTPUT}, f"pattern_shortest/{TD}", "holds"),
        ({"A": PATTERN + NO_OUTPUT}, f"pattern_full/{TD}", "refuted"),
        ({"A": PATTERN + 3 * np.kron([[0, 0], [1, 0]], np.eye(3) - 1 / 3)}, f"pattern_A21/{TD}", "refuted"),
        ({"A": PATTERN + np.nan}, f"finite/{TD}", "refuted"),
        ({"A": PATTERN + np.nan}, f"pattern/{TD}", "not shown"),
        ({"u": 0.3}, f"pattern_P/{TD}", "refuted"),
        ({"tau": 20}, "truncation/boyan-3", "refuted"),
    ],
)
def test_claims_fail_for_other_weights_and_rising_msve(changes, name, verdict):
    assert verdicts(result_tables(**changes))[name] == verdict


def changed_estimate(name, low, high):
    """A change of an estimate and its interval."""
    return lambda table: table.assign(**{name: (low + high) / 2, f"{name}_low": low, f"{name}_high": high})


@pytest.mark.parametrize(
    ("table", "change", "expected"),
    [
        ("agreement", changed_estimate("correlation", -0.9, 0.2), {"same_pattern/boyan-3-4": "refuted"}),
        ("agreement", changed_estimate("correlation", -0.9, 0.8), {"same_pattern/boyan-3-4": "not shown"}),
        ("agreement", changed_estimate("residual_correlation", 0.5, 0.6), {"same_noise/boyan-3-4": "refuted"}),
        ("agreement", changed_estimate("distance", 0.4, 1.2), {"same_place/boyan-3-4": "not shown"}),
        ("agreement", changed_estimate("apart", -0.9, -0.8), {"same_pattern_apart/boyan-3-4": "refuted"}),
        ("agreement", changed_estimate("residual_apart", 0.75, 0.9), {"same_noise_apart/boyan-3-4": "holds"}),
        ("layers", lambda t: t.assign(layer_is_td=t["layer_is_td"] - 0.4 * (t["algo"] == "mc")),
         {"layer_is_td/mc-boyan-3-4": "refuted"}),
        ("layers", lambda t: t.assign(converging=t["converging"] - 0.39 * (t["algo"] == "mc")),
         {"layer_converges/mc-boyan-3-4": "not shown"}),
        ("unseen_baselines", lambda t: t.assign(msve=t["msve"] / (1 + 1e3 * (t["method"] == "constant_tuned"))),
         {f"beats_constant/{TD}": "refuted", "beats_constant/mc-boyan-3-4": "refuted"}),
        ("learning", lambda t: t.assign(to_go=2.6 * t["to_go"]),
         {f"converged/{TD}": "refuted", "converged/mc-boyan-3-4": "refuted"}),
    ],
)  # fmt: skip
def test_claims_are_decided_by_their_tables(table, change, expected):
    made = result_tables()
    before, found = verdicts(made), verdicts(made | {table: change(made[table])})
    assert {name: verdict for name, verdict in found.items() if verdict != before[name]} == expected


@pytest.mark.parametrize(("bad", "share"), [(0.1, 2 / 3), (-0.9, 2 / 3), (0.7, 2 / 3), (np.nan, 2 / 3), (0.9, 1)])
def test_consistency_is_the_share_of_trials_with_the_pattern(bad, share):
    made = result_tables()
    weights = made["weights"].assign(cosine=made["weights"]["cosine"].where(made["weights"].index != 1, bad))
    claim = claims_of(made | {"weights": weights})[f"consistent/{TD}"]
    assert claim.value == pytest.approx(share) and claim.low < share <= claim.high
    assert (claim.trials, claim.trials_hold) == (3, round(3 * share))


def test_checks_are_relative_to_what_they_check():
    made = result_tables()
    errors = made["baselines"]
    errors = errors.assign(msve=errors["msve"] * (1 + 1e-6 * (errors["method"] == "theta_td")))
    truncation = made["truncation"].assign(largest_bias=3e-8, typical_value=2.0)
    claims = claims_of(made | {"baselines": errors, "truncation": truncation})
    assert claims["truncation/boyan-3"].value == pytest.approx(1.5e-8)
    assert claims["theta_td/3-4"].value == pytest.approx(1e-6) and claims["theta_td/3-4"].verdict == "refuted"


OTHERS = {"depth": (("boyan", 3, 2)), "states": ("boyan", 4, 4), "env": ("loop", 3, 4)}


@pytest.mark.parametrize("study", OTHERS)
def test_sentences_are_decided_in_the_cells_that_they_cover(study):
    """Changes in the cells of a study change only the verdicts on sentences about the study."""
    made = result_tables(settings=(MAIN, OTHERS[study]))
    there = (made["unseen_msve"][["env", "states", "depth"]] == list(OTHERS[study])).all(axis=1)
    unseen = made["unseen_msve"]
    rising = unseen.assign(msve=unseen["msve"].mask(there, unseen["context_length"].astype(float)))
    means = made["mean_weights"].assign(pattern_low=[0.9, 0.9, 0.3, 0.9], pattern_high=[0.95, 0.95, 0.45, 0.95])

    def decided(tables):
        records = as_records(claims_of(tables).values())
        return {one["name"]: one["verdict"] for one in decide(SENTENCES, records, MAIN)}

    before = decided(made)
    assert before[f"{study}_pattern"] == before[f"{study}_msve"] == before["decreasing_trend"] == "holds"
    assert before["depth_is_stable"] == "not shown"
    for other in OTHERS:
        assert (f"{other}_pattern" in before) == (other == study)
    for table, changed, name in (("unseen_msve", rising, "msve"), ("mean_weights", means, "pattern")):
        after = decided(made | {table: changed})
        found = {other for other in after if after[other] != before[other]}
        assert f"{study}_{name}" in found and after[f"{study}_{name}"] == "refuted"
        assert found <= {f"{study}_{name}", f"{study}_capable", "transfer"}


def test_only_claims_are_counted():
    records = as_records(claims_of(result_tables()).values())
    sentences = decide(SENTENCES, records, MAIN)
    assert counted(sentences) == {"holds": 7, "not shown": 1, "refuted": 0}
    assert "in 8 sentences. By our thresholds, 7 hold; not shown: 1; refuted: 0." in in_one_sentence(counted(sentences))
    # The verdict without data is "not shown".
    without = [record for record in records if not record["id"].startswith("msve_lower")]
    assert counted(decide(SENTENCES, without, MAIN)) == {"holds": 6, "not shown": 2, "refuted": 0}


def test_an_algorithm_that_was_not_run_shows_nothing():
    made = result_tables()
    alone = {name: table[table["algo"] == "mc"] for name, table in made.items() if "algo" in table}
    tables_of_mc = made | alone | {"agreement": made["agreement"][:0]}
    records = as_records(claims_of(tables_of_mc).values())
    sentences = {one["name"]: one for one in decide(SENTENCES, records, MAIN)}
    assert {record["verdict"] for record in records if record["id"].startswith("beats_zero")} == {"holds"}
    assert sentences["capable"]["verdict"] == "not shown" and "noise_is_similar" not in sentences
    # The bias of truncated returns does not depend on the algorithm.
    assert sentences["bias_is_negligible"]["verdict"] == "holds"
    shown = [sentences["capable"], sentences["bias_is_negligible"]]
    capable, bias = sentences_overview(shown, records)["closest test"]
    assert "not tested in this run: TD</small>" in capable and "not tested" not in bias
    assert "not tested in this run: TD</small>" in sentences_that_do_not_hold(shown[:1], records)


def test_sentences_are_shown_with_their_closest_test_and_what_stands_beside_it():
    made = result_tables(zero=8.0)
    lower = made["unseen_baselines"].assign(msve=lambda t: t["msve"] / (1 + 1e3 * (t["method"] == "constant_tuned")))
    records = as_records(claims_of(made | {"unseen_baselines": lower}).values())
    (capable,) = (one for one in decide(SENTENCES, records, MAIN) if one["name"] == "capable")
    (row,) = sentences_overview([capable], records).to_dict("records")
    assert row["verdict"] == "holds" and row["tests that hold"] == "2 of 2"
    first, *beside = re.split("<div><small>beside it: ", row["closest test"])
    assert re.match(r"<details><summary>MSVE: \d+% better than predicting zero, .* \(\w\w, Boyan's chain, n = 3", first)
    assert "than predicting zero; holds in 2 of 2" in beside[0]
    assert "one constant" in beside[1] and "refuted in 2 of 2" in beside[1]


@pytest.mark.parametrize(("error", "said"), [(0.25, "1.25\xa0±\xa00.25 (0.5)"), (0.0, "1.25 (0.5)")])
def test_a_single_trial_has_no_standard_error(error, said):
    row = {"mean": 1.25, "standard_error": error, "median": 0.5, "worst_share": 0.1}
    place = {"method": "lstd", "env": "any", "states": 3, "depth": 0}
    over_tasks = pd.DataFrame([place | row | {"context_length": length} for length in (0, 5)])
    tables = {"over_tasks": over_tasks, "weights": result_tables()["weights"]}
    (row,) = Page(views.msve.make(results_of(tables, {}))).rows()
    assert said in row


def test_sentences_name_claims():
    assert {name for sentence in SENTENCES for name in (*sentence.tests, *sentence.beside)} <= NAMES
    assert len({sentence.name for sentence in SENTENCES}) == len(SENTENCES)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[[sentence]", "is no valid TOML"),
        ('[[sentence]]\nname = "a"\nkind = "wish"\nsection = "S"\nparagraph = "1"\nquote = "Q"\ntests = []',
         "sentence 'a': give a kind of"),
    ],
)  # fmt: skip
def test_errors_in_a_file_of_sentences_name_their_place(tmp_path, text, said):
    (tmp_path / "sentences.toml").write_text(text)
    with pytest.raises(ValueError, match=said):
        load_sentences(tmp_path / "sentences.toml")


def test_tests_of_sentences_have_the_kind_paper_and_others_ours():
    made = claims_of(result_tables(settings=(MAIN, ("boyan", 3, 2))))
    kinds = {name: claim.kind for name, claim in made.items() if name.startswith(("consistent", "same_noise", "theta"))}
    assert kinds == {
        f"consistent/{TD}": "paper", "consistent/mc-boyan-3-4": "paper", "consistent/td-boyan-3-2": "ours",
        "consistent/mc-boyan-3-2": "ours", "same_noise/boyan-3-4": "paper", "same_noise/boyan-3-2": "ours",
        "same_noise_apart/boyan-3-4": "ours", "same_noise_apart/boyan-3-2": "ours",
        "theta_td/3-4": "check", "theta_td/3-2": "check",
    }  # fmt: skip


def test_every_statement_is_decided():
    env, states, depth = MAIN
    settings = (MAIN, (env, states, depth + 1), (env, states + 1, depth), ("loop", states, depth))
    made = claims_of(result_tables(settings=settings))
    assert {name.split("/")[0] for name in made} == NAMES


@pytest.mark.parametrize("kept", ["seed == 0", "context_length == 20"])
def test_no_trend_is_claimed_without_trials_or_lengths(kept):
    made = result_tables()
    assert f"msve_falls/{TD}" not in verdicts(made | {"unseen_msve": made["unseen_msve"].query(kept)})


@pytest.mark.parametrize("wrong", [0, 1, 5, 6])
def test_wrong_signs_are_counted(wrong):
    A = PATTERN.copy()
    entries = [(i, i) for i in range(3)] + [(i, 3 + i) for i in range(3)]
    for entry in entries[:wrong]:
        A[entry] *= -1
    assert claims_of(result_tables(A))[f"signs/{TD}"].value == wrong


def test_other_thresholds_are_shown():
    made = result_tables()
    cosines = [0.9, -0.9, 0.72, 0.65, 0.72, np.nan]
    weights = made["weights"].assign(cosine=cosines, raw_cosine=[0.9, 0.6, 0.6, 0.9, 0.9, 0.9])
    mean = made["mean_weights"].assign(raw_cosine=[0.69, 0.72], pattern_low=[0.47, 0.58], pattern_high=0.9)
    agreement = made["agreement"].assign(correlation_low=0.73, correlation_high=0.9)
    agreement = agreement.assign(residual_correlation_low=-0.9, residual_correlation_high=0.9)
    changed = {"weights": weights, "mean_weights": mean, "agreement": agreement}
    all_trials = weights.assign(cosine=weights["cosine"].fillna(0.72).abs())
    results = results_of(made | changed, {}, MAIN)
    claims_in(claims, results)
    results.metrics = {"mean_weights": mean, "weights": all_trials}
    columns = [*zip(*Page(views.thresholds.make(results)).rows(), strict=True)]
    threshold, falls, pattern, same, noise, full, every = columns
    assert threshold == ("0.4", "0.45", "0.5", "0.55", "0.6")
    assert [said[0] for said in pattern] == ["2", "2", "1", "1", "0"]
    assert [said[0] for said in full] == ["2", "2", "1", "0", "0"]
    assert every == ("2 of 2", "1 of 2", "1 of 2", "0 of 2", "0 of 2")
    assert [said[0] for said in same] == ["1", "1", "1", "0", "0"]
    assert set(noise) == {"0 of 1"} and set(falls) == {"2 of 2"}
