"""Kernels, minimisers and forms, compared with slow computations."""

from dataclasses import replace

import naive
import numpy as np
import pytest
from drawn import where
from tolerances import DIFFERENCES, ROUNDING

import ictd
from ictd.baselines import certainty_equivalence, lstd
from ictd.evaluation import draw_unseen_tasks, weights_msve
from ictd.mrp import msve
from ictd.report.tables import load_table
from ictd.steps.theory.agreement import gradients_by_engine
from ictd.training_data import sample_contexts
from ictd.transformer import estimates
from ictd.weight_measures import decomposition_measures
from studies.limits import forms, shrinkage
from studies.limits.course import train
from studies.limits.descend import expected_updates
from studies.limits.engine import enumerated_prompts, parameters_of, sampled_prompts, weights_of
from studies.limits.forms import baseline_errors, importance_of_lengths
from studies.limits.minimise import (
    SMALL,
    MeanMsve,
    diagonalise,
    family_basis,
    identifiable_basis,
    minimise,
    msve_of_parameters,
)
from studies.limits.shrinkage import MeanTask, draw_tasks, fits

GAMMA, N, DEPTH = 0.9, 3, 4
WIDE = 2 * N
LENGTHS = np.array([4, 7, 9, 5, 20, 3])
# Step of central differences.
STEP = 1e-6
# Context length and pseudo-counts of the outputs that are fitted, and the context length of the baselines.
FIT_LENGTH = 8
FIT_K = 6
CHOICE_LENGTH = 6


@pytest.fixture
def tasks():
    return draw_tasks("uniform", N, len(LENGTHS), np.random.default_rng(0))


@pytest.fixture
def context(tasks):
    return sample_contexts(tasks, LENGTHS, np.random.default_rng(1))


@pytest.fixture(params=["enumerated", "sampled"])
def prompts(request, tasks, context):
    enumerated = enumerated_prompts(tasks, GAMMA)
    if request.param == "enumerated":
        return enumerated
    return sampled_prompts(context.gram_matrix(GAMMA), enumerated.target, enumerated.weight)


def parameters(gain=1.3):
    """Parameters with larger weights than the initial ones, and a gain."""
    vector = parameters_of(naive.larger_weights(N, 0))
    vector[-1] = gain
    return vector


def central_differences(function, z):
    """Derivatives of a function with respect to each entry of z, along the first axis."""
    sides = [[function(z + sign * change) for change in STEP * np.eye(len(z))] for sign in (1, -1)]
    return (np.array(sides[0]) - np.array(sides[1])) / (2 * STEP)


def naive_estimates(weights, tasks):
    """TF_L on whole enumerated prompts."""
    return np.array(
        [
            naive.enumerated_values(weights, DEPTH, transition, reward, GAMMA)
            for transition, reward in zip(tasks.transition, tasks.reward, strict=True)
        ]
    )


def test_estimates_on_enumerated_prompts_equal_the_transformer(tasks):
    prompts = enumerated_prompts(tasks, GAMMA)
    (found,) = msve_of_parameters(prompts, DEPTH).estimates(parameters())
    np.testing.assert_allclose(found, 1.3 * naive_estimates(weights_of(parameters(), N), tasks), rtol=1e-10)


def test_estimates_on_sampled_prompts_equal_the_transformer(tasks, context):
    gram = context.gram_matrix(GAMMA)
    prompts = sampled_prompts(gram, np.zeros((len(tasks), N)), tasks.stationary)
    (found,) = msve_of_parameters(prompts, DEPTH).estimates(parameters())
    np.testing.assert_allclose(found, 1.3 * estimates(weights_of(parameters(), N), gram, DEPTH), rtol=1e-10)


def test_the_value_is_the_mean_msve(tasks, prompts):
    objective = msve_of_parameters(prompts, DEPTH)
    (found,) = objective.estimates(parameters())
    expected = msve(tasks.stationary, prompts.target, found).mean()
    np.testing.assert_allclose(objective.value_and_gradient(parameters())[0], expected, rtol=ROUNDING)


def test_gradient_equals_finite_differences(prompts):
    objective = msve_of_parameters(prompts, DEPTH)
    slow = central_differences(lambda z: objective.value_and_gradient(z)[0], parameters())
    found = objective.value_and_gradient(parameters())[1]
    np.testing.assert_allclose(found, slow, atol=DIFFERENCES * np.abs(slow).max())


