"""The paper's claims on made-up tables; each claim can hold and fail."""

import re
from types import SimpleNamespace

import numpy as np
import pytest
from drawn import numbered
from html_page import Page
from paper import SENTENCES, changed, claims_in, results_of

from ictd.pipeline.grid import Cell
from ictd.report.claim import as_records
from ictd.report.paper import claims, views
from ictd.report.paper import tables as quoted
from ictd.report.paper.sentence_tables import sentences_overview, verdict_chart
from ictd.report.paper.sentences import counted, decide, in_one_sentence, load_sentences
from ictd.report.part import statements_in

pytestmark = pytest.mark.usefixtures("few_resamples")

NAMES = {statement.id for statement in statements_in(claims)}
MAIN = ("boyan", 3, 4)
TD, MC = "td-boyan-3-4", "mc-boyan-3-4"
OF_TD = {"algo": "td"}
SHARES = ("pattern", "pattern_shortest", "pattern_full", "pattern_A11", "pattern_A12", "bootstraps")
RESTS = ("pattern_A21", "pattern_A22")
# Measures of the agreement of TD and MC, by the claims on them.
AGREEMENT = {
    "same_pattern": "correlation", "same_noise": "residual_correlation", "same_place": "distance",
    "same_pattern_apart": "apart", "same_noise_apart": "residual_apart",
}  # fmt: skip


def with_ends(values):
    """Values with the ends of their intervals."""
    ends = (("", 0), ("_low", -0.05), ("_high", 0.05))
    return {f"{name}{end}": value + shift for name, value in values.items() for end, shift in ends}


def tables(**more):
    """Tables on which all claims hold, of cells of the main setting and of others."""
    cells = {"algo": ["td", "mc"], "env": ["boyan"], "states": [3], "depth": [4], **more}
    runs, lengths = cells | {"seed": range(20)}, {"context_length": [5, 10, 20]}
    settings = {name: cells[name] for name in ("env", "states", "depth")}
    sizes = {"states": cells["states"], "depth": cells["depth"], "seed": range(20), **lengths}
    errors = numbered(runs | lengths, [])
    patterns = dict.fromkeys(SHARES, 0.9) | dict.fromkeys(RESTS, 0.1)
    measures = patterns | {"largest_u": 0.01, "raw_cosine": 0.9}
    baselines = numbered({"method": ["zero", "constant_tuned"], **sizes}, [])
    layers = numbered(runs, [])
    return {
        "unseen_msve": errors.assign(median=2.0, msve=(20 / errors["context_length"]) ** (1 + errors["seed"] / 40)),
        "unseen_baselines": baselines.assign(
            median=9.0, msve=baselines["method"].map({"zero": 30.0, "constant_tuned": 15.0})
        ),
        "weights": numbered(runs, []).assign(**measures, cosine=0.9, diverged_at=0),
        "mean_weights": numbered(cells, []).assign(**measures | with_ends(patterns)),
        "agreement": numbered(settings, []).assign(
            **with_ends(dict.fromkeys(AGREEMENT.values(), 0.9) | {"distance": 0.2})
        ),
        "layers": layers.assign(layer_is_td=0.8 + layers["seed"] / 100, converging=0.7 + layers["seed"] / 100),
        "learning": numbered(runs | {"tasks_seen": [1, 5, 12]}, []).assign(to_go=0.05),
        "truncation": numbered({"env": ["boyan"], "states": cells["states"]}, []).assign(
            largest_bias=1.9e-6, typical_value=2
        ),
    }


def claims_of(made):
    return claims_in(claims, results_of(made, {}, MAIN))


def records_of(made):
    return as_records(claims_of(made).values())


def decided(made):
    return {one["name"]: one for one in decide(SENTENCES, records_of(made), MAIN)}


