"""Training and analysis of a few numbers instead of all weights, compared with slow computations."""

import itertools

import naive
import numpy as np
import pandas as pd
import pytest
import torch
from drawn import where

import ictd
from ictd.evaluation import draw_unseen_tasks
from ictd.prompt import Context
from ictd.steps import returns as returns_step
from ictd.steps import tasks as tasks_step
from ictd.storage import save_arrays
from ictd.transformer import preconditioned_td
from ictd.weight_measures import preconditioner, unidentifiable_direction
from studies.emergence import (
    best_numbers,
    dynamics,
    few_numbers,
    numbers_engine,
    shares,
    slow_mode,
    train_numbers,
    tuned_numbers,
)

torch.set_num_threads(1)
GAMMA, STATES, DEPTH = 0.9, 3, 4
A_DIRECTION = unidentifiable_direction(STATES, GAMMA)


def some_weights(runs=4, states=STATES):
    return naive.stacked([naive.larger_weights(states, seed) for seed in range(runs)])


def material(size=30, algo_steps=12, seed=0, env="boyan"):
    tasks = ictd.sample_tasks(env, STATES, size, ictd.generator(seed, env, STATES, "tasks"))
    return tasks, ictd.unroll(tasks, 8, GAMMA, algo_steps, np.random.default_rng(seed))


def test_the_two_numbers_are_deflated_td():
    alpha, beta = 0.5, 0.3
    weights = few_numbers.weights_at(STATES * np.array([alpha, beta]), few_numbers.basis(2, STATES))
    tasks, _ = material(1)
    p, r = tasks.transition[0], tasks.reward[0]
    w = np.zeros(STATES)
    for _ in range(DEPTH):
        w = w + (alpha * np.eye(STATES) + beta) @ (r + GAMMA * p @ w - w)
    model = ictd.Model(weights, DEPTH, GAMMA)
    np.testing.assert_allclose(model.values(Context.enumerated(p, r)), w)


@pytest.mark.parametrize("count", few_numbers.SETS)
def test_nearest_numbers_equal_least_squares_on_identifiable_parts(count):
    A, bases = some_weights().A, few_numbers.basis(count, STATES)
    remove = np.eye(2 * STATES) - np.outer(A_DIRECTION, A_DIRECTION) / (A_DIRECTION @ A_DIRECTION)
    columns = np.stack([(remove @ one).ravel() for one in bases], axis=1)
    numbers, shares_of_runs = few_numbers.nearest_numbers(A, bases, GAMMA), few_numbers.share(A, bases, GAMMA)
    for run, found, share in zip(A, numbers, shares_of_runs, strict=True):
        target = (remove @ run).ravel()
        expected = np.linalg.lstsq(columns, target, rcond=None)[0]
        np.testing.assert_allclose(found, expected)
        assert share == pytest.approx(1 - ((target - columns @ expected) ** 2).sum() / (target**2).sum())
    shifted = A + A_DIRECTION[:, None] * np.arange(2.0 * STATES)
    np.testing.assert_allclose(few_numbers.nearest_numbers(shifted, bases, GAMMA), numbers)


def test_the_rank_one_part_is_found():
    left, right = np.array([0.6, 0.0, 0.8]), np.array([0.0, 1.0, 0.0])
    alpha, found_left, found_right = few_numbers.rank_one_part(0.7 * np.eye(3) + 3 * np.outer(left, right))
    assert alpha == pytest.approx(0.7) and abs(found_left[:, 0] @ left) == pytest.approx(1)
    assert abs(found_right[:, 0] @ right) == pytest.approx(1)


@pytest.mark.parametrize("count", few_numbers.SETS)
def test_derivatives_equal_finite_differences(count):
    data = draw_unseen_tasks(0, STATES, 5, 9, GAMMA, "boyan")
    bases = few_numbers.basis(count, STATES)
    numbers, step = np.linspace(0.9, 0.3, count), 1e-6
    for length in (0, 9):
        matrices = few_numbers.update_matrices(bases, data.gram_matrix(length))
        estimate, jacobian = few_numbers.estimates_and_jacobian(numbers, matrices, STATES, DEPTH)
        expected = naive.errors(few_numbers.weights_at(numbers, bases), data, length, DEPTH)
        np.testing.assert_allclose(data.error(estimate), expected)
        for i, direction in enumerate(np.eye(count)):
            up, down = (
                few_numbers.estimates_and_jacobian(numbers + sign * step * direction, matrices, STATES, DEPTH)[0]
                for sign in (1, -1)
            )
            np.testing.assert_allclose(jacobian[i], (up - down) / (2 * step), rtol=1e-5, atol=1e-7)


