"""Symmetry: eight numbers, identities, the equation of the mean, and the three questions, on small examples."""

import itertools

import numpy as np
import pandas as pd
import pytest
from tolerances import ROUNDING

import ictd
from ictd.context import Context
from ictd.evaluation import draw_unseen_tasks
from ictd.rng import generator
from ictd.transformer import Weights
from ictd.weight_measures import unidentifiable_direction
from studies.emergence import (
    few_numbers,
    identities,
    mean_field,
    parts,
    questions,
    relabelled,
    softmax,
    symmetry,
    symmetry_results,
)

GAMMA, STATES, DEPTH = 0.9, 3, 4
SETTING = {
    "algo": "td",
    "env": "relabelled_boyan",
    "states": STATES,
    "depth": DEPTH,
    "discount": GAMMA,
    "optimizer": "adam",
    "learning_rate": 0.001,
    "batch_size": 64,
}


def random_matrices(*shape):
    return np.random.default_rng(0).normal(size=(*shape, 2 * STATES, 2 * STATES))


def test_the_label_mean_is_the_mean_over_all_permutations():
    A = random_matrices(2)
    orders = [[*order, *(STATES + i for i in order)] for order in itertools.permutations(range(STATES))]
    expected = np.mean([A[:, order][:, :, order] for order in orders], axis=0)
    np.testing.assert_allclose(symmetry.label_mean(A), expected, atol=ROUNDING)


def test_eight_numbers_are_the_label_mean_up_to_directions_without_effect():
    A = random_matrices()
    a = unidentifiable_direction(STATES, GAMMA)
    eight = few_numbers.basis(8, STATES)
    found = few_numbers.nearest(A + np.outer(a, np.arange(6)), eight, GAMMA)
    expected = symmetry.label_mean(symmetry.shortest_identifiable(A, GAMMA))
    np.testing.assert_allclose(found, expected, atol=1e-12)
    np.testing.assert_allclose(few_numbers.nearest(A, symmetry.classes(STATES), GAMMA), expected, atol=1e-12)


def test_the_share_of_the_mean_does_not_count_noise():
    noise, eight = random_matrices(400), few_numbers.basis(8, STATES)
    mean = symmetry.shortest_identifiable(symmetry.label_mean(random_matrices()) + 0.2 * random_matrices(), GAMMA)
    expected = few_numbers.share(mean, eight, GAMMA)
    found = symmetry.share_of_mean(mean + noise, eight, GAMMA)
    assert found.low < expected < found.high and found.high - found.low < 0.2
    assert few_numbers.share(mean + noise, eight, GAMMA).mean() < found.low


@pytest.mark.parametrize("engine", ["compiled", "torch"])
def test_deviations_from_identities_are_rounding_and_those_of_controls_are_not(engine, monkeypatch):
    def over_rounding(formula):
        # Terms of a gradient nearly cancel in this setting, and rounding is 80 times as large as in others.
        found = pd.DataFrame([identities.deviations("td", "dense_rows", 10, engine)]).assign(states=10, engine=engine)
        tables = {"equivariance": found, "drift": drift.assign(formula=formula)}
        return {claim.setting: claim.value for claim in symmetry_results.identities.decide(tables)}

    drift = pd.DataFrame(identities.drifts("boyan", STATES, DEPTH, GAMMA, 0.4, tasks=3))
    assert (drift.formula[drift.direction != "outside"] > 0).all()
    assert max(over_rounding(drift.formula).values()) < 0.1
    monkeypatch.setattr(identities, "moved", lambda *weights: weights)
    wrong = over_rounding(1.000001 * drift.formula)
    assert min(wrong[name] for name in (f"permuted-{engine}", "drift-mc", "drift-td")) > 1e5