@pytest.mark.parametrize(
    ("table", "column", "value", "at", "names", "verdict"),
    [
        ("unseen_msve", "msve", 99.0, OF_TD | {"context_length": 20},
         "msve_falls msve_lower beats_zero beats_constant", "refuted"),
        ("unseen_msve", "msve", 99.0, OF_TD | {"context_length": 5}, "", ""),
        ("unseen_msve", "msve", 0.5, OF_TD | {"context_length": 5}, "msve_falls msve_lower", "refuted"),
        ("unseen_msve", "msve", 0.5, OF_TD | {"context_length": 10}, "msve_falls", "refuted"),
        ("unseen_msve", "msve", np.nan, OF_TD | {"context_length": 20, "seed": 3},
         "msve_falls msve_lower beats_zero beats_constant", "not shown"),
        ("unseen_msve", "median", 9.5, OF_TD | {"context_length": 20}, "beats_zero_by_medians", "refuted"),
        ("unseen_msve", "median", 9.5, OF_TD | {"context_length": 10}, "", ""),
        *(("mean_weights", f"{name}_low", 0.4, OF_TD, name, "not shown") for name in SHARES),
        *(("mean_weights", f"{name}_high", 0.6, OF_TD, name, "not shown") for name in RESTS),
        ("weights", "largest_u", 0.3, OF_TD, "pattern_P", "refuted"),
        *(("weights", "cosine", cosine, OF_TD | {"seed": 3}, "consistent", "not shown")
          for cosine in (-0.9, 0.7, np.nan)),
        ("weights", "cosine", 0.72, OF_TD, "", ""),
        ("weights", "diverged_at", 7, OF_TD | {"seed": 3}, "finite", "not shown"),
        ("layers", "layer_is_td", 0.4, OF_TD, "layer_is_td", "refuted"),
        ("layers", "converging", 0.4, OF_TD, "layer_converges", "refuted"),
        ("learning", "to_go", 0.2, OF_TD | {"tasks_seen": 5}, "converged", "refuted"),
        ("learning", "to_go", 0.2, OF_TD | {"tasks_seen": 12}, "", ""),
        *(("agreement", f"{measure}_low", end, {}, name, "not shown")
          for name, measure in AGREEMENT.items() for end in (-0.9, 0.7) if name != "same_place"),
        ("agreement", "distance_high", 0.6, {}, "same_place", "not shown"),
        ("truncation", "largest_bias", 2.1e-6, {}, "truncation", "refuted"),
    ],
)  # fmt: skip
def test_claims_are_decided_by_their_tables(table, column, value, at, names, verdict):
    """A change of the results by TD changes the verdicts on these claims only."""
    made = tables()
    found = claims_of(made | {table: changed(made[table], column, value, **at)})
    place = {"agreement": "boyan-3-4", "truncation": "boyan-3"}.get(table, TD)
    expected = dict.fromkeys((f"{name}/{place}" for name in names.split()), verdict)
    assert {name: claim.verdict for name, claim in found.items() if claim.verdict != "holds"} == expected


def test_claims_have_the_values_of_their_tables():
    made = tables()
    made["unseen_baselines"] = changed(made["unseen_baselines"], "msve", 0.1, context_length=20, method="zero")
    made["weights"] = changed(made["weights"], "cosine", 0.1, seed=3)
    found = claims_of(made)
    assert len(found) == 2 * 19 + 5 + 1
    falls, lower, zero, consistent = (
        found[f"{name}/{MC}"] for name in ("msve_falls", "msve_lower", "beats_zero", "consistent")
    )
    slope = np.mean(1 + np.arange(20) / 40)
    assert (falls.value, lower.value, zero.value) == pytest.approx((-1, -slope * np.log10(4), 1))
    assert (consistent.value, consistent.trials_hold) == (0.95, 19) and consistent.low < 0.8
    assert found["same_pattern/boyan-3-4"].value == pytest.approx(0.81)
    assert found["truncation/boyan-3"].value == pytest.approx(0.95e-6)
    assert found[f"beats_zero_by_medians/{MC}"].value == pytest.approx(np.log10(2 / 9))
    assert {name.split("/")[0] for name in found} == NAMES
    for kept, enough in (("seed == 0", False), ("context_length == 20", False), ("seed < 2", True)):
        few = made | {"unseen_msve": made["unseen_msve"].query(kept)}
        assert (f"msve_falls/{TD}" in claims_of(few)) == enough


OTHERS = {"depth": [4, 2], "states": [3, 4], "env": ["boyan", "loop"]}


@pytest.mark.parametrize("study", OTHERS)
def test_sentences_are_decided_in_the_cells_that_they_cover(study):
    """Changes in the cells of a study change only the verdicts on sentences about the study."""
    made, there = tables(**{study: OTHERS[study]}), {study: OTHERS[study][1]}
    before = decided(made)
    assert {f"{other}_pattern" for other in OTHERS} & {*before} == {f"{study}_pattern"}
    for table, column, value, name in (
        ("unseen_msve", "msve", 50.0, "msve"),
        ("mean_weights", "pattern_low", 0.1, "pattern"),
    ):
        after = decided(made | {table: changed(made[table], column, value, **there)})
        found = {other for other in after if after[other]["verdict"] != before[other]["verdict"]}
        assert f"{study}_{name}" in found and found <= {f"{study}_{name}", f"{study}_capable", "transfer"}
    kinds = {name: claim.kind for name, claim in claims_of(made).items() if name.startswith("same_noise/")}
    assert sorted(kinds.values()) == ["ours", "paper"]


