"""What pretrained weights consist of, what their parts do, and the study's tables and claims."""

import itertools
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
import yaml
from html_page import Page
from ictd.steps.ablation_tables import correlations
from test_engines import larger_weights
from tolerances import ROUNDING

import ictd
from ictd.decomposition import (
    decomposition_measures,
    preconditioner,
    relabelled,
    residuals,
    seen,
    structured,
    trace_measures,
    unseen_direction,
)
from ictd.gram import enumerated_gram, estimates, sampled_gram
from ictd.pipeline.grid import Cell
from ictd.pretraining import pretrain_history
from ictd.unseen_tasks import ENUMERATED, batch_td_msve, tune_step_size, validation_set
from studies.emergence.claims import check_emergence
from studies.emergence.variants import VARIANTS, errors

ROOT = Path(__file__).parents[1]


def some_weights(states, runs=3):
    parts = [larger_weights(states, seed) for seed in range(runs)]
    return ictd.Weights(np.stack([part.u for part in parts]), np.stack([part.A for part in parts]))


@pytest.mark.parametrize("scaled", [True, False])
@pytest.mark.parametrize(
    ("env", "states", "length", "depth"), [("boyan", 5, 17, 4), ("loop", 2, 1, 1), ("loop", 7, 60, 6)]
)
def test_gram_estimates_are_those_of_whole_prompts(env, states, length, depth, scaled):
    data = validation_set(0, states, 4, length, 0.9, env)
    weights, reward = some_weights(states), data.tasks.reward
    cases = (
        (enumerated_gram(data.tasks, 0.9), ictd.enumerated_context(data.tasks.transition, reward, 0.9)),
        (sampled_gram(data.context(length), reward, 0.9), ictd.sampled_context(data.paths, reward, 0.9)),
    )
    for gram, context in cases:
        found = estimates(weights, gram, depth, scaled)
        prompts = torch.from_numpy(ictd.joint_prompt(context))
        for run in range(3):
            model = ictd.LinearTransformer(weights[run], depth, scaled)
            expected = model(prompts, queries=states).detach().numpy()
            np.testing.assert_allclose(found[run], expected, atol=ROUNDING * np.abs(expected).max())


@pytest.mark.parametrize(("env", "states", "discount"), [("boyan", 5, 0.9), ("loop", 4, 0.5), ("boyan", 3, 0.99)])
def test_what_no_prompt_sees_changes_no_output(env, states, discount):
    data = validation_set(1, states, 5, 12, discount, env)
    weights = some_weights(states)
    rng, a = np.random.default_rng(0), unseen_direction(states, discount)
    added = ictd.Weights(weights.u + 3 * a, weights.A + a[:, None] * rng.normal(size=2 * states))
    other = ictd.Weights(weights.u, weights.A + rng.normal(size=(2 * states, 1)) * a)
    for gram in (
        enumerated_gram(data.tasks, discount), sampled_gram(data.context(12), data.tasks.reward, discount)
    ):  # fmt: skip
        found = estimates(weights, gram, 5)
        for same in (added, seen(weights, discount), seen(added, discount)):
            np.testing.assert_allclose(estimates(same, gram, 5), found, atol=1e-10 * np.abs(found).max())
        assert np.abs(estimates(other, gram, 5) - found).max() > 0.01 * np.abs(found).max()
    np.testing.assert_allclose(seen(added, discount).A, seen(weights, discount).A, atol=ROUNDING * 10)


@pytest.mark.parametrize(
    ("env", "states", "free"), [("boyan", 2, 4), ("boyan", 3, 6), ("boyan", 5, 10), ("loop", 3, 6), ("loop", 5, 10)]
)
def test_there_are_no_other_directions_that_no_prompt_sees(env, states, free):
    tasks = ictd.sample_tasks(env, states, 40, ictd.generator(2, env, states, "tasks"))
    basis = np.eye(4 * states**2).reshape(-1, 2 * states, 2 * states)
    rows, contexts = [], ictd.enumerated_context(tasks.transition, tasks.reward, 0.9)[:, :-1]
    for X in contexts:
        XA = X.T @ basis
        rows.append(
            np.concatenate([(XA @ X).reshape(len(basis), -1), XA[:, :, :states].reshape(len(basis), -1)], axis=1)
        )
    sizes = np.linalg.svd(np.concatenate(rows, axis=1), compute_uv=False)
    assert (sizes < 1e-10 * sizes[0]).sum() == free
    of_u = np.linalg.svd(np.concatenate(contexts, axis=1), compute_uv=False)
    assert (of_u < 1e-10 * of_u[0]).sum() == 1


