"""Claims on made-up results, figures, tables, and the study's page."""

import itertools
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest
from html_page import Page

from ictd.report.claim import Statements
from ictd.report.tables import load_table, rows_with
from ictd.storage import save_arrays
from studies.control import figures, pages
from studies.control.claims import check_control, main
from studies.control.grid import PLACE
from studies.control.measured import Offline, Online

STUDY = Path(__file__).parents[1]
MAIN = {
    "family": "dirichlet",
    "states": 4,
    "actions": 2,
    "depth": 6,
    "discount": 0.9,
    "algo": "td",
    "policies": "both",
    "prompts": "sampled",
    "tasks": 100,
}
CHANGES = {
    "td": {"tasks": 300},
    "mc": {"algo": "mc"},
    "layers_3": {"depth": 3},
    "soft": {"policies": "soft"},
    "greedy": {"policies": "greedy"},
    "boyan": {"family": "boyan"},
    "paper_td": {"prompts": "enumerated"},
}
VARIANTS = {name: MAIN | changes for name, changes in CHANGES.items()}
PLACES = {
    name: {key: (MAIN | changes)[key] for key in PLACE}
    for name, changes in (("home", {}), ("boyan", {"family": "boyan"}))
}
PROCESSES, LENGTHS, ITERATIONS = 30, [5, 20], 3
# Mean value of the last policy of each control experiment, minus that of the method.
CONTROL_GAINS = {
    "exact_seen": 0.0,
    "exact_unseen": 0.1,
    "exact_as_seen": -0.05,
    "exact_as_unseen": -0.05,
    "random_error": -0.1,
    "random_advantage": 0.2,
    "aligned_advantage": 0.05,
    "random_sign": 0.05,
    "quarter_error": 0.35,
    "half_error": 0.33,
}
# Mean values of last policies with which all claims on shares hold that can hold together; the optimum is 1.
VALUES = {
    "lspi": 0.4,
    "lspi_mean": 0.4,
    "smoothed": 0.4,
    "theta_td": 0.4,
    "td": 0.6,
    "mc": 0.5,
    "layers_3": 0.5,
    "soft": 0.5,
    "greedy": 0.5,
    "boyan": 0.5,
    "paper_td": 0.2,
    "td pseudo_counts": 0.7,
    **{f"td {kind}": 0.6 + gain for kind, gain in CONTROL_GAINS.items()},
    **{f"smoothed {kind}": 0.4 + gain for kind, gain in CONTROL_GAINS.items()},
}


def numbers_of_tasks(method, place):
    """Numbers of tasks after which a method is evaluated in a place."""
    variant = method.split()[0]
    if variant not in VARIANTS:
        return [0]
    if method == "td" and place == "home":
        return [100, 300]
    if method == "boyan" and place == "boyan":
        return [100]
    return [VARIANTS[variant]["tasks"]]


def save_offline(path, place="home", values=(), changes=0.0, error=1.0, first_gain=0.2, cosine=-0.5):
    """Save made-up results of a place.

    ``values`` replaces some of VALUES.  ``error`` is the squared error of Transformers, where that of baselines is 2.
    ``first_gain`` is what iterations after the first add to the mean value.
    """
    rng = np.random.default_rng(0)

    def noise():
        return 1e-3 * rng.normal(size=PROCESSES)

    values = VALUES | ({"boyan": 0.65} if place == "boyan" else {}) | dict(values)
    rows = []
    for method, value in values.items():
        pretrained = method.split()[0] in VARIANTS
        for seed, tasks in itertools.product(range(3 if pretrained else 1), numbers_of_tasks(method, place)):
            last_value = value + (0.02 if tasks == 300 else 0)
            mean_value = np.full((len(LENGTHS), ITERATIONS + 1, PROCESSES), last_value) + noise()
            mean_value[:, 0] = 0
            mean_value[:, 1] -= first_gain
            errors = (
                np.full((len(LENGTHS), PROCESSES), error if pretrained and "paper" not in method else 2.0) + noise()
            )
            rows.append(
                {
                    "method": method,
                    "seed": seed,
                    "tasks": tasks,
                    "parameter": np.full(len(LENGTHS), 2.5 if method == "lspi" else 0.0),
                    "at_grid_end": np.array([True, False]),
                    "mean_value": mean_value,
                    "cosine": errors * cosine,
                    "changes": np.full((len(LENGTHS), PROCESSES), changes),
                    "error": errors,
                    "advantage_error": errors,
                }
            )
    run = {
        "run_transition": np.full((4, 2, 4), 0.25),
        "run_optimal": np.ones((4, 2)),
        "run_kind": 2,
        "run_share": np.array([0.5, 0.25, -0.5]),
        "run_q": rng.normal(size=(3, 4, 2)),
        "run_exact": rng.normal(size=(3, 4, 2)),
    }
    arrays = {name: np.stack([row[name] for row in rows]) for name in rows[0]}
    save_arrays(path, **arrays, context_lengths=np.array(LENGTHS), optimal=np.ones(PROCESSES), **run)
    return path


