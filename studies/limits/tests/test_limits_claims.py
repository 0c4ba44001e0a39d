"""Claims on made-up tables, of which each can hold and fail, figures, and the study's page."""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from drawn import numbered
from html_page import Page

from ictd.report.claim import Statements
from studies.limits import claims, figures

STUDY = Path(__file__).parents[1]
STATEMENTS = Statements(STUDY / "claims.toml")
STARTS = [("theta_td", 0), ("family", 0), *(("random", i) for i in range(4))]
STARTS += [(algo, i) for algo in ("td", "mc") for i in range(3)]


@pytest.fixture
def tables():
    """Tables on which all claims hold, but that what is outside goes in long runs."""
    place = {"env": "boyan", "states": 3}
    rows = [
        {**place, "depth": depth, "start": start, "seed": seed, "begin": 0.1, "held": 1e-15, "outside": 0.0,
         "value": 1.0 if start == "family" else 1e-15, "distance": 0.5, "along": 0.0, "rank": 20,
         "dimension": 15 if start == "family" else 35}
        for depth in (5, 30) for start, seed in STARTS
    ]  # fmt: skip
    spectra = pd.DataFrame({"number": [1, 2] * 2, "curvature": [1.0, 1e-12] * 2, "depth": [5, 5, 30, 30]})
    runs = {"run": ["td", "mc", "inside", "gain", "start"], "discount": [0.5, 0.9], "depth": [5, 10]}
    course = numbered({**runs, "seed": range(3), "tasks": [100, 400, 900]}, ["alpha"])
    course["alpha"] = 0.01 * (1 + course["alpha"] % 37)
    course["outside"] = np.exp(-3 * course["alpha"] * course["depth"] * (1 - course["discount"]))
    added = course["run"].isin(["gain", "start"])
    course["outside_norm"] = np.where(added, 0.001, 1.0)
    course["msve"] = np.where(course["run"] == "inside", 2.0, np.where(added, 0.5, 1.0))
    methods = ["lstd", "pseudo_steps", "alone", "one", "heads", "heads-5"]
    forms = numbered({"method": methods, "length": [5, 50], "group": range(4)}, [])
    forms["chosen"] = np.where(forms["method"] == "pseudo_steps", 25.0, np.nan)
    forms["msve"] = forms["method"].map({"lstd": 3.0, "pseudo_steps": 1.0}).fillna(1.1)
    kinds = ["uniform", "steps", "last_row", "rewards", "heads"]
    fits = numbered({"kind": kinds, "algo": ["td", "mc"], "seed": range(3), "length": [5, 50]}, [])
    fits["msve"], fits["k"] = np.where(fits["kind"] == "heads", 1.0, 1.05), fits["length"]
    explained = {"ridge": 0.4, "unseen": 0.6, "even": 0.5, "number": 0.9, "chain": 0.95}
    fits = fits.assign(lstd=3.0, pseudo_steps=1.0, **explained)
    for kind in claims.SHIFTS:
        fits[kind] = np.where(fits["kind"] == kind, 1.0, 0.0)
    descents = pd.DataFrame(rows)
    return {"descents": descents, "spectra": spectra.assign(**place), "course": course, "forms": forms, "fits": fits}


def verdicts(of):
    """Verdicts of the claims by their kinds."""
    made = [*claims.descents(STATEMENTS, of["descents"]), *claims.course(STATEMENTS, of["course"], 400)]
    made += claims.shrinking(STATEMENTS, of["forms"], of["fits"])
    found = {}
    for claim in made:
        found.setdefault(claim.id.split("/")[0].partition(",")[0], set()).add(claim.verdict)
    return found


GOES = {"outside_goes", "norm_goes"}


def test_claims_that_hold(tables):
    found = verdicts(tables)
    assert found.keys() == STATEMENTS.tables.keys()
    assert {name for name, said in found.items() if said == {"holds"}} == found.keys() - GOES
    tables["course"].loc[tables["course"]["tasks"] == 900, ["outside", "outside_norm"]] *= 1e-6
    assert all(verdicts(tables)[name] == {"holds"} for name in GOES)


