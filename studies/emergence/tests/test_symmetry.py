"""Symmetry: eight numbers, identities, the equation of the mean, and the three questions, on small examples."""

import itertools

import numpy as np
import pandas as pd
import pytest
from tolerances import ROUNDING

import ictd
from ictd.context import Context
from ictd.evaluation import draw_unseen_tasks
from ictd.report.part import statements_in
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


def test_the_gradient_is_that_of_the_squared_error():
    task = next(symmetry.tasks_of("boyan", STATES, "mc", GAMMA, 1, seed=0))
    transition, reward, visits, _, sums = (array[0].astype(float) for array in task)
    parameter = np.random.default_rng(0).normal(0, 0.5, 6 + 36)

    def loss(parameter):
        model = ictd.Model(Weights(parameter[:6], parameter[6:].reshape(6, 6)), DEPTH, GAMMA)
        w = model.values(Context.enumerated(transition, reward))
        return (visits @ w**2 / 2 - sums @ w) / visits.sum()

    expected = [(loss(parameter + step) - loss(parameter - step)) / 2e-6 for step in 1e-6 * np.eye(42)]
    found = symmetry.Gradient(STATES, "mc", DEPTH, GAMMA)(parameter, task)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(("algo", "engine"), [("td", "compiled"), ("mc", "torch")])
def test_updates_commute_with_permutations_and_signs(algo, engine):
    assert max(identities.deviations(algo, "boyan", STATES, engine).values()) < 1e-12


def test_expected_updates_have_the_drift_of_the_formulas():
    found = pd.DataFrame(identities.drifts("boyan", STATES, DEPTH, GAMMA, 0.4, tasks=3))
    np.testing.assert_allclose(found.mc, found.formula, rtol=1e-10)
    np.testing.assert_allclose(found.td, (1 - GAMMA) * found.formula, rtol=1e-10)
    assert (found.formula[found.direction != "outside"] > 0).all()


def test_constants_grow_by_their_factor_from_layer_to_layer():
    numbers = np.array([0.9, 0.5, 0.2, 0.1])
    A = np.tensordot(numbers, few_numbers.basis(4, STATES), axes=1)
    data = draw_unseen_tasks(0, STATES, 2, 1, GAMMA, "boyan")
    factor = symmetry.constant_factor(A, GAMMA)
    np.testing.assert_allclose(factor, 1 - (0.9 + 1.5) / 3 * (1 - GAMMA) + (0.2 + 0.3) / 3 * (1 + GAMMA))
    np.testing.assert_allclose(symmetry.step_sizes(A, GAMMA), [0.9 / 3, 0.5 / 3])
    estimate = (0.9 + 1.5 - 0.2 - 0.3) / 3 * (factor ** np.arange(DEPTH)).sum()
    found = relabelled.error_of_constants(Weights(np.zeros((1, 6)), A[None]), data, DEPTH)
    np.testing.assert_allclose(found, abs((1 - GAMMA) * estimate - 1))


def test_runs_are_those_of_pretrain():
    chains = ictd.TaskDistribution("relabelled_boyan", states=STATES)
    expected = ictd.pretrain(chains, DEPTH, GAMMA, updates=20, seeds=3, progress=False).weights.A
    found = mean_field.run(**SETTING, snapshots=[5, 20], initial_gain=0.1, seed=3)
    np.testing.assert_array_equal(found[1], expected)


@pytest.mark.parametrize("optimizer", ["adam", "sgd"])
def test_copies_whose_weights_fluctuate_are_runs(optimizer):
    setting = {**SETTING, "optimizer": optimizer, "snapshots": [3, 9]}
    found = mean_field.equation(**setting, label_free=False, copies=1, averaged=[])
    start, updated = np.zeros(6 + 36), mean_field.update(STATES, "td", DEPTH, GAMMA, optimizer, 0.001)
    for task in symmetry.tasks_of("relabelled_boyan", STATES, "td", GAMMA, 9, seed=2**32):
        start = updated(start, task)
    np.testing.assert_allclose(found[1].ravel(), start[6:], rtol=1e-12, atol=1e-15)


