"""Evaluators, policy iteration and agents, compared with slow versions."""

from typing import NamedTuple

import naive
import numpy as np
import pytest
from tolerances import ENGINES

from ictd.prompt import prompts_of
from ictd.storage import save_arrays
from ictd.transformer import Weights
from studies.control import offline, online
from studies.control.evaluators import (
    InContext,
    LeastSquares,
    SmoothedModel,
    baselines,
    in_context_td,
    iterate,
    observed_rewards,
)
from studies.control.grid import CONTROLS
from studies.control.partly_exact import PartlyExact, advantage
from studies.control.processes import (
    Processes,
    draw_policies,
    draw_processes,
    greedy,
    pair_paths,
    transition_counts,
    uniform,
    unseen_processes,
)
from studies.control.tests import slow

GAMMA, SIZE, LENGTH = 0.9, 5, 7
STATES, ACTIONS, PAIRS = 3, 2, 6
PLACE = {"family": "dirichlet", "states": STATES, "actions": ACTIONS, "discount": GAMMA}
VARIANTS = {name: {"depth": 2, "prompts": "sampled"} for name in ("td", "main")}
# One transition from each pair to each state.
TO_ALL_STATES = [(s, a, j) for s in range(STATES) for a in range(ACTIONS) for j in range(STATES)]


class Seen(NamedTuple):
    """Processes, the transitions observed in each, their counts, and policies."""

    processes: Processes
    steps: list
    counts: np.ndarray
    policy: np.ndarray

    @property
    def reward(self):
        """Rewards of observed pairs, and zero."""
        return np.where(self.counts.sum(axis=-1) > 0, self.processes.reward, 0)

    def arguments(self):
        """Arguments of an evaluator."""
        return self.counts, self.reward, self.policy, GAMMA


@pytest.fixture
def seen():
    rng = np.random.default_rng(3)
    processes = draw_processes("dirichlet", SIZE, STATES, ACTIONS, [0.3, 1.0], rng)
    paths = pair_paths(processes, uniform(processes.reward.shape), 1, LENGTH, rng)[:, 0]
    steps = [slow.transitions(path, LENGTH, ACTIONS) for path in paths]
    counts = transition_counts(paths, LENGTH, STATES, ACTIONS)
    return Seen(processes, steps, counts, draw_policies("both", processes.reward.shape, rng))


def slow_transformer(weights, steps, reward, policy):
    """TF_L of three layers on whole prompts."""
    prompts = prompts_of(slow.columns(steps, reward, policy, GAMMA))
    return np.reshape([naive.transformer(weights, 3, prompt) for prompt in prompts], policy.shape)


def slow_grouped(weights, steps, reward, policy, pseudo_counts=0.0):
    """The same with a column for each observed pair."""
    counts = np.full((*policy.shape, STATES), pseudo_counts / STATES)
    for step in steps:
        counts[step] += 1
    prompts = prompts_of(slow.grouped_columns(counts, reward, policy, GAMMA))
    return np.reshape([naive.transformer(weights, 3, prompt) for prompt in prompts], policy.shape)


LARGER = naive.larger_weights(PAIRS)
CHAIN = np.random.default_rng(0).dirichlet(np.ones(STATES), (STATES, ACTIONS))


@pytest.mark.parametrize(
    ("evaluate", "slowly"),
    [
        (LeastSquares(0.3), lambda steps, r, pi: slow.lstd(steps, r, pi, GAMMA, 0.3)),
        (SmoothedModel(0.7, CHAIN), lambda steps, r, pi: slow.smoothed(steps, r, pi, GAMMA, 0.7, CHAIN)),
        (in_context_td(0.8, 4, PAIRS), lambda steps, r, pi: slow.batch_td(steps, r, pi, GAMMA, 0.8, 4)),
        (InContext(LARGER, 3), lambda steps, r, pi: slow_transformer(LARGER, steps, r, pi)),
        # Pseudo-counts of 1.5 add half a transition to each state.  Doubling all counts gives the same shares.
        (
            InContext(LARGER, 3, 1.5),
            lambda steps, r, pi: slow_transformer(LARGER, [*steps, *steps, *TO_ALL_STATES], r, pi),
        ),
        (InContext(LARGER, 3, grouped=True), lambda steps, r, pi: slow_grouped(LARGER, steps, r, pi)),
        (InContext(LARGER, 3, 1.5, grouped=True), lambda steps, r, pi: slow_grouped(LARGER, steps, r, pi, 1.5)),
        (observed_rewards, lambda steps, r, pi: slow.observed_rewards(steps, r)),
    ],
    ids=["lstd", "smoothed", "theta_td", "transformer", "with pseudo-counts", "grouped", "grouped, pseudo", "rewards"],
)
def test_evaluators_agree_with_slow_versions(seen, evaluate, slowly):
    found = evaluate(*seen.arguments())
    for i in range(SIZE):
        expected = slowly(seen.steps[i], seen.reward[i], seen.policy[i])
        np.testing.assert_allclose(found[i], expected, atol=ENGINES, rtol=ENGINES)


