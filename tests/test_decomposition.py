"""What prompts see of weights, what the weights consist of, and their errors on unseen tasks."""

import numpy as np
import pytest
import torch
from naive import larger_weights
from tolerances import ROUNDING

import ictd
from ictd.anatomy import (
    decomposition_measures,
    preconditioned_td,
    preconditioner,
    project_identifiable,
    residual,
    unidentifiable_direction,
)
from ictd.evaluation import batch_td_msve, draw_unseen_tasks, tune_step_size, weights_msve
from ictd.prompt import ENUMERATED, Gram, enumerated_columns
from ictd.transformer import estimates


def some_weights(states, runs=3):
    parts = [larger_weights(states, seed) for seed in range(runs)]
    return ictd.Weights(np.stack([part.u for part in parts]), np.stack([part.A for part in parts]))


@pytest.mark.parametrize("scaled", [True, False])
@pytest.mark.parametrize(
    ("env", "states", "length", "depth"), [("boyan", 5, 17, 4), ("loop", 2, 1, 1), ("loop", 7, 60, 6)]
)
def test_gram_estimates_are_those_of_whole_prompts(env, states, length, depth, scaled):
    data = draw_unseen_tasks(0, states, 4, length, 0.9, env)
    weights, reward = some_weights(states), data.tasks.reward
    cases = (
        (
            Gram.of_columns(enumerated_columns(data.tasks.transition, data.tasks.reward, 0.9)),
            ictd.enumerated_columns(data.tasks.transition, reward, 0.9),
        ),
        (data.context(length).gram(0.9), ictd.sampled_columns(data.paths, reward, 0.9)),
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
    data = draw_unseen_tasks(1, states, 5, 12, discount, env)
    weights = some_weights(states)
    rng, a = np.random.default_rng(0), unidentifiable_direction(states, discount)
    added = ictd.Weights(weights.u + 3 * a, weights.A + a[:, None] * rng.normal(size=2 * states))
    other = ictd.Weights(weights.u, weights.A + rng.normal(size=(2 * states, 1)) * a)
    for gram in (
        Gram.of_columns(enumerated_columns(data.tasks.transition, data.tasks.reward, discount)), data.context(12).gram(discount)
    ):  # fmt: skip
        found = estimates(weights, gram, 5)
        for same in (added, project_identifiable(weights, discount), project_identifiable(added, discount)):
            np.testing.assert_allclose(estimates(same, gram, 5), found, atol=1e-10 * np.abs(found).max())
        assert np.abs(estimates(other, gram, 5) - found).max() > 0.01 * np.abs(found).max()
    np.testing.assert_allclose(
        project_identifiable(added, discount).A, project_identifiable(weights, discount).A, atol=ROUNDING * 10
    )


@pytest.mark.parametrize(
    ("env", "states", "free"), [("boyan", 2, 4), ("boyan", 3, 6), ("boyan", 5, 10), ("loop", 3, 6), ("loop", 5, 10)]
)
def test_there_are_no_other_directions_that_no_prompt_sees(env, states, free):
    tasks = ictd.sample_tasks(env, states, 40, ictd.generator(2, env, states, "tasks"))
    basis = np.eye(4 * states**2).reshape(-1, 2 * states, 2 * states)
    rows, contexts = [], ictd.enumerated_columns(tasks.transition, tasks.reward, 0.9)[:, :-1]
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
    a = unidentifiable_direction(4, 0.9)
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
    np.testing.assert_allclose(preconditioner(preconditioned_td(K)), K)
    assert decomposition_measures(ictd.Weights(zero, preconditioned_td(K)), 0.9)["outside"] == pytest.approx(
        0, abs=ROUNDING
    )
    with np.errstate(invalid="ignore"):
        opposite = decomposition_measures(ictd.Weights(zero, np.concatenate([K, K], axis=1)), 0.9)
    assert opposite["outside"] == pytest.approx(1)
    left = residual(project_identifiable(some_weights(4), 0.9).A)
    assert np.abs((left * theta.A).sum(axis=(1, 2))).max() < 1e-10


@pytest.mark.parametrize("scaled", [True, False])
def test_theta_td_on_enumerated_prompts_is_value_iteration(scaled):
    data, sizes = draw_unseen_tasks(0, 3, 30, 10, 0.9, "boyan"), np.array([0.25, 0.5, 1.0])
    steps = sizes * (3 if scaled else 1)
    theta = ictd.Weights(np.zeros((3, 6)), steps[:, None, None] * ictd.theta_td(3).A)
    by_td = batch_td_msve(data, 40, [data.context(ENUMERATED)], steps, scaled)[0]
    np.testing.assert_allclose(
        by_td.mean(axis=1), weights_msve(theta, data, [ENUMERATED], 40, scaled).mean(axis=-1)[:, 0], rtol=1e-9
    )
    value = np.zeros((30, 3))
    for _ in range(40):
        value = data.tasks.reward + 0.9 * np.matvec(data.tasks.transition, value)
    np.testing.assert_allclose(by_td[2], data.error(value), rtol=1e-9)
    assert tune_step_size(data, 40, [data.context(ENUMERATED)], steps, scaled).argmin() == 2


def test_seen_leaves_nothing_in_the_lower_halves():
    weights, a = some_weights(4), unidentifiable_direction(4, 0.9)
    found = project_identifiable(weights, 0.9)
    assert np.abs(found.u[:, 4:].sum(axis=1)).max() < ROUNDING * 10
    assert np.abs(found.A[:, 4:].sum(axis=1)).max() < ROUNDING * 10
    # What was taken out lies along a.
    for before, after in ((weights.u, found.u), (weights.A.swapaxes(1, 2), found.A.swapaxes(1, 2))):
        taken = before - after
        np.testing.assert_allclose(taken, (taken @ a / (a @ a))[..., None] * a, atol=ROUNDING * 10)
        assert np.abs(taken).max() > 0.01


def test_measures_are_their_definitions():
    n, gamma, weights = 3, 0.8, larger_weights(3, 7)
    a = np.array([-gamma] * n + [1.0] * n)
    u = weights.u - weights.u[n:].mean() * a
    A = np.column_stack([column - column[n:].mean() * a for column in weights.A.T])
    whole, K = (A**2).sum(), (A[:, n:] - A[:, :n]) / 2
    G, H = K[:n], K[n:]
    theta = (np.trace(A[:n, n:]) - np.trace(A[:n, :n])) / (2 * n)
    along, kept = theta**2 * 2 * n / whole, 2 * (K**2).sum() / whole
    diagonal = np.trace(G) ** 2 / n / (G**2).sum()
    expected = {
        "unidentifiable": sum((a @ column) ** 2 / (a @ a) for column in weights.A.T) / (weights.A**2).sum(),
        "alpha": theta / n, "cosine": np.sign(theta) * np.sqrt(along), "theta": along, "preconditioner": kept - along,
        "outside": 1 - kept, "H": (H**2).sum() / (K**2).sum(), "diagonal": diagonal,
        "symmetric": (((G + G.T) / 2) ** 2).sum() / (G**2).sum() - diagonal,
        "u": np.linalg.norm(u) / np.linalg.norm([*u, 1]),
    }  # fmt: skip
    found = decomposition_measures(weights, gamma)
    assert set(found) == set(expected)
    for name, value in expected.items():
        assert found[name] == pytest.approx(value), name


@pytest.mark.parametrize("shape", [(0,), (3,), ()])
def test_weights_of_no_state_are_refused(shape):
    with pytest.raises(ValueError, match=r"u has shape .*; give"):
        ictd.Weights(np.zeros(shape), np.zeros(shape + shape[-1:]))