def test_the_best_numbers_are_no_worse_than_a_grid_search():
    data = draw_unseen_tasks(0, STATES, 20, 1, GAMMA, "boyan")
    found = best_numbers.best_numbers(data, [0], DEPTH, (1, 2, 3, 4))
    msve = [best.msve for best in found.values()]
    grid = [STATES * np.array(pair) for pair in itertools.product(np.linspace(0.2, 1.6, 29), np.linspace(0, 3, 61))]
    bases = few_numbers.basis(2, STATES)
    scores = [naive.errors(few_numbers.weights_at(pair, bases), data, 0, DEPTH).mean() for pair in grid[::7]]
    assert msve[1] <= min(scores) * (1 + 1e-9) and msve[1] <= msve[0] and max(msve[2:]) <= msve[1]
    own = naive.errors(few_numbers.weights_at(found[2].numbers, bases), data, 0, DEPTH).mean()
    assert msve[1] == pytest.approx(own, rel=1e-6)


@pytest.mark.parametrize(("algo", "count"), [("td", 2), ("mc", 2), ("td", 4)])
def test_training_a_few_numbers_equals_autograd_on_whole_prompts(algo, count):
    """Train the numbers by Adam, with gradients of Algorithms 1 and 2 on whole prompts by the chain rule."""
    tasks, batches = material()
    bases = few_numbers.basis(count, STATES)
    start = np.linspace(0.4, 0.1, count)
    given = tasks.reward, tasks.transition, batches, algo, DEPTH, GAMMA, 0.05
    found = numbers_engine.pretrain_numbers(start, bases, *given)
    numbers = torch.tensor(start, requires_grad=True)
    optimizer = torch.optim.Adam([numbers], lr=0.05)
    directions = torch.tensor(bases)
    for i in range(len(tasks)):
        A = torch.tensordot(numbers, directions, dims=1)
        p, r = torch.tensor(tasks.transition[i]), torch.tensor(tasks.reward[i])
        X = torch.cat([torch.eye(STATES, dtype=torch.float64), GAMMA * p.T])
        h, total = r, torch.zeros(STATES, dtype=torch.float64)
        for _ in range(DEPTH):
            total = total + h
            h = h + h @ (X.T @ A @ X) / STATES
        value = -total @ (X.T @ A[:, :STATES]) / STATES
        visits = torch.tensor(batches.visits[i], dtype=torch.float64)
        counts = torch.tensor(batches.transitions[i], dtype=torch.float64)
        target = visits * r + GAMMA * counts @ value if algo == "td" else torch.tensor(batches.return_sums[i])
        errors = ((target - visits * value) / visits.sum()).detach()
        optimizer.zero_grad()
        (-(errors * value).sum()).backward()
        optimizer.step()
    np.testing.assert_allclose(found, numbers.detach().numpy(), rtol=1e-9)


def test_moments_of_gradients_equal_those_of_single_updates():
    tasks, batches = material(6)
    A = some_weights(1).A[0] * 0.3
    mean, square = np.empty((2, 6, 6))
    data = tasks.transition, tasks.reward, batches.visits, batches.transitions, batches.return_sums
    sizes = ictd.kernels.size(STATES)
    numbers_engine.gradient_moments(sizes, A, *data, True, DEPTH, GAMMA, 1 / STATES, mean, square)
    single = np.empty((len(tasks), 2, 6, 6))
    for i in range(len(tasks)):
        part = [array[i : i + 1] for array in data]
        numbers_engine.gradient_moments(sizes, A, *part, True, DEPTH, GAMMA, 1 / STATES, *single[i])
    np.testing.assert_allclose(mean, single[:, 0].mean(axis=0))
    np.testing.assert_allclose(square, (single[:, 0] ** 2).mean(axis=0))


def test_the_mean_field_equation_of_one_task_is_adam_without_first_moment(monkeypatch):
    monkeypatch.setattr(dynamics, "AVERAGED", 1)
    monkeypatch.setattr(dynamics, "STRIDE", 1)
    tasks, batches = material(4)
    data = tasks.transition, tasks.reward, batches.visits, batches.transitions, batches.return_sums
    found = dynamics.mean_field(tasks, batches, "td", DEPTH, GAMMA, 1 / STATES, 0.01, None, True, [2, 4])
    A, second, mean, square = np.zeros((6, 6)), np.zeros((6, 6)), np.empty((6, 6)), np.empty((6, 6))
    for i in range(4):
        part = [array[i : i + 1] for array in data]
        sizes, given = ictd.kernels.size(STATES), (True, DEPTH, GAMMA, 1 / STATES)
        numbers_engine.gradient_moments(sizes, A, *part, *given, mean, square)
        second = 0.999 * second + 0.001 * square
        A = A - 0.01 * mean / (np.sqrt(second / (1 - 0.999 ** (i + 1))) + 1e-8)
    np.testing.assert_allclose(found[1], A)