def test_constants_grow_by_their_factor_from_layer_to_layer():
    numbers = np.array([0.9, 0.5, 0.2, 0.1])
    A = np.tensordot(numbers, few_numbers.basis(4, STATES), axes=1)
    np.testing.assert_allclose(symmetry.family_part(A), np.tensordot(numbers[:2], few_numbers.basis(2, STATES), axes=1))
    data = draw_unseen_tasks(0, STATES, 2, 1, GAMMA, "boyan")
    factor = symmetry.constant_factor(A, GAMMA)
    np.testing.assert_allclose(factor, 1 - (0.9 + 1.5) / 3 * (1 - GAMMA) + (0.2 + 0.3) / 3 * (1 + GAMMA))
    np.testing.assert_allclose(symmetry.step_sizes(A[None], GAMMA), [[0.9 / 3, 0.5 / 3]])
    estimate = (0.9 + 1.5 - 0.2 - 0.3) / 3 * (factor ** np.arange(DEPTH)).sum()
    found = relabelled.error_of_constants(Weights(np.zeros((1, 6)), A[None]), data, DEPTH)
    np.testing.assert_allclose(found, abs((1 - GAMMA) * estimate - 1))


def test_runs_are_those_of_pretrain():
    chains = ictd.TaskDistribution("relabelled_boyan", states=STATES)
    expected = ictd.pretrain(chains, DEPTH, GAMMA, updates=20, seeds=3, progress=False).weights.A
    found = mean_field.run(SETTING | {"snapshots": [5, 20], "initial_gain": 0.1}, seed=3)
    np.testing.assert_array_equal(found[1], expected)


def test_a_copy_whose_weights_fluctuate_is_a_run_with_plain_gradients():
    setting = SETTING | {"optimizer": "sgd", "snapshots": [3, 9]}
    found = mean_field.equation(setting | {"label_free": False, "copies": 1, "averaged": []})
    parameter, gradient = np.zeros(6 + 36), symmetry.Gradient(STATES, DEPTH, GAMMA)
    for task in symmetry.tasks_of("relabelled_boyan", STATES, "td", GAMMA, 9, seed=2**32):
        parameter -= 0.001 * gradient(parameter, task)
    np.testing.assert_allclose(found[1].ravel(), parameter[6:], rtol=1e-12, atol=1e-15)


def test_the_equation_steps_by_the_mean_ratio_of_adams_moments():
    setting = SETTING | {"snapshots": [1, 2], "label_free": True, "copies": 3, "averaged": symmetry_results.PARTS}
    found = mean_field.equation(setting)
    tasks = [*symmetry.tasks_of("relabelled_boyan", STATES, "td", GAMMA, 6, seed=2**32)]
    gradient, A, moments = symmetry.Gradient(STATES, DEPTH, GAMMA), np.zeros((6, 6)), np.zeros((2, 3, 36))
    for count in (1, 2):
        parameter = np.concatenate([np.zeros(6), A.ravel()])
        g = np.stack([gradient(parameter, task)[6:] for task in tasks[3 * count - 3 : 3 * count]])
        moments = np.stack([0.9 * moments[0] + 0.1 * g, 0.999 * moments[1] + 0.001 * g**2])
        ratio = moments[0] / (1 - 0.9**count) / (np.sqrt(moments[1] / (1 - 0.999**count)) + 1e-8)
        A = symmetry.label_mean(A - 0.001 * ratio.mean(axis=0).reshape(6, 6))
        np.testing.assert_allclose(found[count - 1], A, atol=1e-12)


def test_softmax_attention_is_deflated_td():
    scores = 0.7 * np.eye(STATES)
    total = np.exp(0.7) + STATES - 1
    A = softmax.attention_weights(2.0, softmax.attend(scores, np.ones(STATES)))
    np.testing.assert_allclose(symmetry.step_sizes(A, GAMMA), [2.0 * (np.exp(0.7) - 1) / total, 2.0 / total])
    assert few_numbers.share(A, few_numbers.basis(2, STATES), GAMMA) == pytest.approx(1)
    assert softmax.temperature(scores) == pytest.approx(0.7)