def save_online(path, td=1.0, others=2.0):
    """Save made-up regrets."""
    rng = np.random.default_rng(0)
    rows = []
    for method, rule, seed in itertools.product(["td", "smoothed", "posterior"], ["epsilon", "optimistic"], range(3)):
        if method == "posterior" and rule == "optimistic":
            continue
        last = (td if method == "td" else others) * (1 + 0.01 * rng.random((PROCESSES, 1)))
        regret = last * np.array([0.2, 0.6, 1])
        rows.append({"method": method, "rule": rule, "seed": seed, "choices": "0.1, 3*", "regret": regret})
    arrays = {name: np.stack([row[name] for row in rows]) for name in rows[0]}
    save_arrays(path, **arrays, steps=np.array([1, 5, 9]))
    return path


def verdicts(folder, offline=None, **online):
    """Lists of whether a claim holds in each setting, by its name; arguments change the made-up results."""
    results = {place: Offline(save_offline(folder / f"{place}.npz", place, **(offline or {}))) for place in PLACES}
    acting = Online(save_online(folder / "online.npz", **online))
    by_name = {}
    for claim in check_control(Statements(STUDY / "claims.toml"), results, acting, VARIANTS, PLACES):
        by_name.setdefault(claim.id.split("/")[0], []).append(claim.verdict == "holds")
    return by_name


def holding(by_name):
    return {name for name, verdicts in by_name.items() if all(verdicts)}


def failing(by_name):
    return {name for name, verdicts in by_name.items() if not any(verdicts)}


# Claims that hold together.
ALL = {
    f"{name}, {over}"
    for over in ("processes", "seeds")
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


def test_all_claims_on_gains_can_hold(tmp_path):
    by_name = verdicts(tmp_path)
    assert ALL - holding(by_name) == set()
    opposite = {f"behind_{other}" for other in ("lspi", "smoothed", "paper_td")}
    opposite |= {"behind_smoothed_once", "iterations_hurt", "plain_more_regret_smoothed"}
    assert {f"{name}, processes" for name in opposite} <= failing(by_name)


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        # td and mc at home, and boyan in its place, at two lengths.
        ("beats_lspi, processes", 6),
        ("beats_paper_td, seeds", 6),
        ("transfers, processes", 4),
        ("own_over_other, seeds", 4),
        ("iterations_over_layers, seeds", 2),
        ("plain_less_regret_smoothed, seeds", 2),
    ],
)
def test_claims_are_decided_in_all_settings(tmp_path, name, settings):
    assert len(verdicts(tmp_path)[name]) == settings


def of_controls(kind, value):
    """Replace the values of a control experiment, for both methods."""
    return {"values": {f"{name} {kind}": value for name in ("td", "smoothed")}}


# Claims that can fail with another one, because they compare the same methods.
RELATED = {
    "own_over_other",
    "transfers",
    "beats_lspi",
    "random_advantage_over_own",
    "random_sign_over_own",
    "aligned_over_own",
    "half_loses_less",
    "random_advantage_over_aligned",
}


@pytest.mark.parametrize(
    ("changes", "fails"),
    [
        ({"values": {"smoothed": 0.9}}, {"beats_smoothed", "pseudo_steps_over_smoothed"}),
        ({"values": {"lspi": 0.9}}, {"beats_lspi", "transfers"}),
        ({"values": {"lspi_mean": 0.9}}, {"beats_lspi_mean"}),
        ({"values": {"theta_td": 0.9}}, {"beats_theta_td"}),
        ({"values": {"paper_td": 0.9}}, {"beats_paper_td", "beats_paper_td_at_equal_tasks"}),
        ({"values": {"layers_3": 0.9}}, {"deeper"}),
        ({"values": {"mc": 0.9}}, {"td_over_mc"}),
        ({"values": {"soft": 0.9}}, {"both_over_soft"}),
        ({"values": {"greedy": 0.9}}, {"both_over_greedy"}),
        ({"values": {"td pseudo_counts": 0.3}}, {"pseudo_steps_help", "pseudo_steps_over_smoothed"}),
        (of_controls("random_error", 0.9), {"own_over_random_error"}),
        (of_controls("random_advantage", 0.1), {"random_advantage_over_own"}),
        (of_controls("random_sign", 0.1), {"random_sign_over_own"}),
        (of_controls("aligned_advantage", 0.1), {"aligned_over_own"}),
        (of_controls("aligned_advantage", 0.9), {"random_advantage_over_aligned"}),
        (of_controls("half_error", 0.65), {"half_loses_less"}),
        (of_controls("exact_as_unseen", 0.9), {"unseen_over_as_many"}),
        (of_controls("exact_as_seen", 0.9), {"seen_over_as_many"}),
        ({"cosine": 0.5}, {"shrinks"}),
        ({"first_gain": -0.3}, {"iterations_help", "iterations_over_layers"}),
        ({"changes": 0.2}, {"settles"}),
        ({"error": 3.0}, {"lower_error_lspi", "lower_advantage_error_lspi"}),
    ],
)
def test_all_claims_on_gains_can_fail(tmp_path, changes, fails):
    failed = ALL - holding(verdicts(tmp_path, changes))
    assert {f"{name}, processes" for name in fails} <= failed
    assert {name.split(", ")[0] for name in failed} - fails <= RELATED


