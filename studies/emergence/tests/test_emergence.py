"""What pretrained weights consist of, what their parts do, and the study's tables and claims."""

import itertools
from pathlib import Path

import naive
import numpy as np
import pandas as pd
import pytest
from html_page import Page
from tolerances import ROUNDING

import ictd
from ictd.anatomy import project_identifiable, residual
from ictd.pipeline.grid import Cell
from ictd.pretraining import pretrain_history
from ictd.report.claim import Statements
from studies.emergence.ablate import without_parts
from studies.emergence.ablation_tables import correlations, relabel_states
from studies.emergence.claims import check_emergence

STUDY = Path(__file__).parents[1]


def some_weights(states, runs=3):
    return naive.stacked([naive.larger_weights(states, seed) for seed in range(runs)])


def test_variants_leave_what_they_name():
    weights = some_weights(3)
    of, A, theta = without_parts(weights, 0.9), project_identifiable(weights, 0.9).A, ictd.theta_td(3).A
    halves = (slice(3), slice(3, 6))
    for name, (rows, columns) in zip(("11", "12", "21", "22"), itertools.product(halves, repeat=2), strict=True):
        left = A.copy()
        left[:, rows, columns] = 0
        np.testing.assert_array_equal(of[f"no_A{name}"].A, left)
        np.testing.assert_array_equal(of[f"no_A{name}"].u, weights.u)
    coefficient = (np.trace(A[:, :3, 3:], axis1=1, axis2=2) - np.trace(A[:, :3, :3], axis1=1, axis2=2)) / 6
    np.testing.assert_allclose(of["theta"].A, coefficient[:, None, None] * theta)
    K = (A[..., 3:] - A[..., :3]) / 2
    np.testing.assert_allclose(of["structure"].A, np.concatenate([-K, K], axis=-1))
    np.testing.assert_allclose(of["G"].A[:, :3], of["structure"].A[:, :3])
    assert (of["G"].A[:, 3:] == 0).all()
    # All subsets of three parts, which add up.
    for whole, *parts in (
        ("structure", "theta", "rest"), ("theta_outside", "theta", "outside"), ("rest_outside", "rest", "outside"),
        ("no_u", "theta", "rest", "outside"),
    ):  # fmt: skip
        np.testing.assert_allclose(of[whole].A, sum(of[part].A for part in parts))
        assert (of[whole].u == 0).all()
    np.testing.assert_array_equal(of["no_u"].A, A)


def test_relabelling_moves_both_halves_of_rows_and_columns():
    theta, left = ictd.theta_td(4), residual(project_identifiable(some_weights(4), 0.9).A)
    order = np.array([2, 0, 3, 1])
    np.testing.assert_array_equal(relabel_states(theta.A, order), theta.A)
    assert relabel_states(left, order)[1, 0, 5] == left[1, 2, 4 + 0]


def test_correlations_tell_shared_patterns_from_chance():
    rng = np.random.default_rng(0)
    shared = rng.normal(size=(10, 10))
    draw = lambda scale: {seed: shared + scale * rng.normal(size=(10, 10)) for seed in range(6)}  # noqa: E731
    cells = [Cell("td", "boyan", 5, 3), Cell("mc", "boyan", 5, 3), Cell("td", "boyan", 5, 9)]
    alike = {cell: draw(0.1) for cell in cells}
    rows = pd.DataFrame(correlations(alike))
    assert rows["kind"].value_counts().to_dict() == {"algos": 6, "algos, seeds": 3, "seeds": 9, "depths, 9": 6}
    assert (rows["cosine"] > rows[["null_entries", "null_states"]].max(axis=1) + 0.1).all()
    assert (rows["cosine"] > 0.9).all()
    one = rows[(rows["kind"] == "algos, seeds") & (rows["seed"] == 2)].iloc[0]
    td, mc = alike[cells[0]][2].ravel(), alike[cells[1]][3].ravel()
    assert one["cosine"] == pytest.approx(td @ mc / np.sqrt(td @ td * (mc @ mc)))
    shared = 0 * shared
    rows = pd.DataFrame(correlations({cell: draw(1.0) for cell in cells}))
    assert (rows["cosine"] > rows["null_entries"]).mean() < 0.2 and (rows["cosine"] > rows["null_states"]).mean() < 0.2
    # The same for all states, and so unlike noise only.
    shared = 5 * np.kron([[0.0, 0.0], [-1.0, 1.0]], np.eye(5))
    rows = pd.DataFrame(correlations({cell: draw(1.0) for cell in cells}))
    assert (rows["cosine"] > rows["null_entries"] + 0.1).all()
    assert (rows["cosine"] > rows["null_states"]).mean() < 0.2
    # What differs by neighbours on a ring is no more alike after a rotation than before.
    shared = 5 * np.kron([[0.0, 0.0], [-1.0, 1.0]], np.roll(np.eye(5), 1, axis=1))
    rows = pd.DataFrame(correlations({cell: draw(0.1) for cell in cells}))
    assert (rows["cosine"] > rows["null_states"] + 0.1).all()
    assert correlations({cells[1]: {0: shared}}) == []
    small = pd.DataFrame(correlations({Cell("td", "loop", 3, 3): {seed: shared[:6, :6] for seed in (0, 1)}}))
    assert len(small) == 1 and "null_states" not in small


