"""Processes, prompts and the engine, compared with slow versions and automatic differentiation on whole prompts."""

import naive
import numpy as np
import pytest
import torch
from tolerances import ENGINES, ROUNDING

from ictd.engine import Engine
from ictd.kernels import size
from ictd.prompt import prompts_of
from ictd.torch_twin import LinearTransformer
from ictd.transformer import Weights, estimates
from studies.control.contexts import pair_context
from studies.control.pretrain import batch_statistics, training_data
from studies.control.processes import (
    draw_policies,
    draw_processes,
    follow,
    greedy,
    pair_paths,
    pair_transitions,
    transition_counts,
    uniform,
)
from studies.control.tests import slow

torch.set_num_threads(1)
GAMMA, CONCENTRATIONS = 0.9, [0.1, 1.0]
SIZE, STATES, ACTIONS = SHAPE = (4, 3, 2)
PAIRS = STATES * ACTIONS
VARIANT = {
    "family": "dirichlet",
    "states": STATES,
    "actions": ACTIONS,
    "depth": 3,
    "discount": GAMMA,
    "algo": "td",
    "policies": "both",
    "prompts": "sampled",
    "tasks": 40,
}


def new_rng(seed=1):
    return np.random.default_rng(seed)


def some_processes(family="dirichlet", states=STATES):
    return draw_processes(family, SIZE, states, ACTIONS, CONCENTRATIONS, new_rng())


@pytest.mark.parametrize("family", ["dirichlet", "boyan", "loop"])
def test_processes_have_probabilities_and_bounded_rewards(family):
    processes = some_processes(family)
    assert processes.transition.shape == (*SHAPE, STATES)
    np.testing.assert_allclose(processes.transition.sum(axis=-1), 1, atol=ROUNDING)
    assert np.abs(processes.reward).max() <= 1


@pytest.mark.parametrize("family", ["dirichlet", "boyan", "loop"])
def test_values_satisfy_the_bellman_equation(family):
    processes, policy = some_processes(family), draw_policies("soft", SHAPE, new_rng())
    found = processes.values(policy, GAMMA)
    for i in range(SIZE):
        expected = slow.values(processes.transition[i], processes.reward[i], policy[i], GAMMA)
        np.testing.assert_allclose(found[i], expected, atol=1e-10)


@pytest.mark.parametrize("family", ["dirichlet", "boyan", "loop"])
def test_optimal_policies_have_the_greatest_mean_value(family):
    processes = some_processes(family)
    found = processes.mean_value(processes.optimal(GAMMA), GAMMA)
    for i in range(SIZE):
        expected = slow.greatest_mean_value(processes.transition[i], processes.reward[i], GAMMA)
        assert found[i] == pytest.approx(expected, abs=1e-10)


def test_each_action_of_boyan_has_its_own_chain():
    transition = some_processes("boyan", states=4).transition
    assert (transition[:, 0, :, [0, 3]] == 0).all() and (transition[:, 0, :, 1:3] > 0).all()
    assert not np.allclose(transition[:, 0, 0], transition[:, 0, 1])


def test_loops_have_no_steps_to_the_same_state():
    transition = some_processes("loop", states=4).transition
    assert (transition[:, np.arange(4), :, np.arange(4)] == 0).all()


@pytest.mark.parametrize(("kind", "greedy_share"), [("soft", 0), ("greedy", 1), ("both", 0.5)])
def test_policies_of_each_kind(kind, greedy_share):
    policy = draw_policies(kind, (400, STATES, ACTIONS), new_rng())
    np.testing.assert_allclose(policy.sum(axis=-1), 1, atol=ROUNDING)
    assert abs((policy.max(axis=(1, 2)) == 1).mean() - greedy_share) < 0.1


def test_greedy_policies_take_the_greatest_value():
    np.testing.assert_array_equal(greedy(np.array([[1.0, 2.0], [3.0, 3.0]])), [[0, 1], [1, 0]])
    assert (uniform((2, 3, 4)) == 0.25).all()


def test_transitions_of_pairs_are_products():
    processes, policy = some_processes(), draw_policies("both", SHAPE, new_rng(2))
    p = pair_transitions(processes.transition, policy)
    for i, s, a, j, b in np.ndindex(SIZE, STATES, ACTIONS, STATES, ACTIONS):
        expected = processes.transition[i, s, a, j] * policy[i, j, b]
        assert p[i, ACTIONS * s + a, ACTIONS * j + b] == pytest.approx(expected, abs=ROUNDING)