def gauss_newton_hessian(objective, prompts):
    """2 J'J / N by differences of estimates."""
    derivatives = central_differences(lambda z: objective.estimates(z)[0], parameters())
    J = (np.sqrt(prompts.weight) * derivatives).reshape(len(parameters()), -1)
    return 2 * J @ J.T / len(prompts)


def triangle(objective, z):
    """The triangular factor (k + 1, k + 1) of the QR factorisation of [J, r] / sqrt(N)."""
    ((jacobian, residuals),) = objective.jacobians(z, np.eye(len(z)))
    return np.linalg.qr(np.column_stack([jacobian, residuals]) / np.sqrt(objective.count), mode="r")


def test_jacobian_equals_finite_differences(prompts):
    objective = msve_of_parameters(prompts, DEPTH)
    slow = gauss_newton_hessian(objective, prompts)
    found = 2 * objective.product(parameters())
    np.testing.assert_allclose(found, slow, atol=DIFFERENCES * np.abs(slow).max())


def test_the_product_keeps_small_derivatives(tasks):
    """With many layers, derivatives within the family are small compared with all others."""
    basis = family_basis(N, GAMMA)
    theta = parameters_of(ictd.Weights(np.zeros(WIDE), N * ictd.theta_td(N).A))
    objective = MeanMsve([(enumerated_prompts(tasks, GAMMA), basis)], 150)
    R = triangle(objective, basis.T @ theta)[:, :-1]
    found = objective.product(basis.T @ theta)
    np.testing.assert_allclose(found, R.T @ R, atol=1e-12 * np.abs(R.T @ R).max())


def test_products_and_singular_values_give_the_same_model(tasks):
    objective = MeanMsve([(enumerated_prompts(tasks, GAMMA), family_basis(N, GAMMA))], DEPTH)
    z = family_basis(N, GAMMA).T @ parameters()
    gradient = objective.value_and_gradient(z)[1]
    model = diagonalise(2 * objective.product(z), gradient)
    singular = objective.singular_model(z, model)
    for damping in (1e-3, 1e-6):
        steps = [axes @ (slope / (curvature + damping)) for axes, curvature, slope in (singular, model)]
        np.testing.assert_allclose(*steps, atol=1e-8 * np.abs(steps[0]).max())


@pytest.mark.parametrize("distance", [0, 1e-3, 1])
def test_scaled_products_keep_singular_values_that_the_product_loses(distance):
    """With many layers, from the model of the product, and from the models at points at some distance."""
    tasks = draw_tasks("uniform", N, 60, np.random.default_rng(0))
    basis = identifiable_basis(N, GAMMA)
    objective = MeanMsve([(enumerated_prompts(tasks, GAMMA), basis)], 100)
    z = basis.T @ parameters_of(ictd.Weights(np.zeros(WIDE), N * ictd.theta_td(N).A))
    R = triangle(objective, z)
    left, singular, axes = np.linalg.svd(R[:, :-1], full_matrices=False)
    assert singular[-1] < 1e-10 * singular[0]
    model = diagonalise(2 * objective.product(z), np.zeros(len(z)))
    if distance:
        model = objective.singular_model(z + distance * np.random.default_rng(0).normal(size=len(z)) / len(z), model)
    found = objective.singular_model(z, model)
    np.testing.assert_allclose(found.curvature, 2 * singular**2, rtol=1e-4)
    for damping in (1e-12, 1e-18):
        expected = axes.T @ (singular * (left.T @ R[:, -1]) / (singular**2 + damping * singular[0] ** 2))
        step = found.axes @ (found.slope / (found.curvature + damping * found.curvature[0]))
        np.testing.assert_allclose(step, expected, atol=1e-4 * np.abs(expected).max())


@pytest.mark.parametrize("depth", [1, 2, DEPTH])
def test_hessian_equals_finite_differences(prompts, depth):
    basis = np.eye(len(parameters()))[:, :-1]
    objective = MeanMsve([(prompts, basis)], depth, offset=1.3 * np.eye(len(parameters()))[-1])
    z = parameters()[:-1]
    slow = central_differences(lambda z: objective.value_and_gradient(z)[1], z)
    np.testing.assert_allclose(objective.hessian(z), slow, atol=DIFFERENCES * np.abs(slow).max())


