"""Pretraining: the fused engine, the autograd engine, and naive versions of both."""

import naive
import numpy as np
import pytest
import torch
from tolerances import DIFFERENCES, ENGINES, ROUNDING

import ictd
from ictd import pretraining
from ictd.engine import Engine
from ictd.literal import batch_of
from ictd.pretraining import pretrain_history, pretrain_in_blocks, snapshot_counts

# The paper's main setting, and others outside its grid; few numbers of states, as kernels are compiled for each.
SETTINGS = [
    ("boyan", 5, 30, 0.9),
    ("boyan", 2, 1, 0.5),
    ("loop", 3, 7, 0.95),
    ("loop", 5, 3, 0.0),
    ("boyan", 3, 2, 0.99),
]


def material(env, states, discount, tasks=200, batch=64, tau=50):
    task_set = ictd.sample_tasks(env, states, tasks, ictd.generator(1, env, states, "tasks"))
    unrolls = ictd.unroll(task_set, batch, discount, tau, ictd.generator(1, env, states, "unrolls"))
    start = ictd.initial_weights(states, 0.1, ictd.generator(1, env, states, "weights"))
    return task_set, unrolls, start


@pytest.mark.parametrize("algo", ["td", "mc"])
@pytest.mark.parametrize(("env", "states", "depth", "discount"), SETTINGS)
@pytest.mark.parametrize("scaled", [True, False])
def test_engines_agree(env, states, depth, discount, algo, scaled):
    count = 50 if depth < 30 else 25
    tasks, unrolls, start = material(env, states, discount, count)
    arguments = (tasks, unrolls, algo, depth, discount, 1e-3, start.u, start.A)
    of = {"tasks_seen": [1, 20, count], "scaled": scaled}
    fused, autograd = (ictd.pretrain_history(*arguments, engine=engine, **of) for engine in ("fused", "autograd"))
    np.testing.assert_allclose(fused.weights.A, autograd.weights.A, atol=ENGINES)
    np.testing.assert_allclose(fused.weights.u, autograd.weights.u, atol=ENGINES)
    np.testing.assert_allclose(fused.estimates, autograd.estimates, atol=ENGINES)
    moved = np.abs(fused.weights.A[-1] - start.A).max()
    assert moved > 0.005, "nothing was learned, so agreement shows nothing"


@pytest.mark.parametrize(("env", "states", "depth", "discount"), SETTINGS)
def test_collapsed_forward_pass_equals_naive_transformer(env, states, depth, discount):
    tasks, unrolls, _ = material(env, states, discount, tasks=3)
    weights = naive.larger_weights(states)
    engine = Engine(weights, "td", depth, discount, 0.0, True)
    estimates, _ = engine.train(tasks.reward, unrolls, tasks.transition)
    for i in range(len(tasks)):
        for s in range(states):
            prompt = naive.enumerated_prompt(tasks.transition[i], tasks.reward[i], discount, s)
            expected = naive.transformer(weights, depth, prompt)
            assert abs(estimates[i, s] - expected) < ROUNDING * max(1, abs(expected)) * 100


def naive_loss(weights, tasks, unrolls, algo, depth, discount, targets):
    """Half the mean squared error of one task's batch, to fixed targets (n, n) or (n,) per pair or start state."""
    n = tasks.states
    value = [
        naive.transformer(weights, depth, naive.enumerated_prompt(tasks.transition[0], tasks.reward[0], discount, s))
        for s in range(n)
    ]
    total = 0.0
    for s in range(n):
        for following in range(n):
            target = targets[s, following] if algo == "td" else targets[s]
            total += unrolls.transitions[0, s, following] * (target - value[s]) ** 2
    return total / 2 / unrolls.visits[0].sum(), np.array(value)


@pytest.mark.parametrize("algo", ["td", "mc"])
@pytest.mark.parametrize("depth", [1, 4])
def test_first_update_follows_the_finite_difference_gradient(algo, depth):
    states, discount, learning_rate = 3, 0.9, 1e-3
    tasks, unrolls, _ = material("boyan", states, discount, tasks=1)
    weights = naive.larger_weights(states)
    _, value = naive_loss(weights, tasks, unrolls, "mc", depth, discount, np.zeros(states))
    if algo == "td":
        targets = tasks.reward[0][:, None] + discount * value[None, :]
    else:
        targets = unrolls.return_sums[0] / np.maximum(unrolls.visits[0], 1)
    flat = np.concatenate([weights.u, weights.A.ravel()])
    gradient = np.empty_like(flat)
    for k in range(len(flat)):
        sides = []
        for sign in (1, -1):
            moved = flat.copy()
            moved[k] += sign * 1e-6
            shifted = ictd.Weights(moved[: 2 * states], moved[2 * states :].reshape(2 * states, 2 * states))
            sides.append(naive_loss(shifted, tasks, unrolls, algo, depth, discount, targets)[0])
        gradient[k] = (sides[0] - sides[1]) / 2e-6
    engine = Engine(weights, algo, depth, discount, learning_rate, True)
    engine.train(tasks.reward, unrolls, tasks.transition)
    # After one step Adam's first moment is a tenth of the gradient.
    np.testing.assert_allclose(engine.mean * 10, gradient, atol=DIFFERENCES * np.abs(gradient).max())
    expected = flat - learning_rate * gradient / (np.abs(gradient) + 1e-8)
    large = np.abs(gradient) > 1e-3
    np.testing.assert_allclose(engine.parameter[large], expected[large], atol=1e-7)


