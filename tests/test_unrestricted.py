"""Training of all of P and Q by compiled kernels, compared with automatic differentiation on whole prompts.

All sizes differ: prompts have three query states with two features, and four columns.
"""

import numpy as np
import pytest
import torch
from tolerances import ENGINES

import ictd
from ictd.torch_twin import TorchEngine, batch_loss
from ictd.transformer import transformer_output
from ictd.unrestricted import Engine

GAMMA, RATE, DIMENSION = 0.9, 1e-3, 2
# A limit that no gradient reaches.  Kernels without a limit, which are compiled again, are used by a slow test.
HIGH = 1e9


def material(size=25):
    """Tasks with features, their batches, columns of contexts and prompts."""
    rng = np.random.default_rng(0)
    transition, reward = ictd.ENVIRONMENTS["loop"](3, size, rng)
    tasks = ictd.Tasks(transition, reward, features=rng.normal(size=(size, 3, DIMENSION)))
    columns = 0.6 * rng.normal(size=(size, 2 * DIMENSION + 1, 4))
    return tasks, ictd.unroll(tasks, 16, GAMMA, 30, rng), columns, ictd.joint_prompt(columns, tasks.features)


def drawn(layers):
    """Random P and Q (2, K, 2d+1, 2d+1)."""
    height = 2 * DIMENSION + 1
    return np.random.default_rng(1).normal(0, 0.5 / np.sqrt(height), (2, layers, height, height))


def train_on_whole_prompts(P, Q, algo, depth, scaled, clip):
    """Algorithms 1 and 2 by torch; return P and Q."""
    tasks, batches, _, prompts = material()
    matrices = [torch.nn.Parameter(torch.tensor(matrix)) for matrix in (P, Q)]
    adam = torch.optim.Adam(matrices, lr=RATE)
    for i in range(len(tasks)):
        value = transformer_output(torch.tensor(prompts[i]), *matrices, depth, tasks.states, scaled)
        adam.zero_grad()
        batch_loss(value, tasks.reward[i], batches, i, algo, GAMMA).backward()
        norm = torch.sqrt(sum((matrix.grad**2).sum() for matrix in matrices))
        for matrix in matrices:
            matrix.grad *= min(1, clip / norm)
        adam.step()
    return np.stack([matrix.detach().numpy() for matrix in matrices])


@pytest.mark.parametrize(
    ("algo", "depth", "layers", "scaled", "clip"),
    [("td", 6, 1, True, HIGH), ("mc", 4, 4, True, HIGH), ("td", 1, 1, False, 0.3), ("mc", 3, 3, False, 0.01)],
)
def test_training_equals_autograd_on_whole_prompts(algo, depth, layers, scaled, clip):
    P, Q = drawn(layers)
    tasks, batches, _, prompts = material()
    engine = Engine(P, Q, algo, depth, GAMMA, RATE, scaled, clip=clip)
    found, updates = engine.train(tasks.reward, batches, prompts)
    expected = train_on_whole_prompts(P, Q, algo, depth, scaled, clip)
    assert updates == 25 and np.isfinite(found).all() and np.abs(expected - [P, Q]).max() > 1e-3
    np.testing.assert_allclose(engine.matrices(), expected, atol=ENGINES)


@pytest.mark.parametrize(("algo", "scaled"), [("td", True), ("mc", False)])
def test_training_in_theta_equals_the_autograd_engine(algo, scaled):
    """In two blocks, with a mask of the trained entries."""
    tasks, batches, columns, prompts = material()
    start = ictd.initial_weights(DIMENSION, 0.1, np.random.default_rng(2))
    ones = ictd.Weights(np.ones_like(start.u), np.ones_like(start.A))
    trained = np.stack([ones.P(), ones.Q()])[:, None]
    trained[0, :, -1, -1] = 0
    engine = Engine(start.P()[None], start.Q()[None], algo, 8, GAMMA, RATE, scaled, trained, clip=HIGH)
    by_torch = TorchEngine(start, algo, 8, GAMMA, RATE, scaled)
    expected, _ = by_torch.train(tasks.reward, batches, columns, tasks.features)
    found = [
        engine.train(tasks.reward[block], batches[block], prompts[block])[0] for block in (slice(0, 7), slice(7, 25))
    ]
    np.testing.assert_allclose(np.concatenate(found), expected, atol=ENGINES)
    weights = by_torch.weights()
    np.testing.assert_allclose(engine.matrices()[:, 0], [weights.P(), weights.Q()], atol=ENGINES)
    assert engine.steps == 25


def test_training_stops_before_an_estimate_that_is_not_finite():
    tasks, batches, _, prompts = material(9)
    prompts[5, :, :4] *= 1e200
    engine = Engine(*drawn(1), "td", 5, GAMMA, RATE, clip=HIGH)
    found, updates = engine.train(tasks.reward, batches, prompts)
    assert updates == engine.steps == 5
    assert np.isfinite(found[:5]).all() and not np.isfinite(found[5]).all() and np.isnan(found[6:]).all()
    assert np.isfinite(engine.matrices()).all()


@pytest.mark.parametrize("broken", ["estimate", "gradient"])
def test_updates_that_are_not_finite_can_be_skipped(broken):
    """A skipped update changes neither parameters nor moments, but counts as an update of Adam."""
    tasks, batches, _, prompts = material(6)
    return_sums = batches.return_sums.copy()
    if broken == "estimate":
        prompts[2, :, :4] *= 1e200
    else:
        return_sums[2] = np.inf
    batches = ictd.BatchStatistics.unchecked(
        visits=batches.visits, transitions=batches.transitions, return_sums=return_sums
    )

    def trained(*blocks):
        engine = Engine(*drawn(1), "mc", 4, GAMMA, RATE, skip=True, clip=HIGH)
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


@pytest.mark.slow
def test_single_precision_is_close_to_double_precision():
    tasks, batches, _, prompts = material()
    found = []
    for precision in (np.float32, np.float64):
        engine = Engine(*drawn(1).astype(precision), "mc", 5, GAMMA, RATE)
        engine.train(tasks.reward, batches, prompts)
        found.append(engine.matrices())
    assert found[0].dtype == np.float32 and 0 < np.abs(found[0] - found[1]).max() < 1e-4
