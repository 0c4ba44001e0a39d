"""Critics and policy iteration, compared with slow versions."""

from functools import partial
from types import SimpleNamespace

import naive
import numpy as np
import pytest
from tolerances import ENGINES

from ictd.baselines import theta_preconditioned_td
from ictd.prompt import prompts_of
from ictd.storage import save_arrays
from ictd.transformer import Weights
from studies.control import evaluate
from studies.control.critics import iterate, lstd, observed_rewards, smoothed_model, theta_td, transformer
from studies.control.processes import (
    Place,
    draw_policies,
    draw_processes,
    greedy,
    pair_paths,
    uniform,
)
from studies.control.tests import slow

GAMMA, SIZE, LENGTH = 0.9, 5, 7
STATES, ACTIONS = SHAPE = (3, 2)
PLACE = {"family": "dirichlet", "states": STATES, "actions": ACTIONS, "discount": GAMMA, "concentrations": [0.3, 1.0]}

LARGER, THETA = naive.larger_weights(STATES * ACTIONS), theta_preconditioned_td(0.9 * np.eye(STATES * ACTIONS))
GRID = {"smallest": 1e-6, "largest": 1e-4, "number": 3}
EVALUATION = {"iterations": 3, "test_processes": 4, "tuning_processes": 20, "context_lengths": [1, 6], "updates": 2}
EVALUATION |= dict.fromkeys(("ridges", "pseudo_counts", "step_sizes"), GRID)
EVALUATION["pseudo_counts"] = {"smallest": 0.5, "largest": 50, "number": 3}


@pytest.fixture
def seen():
    """Processes, and the transitions observed in each."""
    rng = np.random.default_rng(3)
    processes = draw_processes(Place(**PLACE), SIZE, rng)
    paths = pair_paths(processes, uniform(processes.reward.shape), 1, LENGTH, rng)[:, 0]
    steps = [slow.transitions(path, LENGTH, ACTIONS) for path in paths]
    counts = np.stack([slow.counts(of_process, SHAPE) for of_process in steps])
    policy = draw_policies(processes.reward.shape, 0.5, rng)
    return SimpleNamespace(processes=processes, steps=steps, counts=counts, policy=policy)


def on_prompts(columns):
    """TF_L of three layers on whole prompts with given columns."""
    return np.reshape([naive.transformer(LARGER, 3, prompt) for prompt in prompts_of(columns)], SHAPE)


def on_grouped(steps, r, pi, pseudo_counts):
    """The same on prompts with a column for each observed pair."""
    counts = slow.counts(steps, SHAPE) + pseudo_counts / STATES
    return on_prompts(slow.columns_of_pairs(counts, r, pi, GAMMA))


TF = partial(transformer, weights=LARGER, depth=3)


@pytest.mark.parametrize(
    ("critic", "slowly"),
    [
        (partial(lstd, ridge=0.3), lambda steps, r, pi: slow.lstd(steps, r, pi, GAMMA, 0.3)),
        (partial(smoothed_model, pseudo_counts=0.7), lambda steps, r, pi: slow.smoothed(steps, r, pi, GAMMA, 0.7)),
        (partial(theta_td, step_size=0.8, updates=4), lambda steps, r, pi: slow.batch_td(steps, r, pi, GAMMA, 0.8, 4)),
        (TF, lambda steps, r, pi: on_prompts(slow.columns(steps, r, pi, GAMMA))),
        (partial(TF, grouped=True), lambda steps, r, pi: on_grouped(steps, r, pi, 0)),
        (partial(TF, grouped=True, pseudo_counts=1.5), lambda steps, r, pi: on_grouped(steps, r, pi, 1.5)),
        (observed_rewards, lambda steps, r, pi: r),
    ],
    ids=["lstd", "smoothed", "theta_td", "transformer", "grouped", "pseudo-counts", "rewards"],
)
def test_critics_agree_with_slow_versions(seen, critic, slowly):
    reward = np.stack([slow.observed(*one) for one in zip(seen.steps, seen.processes.reward, strict=True)])
    found = critic(seen.counts, reward, seen.policy, GAMMA)
    for i in range(SIZE):
        expected = slowly(seen.steps[i], reward[i], seen.policy[i])
        np.testing.assert_allclose(found[i], expected, atol=ENGINES, rtol=ENGINES)


