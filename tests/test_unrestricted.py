"""The compiled engine for any P and Q, compared with automatic differentiation on whole prompts."""

import numpy as np
import pytest
import torch
from tolerances import ENGINES

import ictd
from ictd.prompt import enumerated_columns, joint_prompt
from ictd.torch_twin import TorchEngine, batch_loss
from ictd.transformer import transformer_output
from ictd.unrestricted import Engine

GAMMA, RATE = 0.9, 1e-3


def material(env, states, size, seed=0):
    tasks = ictd.sample_tasks(env, states, size, ictd.generator(seed, env, states, "tasks"))
    return tasks, ictd.unroll(tasks, 16, GAMMA, 30, ictd.generator(seed, env, states, "unrolls"))


def prompts_of(tasks):
    return joint_prompt(enumerated_columns(tasks.transition, tasks.reward, GAMMA, tasks.features), tasks.features)


def drawn(dimension, layers, gain=0.5):
    """Random P and Q (2, K, 2d+1, 2d+1)."""
    height = 2 * dimension + 1
    return np.random.default_rng(0).normal(0, gain / np.sqrt(height), (2, layers, height, height))


def in_theta(weights):
    """P and Q of weights, and the mask of their trained entries."""
    matrices = np.stack([weights.P(), weights.Q()])[:, None]
    ones = ictd.Weights(np.ones_like(weights.u), np.ones_like(weights.A))
    trained = np.stack([ones.P(), ones.Q()])[:, None]
    trained[0, :, -1, -1] = 0
    return matrices, trained


def train_on_whole_prompts(P, Q, algo, depth, tasks, batches, prompts, scaled=True, clip=0.0):
    """Algorithms 1 and 2 by torch; return P and Q."""
    matrices = [torch.nn.Parameter(torch.tensor(matrix)) for matrix in (P, Q)]
    adam = torch.optim.Adam(matrices, lr=RATE)
    for i in range(len(tasks)):
        value = transformer_output(torch.tensor(prompts[i]), *matrices, depth, tasks.states, scaled)
        adam.zero_grad()
        batch_loss(value, tasks.reward[i], batches, i, algo, GAMMA).backward()
        if clip:
            norm = torch.sqrt(sum((matrix.grad**2).sum() for matrix in matrices))
            for matrix in matrices:
                matrix.grad *= min(1, clip / norm)
        adam.step()
    return np.stack([matrix.detach().numpy() for matrix in matrices])


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
    engine = Engine(P, Q, algo, depth, GAMMA, RATE, scaled, clip=clip)
    found, updates = engine.train(tasks.reward, batches, prompts_of(tasks))
    expected = train_on_whole_prompts(P, Q, algo, depth, tasks, batches, prompts_of(tasks), scaled, clip)
    assert updates == 25 and np.isfinite(found).all() and np.abs(expected - [P, Q]).max() > 1e-3
    np.testing.assert_allclose(engine.matrices(), expected, atol=ENGINES)


@pytest.mark.parametrize(("dimension", "length"), [(2, 30), (3, 4)])
def test_training_on_any_prompts_equals_autograd(dimension, length):
    """Contexts of other lengths than n, with other features for each task."""
    tasks, batches = material("loop", 3, 20)
    rng = np.random.default_rng(0)
    columns, features = rng.normal(size=(20, 2 * dimension + 1, length)), rng.normal(size=(20, 3, dimension))
    prompts = joint_prompt(columns, features)
    P, Q = drawn(dimension, 1)
    engine = Engine(P, Q, "td", 4, GAMMA, RATE)
    engine.train(tasks.reward, batches, prompts)
    expected = train_on_whole_prompts(P, Q, "td", 4, tasks, batches, prompts)
    np.testing.assert_allclose(engine.matrices(), expected, atol=ENGINES)


@pytest.mark.parametrize(("algo", "scaled"), [("td", True), ("mc", False)])
def test_training_in_theta_equals_the_autograd_engine(algo, scaled):
    tasks, batches = material("boyan", 3, 40)
    start = ictd.initial_weights(3, 0.1, ictd.generator(0, "boyan", 3, "weights"))
    (P, Q), trained = in_theta(start)
    engine = Engine(P, Q, algo, 8, GAMMA, RATE, scaled, trained)
    by_torch = TorchEngine(start, algo, 8, GAMMA, RATE, scaled)
    expected, _ = by_torch.train(tasks.reward, batches, ictd.EnumeratedPrompts().columns(tasks, GAMMA))
    # In two blocks.
    found = []
    for block in (slice(0, 7), slice(7, 40)):
        found.append(engine.train(tasks.reward[block], batches[block], prompts_of(tasks)[block])[0])
    np.testing.assert_allclose(np.concatenate(found), expected, atol=ENGINES)
    weights = by_torch.weights()
    np.testing.assert_allclose(engine.matrices()[:, 0], [weights.P(), weights.Q()], atol=ENGINES)
    assert engine.steps == 40


def test_training_stops_before_an_estimate_that_is_not_finite():
    tasks, batches = material("boyan", 3, 9)
    prompts = prompts_of(tasks)
    prompts[5, :, :3] *= 1e200
    engine = Engine(*drawn(3, 1), "td", 5, GAMMA, RATE)
    found, updates = engine.train(tasks.reward, batches, prompts)
    assert updates == engine.steps == 5
    assert np.isfinite(found[:5]).all() and not np.isfinite(found[5]).all() and np.isnan(found[6:]).all()
    assert np.isfinite(engine.matrices()).all()


@pytest.mark.parametrize("broken", ["estimate", "gradient"])
def test_updates_that_are_not_finite_can_be_skipped(broken):
    """A skipped update changes neither parameters nor moments, but counts as an update of Adam."""
    tasks, batches = material("boyan", 3, 6)
    prompts, return_sums = prompts_of(tasks), batches.return_sums.copy()
    if broken == "estimate":
        prompts[2, :, :3] *= 1e200
    else:
        return_sums[2] = np.inf
    batches = ictd.BatchStatistics.unchecked(
        visits=batches.visits, transitions=batches.transitions, return_sums=return_sums
    )

    def trained(*blocks):
        engine = Engine(*drawn(3, 1), "mc", 4, GAMMA, RATE, skip=True)
        updates = [engine.train(tasks.reward[one], batches[one], prompts[one])[1] for one in blocks]
        return engine, updates

    whole, updates = trained(slice(0, 6))
    assert updates == [6] and whole.steps == 6
    before, _ = trained(slice(0, 2))
    before.steps += 1
    before.train(tasks.reward[3:], batches[3:], prompts[3:])
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
    engine = Engine(P, Q, "td", 4, GAMMA, RATE, trained=trained)
    engine.train(tasks.reward, batches, prompts_of(tasks))
    moved = engine.matrices() != [P, Q]
    # The last layer changes the estimates only through the last entries of the query columns.
    assert not moved[trained == 0].any() and moved[:, :3][trained[:, :3] == 1].all()


def test_single_precision_is_close_to_double_precision():
    tasks, batches = material("boyan", 3, 20)
    P, Q = drawn(3, 1, gain=0.1)
    found = []
    for precision in (np.float32, np.float64):
        engine = Engine(P.astype(precision), Q.astype(precision), "mc", 5, GAMMA, RATE)
        engine.train(tasks.reward, batches, prompts_of(tasks))
        found.append(engine.matrices())
    difference = np.abs(found[0] - found[1]).max()
    assert found[0].dtype == np.float32 and 0 < difference < 1e-4
