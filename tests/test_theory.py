"""The theory's checks: their results, and their detection of errors."""

import naive_theory as naive
import numpy as np
import pytest
from naive import SETTINGS, larger_weights
from tolerances import ROUNDING

import ictd
from ictd.theory import statements
from ictd.theory.decimals import exact_sides
from ictd.theory.recursion import evolve, gradients, krylov, times_X
from ictd.theory.updates import GROUPS, estimate_norm, sweep_gradients


def tasks_of(env, states, size=2):
    return ictd.sample_tasks(env, states, size, ictd.generator(3, env, states, "tasks"))


@pytest.mark.parametrize("length", [1, 7, 8])
def test_rows_times_powers_equal_a_loop(length):
    rng = np.random.default_rng(2)
    row, matrix = rng.normal(size=(3, 4)), rng.normal(size=(3, 4, 4))
    found = krylov(row, matrix, length)
    assert found.shape == (3, length, 4)
    for layer in range(length):
        np.testing.assert_allclose(found[:, layer], row, rtol=ROUNDING)
        row = np.matvec(matrix.mT, row)


@pytest.mark.parametrize(("env", "states", "depth", "discount"), SETTINGS)
def test_embeddings_are_those_of_whole_prompts(env, states, depth, discount):
    tasks = tasks_of(env, states)
    for weights in (ictd.theta_td(states), larger_weights(states)):
        Z = evolve(weights, tasks, discount, depth)
        for task in range(2):
            for q in range(states):
                case = weights, tasks.transition[task], tasks.reward[task], discount, depth, q
                bottom = np.array([layer[-1] for layer in naive.embeddings(*case)])
                scale = np.abs(bottom).max(axis=0)
                np.testing.assert_array_less(np.abs(Z.Y[task] - bottom[:, :-1]), ROUNDING * (1 + scale[:-1].max()))
                np.testing.assert_array_less(np.abs(Z.y[task, :, q] - bottom[:, -1]), ROUNDING * (1 + scale[-1]))


@pytest.mark.parametrize(("env", "states", "depth", "discount"), SETTINGS)
def test_gradients_follow_the_appendix(env, states, depth, discount):
    depth = min(depth, 8)
    tasks = tasks_of(env, states)
    for weights in (ictd.theta_td(states), larger_weights(states)):
        *_, last = gradients(evolve(weights, tasks, discount, depth))
        found = times_X(last.X, last.context_right()).swapaxes(1, 2), last.query_A(), last.U.mT, last.V.mT
        for task in range(2):
            expected = naive.gradients(weights, tasks.transition[task], tasks.reward[task], discount, depth)
            for part, whole in zip(found, expected, strict=True):
                assert np.abs(part[task] - whole).max() <= ROUNDING * max(1, np.abs(whole).max())


@pytest.mark.parametrize(
    ("env", "states", "depth", "discount"), [*SETTINGS[::3], ("loop", 12, 200, 0.7), ("boyan", 3, 90, 0.97)]
)
def test_the_papers_statements_hold_and_one_step_of_a_proof_does_not(env, states, depth, discount):
    Z = evolve(ictd.theta_td(states), tasks_of(env, states, 60), discount, depth)
    sweep = sweep_gradients(Z)
    wrong = {"lemma_2_context_sum", "lemma_2_step"}
    for statement in statements.OF_VALUES:
        if statement.__name__ not in wrong:
            assert not statement(Z).violations.any(), statement.__name__
    for statement in statements.OF_GRADIENTS:
        assert not statement(Z, sweep).violations.any(), statement.__name__
    if depth > 1:
        assert statements.lemma_2_step(Z).violations[:, 2:].all() or discount == 0


def test_statements_notice_weights_that_are_not_theta_td():
    tasks, theta = tasks_of("boyan", 5, 40), ictd.theta_td(5)
    slower = evolve(ictd.Weights(theta.u, 0.9 * theta.A), tasks, 0.9, 60)
    for statement in (statements.lemma_1, statements.lemma_4):
        assert statement(slower).violations.any(), statement.__name__
    # With another step size the context's entries are still TD errors; with other weights they are not.
    assert not statements.lemma_2_step_corrected(slower).violations.any()
    assert statements.lemma_2_step_corrected(evolve(larger_weights(5), tasks, 0.9, 3)).violations.any()
    larger = evolve(ictd.Weights(theta.u, 1.8 * theta.A), tasks, 0.9, 60)
    sweep = sweep_gradients(larger)
    for statement in (statements.lemma_2_query, statements.lemma_2_context):
        assert statement(larger).violations.any(), statement.__name__
    for statement in statements.OF_GRADIENTS:
        assert statement(larger, sweep).violations.any(), statement.__name__