def test_the_smoothed_model_is_lstd_with_pseudo_counts(seen):
    found = SmoothedModel(2.0, 1 / STATES)(*seen.arguments())
    for i in range(SIZE):
        # Two thirds of a transition to each state: two for every three of each step.
        steps = [*(3 * seen.steps[i]), *(2 * TO_ALL_STATES)]
        expected = slow.lstd(steps, seen.reward[i], seen.policy[i], GAMMA, 1e-12)
        np.testing.assert_allclose(found[i], expected, atol=1e-8)


def test_policy_iteration_evaluates_and_improves(seen):
    policies, estimated = iterate(LeastSquares(0.1), seen.counts, seen.processes.reward, GAMMA, 3)
    for i in range(SIZE):
        policy = np.full((STATES, ACTIONS), 0.5)
        for k in range(3):
            np.testing.assert_allclose(policies[k, i], policy)
            q = slow.lstd(seen.steps[i], seen.processes.reward[i], policy, GAMMA, 0.1)
            np.testing.assert_allclose(estimated[k, i], q, atol=ENGINES)
            policy = greedy(q)


def test_estimates_that_diverge_count_as_zero(seen):
    diverging = InContext(Weights(np.zeros(2 * PAIRS), np.full((2 * PAIRS, 2 * PAIRS), 1e200)), 3)
    policies, estimated = iterate(diverging, seen.counts, seen.processes.reward, GAMMA, 1)
    assert (estimated == 0).all() and 0 < policies[1, :, :, 0].mean() < 1


def test_baselines_have_their_grids():
    grid = {"smallest": 0.1, "largest": 10, "number": 3}
    by_name = baselines(PLACE, 4, np.full((STATES, ACTIONS, STATES), 1 / 3), grid, grid, grid)
    assert list(by_name.pop("rewards")) == [0.0]
    assert list(by_name) == ["lspi", "lspi_mean", "smoothed", "theta_td"]
    assert all(np.allclose(list(evaluators), [0.1, 1, 10]) for evaluators in by_name.values())


@pytest.fixture
def offline_results(tmp_path):
    """A function that makes the arrays of a place from one transition in each process."""
    grid, runs = {"smallest": 1e-6, "largest": 1e-4, "number": 3}, tmp_path / "td.npz"
    save_arrays(runs, tasks_seen=np.array([5]), u=np.zeros((2, 1, 12)), A=np.zeros((2, 1, 12, 12)))

    def make(first):
        offline.main(PLACE, VARIANTS, first, 2, 2, 4, 4, [1], [1.0], grid, grid, grid, [runs], tmp_path / "o.npz")
        return np.load(tmp_path / "o.npz")

    return make


def test_the_largest_of_equally_good_parameters_is_chosen(offline_results):
    """All small step sizes of theta^TD have the same greedy policies."""
    arrays = offline_results("td")
    row = arrays["method"].tolist().index("theta_td")
    assert arrays["parameter"][row, 0] == pytest.approx(1e-4) and arrays["mean_value"].dtype == np.float32


@pytest.mark.parametrize("first", ["td", "main"])
def test_control_experiments_need_the_first_variant_as_the_first_run(offline_results, first):
    methods = set(offline_results(first)["method"].tolist())
    assert ({"td half_error", "smoothed random_advantage"} <= methods) == (first == "td")
    assert {"rewards", "td", "td grouped", "td pseudo_counts", "td grouped pseudo_counts"} <= methods


