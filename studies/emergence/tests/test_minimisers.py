"""Descents and their objective, compared with slow computations, and the steps that use them."""

import naive
import numpy as np
import pandas as pd
import pytest
from drawn import where
from tolerances import DIFFERENCES, ENGINES, ROUNDING

import ictd
from ictd.mrp import msve
from studies.emergence import best_numbers, minimisers
from studies.emergence.few_numbers import SETS, basis, without_u
from studies.emergence.minimise import MeanMsve

GAMMA, N, DEPTH = 0.9, 3, 4
# Step of central differences.
STEP = 1e-6


def some_tasks(size=8):
    return ictd.sample_tasks("boyan", N, size, np.random.default_rng(0))


def random_directions(count=5):
    return naive.stacked([naive.larger_weights(N, seed) for seed in range(count)])


def slow_msve(weights, tasks, depth):
    estimates = [
        naive.enumerated_values(weights, depth, p, r, GAMMA)
        for p, r in zip(tasks.transition, tasks.reward, strict=True)
    ]
    values = ictd.value_function(tasks.transition, tasks.reward, GAMMA)
    return msve(tasks.stationary, values, np.array(estimates)).mean()


def differences(function, z):
    """Derivatives along the last axis."""
    sides = [[function(z + sign * STEP * axis) for axis in np.eye(len(z))] for sign in (1, -1)]
    return np.moveaxis((np.array(sides[0]) - sides[1]) / (2 * STEP), 0, -1)


@pytest.mark.parametrize("depth", [1, 2, DEPTH])
def test_the_objective_is_the_mean_msve_of_the_transformer(depth):
    directions, tasks = random_directions(), some_tasks()
    objective, z = MeanMsve(tasks, GAMMA, depth, directions), np.linspace(-0.4, 0.6, 5)
    found = (objective.residuals(z) ** 2).sum()
    assert found == pytest.approx(slow_msve(minimisers.at(z, directions), tasks, depth), rel=ROUNDING)
    jacobian = differences(lambda z: objective.residuals(z).ravel(), z)
    np.testing.assert_allclose(objective.jacobian(z), jacobian, atol=DIFFERENCES * abs(jacobian).max())
    gradient = 2 * objective.residuals(z).ravel() @ objective.jacobian(z)
    np.testing.assert_allclose(objective.gradient(z), gradient, atol=ROUNDING * abs(gradient).max())
    hessian = differences(objective.gradient, z)
    np.testing.assert_allclose(objective.hessian(z), hessian, atol=DIFFERENCES * abs(hessian).max())


def test_sets_grow_and_have_no_direction_that_changes_no_output():
    found = minimisers.sets(N, GAMMA)
    sizes = {name: len(directions.u) for name, directions in found.items()}
    assert sizes == {"1": 1, "2": 2, "4": 4, "8": 6, "family": (2 * N - 1) * N, "all": 4 * N * N - 1}
    a = ictd.weight_measures.unidentifiable_direction(N, GAMMA)
    for name in ("family", "all"):
        u, A = found[name].u, found[name].A
        np.testing.assert_allclose([np.abs(u @ a).max(), np.abs(a @ A).max()], 0, atol=ROUNDING)
        flat = np.hstack([u, A.reshape(len(A), -1)])
        np.testing.assert_allclose(flat @ flat.T, np.eye(len(flat)), atol=ROUNDING)
    np.testing.assert_allclose(found["family"].A[..., :N], -found["family"].A[..., N:], atol=ROUNDING)


def test_the_step_finds_strict_minima_in_growing_sets(tmp_path):
    minimisers.main("boyan", N, 3, GAMMA, 40, 2, 1e-10, 300, {"boyan": {}}, tmp_path / "t.csv")
    table = pd.read_csv(tmp_path / "t.csv")
    assert table["set"].tolist() == [*map(str, SETS)] + 3 * ["family"] + 3 * ["all"]
    lowest = table.groupby("set")["msve"].min()
    assert (np.diff(lowest[["1", "2", "4", "8"]]) < 0).all() and lowest["all"] < lowest["family"] < lowest["2"]
    assert (where(table, set="family")["outside"].abs() < ROUNDING).all()
    best = where(table, set="family").sort_values("msve").iloc[0]
    assert best["gradient_norm"] < 1e-10 and best["least_curvature"] > 0


def test_points_are_numbered_and_only_resolved_ones_have_curvatures():
    objective = MeanMsve(some_tasks(), GAMMA, 2, without_u(basis(2, N)))
    z = best_numbers.best_numbers(some_tasks(), GAMMA, 2, 2)
    assert z.gradient_norm < 1e-8
    near, far = z._replace(z=z.z * (1 + 1e-5)), z._replace(z=1.2 * z.z, gradient_norm=1.0)
    found = minimisers.points(objective, [z, near, far], 1e-8)
    assert [one["point"] for one in found] == [0, 0, 1]
    expected = np.linalg.eigvalsh(differences(objective.gradient, z.z))[0]
    assert found[0]["least_curvature"] == found[1]["least_curvature"] == pytest.approx(expected, rel=1e-4)
    assert np.isnan(found[2]["least_curvature"])


@pytest.mark.parametrize(("asymmetry", "expected"), [(1e-12, 1e-9), (1e-9, np.nan)])
def test_a_curvature_that_may_be_rounding_is_none(asymmetry, expected):
    H = np.diag([1.0, 1e-9, 2.0])
    H[1, 0] = asymmetry
    assert minimisers.least_curvature(H) == pytest.approx(expected, nan_ok=True)


def mean_error(tasks, depth, alpha, beta):
    """The mean MSVE of L updates w <- w + (alpha I + beta 11') (r + gamma p w - w)."""
    w = np.zeros_like(tasks.reward)
    for _ in range(depth):
        error = tasks.reward + GAMMA * np.einsum("tij,tj->ti", tasks.transition, w) - w
        w = w + alpha * error + beta * error.sum(axis=1, keepdims=True)
    values = ictd.value_function(tasks.transition, tasks.reward, GAMMA)
    return (tasks.stationary * (values - w) ** 2).sum(axis=1).mean()


def test_no_other_numbers_are_better(tmp_path):
    size, depth = 8, 3
    best_numbers.main("boyan", N, [GAMMA], [depth], size, size, {"boyan": {}}, tmp_path / "t.csv")
    table = pd.read_csv(tmp_path / "t.csv")
    tuning, other = (
        ictd.sample_tasks("boyan", N, size, ictd.generator(seed, "boyan", N, "best numbers")) for seed in (0, 1)
    )
    for count in (1, 2):
        rows = where(table, numbers=count)
        alpha, beta = rows[["identity", "ones"]].iloc[0]
        least = rows["tuning_msve"].iloc[0]
        assert mean_error(tuning, depth, alpha, beta) == pytest.approx(least, rel=ENGINES)
        assert mean_error(other, depth, alpha, beta) == pytest.approx(rows["mean"].mean(), rel=ENGINES)
        near = [(alpha + i, beta + (count - 1) * j) for i in (-1e-3, 1e-3) for j in (-1e-3, 1e-3)]
        far = [(a, (count - 1) * b) for a in np.linspace(0, 1.6, 17) for b in np.linspace(0, 4, 17)]
        assert least < min(mean_error(tuning, depth, *numbers) for numbers in near + far)