def test_hessian_is_a_mean_over_parts(tasks):
    """Two parts with bases of their own."""
    prompts = enumerated_prompts(tasks, GAMMA)
    whole = identifiable_basis(N, GAMMA)
    objective = MeanMsve([(prompts[:2], whole), (prompts[2:], 0.5 * whole)], DEPTH)
    z = whole.T @ parameters()
    slow = central_differences(lambda z: objective.value_and_gradient(z)[1], z)
    np.testing.assert_allclose(objective.hessian(z), slow, atol=DIFFERENCES * np.abs(slow).max())


def test_hessian_of_a_small_msve_uses_the_jacobian(prompts):
    target = msve_of_parameters(prompts, DEPTH).estimates(parameters())[0] + 1e-6
    objective = msve_of_parameters(replace(prompts, target=target), DEPTH)
    assert objective.value_and_gradient(parameters())[0] < SMALL
    slow = gauss_newton_hessian(objective, prompts)
    np.testing.assert_allclose(objective.hessian(parameters()), slow, atol=DIFFERENCES * np.abs(slow).max())


def test_columns_reproduce_the_averages_of_their_contexts(tasks):
    gram = sample_contexts(tasks, np.full(len(tasks), 2), np.random.default_rng(1)).gram_matrix(GAMMA)
    prompts = sampled_prompts(gram, tasks.reward, tasks.stationary)
    assert prompts.X.shape == (len(tasks), WIDE, WIDE - 1)
    np.testing.assert_allclose(prompts.X @ prompts.X.mT, gram[:, :-1, :-1], atol=1e-14)
    np.testing.assert_allclose(np.matvec(prompts.X, prompts.y), gram[:, -1, :-1], atol=1e-14)


class SlowAdam:
    """Adam on the gradient at fixed targets, a task at a time, by ``MeanMsve`` with a basis for the heads."""

    def __init__(self, start, tasks, prompts, algo, rate, clip):
        self.heads = start.copy()
        self.mean, self.square = 0 * start, 0 * start
        self.tasks, self.prompts, self.algo, self.rate, self.clip = tasks, prompts, algo, rate, clip
        self.steps = 0

    def step(self, share, train_gain):
        task = self.tasks[self.steps : self.steps + 1]
        prompt = self.prompts[self.steps : self.steps + 1]
        basis = np.kron(share, np.eye(self.heads.shape[1]))
        offset = 0 * self.heads[0]
        z = self.heads.ravel()
        if self.algo == "td":
            (estimate,) = MeanMsve([(prompt, basis)], DEPTH, offset).estimates(z)
            prompt = replace(prompt, target=task.reward + GAMMA * np.matvec(task.transition, estimate))
        gradient = MeanMsve([(prompt, basis)], DEPTH, offset).value_and_gradient(z)[1] / 2
        gradient = gradient.reshape(self.heads.shape)
        if not train_gain:
            gradient[:, -1] = 0
        if self.clip:
            gradient = gradient * min(1, self.clip / np.linalg.norm(gradient))
        self.steps += 1
        self.mean = 0.9 * self.mean + 0.1 * gradient
        self.square = 0.999 * self.square + 0.001 * gradient**2
        mean = self.mean / (1 - 0.9**self.steps)
        square = self.square / (1 - 0.999**self.steps)
        self.heads = self.heads - self.rate * mean / (np.sqrt(square) + 1e-8)


@pytest.mark.parametrize("algo", ["td", "mc"])
@pytest.mark.parametrize(
    ("clip", "in_family", "train_gain"), [(0.0, False, False), (0.01, False, True), (0.0, True, False)]
)
def test_training_is_adam_on_the_gradient_at_fixed_targets(tasks, algo, clip, in_family, train_gain):
    start = parameters() / 3
    start[-1] = 1
    prompts, marks, rate = enumerated_prompts(tasks, GAMMA), [2, 6], 1e-2
    shares = np.ones((6, 1))
    found = train(start[None], shares, tasks, prompts, algo, DEPTH, GAMMA, rate, marks, clip, in_family, train_gain)
    slow = SlowAdam(start[None], tasks, prompts, algo, rate, clip)
    for i in range(6):
        slow.step(shares[i], train_gain)
        if in_family:
            A = weights_of(slow.heads[0], N).A
            K = (A[:, N:] - A[:, :N]) / 2
            slow.heads[0, :-1] = np.concatenate([np.zeros(WIDE), np.hstack([-K, K]).ravel()])
        if i + 1 in marks:
            np.testing.assert_allclose(found[marks.index(i + 1)], slow.heads, rtol=1e-9, atol=1e-12)
    assert (found[..., -1] != 1).all() == train_gain