def test_weights_of_other_prompts_are_evaluated_on_all_formats(tmp_path):
    """Runs with another depth are evaluated only on prompts with a column for each transition."""
    grid = {"smallest": 1e-3, "largest": 1e-1, "number": 2}
    variants = {
        "td": {"depth": 2, "prompts": "sampled"},
        "deep": {"depth": 4, "prompts": "sampled"},
        "paper": {"depth": 3, "prompts": "enumerated"},
    }
    weights = {name: naive.larger_weights(PAIRS) for name in variants}
    for name, one in weights.items():
        arrays = {"u": np.tile(one.u, (2, 2, 1)), "A": np.tile(one.A, (2, 2, 1, 1))}
        save_arrays(tmp_path / f"{name}.npz", tasks_seen=np.array([3, 5]), **arrays)
    runs, output = [tmp_path / f"{name}.npz" for name in variants], tmp_path / "o.npz"
    offline.main(PLACE, variants, "td", 2, 3, 4, 4, [1, 6], [1.0], grid, grid, grid, runs, output)
    arrays = np.load(output)
    rows = list(zip(arrays["method"].tolist(), arrays["seed"].tolist(), arrays["tasks"].tolist(), strict=True))
    assert len(set(rows)) == len(rows)
    shown = {(method, tasks) for method, _, tasks in rows if method.split()[0] in variants}
    both = {("", 5), (" grouped", 5), (" pseudo_counts", 5), (" grouped pseudo_counts", 5)}
    expected = {(f"td{format}", tasks) for format in ("", " grouped") for tasks in (3, 5)}
    expected |= {(name + format, tasks) for name in ("td", "paper") for format, tasks in both} | {("deep", 5)}
    assert {method for method in shown if method[0].split()[-1] not in CONTROLS} == expected
    test = offline.draw_batches(PLACE, 4, [1, 6], [1.0], "test")
    for method, grouped in (("paper", False), ("paper grouped", True)):
        for k, counts in enumerate(test.counts):
            evaluate = InContext(weights["paper"], 3, grouped=grouped)
            measures = offline.measure(evaluate, test.processes, counts, GAMMA, 3)
            found = arrays["mean_value"][rows.index((method, 1, 5)), k]
            np.testing.assert_allclose(found, measures["mean_value"], rtol=1e-6)


def test_measures_equal_their_definitions(seen):
    processes, counts = seen.processes, seen.counts
    found = offline.measure(LeastSquares(0.1), processes, counts, GAMMA, 3)
    policies, estimated = iterate(LeastSquares(0.1), counts, processes.reward, GAMMA, 3)
    for i in range(SIZE):
        for k in range(4):
            expected = slow.mean_value(processes.transition[i], processes.reward[i], policies[k, i], GAMMA)
            assert found["mean_value"][k, i] == pytest.approx(expected)
        q = slow.values(processes.transition[i], processes.reward[i], np.full((STATES, ACTIONS), 0.5), GAMMA)
        error = estimated[0, i] - q
        assert found["error"][i] == pytest.approx((error**2).mean())
        # With two actions, advantages are half of their difference.
        error_gaps, true_gaps = error[:, 0] - error[:, 1], q[:, 0] - q[:, 1]
        norms = np.sqrt(error_gaps @ error_gaps * (true_gaps @ true_gaps))
        assert found["cosine"][i] == pytest.approx(error_gaps @ true_gaps / norms)
        assert found["advantage_error"][i] == pytest.approx((error_gaps**2 / 4).mean())
        assert found["changes"][i] == (policies[3, i] != policies[2, i]).any()


class Scripted:
    """An evaluator whose greedy policies change in process 1 at every call, and in process 2 after the first call."""

    def __init__(self, shape, changing):
        self.shape, self.changing, self.calls = shape, changing, 0

    def __call__(self, *arguments):
        q = np.zeros(self.shape)
        q[..., 0] = 1
        if 1 in self.changing and self.calls % 2:
            q[1, 0, 1] = 2
        if 2 in self.changing and self.calls:
            q[2, 0, 1] = 2
        self.calls += 1
        return q


@pytest.mark.parametrize(("changing", "kind", "process"), [([2], 2, 2), ([1, 2], 2, 2), ([1], 1, 1), ([], 0, 0)])
def test_the_shown_run_is_selected_by_its_changes(seen, changing, kind, process):
    processes = seen.processes
    evaluate = Scripted(processes.reward.shape, changing)
    found = offline.shown_run(evaluate, processes, seen.counts, GAMMA)
    assert found["run_kind"] == kind
    np.testing.assert_array_equal(found["run_transition"], processes.transition[process])
    policy = np.full((STATES, ACTIONS), 0.5)
    exact = slow.values(processes.transition[process], processes.reward[process], policy, GAMMA)
    np.testing.assert_allclose(found["run_exact"][0], exact)
    assert found["run_share"].shape == (3,) and (found["run_share"] <= 1 + 1e-12).all()


