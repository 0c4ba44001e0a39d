"""Kernels and minimisers beside slow computations, claims that hold and fail, figures, and the page."""

import json
from dataclasses import replace
from pathlib import Path

import matplotlib.pyplot as plt
import naive
import numpy as np
import pandas as pd
import pytest
from drawn import numbered
from html_page import Page
from tolerances import DIFFERENCES, ROUNDING

import ictd
from ictd.decomposition import decomposition_measures
from ictd.gram import estimates, gram_of
from ictd.kernels import size
from ictd.mrp import msve
from ictd.report.claim import Statements
from studies.limits import claims, figures
from studies.limits.contexts import draw_tasks, sampled, with_pseudo_steps
from studies.limits.course import train
from studies.limits.descend import enumerated, expected_updates
from studies.limits.engine import columns
from studies.limits.forms import yardsticks
from studies.limits.minimise import Objective, flat, minimise, seen_basis, unflat
from studies.limits.shrinkage import fitted

STUDY = Path(__file__).parents[1]
GAMMA, N, DEPTH = 0.9, 3, 4


def some_tasks(size=6, kind="uniform"):
    return draw_tasks(kind, N, size, np.random.default_rng(0))


def parameters(gain=1.3):
    weights = naive.larger_weights(N, 0)
    one = flat(weights)
    one[-1] = gain
    return one


def everything(prompts, depth=DEPTH):
    return Objective([(prompts, np.eye(4 * N**2 + 2 * N + 1))], depth, np.zeros(4 * N**2 + 2 * N + 1))


def both_kinds():
    tasks = some_tasks()
    of = sampled(tasks, np.array([4, 7, 9, 5, 20, 3]), GAMMA, np.random.default_rng(1))
    return [(enumerated(tasks, GAMMA), None), (of.prompts(GAMMA), of)]


def test_estimates_are_those_of_the_transformer_on_either_kind_of_prompt():
    one, tasks = parameters(), some_tasks()
    for prompts, of in both_kinds():
        (found,) = everything(prompts).estimates(one)
        weights = unflat(one, N)
        if of is None:
            wanted = [
                [naive.transformer(weights, DEPTH, naive.enumerated_prompt(p, r, GAMMA, s), True) for s in range(N)]
                for p, r in zip(tasks.transition, tasks.reward, strict=True)
            ]
        else:
            wanted = estimates(weights, gram_of(of.context, GAMMA), DEPTH)
        np.testing.assert_allclose(found, 1.3 * np.array(wanted), rtol=1e-10)
        value = everything(prompts).value_and_gradient(one)[0]
        np.testing.assert_allclose(value, msve(tasks.stationary, prompts.target, found).mean(), rtol=ROUNDING)


def test_gradient_and_jacobian_are_differences():
    one = parameters()
    for prompts, _ in both_kinds():
        objective = everything(prompts)
        steps = 1e-6 * np.eye(len(one))
        gradient = objective.value_and_gradient(one)[1]
        sides = [[objective.value_and_gradient(one + sign * d)[0] for d in steps] for sign in (1, -1)]
        slow = (np.array(sides[0]) - sides[1]) / 2e-6
        np.testing.assert_allclose(gradient, slow, atol=DIFFERENCES * np.abs(slow).max())
        sides = [[objective.estimates(one + sign * d)[0] for d in steps] for sign in (1, -1)]
        rows = np.sqrt(prompts.weight) * (np.array(sides[0]) - sides[1]) / 2e-6
        J = rows.reshape(len(one), -1)
        np.testing.assert_allclose(objective.squares(one), 2 * J @ J.T / 6, atol=DIFFERENCES * np.abs(J @ J.T).max())
        sides = [[objective.value_and_gradient(one + sign * d)[1] for d in steps] for sign in (1, -1)]
        slow = (np.array(sides[0]) - sides[1]) / 2e-6
        np.testing.assert_allclose(objective.hessian(one), slow, atol=1e-5 * np.abs(slow).max())