def test_the_noise_is_the_norm_of_a_zero_update():
    rng = np.random.default_rng(0)
    samples = [estimate_norm(rng.normal(0, 3, (GROUPS, 400))) for _ in range(50)]
    assert np.mean([s.norm for s in samples]) == pytest.approx(np.mean([s.noise for s in samples]), rel=0.02)
    signal = rng.normal(0, 50, 400)
    samples = [estimate_norm(signal + rng.normal(0, 3, (GROUPS, 400))) for _ in range(400)]
    assert np.mean([s.norm for s in samples]) == pytest.approx(np.abs(signal).sum(), rel=0.01)
    spread = np.std([s.norm for s in samples])
    assert np.mean([s.standard_error for s in samples]) == pytest.approx(spread, rel=0.1)


@pytest.mark.parametrize("discount", [0.0, 0.9])
def test_decimal_arithmetic(discount):
    tasks, layers = tasks_of("loop", 2), [0, 1, 7, 500]
    found = exact_sides(tasks, 1, discount, layers)
    errors = naive.exact_errors(tasks.transition[1], tasks.reward[1], discount, 500)[layers].max(axis=1)
    np.testing.assert_allclose(found["lemma_4"][:, 0], errors, rtol=ROUNDING)
    np.testing.assert_allclose(found["lemma_4"][:, 1], errors[0] * discount ** np.array(layers), rtol=ROUNDING)
    # In this chain each step swaps the two states.
    greatest = np.abs(tasks.reward[1]).max()
    np.testing.assert_allclose(found["lemma_1"][:, 0], greatest * discount ** np.array(layers), rtol=ROUNDING)
    assert (found["lemma_4"][:, 2] <= 1 + ROUNDING).all() and (found["lemma_4"][:2, 2] > 0).any()


def test_the_allowance_for_rounding_equals_its_derivation():
    tasks = tasks_of("loop", 4, 3)
    Z = evolve(ictd.theta_td(4), tasks, 0.8, 6)
    greatest, geometric = np.abs(tasks.reward).max(axis=1), sum(0.8**k for k in range(200))
    for layer in range(7):
        # Products of a layer, the sum over layers, and v (twice), with 3n times the condition number.
        units = (4 + 3) * geometric**2 + layer * geometric + 2 * 3 * 4 * geometric**2
        allowed = np.finfo(float).eps * units * greatest
        np.testing.assert_allclose(statements.lemma_1(Z).rounding[:, layer], allowed)
    sides = statements.lemma_3(Z, sweep_gradients(Z))
    units = (3 * 4 + 4) * np.arange(1, 8)
    np.testing.assert_allclose(sides.rounding, 2.0**-53 * units * sides.right)


def test_norms_are_computed_at_early_layers_and_then_at_every_tenth():
    Z = evolve(ictd.theta_td(2), tasks_of("loop", 2), 0.9, 52)
    sweep = sweep_gradients(Z)
    assert sweep.layers.tolist() == [*range(31), 40, 50]
    assert all(norm.shape == (2, 33) for norm in sweep.norms.values())
    bound = statements.lemma_3_context_u(Z, sweep).right
    np.testing.assert_allclose(bound, np.tile(1.9**2 * sweep.layers, (2, 1)))


def test_summary_of_both_sides():
    rng = np.random.default_rng(1)
    left, right = rng.uniform(1, 2, (5, 4)), rng.uniform(1.5, 3, (5, 4))
    rounding = np.full((5, 4), 1e-9)
    rounding[1:, 2], rounding[:, 3] = 1.0, 1.0
    # A number at the threshold does not count as well above rounding.
    left[0, 0], rounding[0, 0] = 1000.0, 1.0
    left[0, 2], rounding[0, 2] = 1000.5, 1.0
    parts = [
        statements.Inequality(*(side[rows] for side in (left, right, rounding))) for rows in (slice(2), slice(2, 5))
    ]
    found = statements.summarise(parts)
    np.testing.assert_allclose(found["left_mean"], left.mean(axis=0))
    np.testing.assert_allclose(found["left_max"], left.max(axis=0))
    np.testing.assert_allclose(found["right_mean"], right.mean(axis=0))
    ratios = [(right[1:, 0] / left[1:, 0]).min(), (right[:, 1] / left[:, 1]).min(), right[0, 2] / 1000.5, np.nan]
    np.testing.assert_allclose(found["tightest"], ratios)
    np.testing.assert_array_equal(found["violations"], (left > right + rounding).sum(axis=0))
    # NaN is a violation.
    sides = statements.Inequality(np.array([[1.0, np.nan, 3.0]]), np.array([[2.0, 2.0, np.nan]]), np.zeros((1, 3)))
    np.testing.assert_array_equal(sides.violations, [[False, True, True]])
