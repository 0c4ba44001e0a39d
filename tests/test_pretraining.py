"""Runs of Algorithms 1 and 2: engines, snapshots, blocks, and divergence."""

import naive
import numpy as np
import pytest
from tolerances import ENGINES

import ictd
from ictd import pretraining
from ictd.algorithms import ALGORITHMS
from ictd.engine import Engine
from ictd.pipeline.grid import log_spaced_integers
from ictd.pretraining import Divergence, pretrain_history, pretrain_runs


@pytest.mark.parametrize(("algo", "scaled"), [("td", True), ("mc", False)])
@pytest.mark.parametrize(("env", "states", "depth", "discount"), naive.SETTINGS)
def test_engines_agree(env, states, depth, discount, algo, scaled):
    count = 50 if depth < 30 else 25
    tasks, batches, start = naive.material(env, states, discount, count)
    settings = {"algo": algo, "depth": depth, "discount": discount, "learning_rate": 1e-3, "scaled": scaled}
    settings |= {"start": start, "tasks_seen": [1, 20, count]}
    compiled = pretrain_history(tasks, batches, **settings, engine="compiled")
    by_torch = pretrain_history(tasks, batches, **settings, engine="torch")
    np.testing.assert_allclose(compiled.weights.A, by_torch.weights.A, atol=ENGINES)
    np.testing.assert_allclose(compiled.weights.u, by_torch.weights.u, atol=ENGINES)
    np.testing.assert_allclose(compiled.estimates, by_torch.estimates, atol=ENGINES)
    moved = np.abs(compiled.weights.A[-1] - start.A).max()
    assert moved > 0.005, "agreement of weights that do not move shows nothing"


def test_snapshots_do_not_change_the_run():
    tasks, batches, start = naive.material("loop", 3, 0.9)
    settings = ("mc", 6, 0.9, 1e-3, start)
    end = pretrain_history(tasks, batches, *settings).weights[-1]
    history = pretrain_history(tasks, batches, *settings, tasks_seen=[20, 200])
    np.testing.assert_array_equal(history.weights[-1].A, end.A)
    early = pretrain_history(tasks[:20], batches[:20], *settings)
    np.testing.assert_array_equal(history.weights[0].A, early.weights[-1].A)
    np.testing.assert_array_equal(history.estimates[:20], early.estimates)


@pytest.mark.parametrize(
    ("tasks", "number", "counts"), [(7, 1, [7]), (1000, 4, [1, 10, 100, 1000]), (3, 50, [1, 2, 3])]
)
def test_log_spaced_integers(tasks, number, counts):
    assert log_spaced_integers(tasks, number).tolist() == counts


@pytest.mark.parametrize("engine", ["compiled", "torch"])
def test_a_divergence_has_the_history_up_to_its_task(engine):
    tasks, batches, start = naive.material("loop", 3, 0.9, tasks=9)
    settings = {"algo": "td", "depth": 4, "discount": 0.9, "learning_rate": 1e-3, "start": start}
    settings |= {"engine": engine, "tasks_seen": [2, 4, 9]}
    expected = pretrain_history(tasks, batches, **settings)
    reward = tasks.reward.copy()
    reward[6] = 1e308
    with pytest.raises(Divergence) as raised:
        pretrain_history(ictd.Tasks(tasks.transition, reward, tasks.stationary), batches, **settings)
    history = raised.value.history
    assert raised.value.task == 7
    np.testing.assert_array_equal(history.weights.A[:2], expected.weights.A[:2])
    np.testing.assert_array_equal(history.estimates[:6], expected.estimates[:6])
    assert np.isnan(history.weights.A[2]).all() and np.isnan(history.weights.u[2]).all()
    assert np.isnan(history.estimates[6:]).all()


def test_a_divergence_of_the_last_update_is_found():
    tasks, batches, start = naive.material("loop", 3, 0.9, tasks=1)
    large = ictd.Tasks(tasks.transition, 1e6 * tasks.reward, tasks.stationary)
    with pytest.raises(Divergence) as raised:
        pretrain_history(large, batches, "td", 2, 0.9, 1e308, start)
    assert raised.value.task == 1 and np.isfinite(raised.value.history.estimates).all()


def test_runs_with_shared_tasks_stop_independently(monkeypatch, caplog):
    """In blocks of seven tasks.  One run diverges at its first update, and one in the second block."""
    monkeypatch.setattr(pretraining, "BLOCK", 7)
    tasks, batches, start = naive.material("loop", 3, 0.9, tasks=20)
    broken = tasks.reward.copy()
    broken[8] = 1e308
    rewards = [tasks.reward, tasks.reward, broken]
    blocks, asked = iter([slice(0, 7), slice(7, 14), slice(14, 20)]), []

    def draw(size, running):
        block = next(blocks)
        asked.append(running)
        return [(rewards[run][block], targets[run][block], tasks.transition[block]) for run in running]

    far = ictd.Weights(1e200 * start.u, 1e200 * start.A)
    starts = [("mc", start), ("td", far), ("mc", start)]
    engines = [Engine(weights, 4, 0.9, 1e-3) for _, weights in starts]
    targets = [ALGORITHMS[algo].targets(tasks, batches, 0.9) for algo, _ in starts]
    with np.errstate(over="ignore", invalid="ignore"):
        whole, first, second = pretrain_runs(engines, draw, 20)
    assert asked == [[0, 1, 2], [0, 2], [0]]
    assert caplog.messages == ["diverged at task 1", "diverged at task 9"]
    expected = pretrain_history(tasks, batches, "mc", 4, 0.9, 1e-3, start).weights[0]
    np.testing.assert_array_equal(whole.A, expected.A)
    for diverged in (first, second):
        assert np.isnan(diverged.A).all() and np.isnan(diverged.u).all()
