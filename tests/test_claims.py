"""Claims: decisions by a statistic, records of claims, and the words for verdicts."""

import numpy as np
import pytest

from ictd.report.claim import Trials, as_records, claim
from ictd.report.claim_tables import claims_overview, claims_rows
from ictd.report.verdicts import closest, in_words, measured, outcome, overall, verdict_by, verdict_in_words
from ictd.statistics import Estimate, bootstrap_mean


def made(*pairs, relation=">", threshold=1, exact=False):
    """The claims of a function that yields the pairs."""

    @claim(relation, threshold, exact=exact, section="S", shown="figure_01")
    def more(values):
        """There is more of it, $x_{i}$, and the statement
        goes on.

        Its number.
        """
        yield from values

    return more.decide(pairs)


@pytest.mark.parametrize(
    ("relation", "samples", "verdict", "trials"),
    [
        (">", np.arange(2.0, 9.0), "holds", 7),
        ("<", np.arange(2.0, 9.0), "refuted", 0),
        ("<", np.arange(-3.0, 4.0), "not shown", 4),
        (">", np.array([1.0, 2.0, np.nan]), "not shown", 1),
    ],
)
def test_trials_are_decided_by_the_whole_interval_and_counted(relation, samples, verdict, trials):
    (one,) = made((("td", 5), Trials(samples)), relation=relation)
    np.testing.assert_equal((one.value, one.low, one.high), bootstrap_mean(samples).estimate())
    assert (one.id, one.verdict, one.trials, one.trials_hold) == ("more/td-5", verdict, len(samples), trials)
    assert (one.statement, one.statistic) == ("There is more of it, $x_{i}$, and the statement goes on.", "its number")
    assert made(("td", Trials(samples[:1]))) == []
    others = made(("td", Trials(samples), [0, 5]), ("a", 2, [0, 5]))
    assert [(other.trials, other.trials_hold) for other in others] == [(2, 1), (2, 1)]


@pytest.mark.parametrize(
    ("value", "low", "high", "below", "above"),
    [
        (0.5, None, None, "holds", "refuted"),
        (1.0, None, None, "refuted", "refuted"),
        (np.inf, None, None, "refuted", "holds"),
        (np.nan, None, None, "not shown", "not shown"),
        (None, None, None, "not shown", "not shown"),
        (0.5, 0.2, 0.9, "holds", "refuted"),
        (0.5, 0.2, 1.0, "not shown", "not shown"),
        (0.5, np.nan, np.nan, "not shown", "not shown"),
        (1.5, 1.1, 1.7, "refuted", "holds"),
    ],
)
def test_the_three_verdicts(value, low, high, below, above):
    assert (verdict_by("<", 1, value, low, high), verdict_by(">", 1, value, low, high)) == (below, above)


@pytest.mark.parametrize(("exact", "verdict"), [(True, "holds"), (False, "not shown")])
def test_a_number_without_an_interval_decides_only_if_it_is_exact(exact, verdict):
    claims = made(("a", 2), ("b", Estimate(2, 1.5, 3)), exact=exact)
    assert [one.verdict for one in claims] == [verdict, "holds"]


def test_the_verdict_of_several_parts():
    parts = [["holds"], ["holds", "not shown"], ["holds", "not shown", "refuted"], []]
    assert [*map(overall, parts)] == ["holds", "not shown", "refuted", "not shown"]


@pytest.mark.parametrize(("sign", "verdict"), [(1, "holds"), (-1, "refuted")])
def test_verdicts_are_corrected_for_multiple_testing(sign, verdict):
    rng = np.random.default_rng(1)
    claims = made(*(((k,), Trials(rng.normal(1 + sign * (3 if k == 0 else 0), 1, 20))) for k in range(40)))
    records = as_records(claims)
    tail = {one["id"]: min(one["p"], 1 - one["p"]) for one in records}
    assert records[0]["verdict"] == records[0]["corrected"] == verdict and tail[records[0]["id"]] < 1e-3
    decided = [one for one in records[1:] if one["verdict"] == verdict]
    assert decided and all(tail[one["id"]] < 0.03 and one["corrected"] == "not shown" for one in decided)
    (alone,) = as_records([claims[int(decided[0]["setting"])]])
    assert alone["corrected"] == verdict