def test_policy_iteration_evaluates_and_improves_by_observed_rewards(seen):
    rewards = seen.processes.reward
    policies = iterate(partial(smoothed_model, pseudo_counts=0.7), seen.counts, rewards, GAMMA, 3)
    expected = np.full(rewards.shape, 0.5)
    for policy in policies:
        np.testing.assert_array_equal(policy, expected)
        given = zip(seen.steps, rewards, policy, strict=True)
        expected = greedy(np.stack([slow.smoothed(*one, GAMMA, 0.7) for one in given]))


def test_estimates_that_diverge_count_as_zero(seen):
    diverging = partial(transformer, weights=Weights(LARGER.u, 1e200 * LARGER.A), depth=3)
    policies = iterate(diverging, seen.counts, seen.processes.reward, GAMMA, 1)
    np.testing.assert_array_equal(policies[1], greedy(np.zeros(seen.policy.shape)))


@pytest.fixture(scope="module")
def evaluated(tmp_path_factory):
    """Arrays of the step ``evaluate`` for a run of two seeds."""
    folder = tmp_path_factory.mktemp("evaluated")
    u, A = np.stack([THETA.u, LARGER.u]), np.stack([THETA.A, LARGER.A])
    save_arrays(folder / "td.npz", depth=3, u=u, A=A)
    evaluate.main(PLACE, **EVALUATION, runs=[folder / "td.npz"], output=folder / "o.npz")
    return dict(np.load(folder / "o.npz"))


def test_all_methods_are_evaluated(evaluated):
    rows = list(zip(evaluated["method"].tolist(), evaluated["seed"].tolist(), strict=True))
    transformers = [f"td{prompts}" for prompts in ("", " grouped", " grouped pseudo_counts")]
    baselines = [(name, 0) for name in ("lspi", "smoothed", "theta_td", "rewards")]
    assert sorted(rows) == sorted(baselines + [(name, seed) for name in transformers for seed in (0, 1)])
    test = evaluate.draw_batches(Place(**PLACE), 4, [1, 6], "test")
    critics = {
        ("lspi", 0): partial(lstd, ridge=evaluated["parameter"][rows.index(("lspi", 0)), 1]),
        ("td", 0): partial(TF, weights=THETA),
        ("td grouped", 1): partial(TF, grouped=True),
    }
    for row, critic in critics.items():
        policies = iterate(critic, test.counts[1], test.processes.reward, GAMMA, 3)
        for k, i in np.ndindex(4, 4):
            expected = slow.mean_value(test.processes.transition[i], test.processes.reward[i], policies[k, i], GAMMA)
            assert evaluated["mean_value"][rows.index(row), 1, k, i] == pytest.approx(expected, rel=1e-6, abs=1e-6)
    assert (evaluated["optimal"] >= evaluated["mean_value"].max(axis=(0, 1, 2)) - 1e-6).all()


def test_the_best_parameter_is_chosen_and_the_largest_of_equally_good_ones(evaluated):
    """All small step sizes of theta^TD have the same greedy policies."""
    assert (evaluated["parameter"][evaluated["method"] == "theta_td"] == 1e-4).all()
    tuning = evaluate.draw_batches(Place(**PLACE), 20, [1, 6], "tuning")
    grouped = {
        number: partial(TF, weights=THETA, grouped=True, pseudo_counts=number) for number in (0.0, 0.5, 5.0, 50.0)
    }
    expected = evaluate.best_parameters(grouped, tuning, GAMMA, 3)
    found = evaluated["parameter"][evaluated["method"] == "td grouped pseudo_counts"]
    np.testing.assert_allclose(found, [expected, expected])
    assert expected.any()


def test_parameters_are_chosen_by_the_last_policies():
    tuning = evaluate.draw_batches(Place(**PLACE), 20, [6], "tuning")

    def good_at_first(counts, reward, policy, discount):
        return reward if (policy == uniform(policy.shape)).all() else -reward

    critics = {0.0: observed_rewards, 1.0: good_at_first}
    assert evaluate.best_parameters(critics, tuning, GAMMA, 2) == [0.0]
    assert evaluate.best_parameters(critics, tuning, GAMMA, 1) == [1.0]