def test_decomposition_of_known_weights():
    theta, zero = ictd.theta_td(4), np.zeros(8)
    a = unseen_direction(4, 0.9)
    rng = np.random.default_rng(0)
    expected = {"alpha": 0.2, "cosine": 1, "theta": 1, "preconditioner": 0, "outside": 0, "H": 0, "diagonal": 1, "u": 0}
    for hidden in (0, rng.normal(size=8)):
        found = decomposition_measures(ictd.Weights(zero, 0.8 * theta.A + a[:, None] * hidden), 0.9)
        for name, value in expected.items():
            assert found[name] == pytest.approx(value, abs=ROUNDING), name
    assert decomposition_measures(theta, 0.9, scaled=False)["alpha"] == 1
    assert decomposition_measures(ictd.Weights(zero, -theta.A), 0.9)["cosine"] == -1
    K = rng.normal(size=(8, 4))
    K[4:] -= K[4:].mean(axis=0)
    found = decomposition_measures(ictd.Weights(zero, structured(K)), 0.9)
    assert found["outside"] == pytest.approx(0, abs=ROUNDING) and 0.3 < found["preconditioner"] < 1
    assert found["H"] == pytest.approx((K[4:] ** 2).sum() / (K**2).sum())
    np.testing.assert_allclose(preconditioner(structured(K)), K)
    same = np.concatenate([K, K], axis=1)
    with np.errstate(invalid="ignore"):
        assert decomposition_measures(ictd.Weights(zero, same), 0.9)["outside"] == pytest.approx(1)
    unseen = a[:, None] * rng.normal(size=8)
    found = decomposition_measures(ictd.Weights(np.array([0, 0, 0, 0, 3.0, -3, 0, 0]), unseen + 1e-9 * theta.A), 0.9)
    assert found["unseen"] == pytest.approx(1) and found["theta"] == pytest.approx(1) and found["u"] > 0.9
    weights = some_weights(4)
    left = residuals(weights, 0.9)
    assert np.abs((left * theta.A).sum(axis=(1, 2))).max() < 1e-10
    order = np.array([2, 0, 3, 1])
    np.testing.assert_array_equal(relabelled(theta.A, order), theta.A)
    assert relabelled(left, order)[1, 0, 5] == left[1, 2, 4 + 0]


def test_traces_send_errors_to_predecessors():
    """Known preconditioners: that of a trace, whose errors go back along p, its opposite, and theta^TD's."""
    states, transition = 4, ictd.sample_tasks("boyan", 4, 1, np.random.default_rng(0)).transition[0]
    identity = np.eye(states)
    G = np.stack([identity + 0.3 * transition.T, identity + 0.3 * transition, identity])
    A = structured(np.concatenate([G, np.zeros_like(G)], axis=-2))
    found = trace_measures(ictd.Weights(np.zeros((3, 2 * states)), A), 0.9, transition)
    both = np.corrcoef(transition[~np.eye(states, dtype=bool)], transition.T[~np.eye(states, dtype=bool)])[0, 1]
    np.testing.assert_allclose(found["predecessors"], [1, both, 0], atol=ROUNDING)
    np.testing.assert_allclose(found["successors"], [both, 1, 0], atol=ROUNDING)


