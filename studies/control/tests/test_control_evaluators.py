"""Evaluators, policy iteration and agents, beside slow versions."""

from functools import partial

import naive
import numpy as np
import pytest
from tolerances import ENGINES

from ictd.prompt import prompts_of
from ictd.rng import generator
from ictd.storage import save_arrays
from ictd.transformer import Weights
from studies.control import offline, online
from studies.control.evaluators import in_context_td, iterate, least_squares, smoothed, transformer, yardsticks
from studies.control.processes import draw_policies, draw_processes, greedy, pair_paths, transition_counts, uniform
from studies.control.tests import slow

GAMMA, SIZE, LENGTH = 0.9, 5, 7


@pytest.fixture
def seen():
    """Processes, the steps that were seen of each, their counts, and policies."""
    rng = np.random.default_rng(3)
    processes = draw_processes("dirichlet", SIZE, 3, 2, [0.3, 1.0], rng)
    paths = pair_paths(processes, uniform((SIZE, 3, 2)), 1, LENGTH, rng)
    steps = [slow.transitions(path[0], LENGTH, 2) for path in paths]
    return processes, steps, transition_counts(paths, LENGTH, 3, 2), draw_policies("both", (SIZE, 3, 2), rng)


def of_steps(found, seen, slowly):
    processes, steps, _, policy = seen
    for i in range(SIZE):
        expected = slowly(steps[i], processes.reward[i], policy[i])
        np.testing.assert_allclose(found[i], expected, atol=ENGINES, rtol=ENGINES)


def known(seen):
    processes, _, counts, policy = seen
    return counts, np.where(counts.sum(axis=-1) > 0, processes.reward, 0), policy, GAMMA


def test_least_squares_adds_up_features(seen):
    found = least_squares(0.3, *known(seen))
    of_steps(found, seen, lambda steps, reward, policy: slow.lstd(steps, reward, policy, GAMMA, 0.3))


def test_the_smoothed_model_is_that_of_counts(seen):
    mean = seen[0].transition.mean(axis=0)
    found = smoothed(0.7, mean, *known(seen))
    of_steps(found, seen, lambda steps, reward, policy: slow.smoothed(steps, reward, policy, GAMMA, 0.7, mean))


def test_it_is_least_squares_with_pseudo_steps(seen):
    """A pseudo-step is a column like others."""
    processes, steps, counts, policy = seen
    found = smoothed(2.0, 1 / 3, *known(seen))
    for i in range(SIZE):
        visited = counts[i].sum(axis=-1) > 0
        thirds = [(s, a, j) for s in range(3) for a in range(2) for j in range(3)]
        # Three pseudo-steps for every two thirds of one.
        repeated = [one for one in steps[i] for _ in range(3)] + [one for one in thirds for _ in range(2)]
        expected = slow.lstd(repeated, processes.reward[i] * visited, policy[i], GAMMA, 1e-12)
        np.testing.assert_allclose(found[i], expected, atol=1e-8)


def test_theta_td_takes_steps_of_batch_td(seen):
    found = in_context_td(0.8, 4, 6)(*known(seen))

    def slowly(steps, reward, policy):
        w, context = np.zeros(6), slow.columns(steps, reward, policy, GAMMA)
        for _ in range(4):
            errors = context[-1] + w @ context[6:12] - w @ context[:6]
            w = w + 0.8 * context[:6] @ errors / len(steps)
        return w.reshape(3, 2)

    of_steps(found, seen, slowly)


def test_the_transformer_sees_pseudo_steps_as_columns(seen):
    weights = naive.larger_weights(6)
    of_steps(transformer(weights, 3, 0.0, *known(seen)), seen, lambda *of: _whole(weights, *of))
    # As many times each step as pseudo-steps are parts of one: 1 / 2 of a step to each of 3 states from each pair.
    processes, steps, counts, policy = seen
    found = transformer(weights, 3, 1.5, *known(seen))
    thirds = [(s, a, j) for s in range(3) for a in range(2) for j in range(3)]
    for i in range(SIZE):
        reward = processes.reward[i] * (counts[i].sum(axis=-1) > 0)
        expected = _whole(weights, [one for one in steps[i] for _ in range(2)] + thirds, reward, policy[i])
        np.testing.assert_allclose(found[i], expected, atol=ENGINES, rtol=ENGINES)