def test_paths_invert_the_cumulative_probabilities():
    processes, policy = some_processes(), draw_policies("both", SHAPE, new_rng(2))
    p = pair_transitions(processes.transition, policy)
    uniforms, paths = new_rng().random((SIZE, 5, 30)), np.zeros((SIZE, 5, 31), np.uint16)
    uniforms[0, 0, :5] = np.nextafter(1, 0)
    follow(size(PAIRS), p.cumsum(axis=-1), uniforms, paths)
    for i, w, t in np.ndindex(SIZE, 5, 30):
        row = p[i, paths[i, w, t]]
        assert row[paths[i, w, t + 1]] > 0
        if uniforms[i, w, t] < 0.999:
            assert paths[i, w, t + 1] == np.searchsorted(row.cumsum(), uniforms[i, w, t], side="right")


def test_paths_do_not_depend_on_the_size_of_blocks(monkeypatch):
    arguments = some_processes(), draw_policies("both", SHAPE, new_rng(2)), 5, 8
    expected = pair_paths(*arguments, new_rng())
    monkeypatch.setattr("studies.control.processes.BLOCK", 3)
    np.testing.assert_array_equal(pair_paths(*arguments, new_rng()), expected)


@pytest.mark.parametrize("lengths", [np.array([20, 1, 7, 13]), 7])
def test_counts_include_only_the_first_steps(lengths):
    paths = pair_paths(some_processes(), uniform(SHAPE), 1, 20, new_rng())[:, 0]
    counts = transition_counts(paths, lengths, STATES, ACTIONS)
    for i, length in enumerate(np.broadcast_to(lengths, SIZE)):
        expected = np.zeros((STATES, ACTIONS, STATES))
        for step in slow.transitions(paths[i], length, ACTIONS):
            expected[step] += 1
        np.testing.assert_array_equal(counts[i], expected)


@pytest.mark.parametrize("kind", ["soft", "greedy"])
def test_estimates_equal_the_papers_on_whole_prompts(kind):
    processes, weights = some_processes(), naive.larger_weights(PAIRS)
    paths = pair_paths(processes, uniform(SHAPE), 1, 9, new_rng())[:, 0]
    policy = draw_policies(kind, SHAPE, new_rng())
    context = pair_context(transition_counts(paths, 9, STATES, ACTIONS), processes.reward, policy)
    found = estimates(weights, context.gram_matrix(GAMMA), 3)
    for i in range(SIZE):
        steps = slow.transitions(paths[i], 9, ACTIONS)
        prompts = prompts_of(slow.columns(steps, processes.reward[i], policy[i], GAMMA))
        expected = [naive.transformer(weights, 3, prompt) for prompt in prompts]
        np.testing.assert_allclose(found[i], expected, atol=ENGINES, rtol=ENGINES)


def test_batch_statistics_are_sums_over_visits(monkeypatch):
    monkeypatch.setattr("studies.control.processes.BLOCK", 3)
    processes, policy = some_processes(), draw_policies("soft", SHAPE, new_rng())
    paths, reward = pair_paths(processes, policy, 5, 8, new_rng()), processes.reward.reshape(SIZE, PAIRS)
    visits, transitions = np.zeros((SIZE, PAIRS)), np.zeros((SIZE, PAIRS, PAIRS))
    return_sums = np.zeros((SIZE, PAIRS))
    for i, w in np.ndindex(SIZE, 5):
        x, y = paths[i, w, :2]
        visits[i, x] += 1
        transitions[i, x, y] += 1
        return_sums[i, x] += sum(GAMMA**t * reward[i, paths[i, w, t]] for t in range(8))
    found = batch_statistics(paths, reward, GAMMA)
    np.testing.assert_array_equal(found.visits, visits)
    np.testing.assert_array_equal(found.transitions, transitions)
    np.testing.assert_allclose(found.return_sums, return_sums, atol=ROUNDING)