def test_records_have_no_number_that_is_not_finite():
    records = as_records(made(("a", Estimate(2, 1.5, np.nan)), ("b", np.nan), ("c", np.inf), exact=True))
    assert [(one["value"], one["low"], one["high"]) for one in records] == [(2, 1.5, None), *[(None, None, None)] * 2]
    assert [one["verdict"] for one in records] == ["not shown", "not shown", "holds"]
    said = "not shown in 2 of 3 settings: a (2); b (not finite)"
    assert claims_overview(records)["verdict"].tolist() == [said]


def claimed(setting, value, low=None, high=None, **more):
    (record,) = as_records(made((setting, Estimate(value, low, high))))
    return record | more


PLACE, OTHER = claimed("td-loop-3-4", 2.0), claimed("boyan-5", 0.25)
BETWEEN = claimed("boyan-3", 1.25, 0.5, 2)
SHARE = claimed("boyan-3", 0.508, 0.499, 0.515, id="pattern/boyan-3", threshold=0.5)


def to_zero(value, *ends):
    return claimed("boyan-3", value, *ends, unit="zero")


@pytest.mark.parametrize(
    ("show", "given", "said"),
    [
        (verdict_in_words, [PLACE, OTHER], "refuted in 1 of 2 cells: Boyan's chain, n = 5 (0.25)"),
        (verdict_in_words, [BETWEEN, PLACE], "not shown in 1 of 2 settings: Boyan's chain, n = 3 (1.25, 0.5 to 2)"),
        (verdict_in_words, [PLACE, PLACE | {"corrected": "not shown"}],
         "holds in all 2 cells; it holds in 1 after correction for multiple testing"),
        (in_words, "circulant-td-loop-5-30", "circulant, TD, Loop, n = 5, L = 30"),
        (in_words, "td-my_ring-3-30-each step-20 steps", "TD, my ring, n = 3, L = 30, each step, 20 steps"),
        (measured, claimed("boyan-3", 0.85, 0.621, 0.968, unit="%"), "85%, 62% to 97%"),
        (measured, to_zero(np.log10(1.24), np.log10(1.11), np.log10(1.37)), "24% worse than zero, 11% to 37%"),
        (measured, to_zero(np.log10(0.2), np.log10(0.1), np.log10(0.3)), "80% better than zero, 70% to 90%"),
        (measured, to_zero(np.log10(1.24), np.log10(0.9), np.log10(1.5)), "1.24 times as bad as zero, 0.9 to 1.5"),
        (outcome, SHARE, "squared cosine of the mean A and theta^TD: 0.508, 0.499 to 0.515; needs > 0.5"),
        (outcome, SHARE | {"unit": "%", "id": "new_test/boyan-3"}, "new test: 51%, 50% to 52%; needs > 50%"),
    ],
)  # fmt: skip
def test_verdicts_settings_and_values_in_words(show, given, said):
    assert show(given) == said


def test_the_closest_claim_has_the_worst_verdict_and_the_least_distance():
    far, near, zero = claimed("a", 9.0, 8, 10), claimed("b", 7.0, 1.5, 10), claimed("c", 0.3, threshold=0)
    between, wrong = claimed("d", 1.0, 0.5, 2), claimed("e", 0.9, 0.8, 0.95)
    assert closest([far, near]) is near and closest([far, near, zero]) is zero
    assert closest([far, between, near]) is between and closest([between, wrong, far]) is wrong
    assert closest([claimed("f", -5.0, -9, -1), wrong])["setting"] == "f"
    below = claimed("g", 0.25, relation="<", threshold=0.5, verdict="holds")
    assert closest([below, below | {"value": 0.4, "setting": "h"}])["setting"] == "h"


def test_overview_counts_verdicts_and_names_claims_that_do_not_hold():
    trials = {"id": "a/td-boyan-3-4", "kind": "paper", "statement": "A", "trials": 20, "trials_hold": 17}
    records = [
        claimed("td-boyan-3-4", 2.0, kind="ours", statement="C"),
        claimed("td-boyan-3-4", None, **trials),
        claimed("mc-boyan-3-4", 3.5, 3, 4, **trials),
    ]
    overview = claims_overview(records)
    assert overview["claim"].tolist() == ["A", "C"] and overview["trials"].tolist() == ["34 of 40", ""]
    measured = "<b>3.5</b>, 1 not finite (intervals from 3 to 4); needs &gt; 1"
    assert overview["measured"][0].startswith(measured) and 'href="#rows-a"' in overview["see"][0]
    rows = claims_rows(records)
    assert rows.count('<div id="rows-') == 2 and ">not finite</td>" in rows
    assert '<span id="row-a-td-boyan-3-4">TD, Boyan\'s chain, n = 3, L = 4</span>' in rows