@pytest.mark.parametrize("algo", ["td", "mc"])
def test_heads_are_trained_as_parts_of_their_sum(tasks, algo):
    start = np.stack([parameters() / 3, 0 * parameters()])
    start[0, -1] = 1
    shares = np.stack([np.ones(6), np.linspace(0.1, 0.9, 6)], axis=1)
    prompts = enumerated_prompts(tasks, GAMMA)
    (found,) = train(start, shares, tasks, prompts, algo, DEPTH, GAMMA, 1e-2, [6], 0.05)
    slow = SlowAdam(start, tasks, prompts, algo, 1e-2, 0.05)
    for share in shares:
        slow.step(share, train_gain=False)
    np.testing.assert_allclose(found, slow.heads, rtol=1e-9, atol=1e-12)
    assert np.abs(found[1]).max() > 1e-3


def test_training_that_diverges_is_nan(tasks):
    prompts = enumerated_prompts(tasks, GAMMA)
    start = 1e60 * parameters()[None]
    found = train(start, np.ones((6, 1)), tasks, prompts, "mc", DEPTH, GAMMA, 1e-3, [3, 6])
    assert np.isnan(found).all()


@pytest.mark.parametrize(
    ("basis", "dimension"),
    [(identifiable_basis(N, GAMMA), 4 * N**2 - 1), (family_basis(N, GAMMA), (2 * N - 1) * N)],
)
def test_bases_are_orthonormal_and_leave_the_gain(basis, dimension):
    assert basis.shape[1] == dimension
    np.testing.assert_allclose(basis.T @ basis, np.eye(dimension), atol=1e-12)
    assert not basis[-1].any()


def test_unidentifiable_directions_change_no_estimate(tasks):
    basis = identifiable_basis(N, GAMMA)
    z = parameters(gain=0)
    unidentifiable = z - basis @ (basis.T @ z)
    assert np.abs(unidentifiable).max() > 1e-3
    objective = MeanMsve([(enumerated_prompts(tasks, GAMMA), np.eye(len(z)))], DEPTH)
    np.testing.assert_allclose(objective.estimates(z)[0], objective.estimates(z - unidentifiable)[0], rtol=1e-9)


def test_family_members_have_no_part_outside():
    basis = family_basis(N, GAMMA)
    weights = weights_of(basis @ np.arange(1.0, 1 + basis.shape[1]), N)
    assert abs(decomposition_measures(weights, GAMMA)["outside"]) < 1e-12


def descent(basis):
    """The mean MSVE of many tasks on a basis, and its coordinates of theta^TD."""
    tasks = draw_tasks("uniform", N, 300, np.random.default_rng(0))
    theta = parameters_of(ictd.Weights(np.zeros(WIDE), N * ictd.theta_td(N).A))
    return MeanMsve([(enumerated_prompts(tasks, GAMMA), basis)], DEPTH), basis.T @ theta


def test_descents_end_where_the_gradient_is_zero():
    ends = []
    for basis in (identifiable_basis(N, GAMMA), family_basis(N, GAMMA)):
        objective, start = descent(basis)
        end = minimise(objective, start, 1e-10, 100, 8)
        assert end.gradient_norm < 1e-10 and end.steps <= 100
        assert end.value == objective.value_and_gradient(end.z)[0] < objective.value_and_gradient(start)[0] / 100
        ends.append(end.value)
    assert ends[0] < ends[1]


@pytest.mark.parametrize("newton_steps", [0, 2])
def test_a_descent_takes_no_more_newton_steps_than_allowed(monkeypatch, newton_steps):
    objective, start = descent(family_basis(N, GAMMA))
    calls, hessian = [], MeanMsve.hessian
    monkeypatch.setattr(MeanMsve, "hessian", lambda self, z: calls.append(z) or hessian(self, z))
    minimise(objective, start, 1e-14, 40, newton_steps)
    assert len(calls) == newton_steps


def test_a_descent_returns_the_best_point_of_its_validation():
    objective, start = descent(family_basis(N, GAMMA))
    end = minimise(objective, start, 1e-10, 100, validation=lambda z: float(np.linalg.norm(z - start)))
    assert end.steps == 0


def test_a_descent_does_not_start_where_the_msve_is_infinite():
    objective, start = descent(family_basis(N, GAMMA))
    assert minimise(objective, 1e200 * start, 1e-10, 100).steps == 0


