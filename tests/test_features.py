"""Linear function approximation: features in place of one-hot states, behaviour distributions, and the one call."""

import naive
import numpy as np
import pytest
from tolerances import ENGINES, ROUNDING

import ictd
from ictd.algorithms import ALGORITHMS
from ictd.context import Context
from ictd.engine import Engine
from ictd.prompt import enumerated_columns
from ictd.torch_twin import TorchEngine
from ictd.training_data import enumerated_prompts

GAMMA, RATE, TASKS = 0.9, 1e-3, 40


def tasks_with_features(states, dimension, behaviour=None, size=TASKS):
    """Loops with features, and a behaviour: a distribution of the visited states, or a chain of them."""
    rng = np.random.default_rng(states)
    transition, reward = ictd.ENVIRONMENTS["loop"](states, size, rng)
    features = rng.normal(size=(size, states, dimension))
    if behaviour == "distribution":
        behaviour = rng.dirichlet(np.ones(states), size)
    elif behaviour == "chain":
        behaviour = rng.dirichlet(np.ones(states), (size, states))
    return ictd.Tasks(transition, reward, features=features, behaviour=behaviour)


@pytest.mark.parametrize("weighted", [False, True])
def test_averages_of_enumerated_contexts_equal_naive(weighted):
    tasks = tasks_with_features(4, 2, "distribution")
    weights = tasks.visited if weighted else None
    contexts = Context.enumerated(tasks.transition, tasks.reward, tasks.features, weights)
    columns = enumerated_columns(tasks.transition, tasks.reward, GAMMA, tasks.features, weights)
    for i, phi in enumerate(tasks.features):
        rows = np.column_stack([phi, tasks.transition[i] @ phi, tasks.reward[i]])
        shares = weights[i] if weighted else np.full(4, 1 / 4)
        expected = sum(share * np.outer(row, row) for share, row in zip(shares, rows, strict=True))
        np.testing.assert_allclose(contexts.G[i], expected, atol=ROUNDING)
        expected = [np.sqrt(4 * shares) * column for column in (rows * [1, 1, GAMMA, GAMMA, 1]).T]
        np.testing.assert_allclose(columns[i], expected, atol=ROUNDING)


@pytest.mark.parametrize(
    ("states", "dimension", "algo", "behaviour", "prompts"),
    [
        (4, 2, "td", None, "enumerated"),
        (3, 5, "mc", "distribution", "enumerated"),
        (3, 5, "td", "distribution", "sampled"),
        (4, 2, "mc", "chain", "sampled"),
    ],
)
def test_both_engines_agree(states, dimension, algo, behaviour, prompts):
    tasks = tasks_with_features(states, dimension, behaviour)
    rng = np.random.default_rng(3)
    batches = ictd.unroll(tasks, 16, GAMMA, 20, rng)
    targets = ALGORITHMS[algo].targets(tasks, batches, GAMMA)
    start = naive.larger_weights(dimension)
    start = ictd.Weights(start.u, start.A / 4)
    compiled, by_torch = Engine(start, 4, GAMMA, RATE), TorchEngine(start, 4, GAMMA, RATE, True)
    if prompts == "enumerated":
        fast, whole = enumerated_prompts(tasks, GAMMA), ictd.EnumeratedPrompts().columns(tasks, GAMMA)
    else:
        now, following = ictd.sample_steps(tasks, 7, rng)
        rewards = np.take_along_axis(tasks.reward, now, axis=1)
        contexts = Context.from_transitions(now, rewards, following, features=tasks.features)
        fast = contexts.gram_matrix(GAMMA)
        steps = zip(tasks.features, now, following, rewards, strict=True)
        whole = [naive.columns_of_features(*task, GAMMA) for task in steps]
    found, updates = compiled.train(tasks.reward, targets, fast, tasks.features)
    expected, _ = by_torch.train(tasks.reward, targets, whole, tasks.features)
    assert updates == TASKS and np.abs(compiled.weights().A - start.A).max() > 5e-3
    np.testing.assert_allclose(found, expected, atol=ENGINES)
    np.testing.assert_allclose(compiled.weights().A, by_torch.weights().A, atol=ENGINES)
    np.testing.assert_allclose(compiled.weights().u, by_torch.weights().u, atol=ENGINES)


def test_a_divergence_ends_no_other_seed(caplog):
    with pytest.warns(UserWarning, match="zero has a smaller MSVE than 2 of 2 models"):
        model = ictd.pretrain(
            ictd.TaskDistribution("loop", 3), 2, GAMMA, updates=20, seeds=[0, 1], learning_rate=1e200, progress=False
        )
    assert np.isnan(model.weights.A).all() and "seed 1 diverged at update 2" in caplog.text


@pytest.mark.parametrize("features", [[[1.0], [2.0], [-0.5]], 2 * np.eye(3), np.diag([1.0, -1, 1]), 0.7 * np.eye(3)])
def test_orthogonal_features_and_a_single_one_are_not_one_hot(features):
    """C is diagonal, and counts of transitions cannot be found from the averages."""
    context = Context.from_trajectory([0, 1, 2, 0, 2, 2], [1.0, 0, -1, 0.5, 0], features=features)
    assert not context.one_hot
