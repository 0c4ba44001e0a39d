"""Kernels, minimisers and forms beside slow computations."""

from dataclasses import replace

import naive
import numpy as np
import pytest
from drawn import where
from tolerances import DIFFERENCES, ROUNDING

import ictd
from ictd.anatomy import decomposition_measures
from ictd.baselines import certainty_equivalence, lstd
from ictd.evaluation import draw_unseen_tasks, sample_contexts, weights_msve
from ictd.mrp import msve
from ictd.storage import load_table
from ictd.transformer import estimates
from studies.limits import forms, shrinkage
from studies.limits.course import train
from studies.limits.descend import enumerated, expected_updates
from studies.limits.engine import Prompts, columns
from studies.limits.forms import draw_tasks, yardsticks
from studies.limits.minimise import FINE, Objective, flat, minimise, seen_basis, unflat
from studies.limits.shrinkage import fitted

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
    context = sample_contexts(tasks, np.array([4, 7, 9, 5, 20, 3]), np.random.default_rng(1))
    whole = enumerated(tasks, GAMMA)
    return [(whole, None), (Prompts(*columns(context.gram(GAMMA)), whole.target, whole.weight), context)]


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
            wanted = estimates(weights, of.gram(GAMMA), DEPTH)
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
        R = objective.factor(one)[:, :-1]
        np.testing.assert_allclose(2 * R.T @ R, 2 * J @ J.T / 6, atol=DIFFERENCES * np.abs(J @ J.T).max())
        sides = [[objective.value_and_gradient(one + sign * d)[1] for d in steps] for sign in (1, -1)]
        slow = (np.array(sides[0]) - sides[1]) / 2e-6
        np.testing.assert_allclose(objective.hessian(one), slow, atol=1e-5 * np.abs(slow).max())
        # Where the MSVE is small, of which differences are rounding.
        near = everything(replace(prompts, target=objective.estimates(one)[0] + 1e-6))
        assert near.value_and_gradient(one)[0] < FINE
        np.testing.assert_allclose(near.hessian(one), 2 * J @ J.T / 6, atol=DIFFERENCES * np.abs(J @ J.T).max())


def test_columns_have_the_gram_matrix():
    gram = sample_contexts(some_tasks(), np.full(6, 2), np.random.default_rng(1)).gram(GAMMA)
    X, y = columns(gram)
    assert X.shape == (6, 2 * N, 2 * N - 1)
    np.testing.assert_allclose(X @ X.mT, gram.M, atol=1e-14)
    np.testing.assert_allclose(np.matvec(X, y), gram.c, atol=1e-14)


@pytest.mark.parametrize("algo", ["td", "mc"])
@pytest.mark.parametrize(("clip", "inside", "gain"), [(0.0, False, False), (0.01, False, True), (0.0, True, False)])
def test_training_is_adam_on_the_gradient_at_fixed_targets(algo, clip, inside, gain):
    tasks, one, rate = some_tasks(), parameters(1.0) / 3, 1e-2
    one[-1] = 1
    prompts = enumerated(tasks, GAMMA)
    how = algo, DEPTH, GAMMA, rate, [2, 6], clip, inside, gain
    found = train(one[None], np.ones((6, 1)), tasks, prompts, *how)[:, 0]
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