def _whole(weights, steps, reward, policy):
    prompts = prompts_of(slow.columns(steps, reward, policy, GAMMA))
    return np.reshape([naive.transformer(weights, 3, prompt) for prompt in prompts], policy.shape)


def test_iteration_evaluates_and_is_greedy(seen):
    processes, steps, counts, _ = seen
    policies, found = iterate(partial(least_squares, 0.1), counts, processes.reward, GAMMA, 3)
    for i in range(SIZE):
        policy = np.full((3, 2), 0.5)
        for k in range(3):
            np.testing.assert_allclose(policies[k, i], policy)
            q = slow.lstd(steps[i], processes.reward[i], policy, GAMMA, 0.1)
            np.testing.assert_allclose(found[k, i], q, atol=ENGINES)
            policy = greedy(q)
    # Estimates that diverge count as zero.
    diverging = partial(transformer, Weights(np.zeros(12), np.full((12, 12), 1e200)), 3, 0.0)
    policies, found = iterate(diverging, counts, processes.reward, GAMMA, 1)
    assert (found == 0).all() and 0 < policies[1, :, :, 0].mean() < 1


def test_yardsticks_have_their_choices():
    place, grid = {"states": 3, "actions": 2}, {"smallest": 0.1, "largest": 10, "number": 3}
    found = yardsticks(place, 4, np.full((3, 2, 3), 1 / 3), grid, grid, grid)
    assert list(found) == ["lspi", "lspi_mean", "smoothed", "theta_td"]
    assert all(np.allclose(list(one), [0.1, 1, 10]) for one in found.values())


def test_of_choices_that_do_as_well_the_greatest_is_taken(tmp_path):
    """With no transition to learn from but one, all small steps of theta^TD are greedy alike."""
    place = {"family": "dirichlet", "states": 3, "actions": 2, "discount": GAMMA}
    grid, runs = {"smallest": 1e-6, "largest": 1e-4, "number": 3}, tmp_path / "td.npz"
    save_arrays(runs, tasks_seen=np.array([5]), u=np.zeros((2, 1, 12)), A=np.zeros((2, 1, 12, 12)))
    offline.main(
        place, {"td": {"depth": 2}}, "td", 2, 2, 4, 4, [1], [1.0], grid, grid, grid, [runs], tmp_path / "o.npz"
    )
    found = np.load(tmp_path / "o.npz")
    rows = found["method"].tolist()
    assert found["parameter"][rows.index("theta_td"), 0] == pytest.approx(1e-4)
    assert found["worth"].dtype == np.float32 and {"td half_error", "smoothed random_sign"} <= set(rows)
    others = {"td": {"depth": 2}}, "main", 2, 2, 4, 4, [1], [1.0], grid, grid, grid, [runs], tmp_path / "o.npz"
    offline.main(place, *others)
    assert "td half_error" not in np.load(tmp_path / "o.npz")["method"].tolist()


def test_what_is_measured(seen):
    processes, _, counts, _ = seen
    found = offline.measure(partial(least_squares, 0.1), processes, counts, GAMMA, 3)
    policies, estimated = iterate(partial(least_squares, 0.1), counts, processes.reward, GAMMA, 3)
    for i in range(SIZE):
        for k in range(4):
            q = slow.values(processes.transition[i], processes.reward[i], policies[k, i], GAMMA)
            assert found["worth"][k, i] == pytest.approx((policies[k, i] * q).sum(axis=1).mean())
        q = slow.values(processes.transition[i], processes.reward[i], np.full((3, 2), 0.5), GAMMA)
        error = estimated[0, i] - q
        assert found["error"][i] == pytest.approx((error**2).mean())
        # With two actions, advantages are half of their difference.
        gaps, true = error[:, 0] - error[:, 1], q[:, 0] - q[:, 1]
        assert found["cosine"][i] == pytest.approx(gaps @ true / np.sqrt(gaps @ gaps * (true @ true)))
        assert found["advantage_error"][i] == pytest.approx(((error[:, 0] - error[:, 1]) ** 2 / 4).mean())
        assert found["changes"][i] == (policies[3, i] != policies[2, i]).any()