def test_columns_have_the_gram_matrix():
    of = sampled(some_tasks(), 2, GAMMA, np.random.default_rng(1))
    gram = gram_of(of.context, GAMMA)
    X, y = columns(gram, 2 * N - 1)
    assert X.shape == (6, 2 * N, 2 * N - 1)
    np.testing.assert_allclose(X @ X.mT, gram.M, atol=1e-14)
    np.testing.assert_allclose(np.matvec(X, y), gram.c, atol=1e-14)


@pytest.mark.parametrize("algo", ["td", "mc"])
@pytest.mark.parametrize(("clip", "inside", "gain"), [(0, False, False), (0.01, False, True), (0, True, False)])
def test_training_is_adam_on_the_gradient_at_fixed_targets(algo, clip, inside, gain):
    tasks, one, rate = some_tasks(), parameters(1.0) / 3, 1e-2
    one[-1] = 1
    prompts = enumerated(tasks, GAMMA)
    found = train(one, tasks, prompts, algo, DEPTH, GAMMA, rate, [2, 6], clip, inside, gain)
    mean, square, kept = 0 * one, 0 * one, []
    for i in range(6):
        (few, task) = prompts[i : i + 1], tasks[i : i + 1]
        if algo == "td":
            (estimate,) = everything(few).estimates(one)
            few = replace(few, target=task.reward + GAMMA * np.matvec(task.transition, estimate))
        g = everything(few).value_and_gradient(one)[1] / 2
        g[-1] *= gain
        g *= min(1, clip / np.linalg.norm(g)) if clip else 1
        mean, square = 0.9 * mean + 0.1 * g, 0.999 * square + 0.001 * g**2
        one = one - rate * mean / (1 - 0.9 ** (i + 1)) / (np.sqrt(square / (1 - 0.999 ** (i + 1))) + 1e-8)
        if inside:
            A = unflat(one, N).A
            half = (A[:, N:] - A[:, :N]) / 2
            one = np.concatenate([np.zeros(2 * N), np.hstack([-half, half]).ravel(), one[-1:]])
        kept += [one] if i in (1, 5) else []
    np.testing.assert_allclose(found, kept, rtol=1e-9, atol=1e-12)
    assert (found[:, -1] != 1).all() == gain


def test_training_that_diverges_is_no_number():
    tasks = some_tasks()
    found = train(1e60 * parameters(), tasks, enumerated(tasks, GAMMA), "mc", DEPTH, GAMMA, 1e-3, [3, 6], 0)
    assert np.isnan(found).all()


def test_bases_have_what_prompts_see_and_the_family():
    whole, family = seen_basis(N, GAMMA), seen_basis(N, GAMMA, True)
    assert whole.shape[1] == 4 * N**2 - 1 and family.shape[1] == (2 * N - 1) * N
    for basis in (whole, family):
        np.testing.assert_allclose(basis.T @ basis, np.eye(basis.shape[1]), atol=1e-12)
        assert not basis[-1].any()
    # What is left out changes no estimate, and of the family nothing is outside.
    one = parameters(1.0)
    one[-1] = 0
    rest = one - whole @ (whole.T @ one)
    objective = Objective([(enumerated(some_tasks(), GAMMA), np.eye(len(one)))], DEPTH)
    np.testing.assert_allclose(objective.estimates(one)[0], objective.estimates(one - rest)[0], rtol=1e-9)
    inside = unflat(family @ np.arange(1.0, 1 + family.shape[1]), N)
    assert abs(decomposition_measures(inside, GAMMA)["outside"]) < 1e-12