def test_expected_updates_are_means_of_gradients_of_values(tasks):
    found = expected_updates(tasks, parameters(1.0), DEPTH, GAMMA)
    weights = weights_of(parameters(1.0), N)
    # gradients_by_engine has attention that is not divided by n.
    unscaled = ictd.Weights(weights.u, weights.A / N)
    values = naive_estimates(weights, tasks)
    true_values = ictd.value_function(tasks.transition, tasks.reward, GAMMA)
    updates = {"J_td": 0, "J_mc": 0}
    for i in range(len(tasks)):
        gradients = gradients_by_engine(unscaled, tasks.transition[i], tasks.reward[i], GAMMA, DEPTH)
        gradients[:, WIDE:] /= N
        td_target = tasks.reward[i] + GAMMA * tasks.transition[i] @ values[i]
        for name, target in (("J_td", td_target), ("J_mc", true_values[i])):
            updates[name] = updates[name] + (tasks.stationary[i] * (target - values[i])) @ gradients
    for name, update in updates.items():
        np.testing.assert_allclose(found[name], np.abs(update / len(tasks)).sum(), rtol=1e-9)


def test_tasks_are_shifted_as_their_kind_says():
    drawn = {
        kind: draw_tasks(kind, 5, 20_000, np.random.default_rng(0))
        for kind in ("uniform", "steps", "last_row", "rewards")
    }
    assert drawn["steps"].transition[:, 0, 1].mean() == pytest.approx(5 / 6, abs=0.01)
    assert (np.diff(drawn["last_row"].transition[:, -1].mean(axis=0)) < -0.05).all()
    assert drawn["rewards"].reward.mean() == pytest.approx(0.5, abs=0.01)
    assert drawn["uniform"].reward.mean() == pytest.approx(0, abs=0.01)


# Fits to outputs of LSTD with pseudo-counts of some chain


@pytest.fixture(scope="module")
def fit_data():
    return draw_unseen_tasks(0, N, 300, FIT_LENGTH, GAMMA, "boyan", "tests")


@pytest.fixture(scope="module")
def mean_tasks():
    rng, means = np.random.default_rng(0), {}
    for kind in ("uniform", "steps", "last_row"):
        many = draw_tasks(kind, N, 2000, rng)
        means[kind] = MeanTask(many.transition.mean(axis=0), many.stationary.mean(axis=0))
    return means


@pytest.fixture(scope="module")
def fitted(fit_data, mean_tasks):
    share = mean_tasks["uniform"].stationary[:, None]

    def fitted_to(chain, reward=0.0, noise=0.0):
        outputs = certainty_equivalence(fit_data.context(FIT_LENGTH), GAMMA, FIT_K * share * chain, reward)
        return fits(fit_data, FIT_LENGTH, outputs + noise, mean_tasks, ridge=0.1, pseudo_counts=FIT_K)

    return fitted_to


def test_errors_of_outputs_and_baselines(fit_data, mean_tasks, fitted):
    found = fitted(mean_tasks["uniform"].transition)
    assert found["msve"] == pytest.approx(found["pseudo_counts"]) and found["pseudo_counts"] < found["lstd"]
    assert found["lstd"] == pytest.approx(fit_data.error(lstd(fit_data.context(FIT_LENGTH), GAMMA, 0.1)).mean())


def test_the_fit_recovers_pseudo_counts_and_reward(mean_tasks, fitted):
    found = fitted(mean_tasks["uniform"].transition, 0.2)
    # The unit of rewards is 0.5, the shift of the kind "rewards".
    assert found["k"] == pytest.approx(FIT_K, rel=1e-4) and found["rewards"] == pytest.approx(0.2 / 0.5, rel=1e-4)
    assert found["explained_mean"] == pytest.approx(1) == found["explained_shifted"]
    assert found["explained_ridge"] < found["explained_unvisited"] < 0.99
    assert found["explained_ridge"] < found["explained_uniform"] < 0.99
    assert abs(found["steps"]) < 1e-3 and abs(found["last_row"]) < 1e-3


def test_the_fit_recovers_all_shifts_of_the_chain(mean_tasks, fitted):
    Q, steps, last_row = (mean_tasks[kind].transition for kind in ("uniform", "steps", "last_row"))
    found = fitted(Q + 0.7 * (steps - Q) + 1.2 * (last_row - Q), -0.1)
    assert found["steps"] == pytest.approx(0.7, abs=1e-3) and found["last_row"] == pytest.approx(1.2, abs=1e-3)
    assert found["rewards"] == pytest.approx(-0.1 / 0.5, abs=1e-3)
    assert found["explained_mean"] < found["explained_shifted"]


