"""The theory's quantities, and statements on them at large depths."""

import naive_theory
import numpy as np
import pytest
from naive import SETTINGS, larger_weights
from tolerances import ROUNDING

import ictd
from ictd.theory import inequalities
from ictd.theory.recursion import evolve
from ictd.theory.updates import sweep_gradients


def tasks_of(env, states, size=2):
    return ictd.sample_tasks(env, states, size, ictd.generator(3, env, states, "tasks"))


@pytest.mark.parametrize(("env", "states", "depth", "discount"), SETTINGS)
def test_embeddings_are_those_of_whole_prompts(env, states, depth, discount):
    tasks, weights = tasks_of(env, states), larger_weights(states)
    Z = evolve(weights, tasks, discount, depth)
    for task, q in np.ndindex(2, states):
        case = weights, tasks.transition[task], tasks.reward[task], discount, depth, q
        bottom = np.array([layer[-1] for layer in naive_theory.embeddings(*case)])
        found = np.column_stack([Z.Y[task], Z.y[task, :, q]])
        assert np.abs(found - bottom).max() < ROUNDING * np.abs(bottom).max()


@pytest.mark.parametrize(
    ("env", "states", "depth", "discount"), [*SETTINGS[::3], ("loop", 12, 200, 0.7), ("boyan", 3, 90, 0.97)]
)
def test_the_papers_statements_hold_and_one_step_of_a_proof_does_not(env, states, depth, discount):
    Z = evolve(ictd.theta_td(states), tasks_of(env, states, 60), discount, depth)
    sweep = sweep_gradients(Z)
    sides = {statement.__name__: statement(Z) for statement in inequalities.OF_VALUES}
    sides |= {statement.__name__: statement(Z, sweep) for statement in inequalities.OF_GRADIENTS}
    exceeded = {name for name, inequality in sides.items() if inequality.violations.any()}
    assert exceeded <= {"lemma_2_context_sum", "lemma_2_step"}
    assert sides["lemma_2_step"].violations[:, 2:].all() or discount == 0


def test_the_allowance_for_rounding_equals_its_derivation():
    """Norms of gradients are computed at early layers, and then at every tenth."""
    tasks = tasks_of("loop", 2)
    Z = evolve(ictd.theta_td(2), tasks, 0.8, 52)
    geometric = sum(0.8**k for k in range(200))
    # Products of a layer, the sum over layers, and v (twice), with 3n times the condition number.
    units = (2 + 3) * geometric**2 + np.arange(53) * geometric + 2 * 3 * 2 * geometric**2
    allowed = np.finfo(float).eps * units * np.abs(tasks.reward).max(axis=1)[:, None]
    np.testing.assert_allclose(inequalities.lemma_1(Z).rounding, allowed)
    sides, layers = inequalities.lemma_3_context_u(Z, sweep_gradients(Z)), np.array([*range(31), 40, 50])
    np.testing.assert_allclose(sides.right, [1.8**2 * layers] * 2)
    np.testing.assert_allclose(sides.rounding, 2.0**-53 * (3 * 2 + 4) * (layers + 1) * sides.right)


def test_sides_near_their_rounding_error_are_not_summarised_and_nan_is_a_violation():
    # A number at the threshold does not count as well above rounding.
    left, rounding = np.array([[1000.0, 1000.5, 1.0], [2.0, 1.0, 1.0]]), np.array([[1.0, 1.0, 1.0], [0.001, 1.0, 1.0]])
    found = inequalities.summarise([inequalities.Inequality(left, np.full((2, 3), 3000.0), rounding)])
    np.testing.assert_allclose(found["tightest"], [1500, 3000 / 1000.5, np.nan])
    sides = inequalities.Inequality(np.array([[1.0, np.nan, 3.0]]), np.array([[2.0, 2.0, np.nan]]), np.zeros((1, 3)))
    np.testing.assert_array_equal(sides.violations, [[False, True, True]])