class TestControls:
    """Control experiments with LSTD."""

    @pytest.fixture
    def exact(self, seen):
        return seen.processes.values(seen.policy, GAMMA)

    @pytest.fixture
    def own(self, seen):
        return LeastSquares(0.1)(*seen.arguments())

    @pytest.fixture
    def estimate(self, seen):
        return lambda kind: PartlyExact(LeastSquares(0.1), seen.processes, kind)(*seen.arguments())

    def test_known_values_are_exact(self, seen, exact, own, estimate):
        unseen = seen.counts.sum(axis=-1) == 0
        np.testing.assert_array_equal(estimate("exact_unseen"), np.where(unseen, exact, own))
        as_many = estimate("exact_as_unseen") == exact
        np.testing.assert_array_equal(as_many.sum(axis=(1, 2)), unseen.sum(axis=(1, 2)))

    def test_half_error_is_half_of_the_evaluators_error(self, exact, own, estimate):
        np.testing.assert_allclose(estimate("half_error") - exact, (own - exact) / 2)

    def test_random_advantage_errors_have_the_norm_of_the_evaluators_error(self, exact, own, estimate):
        error = estimate("random_advantage") - exact
        np.testing.assert_allclose(error.sum(axis=-1), 0, atol=1e-12)
        np.testing.assert_allclose((error**2).sum((1, 2)), (advantage(own - exact) ** 2).sum((1, 2)))

    def test_aligned_errors_keep_norm_and_component_along_the_truth(self, exact, own, estimate):
        error, aligned, true = advantage(own - exact), estimate("aligned_advantage") - exact, advantage(exact)
        np.testing.assert_allclose((aligned * true).sum((1, 2)), (error * true).sum((1, 2)))
        np.testing.assert_allclose((aligned**2).sum((1, 2)), (error**2).sum((1, 2)))


def random_actions():
    return online.Tabular(0.0, 0.0, 0.0)


@pytest.fixture(scope="module")
def many_processes():
    return draw_processes("dirichlet", 300, STATES, ACTIONS, [1.0], np.random.default_rng(0))


@pytest.fixture(scope="module")
def best(many_processes):
    return many_processes.values(many_processes.optimal(GAMMA), GAMMA)


@pytest.fixture
def knows(best):
    """A learner that knows q*."""

    def learn(agents, step):
        agents.q = best
        return step.choose()

    return learn


def test_an_agent_that_knows_q_has_regret_in_its_first_action_only(many_processes, best, knows):
    regret = online.simulate(knows, many_processes, GAMMA, 20, "epsilon", 0.0, 1)
    assert (regret[:, -1] == regret[:, 0]).all() and 0 < regret.mean() and (regret[:, 0] > 0).mean() < 0.8
    gaps = best.max(axis=-1) - best.min(axis=-1)
    assert all(first == 0 or np.isclose(gaps[i], first).any() for i, first in enumerate(regret[:, 0]))


def test_epsilon_takes_random_actions(many_processes, best, knows):
    gaps = best.max(axis=-1) - best.min(axis=-1)
    regret = online.simulate(knows, many_processes, GAMMA, 200, "epsilon", 1e12, 1)
    assert regret[:, -1].mean() / 200 == pytest.approx(gaps.mean() / 2, rel=0.1)


def test_the_optimistic_rule_explores(many_processes, knows):
    regret = online.simulate(knows, many_processes, GAMMA, 20, "optimistic", 1e6, 1)
    assert regret[:, -1].mean() > regret[:, 0].mean()


def test_all_methods_act_in_the_same_processes(tmp_path):
    grid = [0.5, 1.0]
    names = ("pseudo_counts", "theta_step_sizes", "step_sizes", "decays", "concentrations", "epsilons", "bonuses")
    settings = dict.fromkeys(names, grid) | {"powers": [0.0], "starts": [0.0], "intervals": [2], "steps": 6}
    settings |= {"checkpoints": 3, "test_processes": 5, "tuning_processes": 4}
    save_arrays(tmp_path / "td.npz", u=np.zeros((2, 1, 12)), A=np.zeros((2, 1, 12, 12)))
    ridges = {"smallest": 0.1, "largest": 1, "number": 2}
    online.main(PLACE, {"td": {"depth": 2}}, 2, 2, [1.0], ridges, settings, [tmp_path / "td.npz"], tmp_path / "o.npz")
    arrays = np.load(tmp_path / "o.npz")
    rows = list(zip(arrays["method"].tolist(), arrays["rule"].tolist(), arrays["seed"].tolist(), strict=True))
    # Nine methods with two rules, and two with one, for two seeds.
    assert len(rows) == len(set(rows)) == 2 * (2 * 9 + 2) and arrays["steps"].tolist() == [1, 4, 6]
    test, _ = unseen_processes(PLACE, 5, [1.0], "online test")
    for seed in range(2):
        regret = online.simulate(random_actions(), test, GAMMA, 6, "epsilon", 1e9, seed)
        np.testing.assert_allclose(arrays["regret"][rows.index(("uniform", "epsilon", seed))], regret[:, [0, 3, 5]])