def test_snapshots_do_not_change_the_run():
    tasks, unrolls, start = material("loop", 3, 0.9)
    arguments = (tasks, unrolls, "mc", 6, 0.9, 1e-3, start.u, start.A)
    whole = ictd.pretrain(*arguments)
    history = ictd.pretrain_history(*arguments, tasks_seen=snapshot_counts(200, 11))
    assert history.weights[-1].A.tobytes() == whole.A.tobytes()
    assert len(history.tasks_seen) <= 11 and history.tasks_seen[-1] == 200
    early = ictd.pretrain(tasks[:20], unrolls[:20], *arguments[2:])
    later = ictd.pretrain_history(*arguments, tasks_seen=[20, 200])
    assert later.weights[0].A.tobytes() == early.A.tobytes()


def test_snapshot_counts_end_with_all_tasks():
    assert snapshot_counts(7, 1).tolist() == [7]
    assert snapshot_counts(1000, 4).tolist() == [1, 10, 100, 1000]
    assert snapshot_counts(3, 50).tolist() == [1, 2, 3]


def test_pretraining_learns():
    tasks, unrolls, start = material("boyan", 3, 0.9, tasks=3000)
    history = ictd.pretrain_history(tasks, unrolls, "td", 10, 0.9, 1e-3, start.u, start.A)
    value = ictd.value_function(tasks.transition, tasks.reward, 0.9)
    error = ictd.msve(tasks.stationary, value, history.estimates)
    assert error[-300:].mean() < 0.1 * error[:300].mean()


def test_autograd_batch_is_the_unrolled_one():
    _, unrolls, _ = material("loop", 3, 0.9, tasks=2)
    state, following, mean_return = batch_of(unrolls, 1)
    counts = torch.zeros(3, 3, dtype=torch.int64)
    counts.index_put_((state, following), torch.ones(64, dtype=torch.int64), accumulate=True)
    np.testing.assert_array_equal(counts, unrolls.transitions[1])
    sums = torch.zeros(3, dtype=torch.float64).index_add_(0, state, mean_return)
    np.testing.assert_allclose(sums, unrolls.return_sums[1], atol=ROUNDING * 100)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"algo": "sarsa"}, "algo is 'sarsa'; choose from td, mc"),
        ({"engine": "jax"}, "engine is 'jax'; choose from fused, autograd"),
        ({"depth": 0}, "depth is 0"),
        ({"discount": 1.0}, "discount is 1.0"),
        ({"learning_rate": 0.0}, "learning_rate is 0.0"),
        ({"A": np.zeros((4, 4))}, "A has shape"),
        ({"u": np.zeros(4), "A": np.zeros((4, 4))}, "u has shape"),
        ({"tasks_seen": [3, 2]}, "tasks_seen must ascend"),
        ({"tasks_seen": []}, "tasks_seen is"),
        ({"depth": 2.5}, "depth is 2.5"),
        ({"learning_rate": np.inf}, "learning_rate is inf"),
        ({"batches": ictd.BatchStatistics([1, 0, 0], np.diag([1, 0, 0]), np.zeros(3))}, r"batches\.visits has shape"),
    ],
)
def test_bad_settings_are_refused(changes, message):
    tasks, unrolls, start = material("boyan", 3, 0.9, tasks=5)
    run = {"algo": "td", "depth": 3, "discount": 0.9, "learning_rate": 1e-3, "u": start.u, "A": start.A}
    with pytest.raises(ValueError, match=message):
        ictd.pretrain_history(tasks, **{"batches": unrolls, **run, **changes})


def test_blocks_are_one_run_and_stop_at_a_divergence(monkeypatch):
    monkeypatch.setattr(pretraining, "BLOCK", 7)
    tasks = ictd.sample_tasks("loop", 3, 20, ictd.generator(0, "loop", 3, "tasks"))
    unrolls = ictd.unroll(tasks, 16, 0.9, 30, ictd.generator(0, "loop", 3, "unrolls"))
    start, seen = ictd.initial_weights(3, 0.1, ictd.generator(0, "loop", 3, "weights")), np.array([1, 7, 10, 20])

    def run(tasks):
        at = iter([slice(0, 7), slice(7, 14), slice(14, 20)])
        engine = Engine(start, "mc", 4, 0.9, 1e-3, scaled=True)

        def draw(size):
            part = next(at)
            assert part.stop - part.start == size
            return tasks.reward[part], unrolls[part], tasks.transition[part]

        return pretrain_in_blocks(engine, draw, seen)

    whole = pretrain_history(tasks, unrolls, "mc", 4, 0.9, 1e-3, start.u, start.A, tasks_seen=seen).weights
    np.testing.assert_array_equal(run(tasks).A, whole.A)
    np.testing.assert_array_equal(run(tasks).u, whole.u)
    reward = tasks.reward.copy()
    reward[8] = 1e308
    broken = run(ictd.Tasks(tasks.transition, reward, tasks.stationary))
    np.testing.assert_array_equal(broken.A[:2], whole.A[:2])
    assert np.isnan(broken.A[2:]).all() and np.isnan(broken.u[2:]).all()


def test_long_runs_say_how_far_they_are(monkeypatch, caplog):
    monkeypatch.setattr(pretraining, "PROGRESS_SECONDS", -1)
    tasks, unrolls, start = material("boyan", 2, 0.9, tasks=5)
    with caplog.at_level("INFO"):
        pretrain_history(tasks, unrolls, "td", 1, 0.9, 1e-3, start.u, start.A, tasks_seen=[2, 5])
    assert [record.getMessage() for record in caplog.records] == ["2 of 5 tasks", "5 of 5 tasks"]