@pytest.fixture(scope="module")
def cell(tmp_path_factory):
    """Files of a cell: tasks, unrolls and weights of three seeds; one seed diverged."""
    folder = tmp_path_factory.mktemp("cell")
    files = folder / "tasks.npz", folder / "returns.npz"
    tasks_step.main("boyan", STATES, "0-2", 30, 8, {"boyan": {}}, files[0])
    returns_step.main("boyan", STATES, GAMMA, 12, *files)
    stored = [(tasks, batches) for _, tasks, batches in tasks_step.stored_runs(*files)]
    runs = some_weights(3)
    u, A = runs.u.copy(), runs.A.copy()
    u[1] = A[1] = np.nan
    save_arrays(folder / "w.npz", seeds=np.arange(3), u=u, A=A)
    return folder, stored, runs


@pytest.mark.parametrize("scaled", [True, False])
def test_trained_numbers_are_evaluated_with_all_of_a_and_algorithms(cell, scaled, tmp_path):
    folder, stored, runs = cell
    tuned_numbers.main(STATES, DEPTH, GAMMA, "boyan", {"boyan": {}}, 10, [4, 9], tmp_path / "tuned.npz")
    train_numbers.main(
        "td", "boyan", STATES, DEPTH, GAMMA, 0.01, 0.2, 0.01, scaled, "boyan", {"boyan": {}}, 6, [4, 9],
        [folder / "tasks.npz"], [folder / "returns.npz"], folder / "w.npz", tmp_path / "tuned.npz", tmp_path / "t.csv",
    )  # fmt: skip
    table = pd.read_csv(tmp_path / "t.csv")
    data = draw_unseen_tasks(0, STATES, 6, 9, GAMMA, "boyan", "ablation")
    whole = where(table, method="all", format="steps", context_length=9)
    assert whole["seed"].tolist() == [0, 2]
    for row, run in zip(whole.itertuples(), (0, 2), strict=True):
        errors = naive.errors(runs[run], data, 9, DEPTH, scaled)
        assert [row.mean, row.median] == pytest.approx([errors.mean(), np.median(errors)])
    two = where(table, method="numbers_2", format="enumerated")
    bases = few_numbers.basis(2, STATES)
    for row, (seed, (tasks, batches)) in zip(two.itertuples(), enumerate(stored), strict=True):
        start = ictd.initial_weights(STATES, 0.2, ictd.generator(seed, "boyan", STATES, "weights"))
        initial = few_numbers.nearest_numbers(start.A, bases, GAMMA)
        given = tasks.reward, tasks.transition, batches, "td", DEPTH, GAMMA, 0.01, scaled
        numbers = numbers_engine.pretrain_numbers(initial, bases, *given)
        assert [row.identity, row.ones] == pytest.approx(numbers / (STATES if scaled else 1))
        errors = naive.errors(few_numbers.weights_at(numbers, bases), data, 0, DEPTH, scaled)
        assert row.mean == pytest.approx(errors.mean())
    algorithms = where(table, seed=-1, format="steps")
    assert set(algorithms["method"]) == {"td", "deflated_td", "lstd"}
    tuning = draw_unseen_tasks(0, STATES, 10, 9, GAMMA, "boyan", "ablation tuning")
    found = best_numbers.best_numbers(tuning, [tuning.context(4).grouped(), tuning.context(9).grouped()], DEPTH, (1, 2))
    for count, method in tuned_numbers.ALGORITHMS.items():
        row = where(table, method=method, format="grouped", context_length=9)
        step_sizes = row[["identity", "ones"]].to_numpy()[0, :count]
        assert step_sizes == pytest.approx(found[count].numbers / STATES)