def test_only_claims_are_counted_and_what_was_not_run_shows_nothing():
    made = tables()
    sentences = decided(made)
    assert counted(sentences.values()) == {"holds": 8, "not shown": 0, "refuted": 0}
    assert "in 8 sentences. By our thresholds, 8 hold;" in in_one_sentence(counted(sentences.values()))
    alone = {name: table[table["algo"] == "mc"] for name, table in made.items() if "algo" in table}
    alone["agreement"] = made["agreement"][:0]
    sentences, records = decided(made | alone), records_of(made | alone)
    assert sentences["capable"]["verdict"] == "not shown" and "noise_is_similar" not in sentences
    # The bias of truncated returns does not depend on the algorithm.
    assert sentences["bias_is_negligible"]["verdict"] == "holds"
    ((_, row),) = sentences_overview([sentences["capable"]], records).iterrows()
    assert "not tested in this run: TD</small>" in row["closest test"]
    # Nor does a test that was not made.
    lacking = sentences["capable"] | {"tests": ["beats_zero", "another"]}
    ran = [Cell(algo, *MAIN) for algo in ("mc", "td_lambda")]
    squares = verdict_chart([sentences["capable"], lacking], records, ran, MAIN)
    assert re.findall(r'<td><a class="(.*?)"', squares) == ["holds", "not-shown"] and squares.count("<td>") == 2
    # A run whose main environment is not the paper's decides no sentence.
    none = quoted.sentences.make(SimpleNamespace(claims=[], decided=[]))
    assert not len(none) and "verdict" in none


def test_sentences_are_shown_with_their_closest_test_and_what_stands_beside_it():
    made = tables()
    made["unseen_baselines"] = changed(made["unseen_baselines"], "msve", 0.1, method="constant_tuned")
    ((_, row),) = sentences_overview([decided(made)["capable"]], records_of(made)).iterrows()
    assert row["tests that hold"] == "2 of 2" and "refuted in 2 of 2" in row["closest test"]


def test_sentences_name_claims():
    assert {name for sentence in SENTENCES for name in (*sentence.tests, *sentence.beside)} <= NAMES
    assert len({sentence.name for sentence in SENTENCES}) == len(SENTENCES)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[[sentence]", "is no valid TOML"),
        ('[[sentence]]\nname = "a"', "sentence 'a': .* missing"),
        ('[[sentence]]\nname = "a"\nkind = "wish"\nsection = "S"\nparagraph = "1"\nquote = "Q"\ntests = []',
         "give a kind of"),
    ],
)  # fmt: skip
def test_errors_in_a_file_of_sentences_name_their_place(tmp_path, text, said):
    (tmp_path / "sentences.toml").write_text(text)
    with pytest.raises(ValueError, match=said):
        load_sentences(tmp_path / "sentences.toml")


def test_only_studies_that_have_run_have_links(tmp_path):
    (tmp_path / "features").mkdir()
    (tmp_path / "features/features.html").touch()
    links = re.findall('href="(.*?)"', views.studies.make(SimpleNamespace(folder=tmp_path)))
    assert "features/features.html" in links and all((tmp_path / link).exists() for link in links)


def test_other_thresholds_are_shown():
    made = tables()
    made["mean_weights"] = made["mean_weights"].assign(raw_cosine=[0.69, 0.72], pattern_low=[0.47, 0.58])
    made["agreement"] = made["agreement"].assign(correlation_low=0.73, residual_correlation_low=-0.9)
    made["weights"] = changed(made["weights"], "cosine", 0.69, algo="td", seed=3)
    results = results_of(made, {}, MAIN)
    claims_in(claims, results)
    rows = Page(views.thresholds.make(results)).rows()
    threshold, falls, pattern, same, noise, full, every = (
        " ".join(one[0] for one in row) for row in zip(*rows, strict=True)
    )
    assert (threshold, falls) == ("0 0 0 0 0", "2 2 2 2 2")
    assert (pattern, full, every) == ("2 2 1 1 0", "2 2 1 0 0", "2 2 1 1 1")
    assert (same, noise) == ("1 1 1 0 0", "0 0 0 0 0")