def test_descents_end_where_the_gradient_is_zero_and_keep_to_their_basis():
    tasks = draw_tasks("uniform", N, 300, np.random.default_rng(0))
    theta = flat(ictd.Weights(np.zeros(2 * N), N * ictd.theta_td(N).A))
    ends = {}
    for only in (False, True):
        basis = seen_basis(N, GAMMA, only)
        objective = Objective([(enumerated(tasks, GAMMA), basis)], DEPTH)
        begin = objective.value_and_gradient(basis.T @ theta)[0]
        z, value, gradient, steps = minimise(objective, basis.T @ theta, 1e-10, 100, 8)
        assert gradient < 1e-10 and value < begin / 100 and steps <= 100
        assert value == objective.value_and_gradient(z)[0]
        ends[only] = value
    assert ends[False] < ends[True]
    # Stopped where another function is least, and not started where there is no value.
    objective = Objective([(enumerated(tasks, GAMMA), basis)], DEPTH)
    kept = minimise(objective, basis.T @ theta, 1e-10, 100, 0, lambda z: float(np.linalg.norm(z - basis.T @ theta)))
    assert kept[3] == 0
    assert minimise(objective, 1e200 * basis.T @ theta, 1e-10, 100, 0)[3] == 0


def test_expected_updates_vanish_at_the_values():
    tasks = some_tasks()
    of = expected_updates(tasks, parameters(1.0), DEPTH, GAMMA)
    weights = unflat(parameters(1.0), N)
    rows = {"J": 0, "J_mc": 0}
    for i in range(len(tasks)):
        scaled = ictd.Weights(weights.u, weights.A / N)
        grad = ictd.fused_engine.value_gradients(scaled, tasks, i, GAMMA, DEPTH)
        grad[:, 2 * N :] /= N
        value = enumerated(tasks, GAMMA).target[i]
        (estimate,) = everything(enumerated(tasks, GAMMA)[i : i + 1]).estimates(parameters(1.0))[0]
        targets = {"J": tasks.reward[i] + GAMMA * tasks.transition[i] @ estimate, "J_mc": value}
        for name, target in targets.items():
            rows[name] = rows[name] + (tasks.stationary[i] * (target - estimate)) @ grad
    for name, row in rows.items():
        np.testing.assert_allclose(of[name], np.abs(row / len(tasks)).sum(), rtol=1e-9)


def test_pseudo_steps_are_steps_of_a_context():
    of = sampled(some_tasks(), 6, GAMMA, np.random.default_rng(1))
    steps = np.random.default_rng(2).uniform(size=(N, N))
    found = with_pseudo_steps(of.context, steps, 0.3, GAMMA)
    for i in range(6):
        counts = 6 * of.context.successors[i] + steps
        p = counts / counts.sum(axis=1)[:, None]
        known = of.context.visits[i] > 0
        r = np.where(known, of.tasks.reward[i], 0.3)
        np.testing.assert_allclose(found[i], np.linalg.inv(np.eye(N) - GAMMA * p) @ r, rtol=1e-10)
    lengths = sampled(some_tasks(), np.array([1, 2, 3, 4, 5, 6]), GAMMA, np.random.default_rng(1)).context
    np.testing.assert_allclose(lengths.length * lengths.successors.sum(axis=(1, 2)), lengths.length)


def test_tasks_are_shifted_as_they_are_named():
    of = {
        kind: draw_tasks(kind, 5, 20_000, np.random.default_rng(0))
        for kind in ("uniform", "steps", "last_row", "rewards")
    }
    assert of["steps"].transition[:, 0, 1].mean() == pytest.approx(5 / 6, abs=0.01)
    assert (np.diff(of["last_row"].transition[:, -1].mean(axis=0)) < -0.05).all()
    assert of["rewards"].reward.mean() == pytest.approx(0.5, abs=0.01)
    assert of["uniform"].reward.mean() == pytest.approx(0, abs=0.01)