def test_fits_are_evaluated_on_other_tasks(mean_tasks, fitted):
    noise = np.random.default_rng(0).normal(size=(300, N))
    noise[:150] = 0
    assert fitted(mean_tasks["uniform"].transition, noise=noise)["explained_mean"] < 0.95


# Baselines


@pytest.fixture(scope="module")
def choice():
    return draw_unseen_tasks(0, N, 200, CHOICE_LENGTH, GAMMA, "boyan", "choice")


@pytest.fixture(scope="module")
def unseen_tasks():
    return draw_unseen_tasks(0, N, 200, CHOICE_LENGTH, GAMMA, "boyan", "test")


@pytest.fixture(scope="module")
def baselines(choice, unseen_tasks):
    return baseline_errors({CHOICE_LENGTH: choice}, {CHOICE_LENGTH: unseen_tasks})


@pytest.fixture(scope="module")
def mean_chain(choice):
    return choice.tasks.stationary.mean(axis=0)[:, None] * choice.tasks.transition.mean(axis=0)


def test_pseudo_counts_of_the_mean_chain_are_best(choice, baselines, mean_chain):
    errors, chosen = baselines
    k = chosen["pseudo_counts", CHOICE_LENGTH]
    assert {m for _, m in errors} == {CHOICE_LENGTH} and 1 < k < 100
    means = {method: msve.mean() for (method, _), msve in errors.items()}
    assert len(means) == 5 and min(means, key=means.get) == "pseudo_counts"
    errors_of_choice = choice.error(certainty_equivalence(choice.context(CHOICE_LENGTH), GAMMA, k * mean_chain))
    assert importance_of_lengths({CHOICE_LENGTH: choice})[CHOICE_LENGTH] == pytest.approx(1 / errors_of_choice.mean())


@pytest.mark.parametrize("method", ["mean chain in unseen states", "mean chain alone"])
def test_limits_of_few_and_many_pseudo_counts(unseen_tasks, baselines, mean_chain, method):
    context = unseen_tasks.context(CHOICE_LENGTH)
    visited = context.visits > 0
    p = np.broadcast_to(mean_chain / mean_chain.sum(axis=1, keepdims=True), context.D.shape)
    if method == "mean chain in unseen states":
        p = np.where(visited[..., None], context.D / np.where(visited, context.visits, 1)[..., None], p)
    values = np.linalg.solve(np.eye(N) - GAMMA * p, (unseen_tasks.tasks.reward * visited)[..., None])[..., 0]
    np.testing.assert_allclose(baselines[0][method, CHOICE_LENGTH], unseen_tasks.error(values), rtol=0.05)


def test_forms_and_fits_are_evaluated_on_unseen_tasks(tmp_path):
    """Tuned baselines, a form before its first step, and Transformers trained on contexts."""
    lengths, setting = [4, 9], (N, DEPTH, GAMMA, 60, 40)
    for form in ("baselines", "one"):
        forms.main(form, *setting, lengths, 0, [20], tmp_path / f"{form}.csv")
    shrinkage.main(
        "heads", N, DEPTH, GAMMA, 1e-2, 0.3, 30, 40, lengths, [20], 1, tmp_path / "baselines.csv", tmp_path / "fits.csv"
    )
    tuned, one, table = (load_table(tmp_path / f"{name}.csv") for name in ("baselines", "one", "fits"))
    theta = ictd.Weights(np.zeros(WIDE), forms.START * N * ictd.theta_td(N).A)
    for m in lengths:
        test = draw_unseen_tasks(m, N, 40, m, GAMMA, "boyan", "limits test")
        assert where(one, length=m)["msve"].mean() == pytest.approx(weights_msve(theta, test, [m], DEPTH).mean())
        of_lstd = where(tuned, method="lstd", length=m)
        ridge = of_lstd["chosen"].iloc[0]
        assert of_lstd["msve"].mean() == pytest.approx(test.error(lstd(test.context(m), GAMMA, ridge)).mean())
        unseen = draw_unseen_tasks(0, N, 40, max(lengths), GAMMA, "boyan", "limits fits")
        rows = where(table, length=m)
        assert rows["algo"].tolist() == ["td", "mc"] and rows["msve"].nunique() == 2
        np.testing.assert_allclose(rows["lstd"], unseen.error(lstd(unseen.context(m), GAMMA, ridge)).mean())