def test_estimates_with_softmax_are_those_of_the_transformer():
    data, scores = draw_unseen_tasks(0, STATES, 2, 7, GAMMA, "boyan"), np.random.default_rng(0).normal(size=(3, 3))
    for length in (0, 7):
        expected = np.empty(2)
        for i in range(2):
            shares, P = (array[i] for array in softmax.columns_of(data.context(length)))
            A = softmax.attention_weights(0.5, softmax.attend(scores, shares))
            model = ictd.Model(Weights(np.zeros(6), A), DEPTH, GAMMA)
            values = model.values(Context.of_shares(3, P / 3, data.tasks.reward[i]))
            expected[i] = data.tasks.stationary[i] @ (values - data.value[i]) ** 2
        np.testing.assert_allclose(softmax.errors(0.5, scores, data, length, DEPTH), expected)


def test_slopes_of_scores_are_derivatives():
    numbers, gradient, columns = np.random.default_rng(0).normal(size=10), random_matrices(), np.array([5, 0, 2])

    def value(numbers):
        attention = softmax.attend(softmax.scores_of(numbers), columns)
        return (gradient * softmax.attention_weights(numbers[0], attention)).sum()

    expected = [(value(numbers + step) - value(numbers - step)) / 2e-6 for step in 1e-6 * np.eye(10)]
    np.testing.assert_allclose(softmax.slopes(numbers, columns, gradient), expected, atol=1e-7)


def test_the_best_temperature_has_the_lowest_error():
    data = draw_unseen_tasks(0, STATES, 20, 7, GAMMA, "boyan")
    step, scores = softmax.best_numbers(data, 7, DEPTH)
    others = [(step * (1 + i), scores * (1 + j)) for i in (-0.1, 0, 0.1) for j in (-0.1, 0, 0.1)]
    errors = [softmax.errors(*other, data, 7, DEPTH).mean() for other in others]
    assert np.argmin(errors) == 4


def test_runs_with_one_depth_and_discount_are_those_of_pretrain():
    found = questions.random_settings("boyan", STATES, [DEPTH] * 2, [GAMMA] * 2, 20, seed=1)
    chains = ictd.TaskDistribution("boyan", states=STATES)
    expected = ictd.pretrain(chains, DEPTH, GAMMA, updates=20, seeds=1, progress=False).weights
    np.testing.assert_array_equal(found.A, expected.A)


def test_some_of_draws_from_a_fixed_set():
    tasks = ictd.sample_tasks("boyan", STATES, 2, np.random.default_rng(0))
    _, reward = questions.some_of(tasks)(STATES, 50, np.random.default_rng(1))
    np.testing.assert_array_equal(np.unique(reward, axis=0), np.unique(tasks.reward, axis=0))


def test_errors_of_parts_and_of_both_kinds_of_tasks(tmp_path):
    cell = "td", "boyan", STATES, DEPTH, GAMMA
    relabelled.main(*cell, 2, 10, 5, [2, 4], [], tmp_path / "runs.npz")
    runs = np.load(tmp_path / "runs.npz")
    parts.main("boyan", STATES, DEPTH, GAMMA, 5, tmp_path / "runs.npz", tmp_path / "parts.csv")
    table = pd.read_csv(tmp_path / "parts.csv").set_index(["env", "part"])
    for i, env in enumerate(("boyan", "relabelled_boyan")):
        A = symmetry.shortest_identifiable(runs["A"][i], GAMMA)
        np.testing.assert_allclose(sum(parts.parts_of(A, GAMMA).values()), A, atol=ROUNDING)
        tasks = ictd.sample_tasks(env, STATES, 5, generator(0, env, STATES, "parts"))
        expected = np.median(questions.enumerated_errors(few_numbers.without_u(A), tasks, GAMMA, DEPTH))
        steps = table.loc[env].sort_values("step")["median"]
        np.testing.assert_allclose(steps.iloc[-1], expected)
        assert len(steps) == 10 and steps["nothing"] > steps["two numbers"] > 0
