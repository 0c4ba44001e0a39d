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
LOOK = ("Transformer", "#000000", "-")
PROCESSES, LENGTHS, ITERATIONS = 30, [5, 20], 3
# Mean value of the last policy of each control experiment, minus that of the method.
CONTROL_GAINS = {
    "exact_unseen": 0.1,
    "exact_as_unseen": -0.05,
    "random_advantage": 0.2,
    "aligned_advantage": 0.05,
    "half_error": 0.33,
}
# Mean values of last policies for which all claims on shares hold; the optimum is 1.
VALUES = {
    "lspi": 0.8,
    "lspi_mean": 0.4,
    "smoothed": 0.9,
    "theta_td": 0.4,
    "rewards": 0.45,
    "td": 0.6,
    "td grouped": 0.65,
    "mc": 0.5,
    "layers_3": 0.5,
    "soft": 0.5,
    "greedy": 0.5,
    "boyan": 0.5,
    "paper_td": 0.2,
    "paper_td grouped": 0.3,
    "td pseudo_counts": 0.7,
    "td grouped pseudo_counts": 0.8,
    "paper_td pseudo_counts": 0.4,
    "paper_td grouped pseudo_counts": 0.5,
    **{f"td {kind}": 0.6 + gain for kind, gain in CONTROL_GAINS.items()},
    **{f"smoothed {kind}": 0.9 + gain for kind, gain in CONTROL_GAINS.items()},
}


def numbers_of_tasks(method, place):
    """Numbers of tasks after which a method is evaluated in a place."""
    variant = method.split()[0]
    if variant not in VARIANTS:
        return [0]
    if method in ("td", "td grouped") and place == "home":
        return [100, 300]
    if method == "boyan" and place == "boyan":
        return [100]
    return [VARIANTS[variant]["tasks"]]


def save_offline(path, place="home", values=(), changes=0.0, error=1.0, first_gain=0.2, cosine=-0.5):
    """Save made-up results of a place.

    ``values`` replaces some of VALUES.  ``error`` is the squared error of Transformers; baselines have 2.
    ``first_gain`` is the gain in mean value by the iterations after the first.
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


def save_online(path, td=3.0, others=2.0):
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


def test_all_claims_can_hold_and_have_a_statement(tmp_path):
    by_name = verdicts(tmp_path)
    assert holding(by_name) == set(by_name) == set(Statements(STUDY / "claims.toml").tables)
    assert len(by_name) <= 12


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        # td in two formats and mc at home, and boyan in its place, at two lengths.
        ("behind_lspi", 8),
        ("behind_smoothed", 8),
        ("beats_rewards", 8),
        # td and paper_td, in two formats and, here, both places.
        ("pseudo_counts_help", 16),
        ("behind_smoothed_with_pseudo_counts", 16),
        ("grouping_helps", 4),
        ("sampled_over_other_prompts", 2),
        ("deeper", 2),
        ("iterations_help", 8),
        ("unseen_over_as_many", 4),
        ("more_regret", 2),
    ],
)
def test_claims_are_decided_in_all_settings(tmp_path, name, settings):
    assert len(verdicts(tmp_path)[name]) == settings


# Claims that can fail together with another claim, because they compare the same methods.
RELATED = {
    "behind_lspi",
    "beats_rewards",
    "grouping_helps",
    "pseudo_counts_help",
    "random_advantage_over_own",
    "deeper",
}


@pytest.mark.parametrize(
    ("changes", "fails"),
    [
        ({"values": {"smoothed": 0.3}}, {"behind_smoothed", "behind_smoothed_with_pseudo_counts"}),
        ({"values": {"lspi": 0.3}}, {"behind_lspi"}),
        ({"values": {"rewards": 0.9}}, {"beats_rewards"}),
        ({"values": {"paper_td grouped": 0.61}}, {"sampled_over_other_prompts"}),
        ({"values": {"paper_td grouped": 0.1, "td grouped": 0.5}}, {"grouping_helps"}),
        ({"values": {"layers_3": 0.9}}, {"deeper"}),
        ({"values": {"td pseudo_counts": 0.3, "paper_td pseudo_counts": 0.1}}, {"pseudo_counts_help"}),
        (
            {"values": {f"{name} random_advantage": 0.1 for name in ("td", "smoothed")}},
            {"random_advantage_over_own"},
        ),
        ({"values": {f"{name} exact_as_unseen": 2.0 for name in ("td", "smoothed")}}, {"unseen_over_as_many"}),
        ({"first_gain": -0.3}, {"iterations_help"}),
    ],
)
def test_claims_on_shares_can_fail(tmp_path, changes, fails):
    failed = {name for name, verdicts in verdicts(tmp_path, changes).items() if not all(verdicts)}
    assert fails <= failed and failed - fails <= RELATED


def test_the_claim_on_regret_can_fail(tmp_path):
    by_name = verdicts(tmp_path, td=1.0)
    assert set(by_name) - holding(by_name) == {"more_regret"}


def test_intervals_are_over_processes_and_trials_are_seeds(tmp_path):
    """The first of three seeds is far below the baseline, and the others are above it."""
    home = Offline(save_offline(tmp_path / "home.npz", values={"mc": 0.7}))
    seeds = (home.arrays["method"] == "mc") & (home.arrays["seed"] == 0)
    home.arrays["mean_value"][seeds, :, 1:] -= 0.6
    acting = Online(save_online(tmp_path / "online.npz"))
    offline = {"home": home}
    claims = check_control(Statements(STUDY / "claims.toml"), offline, acting, VARIANTS, {"home": PLACES["home"]})
    claim = next(claim for claim in claims if claim.id == "beats_rewards/mc-home-m = 5")
    difference = home.share("mc")[:, 0] - home.share("rewards")[:, 0]
    assert difference.mean() > 0 and claim.verdict == "holds"
    assert (claim.trials, claim.trials_hold) == (3, 2)


def test_shares_are_relative_to_the_uniform_and_the_optimal_policy(tmp_path):
    home = Offline(save_offline(tmp_path / "home.npz"))
    assert home.share("td", 0).mean() == 0 and home.share("td").shape == (3, 2, PROCESSES)
    assert home.share("td").mean() == pytest.approx(0.62, abs=0.01)
    assert home.share("td", 1).mean() == pytest.approx(0.42, abs=0.01)
    assert home.task_counts("td") == [100, 300]
    assert home.share("td", tasks=100).mean() == pytest.approx(0.6, abs=0.01)


@pytest.fixture
def files(tmp_path):
    """The files of the step ``offline`` for all places, and the file of the step ``online``."""
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


def test_formats_are_compared_after_equal_numbers_of_tasks(files):
    home = Offline(files[0][0])
    panel = figures.lines(figures.offline_panels(home, VARIANTS, "td", figures.OTHERS | {"td": LOOK})).axes[1]
    found = {line.get_label(): line.get_ydata() for line in panel.lines}
    for label, method in {
        "on transitions": "td",
        "on transitions, shown grouped": "td grouped",
        "on enumerated prompts": "paper_td",
        "on enumerated prompts, shown grouped": "paper_td grouped",
    }.items():
        expected = home.share(method, tasks=100) - home.share("smoothed")
        np.testing.assert_allclose(found.pop(label), expected.mean((0, 2)))
    assert not found
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