def test_fits_find_what_made_the_outputs():
    rng = np.random.default_rng(0)
    of = sampled(draw_tasks("uniform", N, 300, rng), 8, GAMMA, rng)
    chains = {}
    for kind in ("uniform", "steps", "last_row"):
        many = draw_tasks(kind, N, 2000, rng)
        chains[kind] = many.transition.mean(axis=0), many.stationary.mean(axis=0)
    Q, share = chains["uniform"]
    plain = fitted(of, with_pseudo_steps(of.context, 6 * share[:, None] * Q, 0.2, GAMMA), chains, GAMMA)
    assert plain["k"] == pytest.approx(6, rel=1e-4) and plain["reward"] == pytest.approx(0.2, rel=1e-4)
    assert plain["explained"] == pytest.approx(1) and plain["without"] < 0.99
    assert abs(plain["steps"]) < 1e-3 and abs(plain["last_row"]) < 1e-3
    for kind in ("steps", "last_row"):
        moved = with_pseudo_steps(of.context, 6 * share[:, None] * chains[kind][0], 0.0, GAMMA)
        assert fitted(of, moved, chains, GAMMA)[kind] == pytest.approx(1, abs=1e-3)


def test_yardsticks_are_chosen_on_other_tasks():
    rng = np.random.default_rng(0)
    drawn = {name: {6: sampled(draw_tasks("uniform", N, 200, rng), 6, GAMMA, rng)} for name in ("choice", "test")}
    found, weights = yardsticks(drawn, GAMMA)
    assert set(found) == {("lstd", 6), ("pseudo_steps", 6)}
    assert found["pseudo_steps", 6].mean() < found["lstd", 6].mean()
    assert weights[6] == pytest.approx(1 / found["pseudo_steps", 6].mean(), rel=0.5)


def tables(good=True):
    """Tables on which claims hold, or fail."""
    value = 1e-15 if good else 1.0
    starts = [
        ("theta", 0),
        ("family", 0),
        *(("random", i) for i in range(4)),
        *((a, i) for a in ("td", "mc") for i in range(3)),
    ]
    rows = [
        {
            "start": start, "seed": seed, "env": "boyan", "states": 3, "depth": depth, "begin": 0.1, "value": value,
            "held": value, "outside": 0.0 if good else 0.1, "distance": 0.5 if good else 0.01,
            "dimension": 15 if start == "family" else 35,
            "rank": 20 if good else 35, "along": 0.0 if good else 0.1,
        }
        for depth in (5, 30) for start, seed in starts
    ]  # fmt: skip
    descents = pd.DataFrame(rows)
    descents.loc[descents["start"] == "family", "value"] = 1.0
    descents.loc[~descents["start"].isin(["theta", "family"]) & (not good), "value"] = (
        [*np.arange(1.0, 11)] * 2 if not good else 0
    )
    spectra = pd.DataFrame(
        {"number": [1, 2] * 2, "curvature": [1.0, 1e-12] * 2, "env": "boyan", "states": 3, "depth": [5, 5, 30, 30]}
    )
    course = numbered(
        {
            "run": ["td", "mc", "inside", "gain", "start"],
            "discount": [0.5, 0.9],
            "depth": [5, 10],
            "seed": range(3),
            "tasks": [100, 400, 900],
        },
        ["alpha"],
    )
    course["alpha"] = 0.01 * (1 + course["alpha"] % 37)
    place = course["alpha"] * course["depth"] * (1 - course["discount"])
    other = course["alpha"] * course["depth"]
    course["outside"] = (
        np.exp(-(place if good else 0 * place) * 3) * np.where(course["tasks"] == 900, 1, 1) if good else np.exp(-other)
    )
    course["outside_norm"] = np.where(course["run"].isin(["gain", "start"]), 0.001 if good else 1, 1.0)
    course["msve"] = np.where(course["run"] == "inside", 2.0 if good else 0.5, 1.0)
    course["msve"] = np.where(course["run"].isin(["gain", "start"]), 0.5 if good else 2.0, course["msve"])
    course[["theta", "preconditioner", "gain"]] = 1.0
    forms = numbered(
        {"method": ["lstd", "pseudo_steps", "alone", "one", "empty", "heads"], "length": [5, 50], "group": range(4)},
        ["msve"],
    )
    forms["msve"] = forms["method"].map({"lstd": 3.0, "pseudo_steps": 1.0}).fillna(1.1 if good else 2.9)
    fits = numbered(
        {
            "kind": ["uniform", "steps", "last_row", "rewards"],
            "algo": ["td", "mc"],
            "seed": range(3),
            "length": [5, 50],
        },
        ["msve"],
    )
    fits["msve"], fits["explained"], fits["without"], fits["k"] = (
        1.05 if good else 2.9,
        0.9 if good else 0.5,
        0.6,
        fits["length"] if good else 5.0,
    )
    for kind, name in claims.FOLLOWS.items():
        fits[name] = np.where(fits["kind"] == kind, 1.0 if good else 0.1, 0.0)
    return {"descents": descents, "spectra": spectra, "course": course, "forms": forms, "fits": fits}