def test_shares_exchanges_and_spectral_radii(cell, tmp_path):
    folder, _, runs = cell
    given = "td", "boyan", STATES, DEPTH, GAMMA, True, "boyan", {"boyan": {}}, 6, folder / "w.npz"
    shares.main(*given, tmp_path / "m.csv", tmp_path / "x.csv")
    measures, exchanged = pd.read_csv(tmp_path / "m.csv"), pd.read_csv(tmp_path / "x.csv")
    assert measures["seed"].tolist() == [0, 2] and len(exchanged) == 5 * 2
    family = preconditioned_td(preconditioner(runs.A[[0, 2]]))
    for count in (1, 2, 3):
        expected = few_numbers.share(family, few_numbers.basis(count, STATES), GAMMA)
        np.testing.assert_allclose(measures[f"family_{count}"], expected)
    assert (measures["best_rank_one"] >= measures["family_1"] - 1e-12).all()
    data = draw_unseen_tasks(0, STATES, 6, 1, GAMMA, "boyan", "ablation")
    for k, run in enumerate((0, 2)):
        without_u = ictd.Weights(0 * runs.u[run], runs.A[run])
        errors = naive.errors(without_u, data, 0, DEPTH)
        own = where(exchanged, rest="own", seed=run)
        assert own[["mean", "median"]].to_numpy()[0] == pytest.approx([errors.mean(), np.median(errors)])
        unstable = 0
        for p in data.tasks.transition:
            X = np.concatenate([np.eye(STATES), GAMMA * p.T])
            unstable += np.abs(np.linalg.eigvals(np.eye(2 * STATES) + runs.A[run] @ X @ X.T / STATES)).max() > 1 + 1e-9
        assert measures["unstable"][k] == pytest.approx(unstable / 6)
    variants = shares.exchanges(runs.A, GAMMA)
    (two,), (own,), (other,) = (variants[name] for name in ("none", "own", "other_seed"))
    np.testing.assert_allclose(other[0] - two[0], own[1] - two[1])
    for name in ("permuted", "random"):
        for changed in variants[name]:
            norms = [((part - two) ** 2).sum(axis=(1, 2)) for part in (changed, own)]
            np.testing.assert_allclose(*norms)


def test_slow_modes_are_perron_vectors():
    c = slow_mode.continuation("falling", STATES)
    slow, slow_left = slow_mode.mean_perron_vectors("falling", STATES)
    p = slow_mode.draw_tasks(
        "falling", STATES, slow_mode.MEASURED_ON, ictd.generator(0, "boyan", STATES, "slow mode falling best")
    ).transition
    found = []
    for side in (c[:, None] * p, np.swapaxes(c[:, None] * p, 1, 2)):
        vectors = np.ones((len(p), STATES))
        for _ in range(2000):
            vectors = np.einsum("tij,tj->ti", side + 0.5 * np.eye(STATES), vectors)
            vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        found.append(vectors.mean(axis=0) / np.linalg.norm(vectors.mean(axis=0)))
    np.testing.assert_allclose([slow, slow_left], found, rtol=1e-6)
    np.testing.assert_allclose(slow_mode.mean_perron_vectors("constant", STATES)[0], STATES**-0.5)
    blocks = slow_mode.draw_tasks("blocks", 4, 3, np.random.default_rng(0)).transition
    np.testing.assert_allclose(blocks[:, :2, 2:].sum(axis=2), slow_mode.CROSSING)
    splits = slow_mode.splits(6)
    assert len(splits) == 10
    np.testing.assert_allclose(splits[0], [*[6**-0.5] * 3, *[-(6**-0.5)] * 3])
    gram, value, _ = slow_mode.best_tasks("rising", STATES, GAMMA, "best")
    many = ictd.transformer.estimates(
        few_numbers.weights_at(np.array([0.8 * STATES]), few_numbers.basis(1, STATES)), gram, 3000
    )
    np.testing.assert_allclose(many, value, rtol=1e-6, atol=1e-8)


def test_the_slow_mode_has_a_row_for_each_seed_and_direction(tmp_path):
    for design, states in (("rising", 3), ("blocks", 3)):
        given = design, states, 2, 2, 50, [2], GAMMA, 8, 0.01, 0.1
        slow_mode.main(*given, tmp_path / "s.csv", tmp_path / "b.csv")
        trained, best = pd.read_csv(tmp_path / "s.csv"), pd.read_csv(tmp_path / "b.csv")
        assert trained["seed"].tolist() == [0, 1] and len(best) == 4 and np.isfinite(best["mean"]).all()
        difference = trained["slow"] - trained["ones"]
        if design == "blocks":
            difference = trained["best_split"] - trained["other_split"]
        np.testing.assert_allclose(trained["excess"], difference)


def test_predictions_are_made_at_the_snapshots_of_the_long_runs(monkeypatch, tmp_path):
    monkeypatch.setattr(dynamics, "POOL", 40)
    monkeypatch.setattr(dynamics, "AVERAGED", 10)
    given = "td", "boyan", STATES, DEPTH, GAMMA, 8, 12, 0.01, True, {"boyan": {}}, 1000, 60, 5
    dynamics.main(*given, tmp_path / "d.csv")
    table = pd.read_csv(tmp_path / "d.csv")
    stops = sorted(set(table["tasks_seen"]))
    assert stops == [1, 6, 32] and np.isfinite(table[["identity", "ones"]]).all(axis=None)
    assert len(table) == 3 * len(dynamics.PREDICTIONS)
