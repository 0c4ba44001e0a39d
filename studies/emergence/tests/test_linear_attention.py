"""The engine for any P and Q, compared with automatic differentiation on whole prompts."""

import numpy as np
import pytest
import torch
from tolerances import ENGINES, ROUNDING

import ictd
from ictd.literal import AutogradEngine, batch_of, enumerated_prompts, linear_attention
from ictd.prompt import enumerated_columns, joint_prompt, query_columns
from studies.emergence.linear_attention import Engine, context_rows, estimates
from studies.emergence.parameters import initial_matrices, theta_masks

GAMMA, RATE = 0.9, 1e-3


def material(env, states, size, seed=0):
    tasks = ictd.sample_tasks(env, states, size, ictd.generator(seed, env, states, "tasks"))
    return tasks, ictd.unroll(tasks, 16, GAMMA, 30, ictd.generator(seed, env, states, "unrolls"))


def contexts_of(tasks, scaled=True):
    return context_rows(enumerated_columns(tasks.transition, tasks.reward, GAMMA), scaled)


def drawn(states, layers, gain=0.5, whole=True):
    return initial_matrices(states, gain, layers, whole, ictd.generator(0, "boyan", states, "weights"))


def on_whole_prompt(P, Q, prompt, queries, depth, scaled):
    """Estimates (k,) for the query columns at the end of a prompt, with tensors P and Q (L or 1, D, D)."""
    Z, length = torch.as_tensor(prompt), prompt.shape[-1] - queries
    for layer in range(depth):
        own = layer % len(P)
        Z = linear_attention(Z, P[own] / (length if scaled else 1), Q[own], length)
    return -Z[-1, length:]


def train_on_whole_prompts(P, Q, algo, depth, tasks, batches, scaled=True, clip=0.0):
    """Algorithms 1 and 2 by torch; return P and Q."""
    matrices = [torch.nn.Parameter(torch.tensor(matrix)) for matrix in (P, Q)]
    adam = torch.optim.Adam(matrices, lr=RATE)
    for i in range(len(tasks)):
        prompt = joint_prompt(enumerated_columns(tasks.transition[i], tasks.reward[i], GAMMA))
        value = on_whole_prompt(*matrices, prompt, tasks.states, depth, scaled)
        state, following, mean_return = batch_of(batches, i)
        reward = torch.from_numpy(tasks.reward[i])[state]
        target = reward + GAMMA * value.detach()[following] if algo == "td" else mean_return
        adam.zero_grad()
        (0.5 * ((target - value[state]) ** 2).mean()).backward()
        if clip:
            norm = torch.sqrt(sum((matrix.grad**2).sum() for matrix in matrices))
            for matrix in matrices:
                matrix.grad *= min(1, clip / norm)
        adam.step()
    return np.stack([matrix.detach().numpy() for matrix in matrices])


@pytest.mark.parametrize("scaled", [True, False])
@pytest.mark.parametrize(
    ("height", "length", "depth", "layers"), [(7, 2, 1, 1), (7, 7, 3, 3), (7, 40, 6, 1), (7, 9, 4, 4)]
)
def test_estimates_equal_those_on_whole_prompts(height, length, depth, layers, scaled):
    """With features and queries that are not one-hot."""
    rng = np.random.default_rng(0)
    P, Q = 0.2 * rng.normal(size=(2, layers, height, height)) / (1 if scaled else length)
    columns, queries = rng.normal(size=(6, height, length)), rng.normal(size=(3, height))
    rows = context_rows(columns, scaled)
    assert rows.shape == (6, min(length, height), height)
    found = estimates(P, Q, rows, queries, depth)
    for i in range(6):
        prompt = np.concatenate([columns[i], queries.T], axis=1)
        expected = on_whole_prompt(*map(torch.tensor, (P, Q)), prompt, 3, depth, scaled).numpy()
        np.testing.assert_allclose(found[i], expected, atol=100 * ROUNDING * max(1, np.abs(expected).max()))


def test_estimates_in_theta_equal_linear_transformers():
    rng = np.random.default_rng(0)
    weights = ictd.Weights(0.3 * rng.normal(size=6), 0.3 * rng.normal(size=(6, 6)))
    columns = rng.normal(size=(4, 7, 12))
    found = estimates(weights.P()[None], weights.Q()[None], context_rows(columns), query_columns(3).T, 4)
    expected = ictd.LinearTransformer(weights, 4)(joint_prompt(columns), queries=3).detach().numpy()
    np.testing.assert_allclose(found, expected, atol=100 * ROUNDING * np.abs(expected).max())


@pytest.mark.parametrize(
    ("algo", "env", "states", "depth", "layers", "scaled", "clip"),
    [
        ("td", "boyan", 5, 30, 1, True, 0),
        ("mc", "boyan", 3, 1, 1, True, 0),
        ("mc", "loop", 3, 4, 4, True, 0),
        ("td", "loop", 3, 1, 1, False, 0.3),
        ("mc", "boyan", 3, 6, 1, True, 0.01),
        ("td", "boyan", 3, 3, 3, False, 0.01),
        ("td", "boyan", 5, 3, 3, True, 0),
    ],
)
def test_training_equals_autograd_on_whole_prompts(algo, env, states, depth, layers, scaled, clip):
    tasks, batches = material(env, states, 25)
    P, Q = drawn(states, layers, gain=0.2 if depth > 10 else 0.5)
    engine = Engine(P, Q, query_columns(states).T, algo, depth, GAMMA, RATE, clip=clip)
    found, updates = engine.train(tasks.reward, batches, contexts_of(tasks, scaled))
    expected = train_on_whole_prompts(P, Q, algo, depth, tasks, batches, scaled, clip)
    assert updates == 25 and np.isfinite(found).all() and np.abs(expected - [P, Q]).max() > 1e-3
    np.testing.assert_allclose(engine.matrices(), expected, atol=ENGINES)