def verdicts(of):
    statements = Statements(STUDY / "claims.toml")
    made = [*claims.descents(statements, of["descents"]), *claims.course(statements, of["course"], 400)]
    made += claims.shrinking(statements, of["forms"], of["fits"])
    found = {}
    for claim in made:
        found.setdefault(claim.id.split("/")[0], []).append(claim.verdict)
    return found


def test_each_claim_can_hold_and_fail():
    good, bad = verdicts(tables()), verdicts(tables(False))
    assert good.keys() == bad.keys()
    named = {name.partition(",")[0] for name in good}
    assert named == set(Statements(STUDY / "claims.toml").tables)
    for name in good.keys() - {"outside_goes", "norm_goes", "discount_tells"}:
        assert set(good[name]) == {"holds"}, name
        assert "fails" in bad[name], name
    assert set(good["discount_tells"]) == {"holds"} and "fails" in bad["discount_tells"]
    gone = tables()
    for name, measure in (("outside_goes", "outside"), ("norm_goes", "outside_norm")):
        gone["course"][measure] = np.where(gone["course"]["tasks"] == 900, 1e-6, 1.0)
        assert set(verdicts(gone)[name]) == {"holds"} and "fails" in good[name]


def test_figures_draw_what_tables_say():
    of = tables()
    figure = figures.minimisers(of["descents"], of["spectra"])
    assert [axes.get_title() for axes in figure.axes] == ["MSVE", "share outside", "curvature / greatest"]
    figure = figures.course(of["course"])
    rows = of["course"][(of["course"]["run"] == "td") & (of["course"]["discount"] == 0.9)]
    line = figure.axes[1].lines[1]
    np.testing.assert_allclose(line.get_xdata(), rows["alpha"] * rows["depth"])
    np.testing.assert_allclose(line.get_ydata(), rows["outside"])
    figure = figures.forms(of["forms"], of["fits"])
    np.testing.assert_allclose(figure.axes[0].lines[0].get_ydata(), 0.95)
    plt.close("all")


def test_the_study_is_made_as_a_page(under_conda):
    results = under_conda / "results-smoke/limits"
    page = Page(results / "limits.html")
    assert page.headings[:2] == ["Limits", "Answer"] and not page.outside and len(page.images) == 3
    claimed = {claim["id"].split("/")[0] for claim in json.loads((results / "claims.json").read_text())}
    assert {"nothing_outside", "one_curve", "closes, heads", "follows, last row"} <= claimed
    for name in ("minimisers", "course", "forms", "claims"):
        assert (STUDY / f"captions/{name}.rst").read_text().strip() in page.text
    course = pd.read_csv(results / "course.csv")
    assert len(course) == 5 * 2 * 2 * 2 * 2 and np.isfinite(course["msve"]).all()
    assert size(3) == (0, 0, 0)