@pytest.mark.slow
def test_our_reading_gives_the_main_settings_runs(under_conda):
    results = under_conda / "results-smoke"
    for i, algo in enumerate(("td", "mc")):
        reading = np.load(results / "emergence/readings/as_is.npz")
        main, evaluated = (np.load(results / f"{kind}/{algo}-boyan-4-6.npz") for kind in ("weights", "evaluation"))
        np.testing.assert_allclose(reading["A"][i], main["A"], rtol=ROUNDING)
        np.testing.assert_allclose(reading["msve"][i], evaluated["msve"], rtol=1e-9)
        np.testing.assert_allclose(reading["enumerated_msve"][i], evaluated["enumerated_msve"], rtol=1e-9)


@pytest.mark.slow
def test_long_pretraining_goes_on_from_block_to_block(under_conda):
    """A run of several blocks is one run of the engine over all of their tasks."""
    run = np.load(under_conda / "results-smoke/emergence/runs/td-boyan/1.npz")
    streams = [ictd.generator(1, "boyan", 4, f"course {name}") for name in ("tasks", "unrolls")]
    tasks, unrolls = [], []
    for size in (10_000, 2_000):
        tasks.append(ictd.sample_tasks("boyan", 4, size, streams[0]))
        unrolls.append(ictd.unroll(tasks[-1], 64, 0.9, 1, streams[1]))
    whole = [
        kind(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))
        for kind, parts, names in (
            (ictd.Tasks, tasks, ("transition", "reward", "stationary")),
            (ictd.BatchStatistics, unrolls, ("visits", "transitions", "return_sums")),
        )
    ]
    start = ictd.initial_weights(4, 0.1, ictd.generator(1, "boyan", 4, "weights"))
    history = pretrain_history(*whole, "td", 6, 0.9, 1e-3, start, tasks_seen=run["tasks_seen"])
    np.testing.assert_array_equal(history.weights.A, run["A"])


CLAIMED = {"algo": "td", "env": "boyan", "states": 3, "depth": 4}
SEEDS = np.arange(6)


@pytest.fixture
def tables():
    """Tables on which all claims hold."""
    trials = pd.DataFrame({**CLAIMED, "seed": SEEDS})
    msve = {
        "whole": (1.0, 10.0), "theta": (5.0, 4.0), "structure": (3.0, 2.0), "no_u": (1.01, 10.0),
        "theta_outside": (4.0, 12.0),
    }  # fmt: skip
    controlled = {
        ("theta", "scaled"): 0.5, ("structure", "scaled"): 0.1, ("structure", "repeated_10"): 0.2,
        ("no_u", "repeated_3"): 9.0,
    }  # fmt: skip
    removed = pd.DataFrame(
        [
            {**CLAIMED, "variant": name, "context_length": length, "seed": seed, "mean": value * (1 + 0.1 * seed)}
            for name, pair in msve.items() for length, value in zip((0, 5), pair, strict=True) for seed in SEEDS
        ]
    )  # fmt: skip
    controls = pd.DataFrame([
        {**CLAIMED, "variant": name, "control": control, "context_length": 0, "seed": seed, "mean": value}
        for (name, control), value in controlled.items() for seed in SEEDS
    ])  # fmt: skip
    best = pd.DataFrame({**CLAIMED, "context_length": [0, 5], "best_mean": [4.0, 40.0], "best_median": [4.0, 40.0]})
    course = pd.concat([trials[["algo", "env", "seed"]].assign(tasks_seen=tasks) for tasks in (1, 10, 100)])
    course = course.assign(
        alpha=0.01 * course["tasks_seen"], cosine=1 - course["tasks_seen"] / 200, outside=1 / course["tasks_seen"],
        msve_0=2 / course["tasks_seen"],
    )  # fmt: skip
    short = course[course["tasks_seen"] < 100].assign(algo="mc")
    readings = pd.DataFrame({"reading": ["ours", "other"], "claim": "pattern", "algo": "td", "verdict": "holds"})
    return {
        "measures": trials.assign(outside=0.05 + 0.001 * SEEDS, alpha=0.2),
        "ablations": removed.assign(median=removed["mean"]),
        "controls": controls.assign(median=controls["mean"]),
        "baselines": best,
        "correlations": trials.assign(kind="algos", cosine=0.9, null_entries=0.2, null_states=0.3),
        "course": pd.concat([course, short], ignore_index=True),
        "phase": pd.concat([trials.assign(depth=depth, diverged_at=0, outside=0.01 * depth) for depth in (3, 8)]),
        "readings": readings,
    }


