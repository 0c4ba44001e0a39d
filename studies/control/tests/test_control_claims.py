"""Claims on made-up measurements, of which each can hold and fail, and what figures draw of them."""

import itertools
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest
from html_page import Page

from ictd.report.claim import Statements
from ictd.storage import load_table, rows_with, save_arrays
from studies.control import figures, pages
from studies.control.claims import check_control, main
from studies.control.grid import LIMITS
from studies.control.measured import Offline, Online

STUDY = Path(__file__).parents[1]
MAIN = {
    "family": "dirichlet", "states": 4, "actions": 2, "depth": 6, "discount": 0.9, "algo": "td", "policies": "both",
    "prompts": "sampled", "tasks": 100,
}  # fmt: skip
VARIANTS = {"td": MAIN | {"tasks": 300}} | {
    name: MAIN | change
    for name, change in {
        "mc": {"algo": "mc"}, "layers_3": {"depth": 3}, "soft": {"policies": "soft"}, "greedy": {"policies": "greedy"},
        "boyan": {"family": "boyan"}, "paper_td": {"prompts": "enumerated", "tasks": 100},
    }.items()
}  # fmt: skip
KEYS = ("family", "states", "actions", "discount")
PLACES = {"home": {key: MAIN[key] for key in KEYS}, "boyan": {key: (MAIN | {"family": "boyan"})[key] for key in KEYS}}
N, LENGTHS, K = 30, [5, 20], 3
# What each control is worth more than the method.
MORE = [0.0, 0.1, -0.05, -0.05, -0.1, 0.2, 0.05, 0.05, 0.35, 0.33]
# Values of last policies, by which all claims on shares hold that can hold together; the optimum's is 1.
WORTH = {
    "lspi": 0.4, "lspi_mean": 0.4, "smoothed": 0.4, "theta_td": 0.4, "td": 0.6, "mc": 0.5, "layers_3": 0.5, "soft": 0.5,
    "greedy": 0.5, "boyan": 0.5, "paper_td": 0.2, "td pseudo_steps": 0.7,
    **{f"{name} {kind}": worth for name, own in (("td", 0.6), ("smoothed", 0.4))
       for kind, worth in zip(LIMITS, own + np.array(MORE), strict=True)},
}  # fmt: skip


def measured(path, place="home", worth=(), changes=0.0, error=1.0, first=0.2, cosine=-0.5):
    """A file of a place, with what is changed of it."""
    rows, rng = [], np.random.default_rng(0)
    of_place = WORTH | ({"boyan": 0.65} if place == "boyan" else {}) | dict(worth)
    for method, value in of_place.items():
        trained = method.split()[0] in VARIANTS
        counts = [VARIANTS[method.split()[0]]["tasks"]] if trained else [0]
        if method == ("td" if place == "home" else "boyan"):
            counts = [100, *([300] if method == "td" else [])]
        for seed, tasks in itertools.product(range(3 if trained else 1), counts):
            one = np.full((len(LENGTHS), K + 1, N), value + (tasks == 300) * 0.02) + 1e-3 * rng.normal(size=N)
            one[:, 0], one[:, 1] = 0, one[:, 1] - first
            ours = trained and "paper" not in method
            mine = np.full((len(LENGTHS), N), error if ours else 2.0) + 1e-3 * rng.normal(size=N)
            rows.append({
                "method": method, "seed": seed, "tasks": tasks,
                "parameter": np.full(len(LENGTHS), 2.5 * (method == "lspi")), "at_end": np.array([True, False]),
                "worth": one, "cosine": mine * cosine,
                "changes": np.full((len(LENGTHS), N), changes), "error": mine, "advantage_error": mine,
            })  # fmt: skip
    run = {
        "run_transition": np.full((4, 2, 4), 0.25), "run_optimal": np.ones((4, 2)),
        "run_kind": 2, "run_share": np.array([0.5, 0.25, -0.5]), "run_q": rng.normal(size=(3, 4, 2)),
        "run_exact": rng.normal(size=(3, 4, 2)),
    }  # fmt: skip
    arrays = {name: np.stack([row[name] for row in rows]) for name in rows[0]}
    save_arrays(path, **arrays, context_lengths=np.array(LENGTHS), optimal=np.ones(N), **run)
    return path


def acted(path, ours=1.0, others=2.0):
    rows, rng = [], np.random.default_rng(0)
    for method, rule, seed in itertools.product(["td", "smoothed", "posterior"], ["epsilon", "optimistic"], range(3)):
        if method != "posterior" or rule == "epsilon":
            last = (ours if method == "td" else others) * (1 + 0.01 * rng.random((N, 1)))
            row = {"method": method, "rule": rule, "seed": seed, "choices": "0.1, 3*"}
            rows.append(row | {"regret": last * np.array([0.2, 0.6, 1])})
    save_arrays(path, **{name: np.stack([row[name] for row in rows]) for name in rows[0]}, steps=np.array([1, 5, 9]))
    return path


