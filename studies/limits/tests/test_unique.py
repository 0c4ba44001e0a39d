"""Newton's method in decimal arithmetic, compared with float64 and with a closed form."""

from decimal import Decimal, localcontext

import naive
import numpy as np
import pytest
from tolerances import DIFFERENCES, ROUNDING

from ictd.mrp import msve, sample_tasks, value_function
from ictd.prompt import enumerated_columns, joint_prompt
from ictd.report.tables import load_table
from ictd.rng import generator
from ictd.storage import load_arrays, save_arrays
from ictd.theory.decimals import exact
from ictd.torch_twin import LinearTransformer
from ictd.transformer import Weights, theta_td
from ictd.weight_measures import project_identifiable
from studies.limits import descend, unique
from studies.limits.decimal_newton import (
    DecimalMsve,
    coordinates,
    minimise_in_decimals,
    solve,
    weights_of_coordinates,
)
from studies.limits.engine import enumerated_prompts, parameters_of, weights_of
from studies.limits.minimise import MeanMsve, family_basis, identifiable_basis, minimise, msve_of_parameters

GAMMA, N, DEPTH = 0.9, 3, 4
DIGITS = 60


@pytest.fixture
def tasks():
    return sample_tasks("boyan", N, 12, np.random.default_rng(0))


@pytest.fixture(autouse=True)
def precision():
    with localcontext(prec=DIGITS):
        yield


def in_float64(tasks, weights, depth=DEPTH):
    """Mean MSVE and its gradient (2n + 4n^2 + 1,)."""
    parameters = parameters_of(weights)
    return msve_of_parameters(enumerated_prompts(tasks, GAMMA), depth).value_and_gradient(parameters)


def test_msve_and_gradient_equal_those_in_float64(tasks):
    weights = naive.larger_weights(N, 0)
    objective = DecimalMsve(tasks, GAMMA, DEPTH)
    z = coordinates(weights, GAMMA)
    msve, gradient = objective.value_and_gradient(z)
    expected_msve, expected_gradient = in_float64(tasks, weights_of_coordinates(z, N))
    at_same_outputs, _ = in_float64(tasks, weights)
    of_u, of_A = np.split(expected_gradient[:-1], [2 * N])
    kept = np.concatenate([of_u[:-1], of_A.reshape(2 * N, 2 * N)[:-1].ravel()])
    np.testing.assert_allclose(float(msve), [expected_msve, at_same_outputs], rtol=ROUNDING)
    np.testing.assert_allclose(gradient.astype(float), kept, rtol=ROUNDING, atol=ROUNDING * abs(kept).max())


def test_hessian_equals_central_differences_of_the_gradient(tasks):
    objective = DecimalMsve(tasks, GAMMA, DEPTH)
    z = coordinates(naive.larger_weights(N, 0), GAMMA)
    hessian = objective.hessian(z).astype(float)
    step = Decimal("1e-12")
    direction = np.eye(len(z), dtype=int)[5] * step
    after, before = (objective.value_and_gradient(z + sign * direction)[1] for sign in (1, -1))
    column = ((after - before) / (2 * step)).astype(float)
    np.testing.assert_allclose(hessian[5], column, rtol=DIFFERENCES, atol=DIFFERENCES * abs(column).max())


def test_hessian_equals_the_one_in_float64(tasks):
    z = coordinates(naive.larger_weights(N, 0), GAMMA)
    parameters = parameters_of(weights_of_coordinates(z, N))
    wide = 2 * N
    kept = np.delete(np.arange(len(parameters) - 1), [wide - 1, *range(wide * wide, wide + wide * wide)])
    basis = np.eye(len(parameters))[:, kept]
    in_floats = MeanMsve([(enumerated_prompts(tasks, GAMMA), basis)], DEPTH)
    found = in_floats.hessian(basis.T @ parameters)
    expected = DecimalMsve(tasks, GAMMA, DEPTH).hessian(z).astype(float)
    np.testing.assert_allclose(found, expected, rtol=ROUNDING, atol=ROUNDING * abs(expected).max())


def test_coordinates_keep_the_weights_up_to_directions_that_change_no_output():
    weights = naive.larger_weights(N, 1)
    kept = weights_of_coordinates(coordinates(weights, GAMMA), N)
    expected = project_identifiable(weights, GAMMA)
    projected = project_identifiable(kept, GAMMA)
    np.testing.assert_allclose(projected.A, expected.A, atol=ROUNDING)
    np.testing.assert_allclose(projected.u, expected.u, atol=ROUNDING)


def test_pivots_distinguish_a_saddle_from_a_minimum():
    rng = np.random.default_rng(2)
    axes = np.linalg.qr(rng.normal(size=(4, 4)))[0]
    for eigenvalues in ([1.0, 2.0, 3.0, 4.0], [-1.0, 2.0, 3.0, 4.0]):
        matrix, right = axes @ np.diag(eigenvalues) @ axes.T, rng.normal(size=4)
        solution, pivots = solve(exact(matrix), exact(right))
        np.testing.assert_allclose(solution.astype(float), np.linalg.solve(matrix, right))
        assert (pivots > 0).all() == (min(eigenvalues) > 0)


