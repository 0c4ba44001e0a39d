"""Processes, prompts and the engine, beside slow versions and literal autograd on whole prompts."""

import naive
import numpy as np
import pytest
import torch
from tolerances import ENGINES, ROUNDING

from ictd.engine import Engine
from ictd.literal import LinearTransformer
from ictd.prompt import prompts_of
from ictd.transformer import Weights, estimates
from studies.control.contexts import context_of
from studies.control.grid import places, tried, variants
from studies.control.pretrain import batches, material
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
GAMMA, C = 0.9, [0.1, 1.0]
VARIANT = {
    "family": "dirichlet", "states": 3, "actions": 2, "depth": 3, "discount": GAMMA, "algo": "td", "policies": "both",
    "prompts": "sampled", "tasks": 40,
}  # fmt: skip


def rng_of(seed=1):
    return np.random.default_rng(seed)


def drawn(family="dirichlet", size=4, states=3, actions=2):
    return draw_processes(family, size, states, actions, C, rng_of())


@pytest.mark.parametrize("family", ["dirichlet", "boyan", "loop"])
def test_values_and_optima_of_processes(family):
    processes = drawn(family)
    np.testing.assert_allclose(processes.transition.sum(axis=-1), 1, atol=ROUNDING)
    assert processes.transition.shape == (4, 3, 2, 3) and np.abs(processes.reward).max() <= 1
    policy = draw_policies("soft", (4, 3, 2), rng_of())
    found, best = processes.values(policy, GAMMA), processes.optimal(GAMMA)
    for i in range(4):
        expected = slow.values(processes.transition[i], processes.reward[i], policy[i], GAMMA)
        np.testing.assert_allclose(found[i], expected, atol=1e-10)
        greatest = slow.best_worth(processes.transition[i], processes.reward[i], GAMMA)
        assert processes.worth(best, GAMMA)[i] == pytest.approx(greatest, abs=1e-10)


def test_families_are_those_of_the_environments():
    boyan = drawn("boyan", states=4)
    # Each action is a chain of its own: from a state to the next two.
    assert (boyan.transition[:, 0, :, [0, 3]] == 0).all() and (boyan.transition[:, 0, :, 1:3] > 0).all()
    assert not np.allclose(boyan.transition[:, 0, 0], boyan.transition[:, 0, 1])
    loop = drawn("loop", states=4)
    assert (loop.transition[:, np.arange(4), :, np.arange(4)] == 0).all()


def test_policies_are_of_their_kind():
    for kind, greedy_share in (("soft", 0), ("greedy", 1), ("both", 0.5)):
        policy = draw_policies(kind, (400, 3, 2), rng_of())
        np.testing.assert_allclose(policy.sum(axis=-1), 1, atol=ROUNDING)
        assert abs((policy.max(axis=(1, 2)) == 1).mean() - greedy_share) < 0.1
    np.testing.assert_array_equal(greedy(np.array([[1.0, 2.0], [3.0, 3.0]])), [[0, 1], [1, 0]])
    assert (uniform((2, 3, 4)) == 0.25).all()


def test_paths_go_where_their_uniform_numbers_lead():
    processes = drawn()
    policy = draw_policies("both", (4, 3, 2), rng_of(2))
    p = pair_transitions(processes.transition, policy)
    for i, s, a, j, b in np.ndindex(4, 3, 2, 3, 2):
        expected = processes.transition[i, s, a, j] * policy[i, j, b]
        assert p[i, 2 * s + a, 2 * j + b] == pytest.approx(expected, abs=ROUNDING)
    uniforms, paths = rng_of().random((4, 5, 30)), np.zeros((4, 5, 31), np.int64)
    uniforms[0, 0, :5] = np.nextafter(1, 0)
    follow(p.cumsum(axis=-1), uniforms, paths)
    for i, w, t in np.ndindex(4, 5, 30):
        row = p[i, paths[i, w, t]]
        assert row[paths[i, w, t + 1]] > 0
        if uniforms[i, w, t] < 0.999:
            assert paths[i, w, t + 1] == np.searchsorted(row.cumsum(), uniforms[i, w, t], side="right")


def test_counts_are_those_of_the_steps():
    processes = drawn()
    paths = pair_paths(processes, uniform((4, 3, 2)), 1, 20, rng_of())
    lengths = np.array([20, 1, 7, 13])
    counts = transition_counts(paths, lengths, 3, 2)
    for i in range(4):
        expected = np.zeros((3, 2, 3))
        for step in slow.transitions(paths[i, 0], lengths[i], 2):
            expected[step] += 1
        np.testing.assert_array_equal(counts[i], expected)
    np.testing.assert_array_equal(transition_counts(paths, 7, 3, 2)[2], counts[2])


def test_estimates_are_those_of_the_paper_on_whole_prompts():
    """The same transitions serve every policy."""
    processes, weights = drawn(), naive.larger_weights(6)
    paths = pair_paths(processes, uniform((4, 3, 2)), 1, 9, rng_of())
    for kind in ("soft", "greedy"):
        policy = draw_policies(kind, (4, 3, 2), rng_of())
        context = context_of(transition_counts(paths, 9, 3, 2), processes.reward, policy)
        found = estimates(weights, context.gram(GAMMA), 3)
        for i in range(4):
            steps = slow.transitions(paths[i, 0], 9, 2)
            prompts = prompts_of(slow.columns(steps, processes.reward[i], policy[i], GAMMA))
            expected = [naive.transformer(weights, 3, prompt) for prompt in prompts]
            np.testing.assert_allclose(found[i], expected, atol=ENGINES, rtol=ENGINES)