@pytest.mark.parametrize(("algo", "scaled"), [("td", True), ("mc", False)])
def test_training_in_theta_equals_the_autograd_engine(algo, scaled):
    tasks, batches = material("boyan", 3, 40)
    start = ictd.initial_weights(3, 0.1, ictd.generator(0, "boyan", 3, "weights"))
    masks = theta_masks(3)[:, None]
    engine = Engine(start.P()[None], start.Q()[None], query_columns(3).T, algo, 8, GAMMA, RATE, masks)
    literal = AutogradEngine(start, algo, 8, GAMMA, RATE, scaled)
    expected, _ = literal.train(tasks.reward, batches, enumerated_prompts(tasks, GAMMA))
    # In two blocks.
    found = []
    for block in (slice(0, 7), slice(7, 40)):
        found.append(engine.train(tasks.reward[block], batches[block], contexts_of(tasks, scaled)[block])[0])
    np.testing.assert_allclose(np.concatenate(found), expected, atol=ENGINES)
    weights = literal.weights()
    np.testing.assert_allclose(engine.matrices()[:, 0], [weights.P(), weights.Q()], atol=ENGINES)
    assert engine.steps == 40


def test_longer_contexts_train_as_columns_with_the_same_gram_matrix():
    tasks, batches = material("loop", 3, 20)
    P, Q = drawn(3, 1)
    rng = np.random.default_rng(0)
    columns = rng.normal(size=(20, 7, 30))
    # 30 columns, rotated so that 23 of them are zero.
    turned = columns @ np.linalg.qr(columns.mT, mode="complete")[0]
    np.testing.assert_allclose(turned[..., 7:], 0, atol=100 * ROUNDING)
    given = context_rows(columns), turned[..., :7].mT / np.sqrt(30)
    found = []
    for contexts in given:
        engine = Engine(P, Q, query_columns(3).T, "td", 4, GAMMA, RATE)
        engine.train(tasks.reward, batches, contexts)
        found.append(engine.matrices())
    np.testing.assert_allclose(found[0], found[1], atol=ENGINES)


def test_training_stops_before_an_estimate_that_is_not_finite():
    tasks, batches = material("boyan", 3, 9)
    contexts = contexts_of(tasks)
    contexts[5] *= 1e200
    engine = Engine(*drawn(3, 1), query_columns(3).T, "td", 5, GAMMA, RATE)
    found, updates = engine.train(tasks.reward, batches, contexts)
    assert updates == engine.steps == 5
    assert np.isfinite(found[:5]).all() and not np.isfinite(found[5]).all() and np.isnan(found[6:]).all()
    assert np.isfinite(engine.matrices()).all()


@pytest.mark.parametrize("broken", ["estimate", "gradient"])
def test_updates_that_are_not_finite_can_be_skipped(broken):
    """A skipped update changes neither parameters nor moments, but counts as an update of Adam."""
    tasks, batches = material("boyan", 3, 6)
    contexts, return_sums = contexts_of(tasks), batches.return_sums.copy()
    if broken == "estimate":
        contexts[2] *= 1e200
    else:
        return_sums[2] = np.inf
    batches = ictd.BatchStatistics.unchecked(
        visits=batches.visits, transitions=batches.transitions, return_sums=return_sums
    )

    def trained(*blocks):
        engine = Engine(*drawn(3, 1), query_columns(3).T, "mc", 4, GAMMA, RATE, skip=True)
        updates = [engine.train(tasks.reward[one], batches[one], contexts[one])[1] for one in blocks]
        return engine, updates

    whole, updates = trained(slice(0, 6))
    assert updates == [6] and whole.steps == 6
    before, _ = trained(slice(0, 2))
    before.steps += 1
    before.train(tasks.reward[3:], batches[3:], contexts[3:])
    for name in ("parameter", "mean", "square"):
        assert np.isfinite(getattr(whole, name)).all()
        np.testing.assert_array_equal(getattr(whole, name), getattr(before, name))
    # The last update of a block.
    last, updates = trained(slice(0, 3))
    assert updates == [2] and last.steps == 3
    np.testing.assert_array_equal(last.parameter, trained(slice(0, 2))[0].parameter)


def test_parameters_that_are_not_trained_keep_their_values():
    tasks, batches = material("boyan", 3, 5)
    trained = np.random.default_rng(0).integers(0, 2, (2, 4, 7, 7))
    P, Q = drawn(3, 4)
    engine = Engine(P, Q, query_columns(3).T, "td", 4, GAMMA, RATE, trained)
    engine.train(tasks.reward, batches, contexts_of(tasks))
    moved = engine.matrices() != [P, Q]
    # The last layer changes the estimates only through the last entries of the query columns.
    assert not moved[trained == 0].any() and moved[:, :3][trained[:, :3] == 1].all()


def test_single_precision_is_close_to_double_precision():
    tasks, batches = material("boyan", 3, 20)
    P, Q = drawn(3, 1, gain=0.1)
    found = []
    for precision in (np.float32, np.float64):
        engine = Engine(P.astype(precision), Q.astype(precision), query_columns(3).T, "mc", 5, GAMMA, RATE)
        engine.train(tasks.reward, batches, contexts_of(tasks))
        found.append(engine.matrices())
    difference = np.abs(found[0] - found[1]).max()
    assert found[0].dtype == np.float32 and 0 < difference < 1e-4