def test_the_run_that_is_drawn_is_chosen_by_a_rule(seen):
    """Estimates that are told in advance: the second process changes in each iteration, the third settles."""
    processes, _, counts, _ = seen
    shape, calls = processes.reward.shape, []
    for changing, kind, of in (([2], 2, 2), ([1, 2], 2, 2), ([1], 1, 1), ([], 0, 0)):

        def evaluate(*given, changing=tuple(changing)):
            q = np.zeros(shape)
            q[..., 0] = 1
            # In process 1 the greedy action goes on to change, in 2 it does once.
            if 1 in changing and len(calls) % 2:
                q[1, 0, 1] = 2
            if 2 in changing and len(calls):
                q[2, 0, 1] = 2
            calls.append(1)
            return q

        calls.clear()
        found = offline.picture(evaluate, processes, counts, GAMMA)
        assert found["run_kind"] == kind
        np.testing.assert_array_equal(found["run_transition"], processes.transition[of])
        exact = slow.values(processes.transition[of], processes.reward[of], np.full((3, 2), 0.5), GAMMA)
        np.testing.assert_allclose(found["run_exact"][0], exact)
        assert found["run_share"].shape == (3,) and (found["run_share"] <= 1 + 1e-12).all()


def test_limits_know_the_truth_in_part(seen):
    processes, _, counts, policy = seen
    of, given = partial(least_squares, 0.1), known(seen)
    exact, own = processes.values(policy, GAMMA), of(*given)
    for kind in ("exact_seen", "exact_unseen"):
        found = offline.limited(of, processes, kind, *given)
        right = (counts.sum(axis=-1) > 0) == (kind == "exact_seen")
        np.testing.assert_array_equal(found, np.where(right, exact, own))
    for kind, as_many in (("exact_as_seen", "seen"), ("exact_as_unseen", "unseen")):
        exactly = (offline.limited(of, processes, kind, *given) == exact).sum(axis=(1, 2))
        np.testing.assert_array_equal(exactly, ((counts.sum(axis=-1) > 0) == (as_many == "seen")).sum(axis=(1, 2)))
    noisy = {kind: offline.limited(of, processes, kind, *given) - exact for kind in offline.LIMITS[4:]}
    np.testing.assert_allclose(noisy["half_error"], (own - exact) / 2)
    np.testing.assert_allclose(noisy["quarter_error"], (own - exact) / 4)
    error, true, aligned = offline.advantage(own - exact), offline.advantage(exact), noisy["aligned_advantage"]
    np.testing.assert_allclose(np.abs(noisy["random_sign"]), np.abs(error))
    np.testing.assert_allclose((aligned * true).sum((1, 2)), (error * true).sum((1, 2)))
    np.testing.assert_allclose((aligned**2).sum((1, 2)), (error**2).sum((1, 2)))
    noise = generator(0, "random_error", 3, "control errors").normal(size=own.shape)
    larger = np.sqrt(((own - exact) ** 2).sum((1, 2)) / (noise**2).sum((1, 2)))
    np.testing.assert_allclose(noisy["random_error"], noise * larger[:, None, None])
    np.testing.assert_allclose(noisy["random_advantage"].sum(axis=-1), 0, atol=1e-12)
    advantages = [(offline.advantage(one) ** 2).sum((1, 2)) for one in (noisy["random_advantage"], own - exact)]
    np.testing.assert_allclose(*advantages)


def test_regret_is_what_actions_fall_short():
    """An agent that knows q* has regret in its first, random action only; others have their gaps."""
    rng = np.random.default_rng(0)
    processes = draw_processes("dirichlet", 300, 3, 2, [1.0], rng)
    best = processes.values(processes.optimal(GAMMA), GAMMA)

    def knows(of, s, a, following, choose):
        of.q = best
        return choose()

    regret = online.simulate(knows, processes, GAMMA, 20, "epsilon", 0.0, 1)
    assert (regret[:, -1] == regret[:, 0]).all() and 0 < regret.mean() and (regret[:, 0] > 0).mean() < 0.8
    gaps = best.max(axis=-1) - best.min(axis=-1)
    assert all(one == 0 or np.isclose(gaps[i], one).any() for i, one in enumerate(regret[:, 0]))
    at_random = online.simulate(knows, processes, GAMMA, 200, "epsilon", 1e12, 1)
    assert at_random[:, -1].mean() / 200 == pytest.approx(gaps.mean() / 2, rel=0.1)
    bold = online.simulate(knows, processes, GAMMA, 20, "optimistic", 1e6, 1)
    assert bold[:, -1].mean() > regret[:, -1].mean()


