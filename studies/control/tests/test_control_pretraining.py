"""Processes and pretraining, compared with slow versions and automatic differentiation on whole prompts."""

import naive
import numpy as np
import pytest
import torch
from tolerances import ENGINES, ROUNDING

from ictd.prompt import prompts_of
from ictd.storage import load_arrays
from ictd.torch_twin import LinearTransformer
from ictd.transformer import Weights
from studies.control import pretrain
from studies.control.processes import Place, draw_policies, draw_processes, greedy, pair_paths
from studies.control.tests import slow

torch.set_num_threads(1)
GAMMA = 0.9
SIZE, STATES, ACTIONS = SHAPE = (4, 3, 2)
PAIRS = STATES * ACTIONS
PLACE = {"family": "dirichlet", "states": STATES, "actions": ACTIONS, "discount": GAMMA, "concentrations": [0.1, 1.0]}
VARIANT = {"place": "home", "depth": 3, "algo": "td", "prompts": "transitions", "tasks": 40, "clip": 0.05}
VARIANT |= {"prompt_lengths": [2, 6], "batch": 4, "rollout": 7}


def new_rng(seed=1):
    return np.random.default_rng(seed)


@pytest.mark.parametrize("family", ["dirichlet", "boyan", "loop"])
def test_processes_and_their_values(family):
    processes = draw_processes(Place(**PLACE | {"family": family}), SIZE, new_rng())
    assert processes.transition.shape == (*SHAPE, STATES)
    np.testing.assert_allclose(processes.transition.sum(axis=-1), 1, atol=ROUNDING)
    assert not np.allclose(processes.transition[:, :, 0], processes.transition[:, :, 1])
    assert 0.3 < np.abs(processes.reward).max() <= 1
    policy = draw_policies(SHAPE, 1, new_rng())
    found, best = processes.values(policy, GAMMA), processes.mean_value(processes.optimal(GAMMA), GAMMA)
    for i, one in enumerate(zip(*processes, strict=True)):
        np.testing.assert_allclose(found[i], slow.values(*one, policy[i], GAMMA), atol=1e-10)
        assert best[i] == pytest.approx(slow.greatest_mean_value(*one, GAMMA), abs=1e-10)


@pytest.mark.parametrize("soft_share", [0, 0.5, 1])
def test_a_share_of_policies_is_soft(soft_share):
    policy = draw_policies((400, STATES, ACTIONS), soft_share, new_rng())
    np.testing.assert_allclose(policy.sum(axis=-1), 1, atol=ROUNDING)
    assert abs((policy.max(axis=(1, 2)) < 1).mean() - soft_share) < 0.1


def test_greedy_policies_take_the_greatest_value_and_break_ties_at_random():
    np.testing.assert_array_equal(greedy(np.array([[1.0, 2.0], [3.0, 1.0]])), [[0, 1], [1, 0]])
    assert 0.3 < greedy(np.zeros((200, STATES, ACTIONS)))[..., 0].mean() < 0.7


def test_paths_follow_their_uniform_numbers(monkeypatch):
    monkeypatch.setattr("studies.control.processes.BLOCK", 3)
    processes, policy = draw_processes(Place(**PLACE), SIZE, new_rng()), draw_policies(SHAPE, 0.5, new_rng(2))
    found, rng = pair_paths(processes, policy, 5, 8, new_rng()), new_rng()
    expected = np.zeros((SIZE, 5, 9), int)
    expected[..., 0], uniforms = rng.integers(PAIRS, size=(SIZE, 5)), rng.random((SIZE, 5, 8))
    for i, w, t in np.ndindex(uniforms.shape):
        p = processes.transition[i].reshape(PAIRS, STATES)[expected[i, w, t]]
        row = (p[:, None] * policy[i]).ravel()
        expected[i, w, t + 1] = np.searchsorted(row.cumsum(), uniforms[i, w, t], side="right")
    np.testing.assert_array_equal(found, expected)


class Literal:
    """Algorithms 1 and 2 by automatic differentiation on whole prompts."""

    def __init__(self, weights, variant):
        self.model, self.variant = LinearTransformer(weights, variant["depth"]), variant
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=0.01)

    def step(self, columns, reward, paths):
        shown = columns[:, columns.any(axis=0)]
        # The model does not count columns of zeros, and divides by the number of columns.
        scaled = {"A": shown.shape[1] / columns.shape[1] * self.model.A}
        prompts = torch.from_numpy(prompts_of(shown))
        values = torch.func.functional_call(self.model, scaled, (prompts,), {"queries": 1})[:, 0]
        loss = 0
        for path in paths:
            if self.variant["algo"] == "td":
                target = reward[path[0]] + GAMMA * values[path[1]].detach()
            else:
                target = sum(GAMMA**t * reward[x] for t, x in enumerate(path[:-1]))
            loss = loss + 0.5 * (target - values[path[0]]) ** 2 / len(paths)
        naive.clipped_step(self.optimizer, loss, self.variant["clip"])


def draw_literally(variant, rng):
    """Columns, rewards and paths of each task, drawn with the numbers of ``training_data`` in the same order."""
    size = variant["tasks"]
    shape, shortest_and_longest = (size, STATES, ACTIONS), variant["prompt_lengths"]
    processes = draw_processes(Place(**PLACE), size, rng)
    policy, behaviour = draw_policies(shape, 0.5, rng), draw_policies(shape, 1, rng)
    weights, columns = list(processes.transition), []
    if variant["prompts"] != "enumerated":
        paths = pair_paths(processes, behaviour, 1, shortest_and_longest[1], rng)[:, 0]
        lengths = rng.integers(*shortest_and_longest, size, endpoint=True)
        steps = [slow.transitions(path, length, ACTIONS) for path, length in zip(paths, lengths, strict=True)]
        weights = [slow.counts(of_task, shape[1:]) for of_task in steps]
    for i in range(size):
        if variant["prompts"] == "transitions":
            columns.append(slow.columns(steps[i], processes.reward[i], policy[i], GAMMA))
        else:
            columns.append(slow.columns_of_pairs(weights[i], processes.reward[i], policy[i], GAMMA))
    paths = pair_paths(processes, policy, variant["batch"], variant["rollout"] if variant["algo"] == "mc" else 1, rng)
    return zip(columns, processes.reward.reshape(size, PAIRS), paths, strict=True)


@pytest.mark.parametrize("prompts", ["transitions", "grouped", "enumerated"])
@pytest.mark.parametrize("algo", ["td", "mc"])
def test_pretraining_agrees_with_automatic_differentiation(monkeypatch, tmp_path, algo, prompts):
    larger, variant = naive.larger_weights(PAIRS), VARIANT | {"algo": algo, "prompts": prompts}
    start = Weights(0.4 * larger.u, 0.4 * larger.A)
    monkeypatch.setattr(pretrain, "initial_weights", lambda *_: start)
    monkeypatch.setattr("studies.control.processes.BLOCK", 30)
    pretrain.main(variant, PLACE, 2, 0.01, 0.1, tmp_path / "run.npz")
    depth, u, A = load_arrays(tmp_path / "run.npz", "depth", "u", "A")
    assert depth == 3
    for seed in range(2):
        literal = Literal(start, variant)
        for task in draw_literally(variant, Place(**PLACE).generator(seed, "tasks")):
            literal.step(*task)
        np.testing.assert_allclose(u[seed], literal.model.u.detach(), atol=ENGINES, rtol=0)
        np.testing.assert_allclose(A[seed], literal.model.A.detach(), atol=ENGINES, rtol=0)
    assert np.abs(A - start.A).max() > 0.05