def test_variants_leave_what_they_name():
    weights = some_weights(3)
    of = {name: variant(weights, 0.9) for name, variant in VARIANTS.items()}
    shown = seen(weights, 0.9).A
    assert (of["no_A21"].A[:, 3:, :3] == 0).all() and (of["no_A21"].A[:, :, 3:] == shown[:, :, 3:]).all()
    assert (of["no_A12"].A[:, :3, 3:] == 0).all() and (of["no_u"].u == 0).all()
    np.testing.assert_allclose(of["structure"].A[:, :, :3], -of["structure"].A[:, :, 3:])
    assert (of["G"].A[:, 3:] == 0).all()
    data = validation_set(0, 3, 30, 10, 0.9, "boyan")
    found = {name: errors(one, data, [ENUMERATED, 10], 4) for name, one in of.items()}
    estimate = estimates(weights, sampled_gram(data.context(10), data.tasks.reward, 0.9), 4)
    np.testing.assert_allclose(found["whole"].mean[:, 1], data.error(estimate).mean(axis=1))
    np.testing.assert_allclose(found["whole"].median[:, 1], np.median(data.error(estimate), axis=1))


@pytest.mark.parametrize("scaled", [True, False])
def test_theta_td_on_enumerated_prompts_is_value_iteration(scaled):
    data, sizes = validation_set(0, 3, 30, 10, 0.9, "boyan"), np.array([0.25, 0.5, 1.0])
    steps = sizes * (3 if scaled else 1)
    theta = ictd.Weights(np.zeros((3, 6)), steps[:, None, None] * ictd.theta_td(3).A)
    by_td = batch_td_msve(data, 40, [data.context(ENUMERATED)], steps, scaled)[0]
    np.testing.assert_allclose(by_td.mean(axis=1), errors(theta, data, [ENUMERATED], 40, scaled).mean[:, 0], rtol=1e-9)
    value = np.zeros((30, 3))
    for _ in range(40):
        value = data.tasks.reward + 0.9 * np.matvec(data.tasks.transition, value)
    np.testing.assert_allclose(by_td[2], data.error(value), rtol=1e-9)
    assert tune_step_size(data, 40, [ENUMERATED], steps, scaled).argmin() == 2


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


def test_the_study_is_made_as_a_page(under_conda):
    results = under_conda / "results-smoke/anatomy"
    page = Page(results / "emergence.html")
    assert page.headings[0] == "What emerges" and not page.outside
    assert [source.split(";")[0] for source in page.images].count("data:image/gif") == 1 and len(page.images) == 5
    claims = json.loads((results / "claims.json").read_text())
    shown = "".join(page.text.split())
    kinds = {claim["id"].split("/")[0]: claim for claim in reversed(claims)}
    assert {"structure", "noise_works, mean", "residuals (algos)", "alpha_grows", "finite", "reading"} <= set(kinds)
    for claim in kinds.values():
        assert "".join(claim["statistic"].split()) in shown
    for name in ("decompositions", "ablations", "course", "emergence_animation", "phase", "other_readings"):
        assert (ROOT / f"report/captions/{name}.rst").read_text().strip() in page.text
    phase, course = (pd.read_csv(results / f"{name}.csv") for name in ("phase", "course"))
    study = yaml.safe_load((ROOT / "tests/smoke.yaml").read_text())["anatomy"]
    grid = itertools.product(["td", "mc"], study["phase"]["states"], study["phase"]["depths"], range(2))
    assert set(phase[["algo", "states", "depth", "seed"]].itertuples(index=False, name=None)) == set(grid)
    assert phase["diverged_at"].eq(0).all() and np.isfinite(phase["msve"]).all()
    assert course.groupby(["algo", "env"])["tasks_seen"].max().to_dict() == {
        (algo, "boyan"): study["course"][f"{algo}_tasks"] for algo in ("td", "mc")
    }


def test_our_reading_gives_the_main_settings_runs(under_conda):
    results = under_conda / "results-smoke"
    for i, algo in enumerate(("td", "mc")):
        reading = np.load(results / "anatomy/readings/as_is.npz")
        main, evaluated = (np.load(results / f"{kind}/{algo}-boyan-4-6.npz") for kind in ("weights", "evaluation"))
        np.testing.assert_allclose(reading["A"][i], main["A"], rtol=ROUNDING)
        np.testing.assert_allclose(reading["msve"][i], evaluated["msve"], rtol=1e-9)
        np.testing.assert_allclose(reading["enumerated_msve"][i], evaluated["enumerated_msve"], rtol=1e-9)