def test_batches_are_sums_over_visits():
    processes, policy = drawn(), draw_policies("soft", (4, 3, 2), rng_of())
    paths, reward = pair_paths(processes, policy, 5, 8, rng_of()), processes.reward.reshape(4, 6)
    found = batches(paths, reward, GAMMA)
    expected = np.zeros((4, 6)), np.zeros((4, 6, 6)), np.zeros((4, 6))
    for i, w in np.ndindex(4, 5):
        x, y = paths[i, w, :2]
        expected[0][i, x] += 1
        expected[1][i, x, y] += 1
        expected[2][i, x] += sum(GAMMA**t * reward[i, paths[i, w, t]] for t in range(8))
    for part, one in zip(vars(found).values(), expected, strict=True):
        np.testing.assert_allclose(part, one, atol=ROUNDING)


class Literal:
    """Algorithms 1 and 2 by torch's autograd on whole prompts, each built column by column."""

    def __init__(self, weights, algo, depth, rate, clip):
        self.model, self.algo, self.clip = LinearTransformer(weights, depth), algo, clip
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=rate)

    def step(self, context, reward, paths):
        values = self.model(torch.from_numpy(prompts_of(context)), queries=1)[:, 0]
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
        gradients = [one.grad for one in self.model.parameters()]
        length = torch.cat([one.ravel() for one in gradients]).norm()
        for one in gradients:
            one *= min(1, self.clip / length)
        self.optimizer.step()


@pytest.mark.parametrize("prompts", ["sampled", "enumerated"])
@pytest.mark.parametrize("algo", ["td", "mc"])
def test_the_engine_is_literal_autograd(algo, prompts):
    of, clip = VARIANT | {"algo": algo, "prompts": prompts}, 0.05
    material_of, size, batch, rollout = material(of, [2, 6], C, 4, 7, rng_of()), 40, 4, 7
    given = material_of(size)
    weights = Weights(*(0.4 * part for part in vars(naive.larger_weights(6)).values()))
    engine, literal = Engine(weights, algo, 3, GAMMA, 0.01, clip=clip), Literal(weights, algo, 3, 0.01, clip)
    estimated, done = engine.train(*given)
    assert done == size and np.isfinite(estimated).all()
    # The same draws in the same order.
    rng, shape = rng_of(), (size, 3, 2)
    processes = draw_processes("dirichlet", *shape, C, rng)
    policy, behaviour = draw_policies("both", shape, rng), draw_policies("soft", shape, rng)
    if prompts == "sampled":
        paths, cut = pair_paths(processes, behaviour, 1, 6, rng), rng.integers(2, 6, size, endpoint=True)
        steps = [slow.transitions(path[0], length, 2) for path, length in zip(paths, cut, strict=True)]
        contexts = [slow.columns(steps[i], processes.reward[i], policy[i], GAMMA) for i in range(size)]
    else:
        contexts = [
            slow.enumerated_columns(processes.transition[i], processes.reward[i], policy[i], GAMMA) for i in range(size)
        ]
    followed = pair_paths(processes, policy, batch, rollout if algo == "mc" else 1, rng)
    for i in range(size):
        literal.step(contexts[i], processes.reward[i].ravel(), followed[i])
    for found, one in zip(engine.weights(), (literal.model.u, literal.model.A), strict=True):
        np.testing.assert_allclose(found, one.detach().numpy(), atol=ENGINES, rtol=0)
    assert np.abs(engine.weights()[1] - weights.A).max() > 0.05


def test_what_diverges_stops_before_its_update():
    given = material(VARIANT, [2, 6], C, 4, 7, rng_of())(5)
    u, A = np.zeros(12), np.full((12, 12), 1e200)
    engine = Engine(Weights(u, A), "td", 3, GAMMA, 0.01, clip=1)
    estimated, done = engine.train(*given)
    assert done == 0 and np.isnan(estimated[1:]).all() and (engine.weights()[1] == A).all()


def test_what_the_rules_go_through():
    main = {key: VARIANT[key] for key in VARIANT if key != "tasks"}
    own = {
        "main": main, "tasks": 9, "main_tasks": 20,
        "variants": [{"name": "td"}, {"name": "four", "actions": 4, "tasks": 7}, {"name": "loop", "family": "loop"}],
        "places": [{"name": "home"}, {"name": "loop", "family": "loop"}, {"name": "four", "actions": 4}],
    }  # fmt: skip
    config = {"control": own}
    found = variants(config)
    assert found["td"] == main | {"tasks": 20} and found["four"] == main | {"actions": 4, "tasks": 7}
    assert found["loop"]["tasks"] == 9
    assert places(config)["loop"] == {"family": "loop", "states": 3, "actions": 2, "discount": GAMMA}
    assert [tried(config, name) for name in ("home", "loop", "four")] == [["td", "loop"], ["loop", "td"], ["four"]]