def test_claims_on_losses_can_hold(tmp_path):
    assert "iterations_hurt, processes" in holding(verdicts(tmp_path, {"first_gain": -0.3}))
    by_name = verdicts(tmp_path, td=3.0)
    assert {"plain_less_regret_smoothed, processes", "plain_less_regret_posterior, seeds"} <= failing(by_name)
    assert {"plain_more_regret_smoothed, processes", "plain_more_regret_posterior, seeds"} <= holding(by_name)


def test_shares_are_relative_to_the_uniform_and_the_optimal_policy(tmp_path):
    home = Offline(save_offline(tmp_path / "home.npz"))
    assert home.share("td", 0).mean() == 0 and home.share("td").shape == (3, 2, PROCESSES)
    assert home.share("td").mean() == pytest.approx(0.62, abs=0.01)
    assert home.share("td", 1).mean() == pytest.approx(0.42, abs=0.01)
    assert home.task_counts("td") == [100, 300]
    assert home.share("td", tasks=100).mean() == pytest.approx(0.6, abs=0.01)


@pytest.fixture
def files(tmp_path):
    """Files of all places, and of acting."""
    offline = [save_offline(tmp_path / f"{place}.npz", place) for place in PLACES]
    return offline, save_online(tmp_path / "online.npz")


def test_all_figures_are_written(tmp_path, files):
    figures.main(VARIANTS, *files, tmp_path / "figures")
    names = {path.stem for path in (tmp_path / "figures").glob("*.png")}
    assert names == {"offline", "limits", "variants", "regret", "run"}
    plt.close("all")


def test_lines_are_means_over_seeds_and_processes(files):
    home = Offline(files[0][0])
    line = figures.Line(LENGTHS, home.share("td"), ("TD", "#000000", "-"))
    figure = figures.lines([figures.Panel([line], {})])
    np.testing.assert_allclose(figure.axes[0].lines[0].get_ydata(), home.share("td").mean((0, 2)))
    plt.close("all")


def test_boxes_of_the_run_have_the_values_of_actions(files):
    arrays = Offline(files[0][0]).arrays
    figure = figures.run(arrays)
    boxes = [text.get_text() for axes in figure.axes for text in axes.texts if "(" in text.get_text()]
    assert len(boxes) == 12 and all(box.count("►") == 1 for box in boxes)
    q, exact = arrays["run_q"][0, 0], arrays["run_exact"][0, 0]
    assert all(f"{estimated:.1f} ({true:.1f})" in boxes[0] for estimated, true in zip(q, exact, strict=True))
    plt.close("all")


def test_tables_have_means_and_intervals(tmp_path, files):
    main(STUDY / "claims.toml", VARIANTS, PLACES, *files, tmp_path / "claims.json")
    pages.main(tmp_path / "claims.json", *files, tmp_path / "tables")
    measures, regrets = (load_table(tmp_path / f"tables/{name}.csv") for name in ("measures", "regrets"))
    assert set(regrets["choices"]) == {"0.1, 3*"} and len(regrets) == 6
    lspi = rows_with(measures, place="home", method="lspi")
    assert lspi[["parameter", "at_grid_end"]].values.tolist() == [[2.5, True], [2.5, False]]
    assert rows_with(measures, place="home", method="td", m=5)["tasks"].tolist() == [100, 300]
    row = rows_with(measures, place="home", method="td pseudo_counts", m=5).iloc[0]
    assert row["share_low"] <= row["share"] <= row["share_high"] and row["share"] == pytest.approx(0.72, abs=0.01)
    assert row["share_once"] == pytest.approx(0.52, abs=0.01) and row["changes"] == 0


@pytest.mark.slow
def test_the_page_has_all_figures_and_captions(under_conda):
    page = Page(under_conda / "results-smoke/control/control.html")
    assert page.headings[0] == "Control in context" and not page.outside and len(page.images) == 5
    for caption in STUDY.glob("captions/*.rst"):
        assert caption.read_text().strip() in page.text