def found(tables):
    return check_emergence(Statements(STUDY / "claims.toml"), tables)


def failing(tables):
    return {claim.id.split("/")[0] for claim in found(tables) if claim.verdict == "fails"}


def test_claims_that_hold(tables):
    assert failing(tables) == set()
    # 2 of the decomposition, 34 of ablations, 2 of residuals, 4 of each of 3 windows, 2 of the plane, 1 reading.
    assert len(found(tables)) == 2 + 34 + 2 + 12 + 2 + 1
    windows = {claim.setting for claim in found(tables) if claim.id.startswith("alpha_grows")}
    assert windows == {"td-boyan-1 to 10", "td-boyan-10 to 100", "mc-boyan-1 to 10"}
    single = {name: table[table["seed"] == 0] if "seed" in table else table for name, table in tables.items()}
    assert {claim.id.split("/")[0] for claim in found(single)} == {"finite", "reading"}


@pytest.mark.parametrize(
    ("table", "change", "expected"),
    [
        ("measures", lambda t: t.assign(outside=0.12), {"structure"}),
        ("measures", lambda t: t.assign(alpha=0.9 + 0.1 * t["seed"]), {"step_size"}),
        ("ablations", lambda t: t.assign(median=1.0 + 0.1 * t["seed"]), {
            "noise_is_missed, median", "preconditioner_first, median", "outside_first, median",
            "preconditioner_last, median", "outside_last, median", "preconditioner_first_short, median",
            "preconditioner_last_short, median", "outside_harms_first_short, median",
            "outside_harms_last_short, median"}),
        ("ablations", lambda t: t.assign(mean=t["mean"].mask(t["variant"] == "theta_outside", 0.9)), {
            "preconditioner_last, mean", "preconditioner_last_short, mean", "outside_harms_first_short, mean"}),
        ("controls", lambda t: t.assign(mean=t["mean"].mask(t["variant"] == "theta", 2.0)), {"step_makes_up, mean"}),
        ("controls", lambda t: t.assign(mean=t["mean"].mask(t["control"] == "scaled", 0.5)), {
            "preconditioner_at_best_step, mean"}),
        ("controls", lambda t: t.assign(median=t["median"].mask(t["variant"] == "structure", 7.0)), {
            "structure_makes_up, median", "preconditioner_at_best_step, median", "structure_converges, median"}),
        ("controls", lambda t: t.assign(median=t["median"].mask(t["variant"] == "no_u", 0.7)), {
            "outside_is_for_one_depth, median"}),
        ("ablations", lambda t: t.assign(mean=t["mean"].mask(t["variant"] == "no_u", 2.0)), {
            "u_is_idle, mean", "outside_harms_last_short, mean"}),
        ("baselines", lambda t: t.assign(best_mean=[0.5, 40.0]), {"beats_theta, mean"}),
        ("baselines", lambda t: t.assign(best_median=[4.0, 9.0]), {"beats_theta_short, median"}),
        ("correlations", lambda t: t.assign(cosine=0.25), {"residuals by state (algos)"}),
        ("correlations", lambda t: t.assign(null_entries=0.95), {"residuals (algos)"}),
        ("course", lambda t: t.assign(alpha=0.1), {"alpha_grows"}),
        ("course", lambda t: t.assign(cosine=t["tasks_seen"] / 200), {"cosine_falls"}),
        ("course", lambda t: t.assign(outside=0.1), {"structure_sharpens"}),
        ("course", lambda t: t.assign(msve_0=t["tasks_seen"]), {"enumerated_improves"}),
        ("phase", lambda t: t.assign(diverged_at=[0] * 11 + [5]), {"finite"}),
        ("phase", lambda t: t.assign(outside=0.2 - 0.01 * t["depth"]), {"structure_deep"}),
        ("readings", lambda t: t.assign(verdict=["holds", "fails"]), {"reading"}),
    ],
)  # fmt: skip
def test_claims_that_fail(tables, table, change, expected):
    assert failing({**tables, table: change(tables[table])}) == expected


def test_a_claim_that_fails_under_ours_says_nothing_of_another_reading(tables):
    assert failing({**tables, "readings": tables["readings"].assign(verdict="fails")}) == set()


@pytest.mark.slow
def test_the_study_is_made_as_a_page(under_conda):
    results = under_conda / "results-smoke/emergence"
    page = Page(results / "emergence.html")
    assert page.headings[:2] == ["What emerges", "Answer"] and not page.outside and len(page.images) == 5
    for caption in STUDY.glob("captions/*.rst"):
        assert caption.read_text().strip() in page.text
    phase = pd.read_csv(results / "phase.csv")
    assert phase["diverged_at"].eq(0).all() and np.isfinite(phase["msve"]).all()