def test_all_methods_act_on_the_same_processes(tmp_path):
    """Each by a rule or two, as often as there are Transformers, with numbers that are chosen on other processes."""
    place, grid = {"family": "dirichlet", "states": 3, "actions": 2, "discount": GAMMA}, [0.5, 1.0]
    names = ("pseudo_steps", "theta_steps", "step_sizes", "decays", "concentrations", "epsilons", "bonuses")
    given = dict.fromkeys(names, grid) | {"powers": [0.0], "starts": [0.0], "intervals": [2], "steps": 6}
    given |= {"checkpoints": 3, "test_processes": 5, "tuning_processes": 4}
    save_arrays(tmp_path / "td.npz", u=np.zeros((2, 1, 12)), A=np.zeros((2, 1, 12, 12)))
    ridges = {"smallest": 0.1, "largest": 1, "number": 2}
    online.main(place, {"td": {"depth": 2}}, 2, 2, [1.0], ridges, given, [tmp_path / "td.npz"], tmp_path / "o.npz")
    found = np.load(tmp_path / "o.npz")
    rows = list(zip(found["method"].tolist(), found["rule"].tolist(), found["seed"].tolist(), strict=True))
    assert len(rows) == len(set(rows)) == 2 * (2 * 7 + 2) and found["steps"].tolist() == [1, 4, 6]
    test, _ = offline.unseen_processes(place, 5, [1.0], "online test")
    for seed in range(2):
        own = online.simulate(partial(online.tabular, 0.0, 0.0, 0.0, None), test, GAMMA, 6, "epsilon", 1e9, seed)
        np.testing.assert_allclose(found["regret"][rows.index(("uniform", "epsilon", seed))], own[:, [0, 3, 5]])


class Watched:
    """A method that keeps what agents saw, and checks its own tabular twin beside."""

    def __init__(self, learn):
        self.learn, self.steps = learn, []

    def __call__(self, of, s, a, following, choose):
        action = self.learn(of, s, a, following, choose)
        self.steps.append((s[0], a[0], following[0], action[0], of.q[0].copy()))
        return action


@pytest.mark.parametrize(("decay", "power", "start"), [(None, 0.0, 0.0), (0.0, 0.5, 2.0), (0.6, 0.0, 1.0)])
def test_tabular_learners_follow_their_definitions(decay, power, start):
    processes = draw_processes("dirichlet", 3, 3, 2, [1.0], np.random.default_rng(1))
    watched = Watched(partial(online.tabular, 0.3, power, start, decay))
    online.simulate(watched, processes, GAMMA, 40, "epsilon", 5.0, 2)
    q, trace, visits = np.full((3, 2), start), np.zeros((3, 2)), np.zeros((3, 2))
    for s, a, following, action, found in watched.steps:
        target = q[following].max() if decay is None else q[following, action]
        error = processes.reward[0, s, a] + GAMMA * target - q[s, a]
        trace *= GAMMA * (decay or 0)
        trace[s, a] = 1
        visits[s, a] += 1
        q = q + 0.3 / visits[s, a] ** power * error * trace
        np.testing.assert_allclose(found, q, atol=1e-12)


def test_planners_improve_once_a_step_on_all_they_saw():
    processes = draw_processes("dirichlet", 2, 3, 2, [1.0], np.random.default_rng(1))
    watched = Watched(partial(online.planning, partial(least_squares, 0.1)))
    online.simulate(watched, processes, GAMMA, 25, "optimistic", 0.5, 2)
    policy, steps = np.full((3, 2), 0.5), []
    for k, (s, a, following, action, found) in enumerate(watched.steps):
        steps.append((s, a, following))
        q = slow.lstd(steps, processes.reward[0], policy, GAMMA, 0.1)
        np.testing.assert_allclose(found, q, atol=ENGINES)
        visits = [sum(one[:2] == (following, b) for one in steps) for b in range(2)]
        values = q[following] + 0.5 / np.sqrt(1 + np.array(visits))
        assert values[action] == pytest.approx(values.max()), k
        policy = greedy(q)


def test_posterior_sampling_settles_on_what_it_saw():
    processes = draw_processes("dirichlet", 40, 3, 2, [1.0], np.random.default_rng(1))
    regret = online.simulate(partial(online.posterior_sampling, 0.5, 3), processes, GAMMA, 400, "epsilon", 0.0, 2)
    assert (np.diff(regret, axis=1) >= 0).all()
    assert regret[:, -1].mean() - regret[:, -100].mean() < 0.3 * regret[:, 100].mean()