@pytest.mark.parametrize("algo", ["td", "mc"])
def test_heads_are_trained_as_parts_of_their_sum(algo):
    tasks, begin, rate = some_tasks(), np.stack([parameters(1.0) / 3, 0 * parameters()]), 1e-2
    begin[0, -1], shares = 1, np.stack([np.ones(6), np.linspace(0.1, 0.9, 6)], axis=1)
    prompts = enumerated(tasks, GAMMA)
    found = train(begin, shares, tasks, prompts, algo, DEPTH, GAMMA, rate, [6], 0.05)
    z, mean, square = begin.ravel(), 0 * begin.ravel(), 0 * begin.ravel()
    for i in range(6):
        few, task = prompts[i : i + 1], tasks[i : i + 1]
        basis = np.kron(shares[i], np.eye(begin.shape[1]))
        whole = Objective([(few, basis)], DEPTH, 0 * begin[0])
        if algo == "td":
            (estimate,) = whole.estimates(z)
            few = replace(few, target=task.reward + GAMMA * np.matvec(task.transition, estimate))
            whole = Objective([(few, basis)], DEPTH, 0 * begin[0])
        g = (whole.value_and_gradient(z)[1] / 2).reshape(begin.shape)
        g[:, -1] = 0
        g = (g * min(1, 0.05 / np.linalg.norm(g))).ravel()
        mean, square = 0.9 * mean + 0.1 * g, 0.999 * square + 0.001 * g**2
        z = z - rate * mean / (1 - 0.9 ** (i + 1)) / (np.sqrt(square / (1 - 0.999 ** (i + 1))) + 1e-8)
    np.testing.assert_allclose(found[0].ravel(), z, rtol=1e-9, atol=1e-12)
    assert np.abs(found[0, 1]).max() > 1e-3


def test_training_that_diverges_is_no_number():
    tasks = some_tasks()
    how = enumerated(tasks, GAMMA), "mc", DEPTH, GAMMA, 1e-3, [3, 6], 0.0
    found = train(1e60 * parameters()[None], np.ones((6, 1)), tasks, *how)
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


def test_descents_end_where_the_gradient_is_zero_and_keep_to_their_basis(monkeypatch):
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
    # As many of Newton's steps as are allowed, and no more.
    taken, whole = [], Objective.hessian
    monkeypatch.setattr(Objective, "hessian", lambda self, z: taken.append(z) or whole(self, z))
    for newton in (0, 2):
        taken.clear()
        minimise(objective, basis.T @ theta, 1e-14, 40, newton)
        assert len(taken) == newton
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
        grad = ictd.engine.value_gradients(scaled, tasks.transition[i], tasks.reward[i], GAMMA, DEPTH)
        grad[:, 2 * N :] /= N
        value = enumerated(tasks, GAMMA).target[i]
        (estimate,) = everything(enumerated(tasks, GAMMA)[i : i + 1]).estimates(parameters(1.0))[0]
        targets = {"J": tasks.reward[i] + GAMMA * tasks.transition[i] @ estimate, "J_mc": value}
        for name, target in targets.items():
            rows[name] = rows[name] + (tasks.stationary[i] * (target - estimate)) @ grad
    for name, row in rows.items():
        np.testing.assert_allclose(of[name], np.abs(row / len(tasks)).sum(), rtol=1e-9)


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
    of, rng, chains = draw_unseen_tasks(0, N, 300, 8, GAMMA, "boyan", "tests"), np.random.default_rng(0), {}
    for kind in ("uniform", "steps", "last_row"):
        many = draw_tasks(kind, N, 2000, rng)
        chains[kind] = many.transition.mean(axis=0), many.stationary.mean(axis=0)
    Q, share = chains["uniform"]

    def found(chain, reward):
        outputs = certainty_equivalence(of.context(8), GAMMA, 6 * share[:, None] * chain, reward)
        return fitted(of, 8, outputs, chains, 0.1, 6)

    plain = found(Q, 0.0)
    assert plain["msve"] == pytest.approx(plain["pseudo_steps"]) and plain["pseudo_steps"] < plain["lstd"]
    assert plain["lstd"] == pytest.approx(of.error(lstd(of.context(8), GAMMA, 0.1)).mean())
    # Over 0.5, by which tasks with shifted rewards differ.
    plain = found(Q, 0.2)
    assert plain["k"] == pytest.approx(6, rel=1e-4) and plain["rewards"] == pytest.approx(0.2 / 0.5, rel=1e-4)
    assert plain["number"] == pytest.approx(1) == plain["chain"] and plain["ridge"] < plain["unseen"] < 0.99
    assert plain["ridge"] < plain["even"] < 0.99
    assert abs(plain["steps"]) < 1e-3 and abs(plain["last_row"]) < 1e-3
    # Both places at once, of which one alone explains less.
    both = found(Q + 0.7 * (chains["steps"][0] - Q) + 1.2 * (chains["last_row"][0] - Q), -0.1)
    assert both["steps"] == pytest.approx(0.7, abs=1e-3) and both["last_row"] == pytest.approx(1.2, abs=1e-3)
    assert both["rewards"] == pytest.approx(-0.1 / 0.5, abs=1e-3) and both["number"] < both["chain"]
    # Judged on other tasks than those of the fit.
    noise = rng.normal(size=(300, N))
    noise[:150] = 0
    outputs = certainty_equivalence(of.context(8), GAMMA, 6 * share[:, None] * Q)
    assert fitted(of, 8, outputs + noise, chains, 0.1, 6)["number"] < 0.95