def holding(folder, changes=None, **online):
    """Names of claims that hold everywhere, and of those that hold nowhere."""
    files = {place: measured(folder / f"{place}.npz", place, **(changes or {})) for place in PLACES}
    of = {place: Offline(path) for place, path in files.items()}
    found = check_control(
        Statements(STUDY / "claims.toml"), of, Online(acted(folder / "online.npz", **online)), VARIANTS, PLACES
    )
    groups = {}
    for claim in found:
        groups.setdefault(claim.id.split("/")[0], []).append(claim.verdict == "holds")
    return (
        {name for name, one in groups.items() if all(one)},
        {name for name, one in groups.items() if not any(one)},
        groups,
    )


BOTH = ("processes", "seeds")
EVERY = {
    f"{name}, {over}"
    for over in BOTH
    for name in (
        "beats_lspi beats_lspi_mean beats_smoothed beats_theta_td beats_paper_td lower_error_lspi"
        " lower_advantage_error_lspi settles deeper more_tasks td_over_mc both_over_soft both_over_greedy"
        " transfers own_over_other iterations_help iterations_over_layers own_over_random_error"
        " random_advantage_over_own random_sign_over_own aligned_over_own random_advantage_over_aligned"
        " shrinks half_loses_less unseen_over_as_many seen_over_as_many beats_paper_td_at_equal_tasks"
        " pseudo_steps_help pseudo_steps_over_smoothed"
        " plain_less_regret_smoothed plain_less_regret_posterior"
    ).split()
}


def test_claims_that_hold(tmp_path):
    hold, fail, groups = holding(tmp_path)
    # Yardsticks have no seeds, and beside one another nothing to be decided by them.
    assert EVERY - hold == set()
    assert {f"behind_{other}, processes" for other in ("lspi", "smoothed", "paper_td")} <= fail
    assert {f"{name}, processes" for name in ("behind_smoothed_once", "iterations_hurt")} <= fail
    assert "plain_more_regret_smoothed, processes" in fail
    # td and mc at home, boyan in its place, two lengths.
    assert len(groups["beats_lspi, processes"]) == 6 and len(groups["beats_paper_td, seeds"]) == 6
    assert len(groups["transfers, processes"]) == 4 and len(groups["own_over_other, seeds"]) == 4
    assert len(groups["iterations_over_layers, seeds"]) == 2 and len(groups["plain_less_regret_smoothed, seeds"]) == 2


@pytest.mark.parametrize(
    ("change", "fails"),
    [
        ({"worth": {"smoothed": 0.9}}, {"beats_smoothed", "pseudo_steps_over_smoothed"}),
        ({"worth": {"lspi": 0.9}}, {"beats_lspi", "transfers"}),
        ({"worth": {"lspi_mean": 0.9}}, {"beats_lspi_mean"}),
        ({"worth": {"theta_td": 0.9}}, {"beats_theta_td"}),
        ({"worth": {"paper_td": 0.9}}, {"beats_paper_td", "beats_paper_td_at_equal_tasks"}),
        ({"worth": {"layers_3": 0.9}}, {"deeper"}),
        ({"worth": {"mc": 0.9}}, {"td_over_mc"}),
        ({"worth": {"soft": 0.9}}, {"both_over_soft"}),
        ({"worth": {"greedy": 0.9}}, {"both_over_greedy"}),
        ({"worth": {"td pseudo_steps": 0.3}}, {"pseudo_steps_help", "pseudo_steps_over_smoothed"}),
        ({"worth": {f"{name} random_error": 0.9 for name in ("td", "smoothed")}}, {"own_over_random_error"}),
        ({"worth": {f"{name} random_advantage": 0.1 for name in ("td", "smoothed")}}, {"random_advantage_over_own"}),
        ({"worth": {f"{name} random_sign": 0.1 for name in ("td", "smoothed")}}, {"random_sign_over_own"}),
        ({"worth": {f"{name} aligned_advantage": 0.1 for name in ("td", "smoothed")}}, {"aligned_over_own"}),
        (
            {"worth": {f"{name} aligned_advantage": 0.9 for name in ("td", "smoothed")}},
            {"random_advantage_over_aligned"},
        ),
        ({"worth": {f"{name} half_error": 0.65 for name in ("td", "smoothed")}}, {"half_loses_less"}),
        ({"worth": {f"{name} exact_as_unseen": 0.9 for name in ("td", "smoothed")}}, {"unseen_over_as_many"}),
        ({"worth": {f"{name} exact_as_seen": 0.9 for name in ("td", "smoothed")}}, {"seen_over_as_many"}),
        ({"cosine": 0.5}, {"shrinks"}),
        ({"first": -0.3}, {"iterations_help", "iterations_over_layers"}),
        ({"changes": 0.2}, {"settles"}),
        ({"error": 3.0}, {"lower_error_lspi", "lower_advantage_error_lspi"}),
    ],
)
def test_claims_that_fail(tmp_path, change, fails):
    hold, *_ = holding(tmp_path, change)
    assert {f"{name}, processes" for name in fails} <= EVERY - hold
    others = {name.split(", ")[0] for name in EVERY - hold} - fails
    of_own = {"random_advantage_over_own", "random_sign_over_own", "aligned_over_own", "half_loses_less",
              "random_advantage_over_aligned"}  # fmt: skip
    assert others <= {"own_over_other", "transfers", "beats_lspi", *of_own}