def of_start(t, column, value, *starts):
    return t.assign(**{column: t[column].mask(t["start"].isin(starts), value)})


@pytest.mark.parametrize(
    ("table", "change", "fails"),
    [
        ("descents", lambda t: t.assign(outside=0.1), {"nothing_outside"}),
        ("descents", lambda t: t.assign(distance=0.01), {"distinct"}),
        ("descents", lambda t: t.assign(rank=35), {"flat_as_the_family"}),
        ("descents", lambda t: t.assign(along=0.1), {"flat_along_the_family"}),
        ("descents", lambda t: t.assign(held=1.0), {"below_pretrained"}),
        ("descents", lambda t: of_start(t, "value", 1.0, "random"), {"starts_reach"}),
        ("descents", lambda t: of_start(t, "value", 1e-15, "family"), {"lower_off_the_family"}),
        ("course", lambda t: t.assign(outside=np.exp(-t["alpha"] * t["depth"])), {"one_curve", "product_tells"}),
        ("course", lambda t: t.assign(outside_norm=1.0), {"gain_removes", "start_removes"}),
        ("course", lambda t: t.assign(msve=1.0), {"gain_lowers", "start_lowers", "inside_costs", "inside_costs_later"}),
        ("forms", lambda t: t.assign(msve=t["msve"].replace(1.1, 2.9)), {"closes"}),
        ("fits", lambda t: t.assign(msve=2.9), {"trained_closes", "second_head_helps"}),
        ("fits", lambda t: t.assign(number=0.5), {"number_explains"}),
        ("fits", lambda t: t.assign(even=0.95), {"number_explains"}),
        ("fits", lambda t: t.assign(k=5.0), {"number_grows"}),
        ("fits", lambda t: t.assign(rewards=0.1), {"follows"}),
        ("fits", lambda t: t.assign(steps=t["steps"] - 3 * t["rewards"]), {"follows"}),
    ],
)
def test_claims_that_fail(tables, table, change, fails):
    found = verdicts({**tables, table: change(tables[table])})
    assert {name for name, said in found.items() if "fails" in said} - GOES == fails


def test_no_claim_is_made_of_too_little(tables):
    course = tables["course"].query("tasks == 100 and discount == 0.9")
    one = {**tables, "course": course, "fits": tables["fits"].query("length == 5")}
    missing = {"one_curve", "product_tells", "outside_goes", "norm_goes", "inside_costs_later", "number_grows"}
    assert verdicts(tables).keys() - verdicts(one).keys() == missing


def test_figures_draw_what_tables_say(tables):
    figures.minimisers(tables["descents"], tables["spectra"])
    figure = figures.course(tables["course"].assign(theta=1.0, preconditioner=1.0, gain=1.0))
    rows = tables["course"].query("run == 'td' and discount == 0.9 and tasks == 400")
    for axes, share in ((figure.axes[1], 0.1), (figure.axes[4], 1)):
        np.testing.assert_allclose(axes.lines[1].get_xdata(), share * rows["alpha"] * rows["depth"])
        np.testing.assert_allclose(axes.lines[1].get_ydata(), rows["outside"])
    figure = figures.forms(tables["forms"], tables["fits"])
    np.testing.assert_allclose([line.get_ydata()[0] for line in figure.axes[0].lines][:4], [3.0, 1.1, 1.1, 1.1])
    assert [list(line.get_ydata()) for line in figure.axes[1].lines][:2] == [[25.0, 25.0], [5.0, 50.0]]
    plt.close("all")


@pytest.mark.slow
def test_the_study_is_made_as_a_page(under_conda):
    page = Page(under_conda / "results-smoke/limits/limits.html")
    assert page.headings[:2] == ["Limits", "Answer"] and not page.outside and len(page.images) == 3
    for caption in STUDY.glob("captions/*.rst"):
        assert caption.read_text().strip() in page.text
    course = pd.read_csv(under_conda / "results-smoke/limits/course.csv")
    assert np.isfinite(course["msve"]).all()