def test_the_equation_steps_by_the_mean_ratio_of_adams_moments():
    setting = {**SETTING, "snapshots": [1, 2]}
    found = mean_field.equation(**setting, label_free=True, copies=3, averaged=["u", "eight", "outside"])
    tasks = [*symmetry.tasks_of("relabelled_boyan", STATES, "td", GAMMA, 6, seed=2**32)]
    gradient, A, moments = symmetry.Gradient(STATES, "td", DEPTH, GAMMA), np.zeros((6, 6)), np.zeros((2, 3, 36))
    for count in (1, 2):
        parameter = np.concatenate([np.zeros(6), A.ravel()])
        g = np.stack([gradient(parameter, task)[6:] for task in tasks[3 * count - 3 : 3 * count]])
        moments = np.stack([0.9 * moments[0] + 0.1 * g, 0.999 * moments[1] + 0.001 * g**2])
        ratio = moments[0] / (1 - 0.9**count) / (np.sqrt(moments[1] / (1 - 0.999**count)) + 1e-8)
        A = symmetry.label_mean(A - 0.001 * ratio.mean(axis=0).reshape(6, 6))
        np.testing.assert_allclose(found[count - 1], A, atol=1e-12)


def test_plain_gradients_follow_the_equation_for_small_steps():
    setting = {**SETTING, "optimizer": "sgd", "learning_rate": 0.01, "snapshots": [500]}
    equation = mean_field.equation(**setting, label_free=True, copies=10, averaged=["u", "eight", "outside"])[0]
    runs = [mean_field.run(**setting, initial_gain=0.0, seed=seed)[0] for seed in range(20)]
    difference = symmetry.label_mean(np.mean(runs, axis=0)) - equation
    assert np.linalg.norm(difference) < 0.1 * np.linalg.norm(equation)


def test_softmax_attention_is_deflated_td():
    scores = 0.7 * np.eye(STATES)
    alpha, beta = softmax.two_numbers(0.7, 2.0, STATES)
    A = softmax.attention_weights(2.0, softmax.attend(scores, np.ones(STATES)))
    np.testing.assert_allclose(symmetry.step_sizes(A, GAMMA), [alpha, beta])
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
    assert runs["mean"].shape == (2, 2, 5, 2) and runs["A"].shape == (2, 2, 6, 6)
    assert not np.array_equal(runs["A"][0], runs["A"][1])
    parts.main("boyan", STATES, DEPTH, GAMMA, 5, tmp_path / "runs.npz", tmp_path / "parts.csv")
    table = pd.read_csv(tmp_path / "parts.csv").set_index(["env", "part"])
    assert len(table) == 2 * 10
    for i, env in enumerate(("boyan", "relabelled_boyan")):
        A = symmetry.shortest_identifiable(runs["A"][i], GAMMA)
        np.testing.assert_allclose(sum(parts.parts_of(A, GAMMA).values()), A, atol=ROUNDING)
        tasks = ictd.sample_tasks(env, STATES, 5, generator(0, env, STATES, "parts"))
        expected = np.median(questions.enumerated_errors(few_numbers.without_u(A), tasks, GAMMA, DEPTH))
        steps = table.loc[env].sort_values("step")["median"]
        np.testing.assert_allclose(steps.iloc[-1], expected)
        assert steps["nothing"] > steps["two numbers"] > 0


@pytest.fixture
def results():
    """Results on which all claims hold."""
    noise = 0.001 * np.random.default_rng(0).normal(size=(2, 8, 2 * STATES, 2 * STATES))
    runs = np.tensordot([1.0, 0.5, 0, 0, 0, 0], few_numbers.basis(8, STATES), axes=1) + noise
    seeds = np.arange(8)
    median = np.full((2, 2, 7, 8), 0.01) + 1e-4 * seeds
    median[0, 1] *= 30
    cell = {"A": runs, "median": median, "constants": np.full((2, 8), 0.03) + 1e-4 * seeds}
    ranges = pd.DataFrame({"seed": seeds, "env": "boyan", "trained": "fixed", "discount": GAMMA, "constant": 1.1})
    deep = ranges.assign(depth=300, median=1e3 * (1 + seeds), expanding=1.0)
    tasks = pd.DataFrame({"env": "boyan", "states": 5, "depth": 30, "tasks": [256, 0], "mean": [0.05, 0.04]})
    drift = pd.DataFrame({"discount": GAMMA, "depth": 3, "formula": [2.0], "mc": [2.0], "td": [2 * (1 - GAMMA)]})
    deviations = dict.fromkeys(["outputs", "updates", "odd_outputs", "odd_updates"], 0.0)
    return {
        "runs": {"td-boyan-3-4": cell, "td-loop-3-4": cell},
        "main_cell": "td-boyan-3-4",
        "discount": GAMMA,
        "equations": {
            "td": {
                "label_free": True,
                "averaged": symmetry_results.PARTS,
                "runs": runs[0][:, None].copy(),
                "equation": runs[:1, 0].copy(),
            }
        },
        "equivariance": pd.DataFrame({"engine": ["compiled"], **deviations}),
        "drift": drift,
        "diversity": tasks,
        "ranges": pd.concat([ranges.assign(depth=10, median=0.01, expanding=1.0), deep]),
    }