def test_newton_ends_at_a_strict_minimum():
    tasks = sample_tasks("boyan", N, 30, np.random.default_rng(0))
    basis = identifiable_basis(N, GAMMA)
    in_floats = MeanMsve([(enumerated_prompts(tasks, GAMMA), basis)], 3)
    near = minimise(in_floats, basis.T @ parameters_of(theta_td(N)), 1e-10, 300, 8)
    weights = weights_of(basis @ near.z + in_floats.offset, N)
    objective = DecimalMsve(tasks, GAMMA, 3)
    minimum = minimise_in_decimals(objective, coordinates(weights, GAMMA), Decimal("1e-24"), 100)
    assert minimum.strict
    assert minimum.msve <= near.value * (1 + ROUNDING)
    assert minimum.gradient < Decimal("1e-15")
    rng = np.random.default_rng(0)
    for _ in range(5):
        moved = minimum.z + exact(1e-6 * rng.normal(size=len(minimum.z)))
        assert objective.value_and_gradient(moved)[0] > minimum.msve


def test_one_layer_with_u_zero_has_a_closed_form(tasks):
    """TF_1 = -A_s' X y is linear in the left half of A, so minimising the MSVE is a least-squares problem."""
    prompts = enumerated_prompts(tasks, GAMMA)
    features = np.matvec(prompts.X, prompts.y)
    least = 0.0
    for state in range(N):
        root = np.sqrt(prompts.weight[:, state])
        rows, target = root[:, None] * features, root * prompts.target[:, state]
        column = np.linalg.lstsq(rows, target)[0]
        least += ((rows @ column - target) ** 2).sum() / len(prompts)
    family = family_basis(N, GAMMA)
    start = parameters_of(theta_td(N))
    minimum = minimise(MeanMsve([(prompts, family)], 1), family.T @ start, 1e-12, 300, 8)
    np.testing.assert_allclose(minimum.value, least, rtol=DIFFERENCES)


def test_the_step_numbers_the_points_at_which_descents_end(tmp_path):
    files = {"table": tmp_path / "unique.csv", "ends": tmp_path / "unique.npz"}
    unique.main(
        env="boyan", states=N, depth=2, discount=GAMMA, fixed_tasks=22, test_tasks=20, starts=3, digits=40,
        tolerance=1e-10, most_steps=100, newton_steps=8, env_options={"boyan": {}}, **files,
    )  # fmt: skip
    table = load_table(files["table"])
    u, A = load_arrays(files["ends"], "u", "A")
    tasks = sample_tasks("boyan", N, 22, generator(0, "boyan", N, "limits"))
    for *end, expected in zip(u, A, table["msve"], strict=True):
        found, _ = in_float64(tasks, Weights(*end), depth=2)
        np.testing.assert_allclose(found, expected, rtol=DIFFERENCES)
    assert table["start"].tolist() == ["theta_td", "random", "random", "random"]
    assert table["point"][0] == 0
    assert (table["msve"] <= table["msve_in_floats"] * (1 + ROUNDING)).all()
    for _, same in table.groupby("point"):
        np.testing.assert_allclose(same["msve"], same["msve"].iloc[0], rtol=DIFFERENCES)


def test_the_weights_at_the_ends_of_descents_have_the_msve_of_the_table(tmp_path):
    weights_file = tmp_path / "td-boyan-3-4.npz"
    start = naive.larger_weights(N, 0)
    save_arrays(weights_file, u=start.u[None], A=start.A[None])
    descend.main(
        [weights_file], env="boyan", states=N, depth=DEPTH, discount=GAMMA, fixed_tasks=12, starts=1, pretrained=1,
        tolerance=1e-10, most_steps=20, newton_steps=8, env_options={"boyan": {}}, output=tmp_path,
    )  # fmt: skip
    table = load_table(tmp_path / "rows.csv")
    assert table["start"].tolist() == ["theta_td", "family", "random", "family", "td"]
    tasks = sample_tasks("boyan", N, 12, generator(0, "boyan", N, "limits"))
    columns = enumerated_columns(tasks.transition, tasks.reward, GAMMA)
    u, A = load_arrays(tmp_path / "ends.npz", "u", "A")
    for *end, expected in zip(u, A, table["msve"], strict=True):
        estimates = LinearTransformer(Weights(*end), DEPTH)(joint_prompt(columns), queries=N).detach().numpy()
        value = value_function(tasks.transition, tasks.reward, GAMMA)
        np.testing.assert_allclose(msve(tasks.stationary, value, estimates).mean(), expected, rtol=DIFFERENCES)
