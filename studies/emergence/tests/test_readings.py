"""Pretraining under other readings of the paper's open questions."""

import numpy as np
import pytest
from tolerances import ENGINES

import ictd
from studies.emergence.parameters import mean_matrices, theta_masks
from studies.emergence.readings import Reading

OURS = {
    "scaled_attention": True, "parameters": "theta", "layers": "looped", "initial_gain": 0.1,
    "learning_rate": 1e-3, "clip": 0, "precision": "float64", "corner": "drawn", "skip": False,
}  # fmt: skip


def material(env, states, size):
    tasks = ictd.sample_tasks(env, states, size, ictd.generator(0, env, states, "tasks"))
    return tasks, ictd.unroll(tasks, 16, 0.9, 30, ictd.generator(0, env, states, "unrolls"))


class Whole(Reading):
    """A reading that uses the engine for any P and Q."""

    in_theta = False


def pretrain(algo, depth, tasks, batches, kind=Reading, **changes):
    """P and Q (2, layers, 2n+1, 2n+1), and the task of a divergence."""
    rng = ictd.generator(0, "boyan", tasks.states, "weights")
    P, Q, diverged_at = kind(**{**OURS, **changes}).pretrain(algo, depth, 0.9, tasks, batches, rng)
    return np.stack([P, Q]), diverged_at


@pytest.mark.parametrize(
    ("algo", "env", "states", "depth", "changes"),
    [
        ("td", "boyan", 3, 6, {}),
        ("mc", "loop", 3, 4, {"scaled_attention": False}),
        ("td", "boyan", 3, 1, {"scaled_attention": False}),
        ("td", "boyan", 3, 5, {"clip": 0.01}),
        ("mc", "loop", 3, 5, {"clip": 0.3}),
    ],
)
def test_both_engines_agree_in_theta(algo, env, states, depth, changes):
    tasks, batches = material(env, states, 30)
    (expected, none), (found, diverged) = (
        pretrain(algo, depth, tasks, batches, kind, **changes) for kind in (Reading, Whole)
    )
    assert none == diverged == 0
    np.testing.assert_allclose(found, expected, atol=ENGINES)
    if "clip" in changes:
        assert np.abs(pretrain(algo, depth, tasks, batches)[0] - expected).max() > 1e-6


def test_entries_outside_theta_do_not_change():
    tasks, batches = material("boyan", 3, 5)
    inside = theta_masks(3).astype(bool)
    for changes, layers in (({"precision": "float32"}, 1), ({"layers": "separate"}, 3), ({"parameters": "all"}, 1)):
        after = [pretrain("td", 3, tasks[:k], batches[:k], **changes)[0] for k in (1, 5)]
        moved = after[0] != after[1]
        assert moved.shape == (2, layers, 7, 7)
        for part, mask in zip(moved, inside, strict=True):
            expected = np.ones_like(mask) if "parameters" in changes else mask
            # In a separate last layer, only the query's column has an effect; its lower half is zero.
            assert (part[: layers - 1 or 1] == expected).all()
            assert not part[-1][~expected].any() and part[-1].any()


def test_means_over_layers_are_scaled_and_signed_as_in_theta():
    rng = np.random.default_rng(0)
    P, Q = rng.normal(size=(2, 3, 2, 5, 5))
    P[..., -1, -1] = [[2.0, -1.0], [-4.0, 3.0], [0.5, 0.25]]
    found = mean_matrices(P, Q)
    for run in range(3):
        signs = np.sign(P[run, :, -1, -1])
        mean_P, mean_Q = ((signs[:, None, None] * part[run]).mean(axis=0) for part in (P, Q))
        np.testing.assert_allclose(found[0][run], mean_P / mean_P[-1, -1])
        np.testing.assert_allclose(found[1][run], mean_Q * mean_P[-1, -1])


def test_masks_of_theta():
    masks = theta_masks(2)
    assert masks[0].sum() == 4 and masks[0, -1, :4].all() and masks[1].sum() == 16 and masks[1, :4, :4].all()


def test_single_precision_is_close_to_double_precision():
    tasks, batches = material("boyan", 3, 20)
    single, double = (pretrain("mc", 5, tasks, batches, precision=one)[0] for one in ("float32", "float64"))
    assert single.dtype == np.float32 and 0 < np.abs(single - double).max() < 1e-4


@pytest.mark.parametrize("kind", [Reading, Whole])
@pytest.mark.parametrize("broken", ["reward", "return"])
def test_diverged_runs_are_nan_and_record_the_first_task_that_is_not_finite(kind, broken):
    tasks, batches = material("boyan", 3, 6)
    reward, return_sums = tasks.reward.copy(), batches.return_sums.copy()
    # The estimates or the update of the fourth task are not finite.
    (reward if broken == "reward" else return_sums)[3] *= 1e308 if broken == "reward" else np.inf
    tasks = ictd.Tasks(tasks.transition, reward, tasks.stationary)
    batches = ictd.BatchStatistics.unchecked(
        visits=batches.visits, transitions=batches.transitions, return_sums=return_sums
    )
    matrices, diverged_at = pretrain("mc", 40, tasks, batches, kind, scaled_attention=False)
    assert diverged_at == 4 and np.isnan(matrices).all()


def test_a_run_that_skips_the_last_update_counts_as_diverged():
    tasks, batches = material("boyan", 3, 6)
    return_sums = batches.return_sums.copy()
    return_sums[2] = np.inf
    broken = ictd.BatchStatistics.unchecked(
        visits=batches.visits, transitions=batches.transitions, return_sums=return_sums
    )
    options = {"parameters": "all", "corner": "one", "initial_gain": 0.01}
    matrices, diverged_at = pretrain("mc", 4, tasks, broken, skip=True, **options)
    whole, _ = pretrain("mc", 4, tasks, batches, skip=True, **options)
    assert diverged_at == 0 and np.isfinite(matrices).all() and (matrices != whole).any()
    assert pretrain("mc", 4, tasks, broken, **options)[1] == 3
    assert pretrain("mc", 4, tasks[:3], broken[:3], skip=True, **options)[1] == 3


def test_the_option_one_sets_only_the_corner():
    tasks, batches = material("boyan", 3, 1)
    options = {"parameters": "all", "learning_rate": 1e-12, "initial_gain": 0.01}
    drawn, one = (pretrain("td", 4, tasks, batches, corner=corner, **options)[0] for corner in ("drawn", "one"))
    np.testing.assert_allclose(one[0, 0, -1, -1], 1)
    changed = one - drawn
    changed[0, 0, -1, -1] = 0
    np.testing.assert_allclose(changed, 0, atol=1e-11)
    assert np.abs(one[1]).max() < 0.01