def verdicts(results):
    claims = [claim for statement in statements_in(symmetry_results) for claim in statement.decide(results)]
    return {claim.id.split("/")[0] for claim in claims if claim.verdict != "holds"}, len(claims)


def test_claims_that_hold(results):
    assert verdicts(results) == (set(), 19)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda r: r["drift"].update({"mc": [2.1]}), {"identities"}),
        (lambda r: r["equivariance"].update({"updates": [1e-9]}), {"identities"}),
        (lambda r: cell(r)["A"][1, :, 0].fill(2.0), {"mean_outside", "two_numbers"}),
        (lambda r: cell(r)["A"][0, :, 0, 1].fill(2.0), {"mean_outside"}),
        (lambda r: cell(r)["median"].fill(0.01), {"lost_order"}),
        (lambda r: cell(r)["constants"].fill(0.4), {"constants"}),
        (lambda r: r["equations"]["td"].update(equation=0.9 * r["equations"]["td"]["equation"]), {"prediction"}),
        (lambda r: r["diversity"].update({"mean": [0.5, 0.04]}), {"enough_tasks"}),
        (lambda r: r["ranges"].update({"median": np.full(16, 0.01)}), {"only_its_depth", "expanding_constants"}),
        (lambda r: r["ranges"].update({"expanding": np.zeros(16)}), {"expanding_constants"}),
    ],
)  # fmt: skip
def test_claims_that_fail(results, change, expected):
    results["ranges"] = results["ranges"].reset_index(drop=True)
    change(results)
    assert verdicts(results)[0] == expected


def test_parts_join_until_half_and_nine_tenths_of_the_error():
    names = ["nothing", "family part", "eight numbers", "two numbers", "a", "c", "rest outside", "b"]
    columns = {"part": names, "step": [0, 0, 0, 1, 2, 3, 4, 5], "median": [9.0, 2.0, 1.5, 1.1, 0.7, 0.6, 0.2, 0.1]}
    parts = pd.concat(pd.DataFrame(columns).assign(env=env) for env in ("boyan", "relabelled_boyan"))
    row = symmetry_results.functions.make({"parts": {"td-boyan-3-4": parts}}).iloc[0]
    assert (row["half"], row["nine tenths"]) == ("a and c", "a and c and rest outside")
    assert (row["two numbers"], row["all of A"]) == (1.1, 0.1)


def test_learning_rates_are_compared_after_the_same_product_with_updates():
    A = np.tensordot([3.0, 1.5, 0, 0, 0, 0], few_numbers.basis(8, STATES), axes=1)
    main = SETTING | {"snapshots": [10, 20], "averaged": symmetry_results.PARTS, "label_free": True}
    arrays = {"runs": np.stack([[A, 2 * A]] * 3), "equation": np.stack([A, 2.5 * A])}
    faster = main | arrays | {"learning_rate": 0.002, "snapshots": [5, 10], "batch_size": 4}
    equations = {"td": main | arrays, "fast": faster, "deep": main | arrays | {"depth": 9}}
    table = symmetry_results.rates_and_batches.make({"equation": main, "equations": equations})
    assert table[["batch_size", "updates"]].to_numpy().tolist() == [[64, 20], [4, 10]]
    np.testing.assert_allclose(table[["alpha", "beta", "distance"]], [[2, 1, 0.25]] * 2)


def cell(results):
    return results["runs"]["td-boyan-3-4"]