def test_claims_on_what_hurts(tmp_path):
    assert "iterations_hurt, processes" in holding(tmp_path, {"first": -0.3})[0]
    hold, fail, _ = holding(tmp_path, ours=3.0)
    assert {"plain_less_regret_smoothed, processes", "plain_less_regret_posterior, seeds"} <= fail
    assert {"plain_more_regret_smoothed, processes", "plain_more_regret_posterior, seeds"} <= hold


def test_shares_are_of_the_way(tmp_path):
    of = Offline(measured(tmp_path / "home.npz"))
    assert of.share("td", 0).mean() == 0 and of.share("td").shape == (3, 2, N)
    assert of.share("td").mean() == pytest.approx(0.62, abs=0.01)
    assert of.share("td", tasks=100).mean() == pytest.approx(0.6, abs=0.01) and of.counts("td") == [100, 300]
    assert of.share("td", 1).mean() == pytest.approx(0.42, abs=0.01)


def test_figures_and_pages(tmp_path):
    offline = [measured(tmp_path / f"{place}.npz", place) for place in PLACES]
    online = acted(tmp_path / "online.npz")
    main(STUDY / "claims.toml", VARIANTS, PLACES, offline, online, tmp_path / "claims.json")
    pages.main(tmp_path / "claims.json", offline, online, tmp_path / "tables")
    figures.main(VARIANTS, offline, online, tmp_path / "figures")
    shown = {path.stem for path in (tmp_path / "figures").glob("*.png")}
    assert shown == {"offline", "limits", "variants", "regret", "run"}
    at = Offline(offline[0])
    figure = figures.lines([([(LENGTHS, at.share("td"), ("TD", "#000000", "-"))], {})])
    np.testing.assert_allclose(figure.axes[0].lines[0].get_ydata(), at.share("td").mean((0, 2)))
    drawn = figures.run(at.arrays)
    boxes = [text.get_text() for axes in drawn.axes for text in axes.texts if "(" in text.get_text()]
    assert len(boxes) == 12 and all(box.count("►") == 1 for box in boxes)
    # By text: the values of the first state, as estimated and as they are.
    q, exact = at.arrays["run_q"][0, 0], at.arrays["run_exact"][0, 0]
    assert all(f"{one:.1f} ({true:.1f})" in boxes[0] for one, true in zip(q, exact, strict=True))
    plt.close("all")
    measures, regrets = (load_table(tmp_path / f"tables/{name}.csv") for name in ("measures", "regrets"))
    assert set(regrets["choices"]) == {"0.1, 3*"} and len(regrets) == 6
    yardstick = rows_with(measures, place="home", method="lspi")
    assert yardstick[["parameter", "at_end"]].values.tolist() == [[2.5, True], [2.5, False]]
    assert rows_with(measures, place="home", method="td", m=5)["tasks"].tolist() == [100, 300]
    one = rows_with(measures, place="home", method="td pseudo_steps", m=5).iloc[0]
    assert one["share_low"] <= one["share"] <= one["share_high"] and one["share"] == pytest.approx(0.72, abs=0.01)
    assert one["once"] == pytest.approx(0.52, abs=0.01) and one["changes"] == 0


@pytest.mark.slow
def test_the_study_is_made_as_a_page(under_conda):
    page = Page(under_conda / "results-smoke/control/control.html")
    assert page.headings[0] == "Control in context" and not page.outside and len(page.images) == 5
    for caption in STUDY.glob("captions/*.rst"):
        assert caption.read_text().strip() in page.text
