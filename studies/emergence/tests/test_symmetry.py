"""Symmetry: eight numbers, identities, the equation of the mean, and the three questions, on small examples."""

import itertools

import numpy as np
import pandas as pd
import pytest
from tolerances import ROUNDING

import ictd
from ictd.context import Context
from ictd.evaluation import draw_unseen_tasks, layer_measures
from ictd.transformer import Weights, theta_td
from ictd.weight_measures import unidentifiable_direction
from studies.emergence import (
    constants,
    few_numbers,
    identities,
    mean_field,
    questions,
    relabelled,
    space,
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
    "start_matrix": [[0, 0], [0, 0]],
    "confined_from": 0,
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


def test_layers_are_exact_for_constants_by_the_law():
    alpha, beta = 0.9, 0.3
    t = constants.outside_by_law(alpha + STATES * beta, GAMMA, DEPTH)
    for a, b in ((t, 0), (0, t / STATES)):
        A = STATES * np.tensordot([alpha, beta, a, b], few_numbers.basis(4, STATES), axes=1)
        data = draw_unseen_tasks(0, STATES, 2, 1, GAMMA, "boyan")
        error = relabelled.error_of_constants(Weights(np.zeros((1, 6)), A[None]), data, DEPTH)
        np.testing.assert_allclose(error, 0, atol=1e-5)
        numbers = constants.eight_numbers(A, GAMMA)
        np.testing.assert_allclose(numbers[:4], [alpha, beta, a, b], atol=ROUNDING)
        np.testing.assert_allclose(constants.on_constants(numbers, STATES, GAMMA), [1.8, t])
    assert np.isnan(constants.outside_by_law(0.6, GAMMA, DEPTH))


def test_the_stiffness_is_the_ratio_of_derivatives_and_of_the_hessian_for_constants():
    def answer(s, t):
        return (s - t) * ((1 - s * (1 - GAMMA) + t * (1 + GAMMA)) ** np.arange(DEPTH)).sum()

    numbers, small = np.array([0.3, 0.1, 0.05, 0.0, 0.0, 0.0]), 1e-6
    s, t = constants.on_constants(numbers, STATES, GAMMA)
    slopes = [answer(s + a, t + b) - answer(s - a, t - b) for a, b in ((small, 0), (0, small))]
    ratio = constants.stiffness(s, t, GAMMA, DEPTH)
    np.testing.assert_allclose(ratio, slopes[1] / slopes[0], rtol=1e-6)
    transition = np.full((1, STATES, STATES), 1 / STATES)
    hessian = constants.hessian(numbers, ictd.Tasks(transition, np.ones((1, STATES))), GAMMA, DEPTH)
    direction = np.outer([1, ratio], [1, STATES, GAMMA]).ravel()[[0, 1, 3, 4, 2, 5]]
    slope = slopes[0] / (2 * small) * direction
    np.testing.assert_allclose(hessian, np.outer(slope, slope), rtol=1e-5)


def test_the_confined_equation_has_two_numbers_and_the_law():
    setting = SETTING | {"snapshots": [3], "label_free": True, "copies": 2, "averaged": symmetry_results.PARTS}
    setting |= {"start_matrix": [[-1.8, 1.9], [0.1, 0]], "confined_from": 2}
    numbers = constants.eight_numbers(mean_field.equation(setting)[0], GAMMA)
    s = numbers[0] + STATES * numbers[1]
    np.testing.assert_allclose(numbers[2], constants.outside_by_law(s, GAMMA, DEPTH))
    np.testing.assert_allclose(numbers[3:], 0, atol=ROUNDING)
    free = constants.eight_numbers(mean_field.equation(setting | {"confined_from": 0})[0], GAMMA)
    assert 0 < np.abs(free[:2] - numbers[:2]).max() < 0.01 and abs(free[4]) > 0.01


SPACE = {"env": "boyan", "states": STATES, "depth": DEPTH, "corners": [1.0], "seeds": 2, "learning_rate": 0.001}


@pytest.mark.parametrize(("algo", "clip"), [("td", 0), ("mc", 0.5)])
def test_pretraining_of_all_of_P_and_Q_is_that_of_the_library(algo, clip):
    attention = ictd.GramAttention(STATES, DEPTH, seeds=range(2))
    chains = ictd.TaskDistribution("boyan", states=STATES)
    settings = {"target": algo, "updates": 10, "seeds": range(2), "clip": clip, "progress": False}
    ictd.pretrain_attention(attention, chains, GAMMA, **settings)
    P, Q = space.pretrained(SPACE | {"algo": algo, "clip": clip}, GAMMA, 10)
    np.testing.assert_allclose(P[0], attention.P.detach()[:, 0, 0], atol=ROUNDING)
    np.testing.assert_allclose(Q[0], attention.Q.detach()[:, 0, 0], atol=ROUNDING)


def test_measures_of_the_whole_space_are_those_of_weights_and_of_both_signs(tmp_path):
    start = space.initial_parameters(STATES, [0.0, 2.0], 1)
    assert (start[0, :, 0, -1, -1] == [0, 2]).all() and (start[:, 0] == start[:, 1]).sum() == 2 * 49 - 1
    P, Q = space.kept(*start)
    P[..., -1, -1] = 1
    data = draw_unseen_tasks(0, STATES, 5, 1, GAMMA, "boyan", "space")
    layers = space.estimates_by_layer(P, Q, space.prompts(data.tasks, GAMMA), DEPTH)
    weights = few_numbers.without_u(Q[0, 0, :-1, :-1])
    expected = ictd.Model(weights, DEPTH, GAMMA).values(Context.enumerated(data.tasks.transition, data.tasks.reward))
    np.testing.assert_allclose(layers[-1, 0, 0], expected)
    found = space.layer_is_td(layers, data, GAMMA)
    np.testing.assert_allclose(found[0, 0], layer_measures(weights, data, DEPTH)["layer_is_td"])
    both = [space.measures(*pair, GAMMA) for pair in ((P, Q), (-P, -Q))]
    for name, value in both[0].items():
        np.testing.assert_allclose(value, both[1][name])
    A = theta_td(STATES).A + np.kron([[0, 0.5], [0, 0]], np.eye(STATES))
    Q[..., :-1, :-1] = -A
    found = space.measures(P, Q, GAMMA)
    np.testing.assert_allclose(found["bootstrap"], 1.5)
    np.testing.assert_allclose(found["pattern"], -(2.5**2) / (2 * (1 + 1.5**2)))
    np.testing.assert_allclose(found["corner_share"], 1)
    space.main(SPACE | {"algo": "td", "clip": 0}, GAMMA, 3, 5, tmp_path / "space.csv")
    row = pd.read_csv(tmp_path / "space.csv").iloc[0]
    assert row.zero > 0 and row.u_share > 0 and row.kept != row["median"]


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
    relabelled.main("td", "boyan", STATES, DEPTH, GAMMA, 2, 10, 5, [2, 4], [], tmp_path / "runs.npz")
    runs = np.load(tmp_path / "runs.npz")
    for i, env in enumerate(("boyan", "relabelled_boyan")):
        data = draw_unseen_tasks(0, STATES, 5, 4, GAMMA, env, "symmetry")
        everything = few_numbers.without_u(runs["A"][i])
        expected = np.median(questions.enumerated_errors(everything, data.tasks, GAMMA, DEPTH), axis=-1)
        np.testing.assert_allclose(runs["parts"][i, -1], expected)
        np.testing.assert_allclose(runs["parts"][i, 0], np.median(data.error(0 * data.value)))
        # After ten updates no t makes constants exact.
        assert np.isnan(runs["parts"][i, 3]).all() and len(np.unique(runs["parts"][i])) == 2 * 4 + 2