def test_yardsticks_are_chosen_on_other_tasks():
    drawn = {name: {6: draw_unseen_tasks(0, N, 200, 6, GAMMA, "boyan", name)} for name in ("choice", "test")}
    found, weights = yardsticks(drawn, GAMMA)
    assert {m for _, m in found} == {6}
    (ridge, _), (unseen, _), (alone, _), (even, _), (best, k) = found.values()
    assert [name for name, _ in found][::4] == ["lstd", "pseudo_steps"] and 1 < k < 100
    assert best.mean() < min(of.mean() for of in (ridge, unseen, alone, even))
    # As the mean chain tells where no step was seen, and all transitions.
    test, some = drawn["test"][6], drawn["choice"][6].tasks
    joint = some.stationary.mean(axis=0)[:, None] * some.transition.mean(axis=0)
    context, (chain,) = test.context(6), (joint / joint.sum(axis=1, keepdims=True),)
    seen = context.visits > 0
    rows = np.where(seen[..., None], context.successors / np.where(seen, context.visits, 1)[..., None], chain)
    for errors, p in ((unseen, rows), (alone, np.broadcast_to(chain, rows.shape))):
        values = np.linalg.solve(np.eye(N) - GAMMA * p, (test.tasks.reward * seen)[..., None])[..., 0]
        np.testing.assert_allclose(errors, test.error(values), rtol=0.05)
    choice = drawn["choice"][6]
    steps = k * choice.tasks.stationary.mean(axis=0)[:, None] * choice.tasks.transition.mean(axis=0)
    errors = choice.error(certainty_equivalence(choice.context(6), GAMMA, steps))
    assert weights[6] == pytest.approx(1 / errors.mean())


def test_forms_and_fits_are_of_unseen_tasks(tmp_path):
    """Yardsticks as they are tuned, a form before its first step, and Transformers that are trained on contexts."""
    lengths, given = [4, 9], (N, DEPTH, GAMMA, 60, 40)
    for form in ("yardsticks", "one"):
        forms.main(form, *given, lengths, 0, [20], tmp_path / f"{form}.csv")
    files = tmp_path / "yardsticks.csv", tmp_path / "fits.csv"
    shrinkage.main("heads", N, DEPTH, GAMMA, 1e-2, 0.3, 30, 40, lengths, [20], 1, *files)
    tuned, one, fits = (load_table(tmp_path / f"{name}.csv") for name in ("yardsticks", "one", "fits"))
    theta = ictd.Weights(np.zeros(2 * N), forms.START * N * ictd.theta_td(N).A)
    for m in lengths:
        of = draw_unseen_tasks(m, N, 40, m, GAMMA, "boyan", "limits test")
        assert where(one, length=m)["msve"].mean() == pytest.approx(weights_msve(theta, of, [m], DEPTH).mean())
        ridge = where(tuned, method="lstd", length=m)["chosen"].iloc[0]
        assert where(tuned, method="lstd", length=m)["msve"].mean() == pytest.approx(
            of.error(lstd(of.context(m), GAMMA, ridge)).mean()
        )
        of = draw_unseen_tasks(0, N, 40, max(lengths), GAMMA, "boyan", "limits fits")
        rows = where(fits, length=m)
        assert rows["algo"].tolist() == ["td", "mc"] and rows["msve"].nunique() == 2
        np.testing.assert_allclose(rows["lstd"], of.error(lstd(of.context(m), GAMMA, ridge)).mean())