def test_long_pretraining_goes_on_from_block_to_block(under_conda):
    """A run of several blocks is one run of the engine over all of their tasks."""
    run = np.load(under_conda / "results-smoke/anatomy/runs/td-boyan/1.npz")
    streams = [ictd.generator(1, "boyan", 4, f"course {name}") for name in ("tasks", "unrolls")]
    tasks, unrolls = [], []
    for size in (10_000, 2_000):
        tasks.append(ictd.sample_tasks("boyan", 4, size, streams[0]))
        unrolls.append(ictd.unroll(tasks[-1], 64, 0.9, 1, streams[1]))
    whole = [
        kind(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))
        for kind, parts, names in (
            (ictd.Tasks, tasks, ("transition", "reward", "stationary")),
            (ictd.Unrolls, unrolls, ("visits", "transitions", "returns")),
        )
    ]
    start = ictd.initial_weights(4, 0.1, ictd.generator(1, "boyan", 4, "weights"))
    history = pretrain_history(*whole, "td", 6, 0.9, 1e-3, start.u, start.A, tasks_seen=run["tasks_seen"])
    np.testing.assert_array_equal(history.weights.A, run["A"])


CLAIMED = {"algo": "td", "env": "boyan", "states": 3, "depth": 4}
SEEDS = np.arange(6)


@pytest.fixture
def tables():
    """Tables on which all claims hold."""
    trials = pd.DataFrame({**CLAIMED, "seed": SEEDS})
    msve = {"whole": (1.0, 10.0), "theta": (5.0, 4.0), "structure": (3.0, 2.0), "no_u": (1.01, 10.0)}
    removed = pd.DataFrame(
        [
            {**CLAIMED, "variant": name, "context_length": length, "seed": seed, "mean": value * (1 + 0.1 * seed)}
            for name, pair in msve.items() for length, value in zip((0, 5), pair, strict=True) for seed in SEEDS
        ]
    )  # fmt: skip
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
        "yardsticks": best,
        "correlations": trials.assign(kind="algos", cosine=0.9, null_entries=0.2, null_states=0.3),
        "course": pd.concat([course, short], ignore_index=True),
        "phase": pd.concat([trials.assign(depth=depth, diverged_at=0, outside=0.01 * depth) for depth in (3, 8)]),
        "readings": readings,
    }


def failing(tables):
    return {claim.id.split("/")[0] for claim in check_emergence(tables) if claim.verdict == "fails"}


def test_claims_that_hold(tables):
    assert failing(tables) == set()
    # 2 of the decomposition, 18 of ablations, 2 of residuals, 4 of each of 3 windows, 2 of the plane, 1 reading.
    assert len(check_emergence(tables)) == 2 + 18 + 2 + 12 + 2 + 1
    windows = {claim.setting for claim in check_emergence(tables) if claim.id.startswith("alpha_grows")}
    assert windows == {"td-boyan-1 to 10", "td-boyan-10 to 100", "mc-boyan-1 to 10"}
    single = {name: table[table["seed"] == 0] if "seed" in table else table for name, table in tables.items()}
    assert {claim.id.split("/")[0] for claim in check_emergence(single)} == {"finite", "reading"}


@pytest.mark.parametrize(
    ("table", "change", "expected"),
    [
        ("measures", lambda t: t.assign(outside=0.12), {"structure"}),
        ("measures", lambda t: t.assign(alpha=0.9 + 0.1 * t["seed"]), {"step_size"}),
        ("ablations", lambda t: t.assign(median=1.0 + 0.1 * t["seed"]), {
            "noise_works, median", "preconditioner_works, median", "outside_works, median",
            "preconditioner_works_short, median", "outside_harms_short, median", "noise_harms_short, median"}),
        ("ablations", lambda t: t.assign(mean=t["mean"].mask(t["variant"] == "no_u", 2.0)), {"u_is_idle, mean"}),
        ("yardsticks", lambda t: t.assign(best_mean=[0.5, 40.0]), {"beats_theta, mean"}),
        ("yardsticks", lambda t: t.assign(best_median=[4.0, 9.0]), {"beats_theta_short, median"}),
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