class Literal:
    """Algorithms 1 and 2 by automatic differentiation on whole prompts."""

    def __init__(self, weights, algo, depth, rate, clip):
        self.model, self.algo, self.clip = LinearTransformer(weights, depth), algo, clip
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=rate)

    def step(self, columns, reward, paths):
        shown = columns[:, columns.any(axis=0)]
        # The model does not count columns of zeros, and divides by the number of columns.
        scaled = {"A": shown.shape[1] / columns.shape[1] * self.model.A}
        prompts = torch.from_numpy(prompts_of(shown))
        values = torch.func.functional_call(self.model, scaled, (prompts,), {"queries": 1})[:, 0]
        loss = 0
        for path in paths:
            if self.algo == "td":
                target = reward[path[0]] + GAMMA * values[path[1]].detach()
            else:
                target = sum(GAMMA**t * reward[x] for t, x in enumerate(path[:-1]))
            loss = loss + 0.5 * (target - values[path[0]]) ** 2 / len(paths)
        self.optimizer.zero_grad()
        loss.backward()
        # torch's own clipping adds 1e-6 to the norm.
        gradients = [parameter.grad for parameter in self.model.parameters()]
        norm = torch.cat([gradient.ravel() for gradient in gradients]).norm()
        for gradient in gradients:
            gradient *= min(1, self.clip / norm)
        self.optimizer.step()


def draw_literally(variant, size, lengths, batch, rollout):
    """Columns, rewards and paths of each task, drawn with the numbers of ``training_data`` in the same order."""
    rng, shape = new_rng(), (size, STATES, ACTIONS)
    processes = draw_processes("dirichlet", *shape, CONCENTRATIONS, rng)
    policy, behaviour = draw_policies("both", shape, rng), draw_policies("soft", shape, rng)
    if variant["prompts"] != "enumerated":
        paths = pair_paths(processes, behaviour, 1, lengths[1], rng)[:, 0]
        prompt_lengths = rng.integers(*lengths, size, endpoint=True)
        steps = [slow.transitions(path, length, 2) for path, length in zip(paths, prompt_lengths, strict=True)]
        columns = [slow.columns(steps[i], processes.reward[i], policy[i], GAMMA) for i in range(size)]
        if variant["prompts"] == "grouped":
            counts = transition_counts(paths, prompt_lengths, STATES, ACTIONS)
            columns = [slow.grouped_columns(counts[i], processes.reward[i], policy[i], GAMMA) for i in range(size)]
    else:
        columns = [
            slow.enumerated_columns(processes.transition[i], processes.reward[i], policy[i], GAMMA) for i in range(size)
        ]
    paths = pair_paths(processes, policy, batch, rollout if variant["algo"] == "mc" else 1, rng)
    return zip(columns, processes.reward.reshape(size, PAIRS), paths, strict=True)


@pytest.mark.parametrize("prompts", ["sampled", "grouped", "enumerated"])
@pytest.mark.parametrize("algo", ["td", "mc"])
def test_the_engine_agrees_with_automatic_differentiation(algo, prompts):
    variant, size, lengths, batch, rollout = VARIANT | {"algo": algo, "prompts": prompts}, 40, [2, 6], 4, 7
    larger = naive.larger_weights(PAIRS)
    weights = Weights(0.4 * larger.u, 0.4 * larger.A)
    engine = Engine(weights, algo, 3, GAMMA, learning_rate=0.01, clip=0.05)
    draw = training_data(variant, lengths, CONCENTRATIONS, batch, rollout, new_rng())
    estimated, done = engine.train(*draw(size))
    assert done == size and np.isfinite(estimated).all()
    literal = Literal(weights, algo, 3, 0.01, 0.05)
    for task in draw_literally(variant, size, lengths, batch, rollout):
        literal.step(*task)
    for found, expected in zip(vars(engine.weights()).values(), (literal.model.u, literal.model.A), strict=True):
        np.testing.assert_allclose(found, expected.detach().numpy(), atol=ENGINES, rtol=0)
    assert np.abs(engine.weights().A - weights.A).max() > 0.05


def test_a_divergence_stops_before_its_update():
    draw = training_data(VARIANT, [2, 6], CONCENTRATIONS, 4, 7, new_rng())
    u, A = np.zeros(2 * PAIRS), np.full((2 * PAIRS, 2 * PAIRS), 1e200)
    engine = Engine(Weights(u, A), "td", 3, GAMMA, learning_rate=0.01, clip=1)
    estimated, done = engine.train(*draw(5))
    assert done == 0 and np.isnan(estimated[1:]).all() and (engine.weights().A == A).all()