@pytest.mark.parametrize("rule", ["epsilon", "optimistic"])
def test_each_agent_has_its_own_parameter_of_the_rule(many_processes, knows, rule):
    numbers = np.where(np.arange(300) % 2, 1e6, 0.0)
    regret = online.simulate(knows, many_processes, GAMMA, 20, rule, numbers, 1)
    for c in (0.0, 1e6):
        chosen = numbers == c
        alone = online.simulate(knows, many_processes, GAMMA, 20, rule, c, 1)
        np.testing.assert_array_equal(regret[chosen], alone[chosen])


@pytest.mark.parametrize("rule", ["epsilon", "optimistic"])
def test_parameters_are_tuned_for_each_number_of_the_rule(many_processes, rule):
    """Means over 300 processes differ from the means of agents that act alone only by chance."""
    learner, numbers = online.Planner(LeastSquares(0.1)), [0.0, 1.0, 100.0]
    found = online.tuning_regrets(learner, many_processes, GAMMA, 30, rule, numbers, 3)
    for c, value in zip(numbers, found, strict=True):
        alone = online.simulate(learner, many_processes, GAMMA, 30, rule, c, 4)[:, -1]
        assert value == pytest.approx(alone.mean(), abs=4 * alone.std() / np.sqrt(300 / 2))


def test_choices_at_the_ends_of_grids_have_a_star():
    assert online.shown_choices((0.1, 3.0, 0.5), [[0.1, 1.0, 5.0], [1.0, 3.0, 5.0], [0.5]]) == "0.1*, 3, 0.5"


class Watched:
    """A learner that records the steps of the first agent, and its estimates after each step."""

    def __init__(self, learner):
        self.learner, self.steps = learner, []

    def __call__(self, agents, step):
        next_action = self.learner(agents, step)
        self.steps.append((step.state[0], step.action[0], step.next_state[0], next_action[0], agents.q[0].copy()))
        return next_action


@pytest.mark.parametrize(("decay", "power", "start"), [(None, 0.0, 0.0), (0.0, 0.5, 2.0), (0.6, 0.0, 1.0)])
def test_tabular_learners_follow_their_definitions(decay, power, start):
    processes = draw_processes("dirichlet", 3, STATES, ACTIONS, [1.0], np.random.default_rng(1))
    watched = Watched(online.Tabular(0.3, power, start, decay))
    online.simulate(watched, processes, GAMMA, 40, "epsilon", 5.0, 2)
    shape = (STATES, ACTIONS)
    q, trace, visits = np.full(shape, start), np.zeros(shape), np.zeros(shape)
    for s, a, next_state, next_action, found in watched.steps:
        next_value = q[next_state].max() if decay is None else q[next_state, next_action]
        error = processes.reward[0, s, a] + GAMMA * next_value - q[s, a]
        trace *= GAMMA * (decay or 0)
        trace[s, a] = 1
        visits[s, a] += 1
        q = q + 0.3 / visits[s, a] ** power * error * trace
        np.testing.assert_allclose(found, q, atol=1e-12)


def test_planners_improve_once_a_step_on_all_observations():
    processes = draw_processes("dirichlet", 2, STATES, ACTIONS, [1.0], np.random.default_rng(1))
    watched = Watched(online.Planner(LeastSquares(0.1)))
    online.simulate(watched, processes, GAMMA, 25, "optimistic", 0.5, 2)
    policy, steps = np.full((STATES, ACTIONS), 0.5), []
    for k, (s, a, next_state, next_action, found) in enumerate(watched.steps):
        steps.append((s, a, next_state))
        q = slow.lstd(steps, processes.reward[0], policy, GAMMA, 0.1)
        np.testing.assert_allclose(found, q, atol=ENGINES)
        visits = [sum(step[:2] == (next_state, b) for step in steps) for b in range(ACTIONS)]
        values = q[next_state] + 0.5 / np.sqrt(1 + np.array(visits))
        assert values[next_action] == pytest.approx(values.max()), k
        policy = greedy(q)


def test_the_regret_of_posterior_sampling_levels_off():
    processes = draw_processes("dirichlet", 40, STATES, ACTIONS, [1.0], np.random.default_rng(1))
    regret = online.simulate(online.PosteriorSampling(0.5, 3), processes, GAMMA, 400, "epsilon", 0.0, 2)
    assert (np.diff(regret, axis=1) >= 0).all()
    assert regret[:, -1].mean() - regret[:, -100].mean() < 0.3 * regret[:, 100].mean()
