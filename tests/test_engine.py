"""The compiled engine: estimates, gradients and updates for both kinds of prompts."""

import naive
import numpy as np
import pytest
from tolerances import ENGINES

import ictd
from ictd.algorithms import ALGORITHMS
from ictd.context import Context
from ictd.engine import Engine, compiled_estimates
from ictd.rng import generator
from ictd.small_matrices import UNROLLED
from ictd.transformer import estimates

GAMMA, RATE = 0.9, 1e-3
# Kernels are compiled for each kind of prompts with or without a limit of gradients: enumerated prompts have none here,
# and others have one that no gradient reaches.
CLIP = {"enumerated": 0, "gram": 1e9}


@pytest.mark.parametrize("scaled", [True, False])
def test_compiled_estimates_equal_numpy(scaled):
    rng = np.random.default_rng(0)
    weights = ictd.Weights(0.1 * rng.normal(size=(3, 6)), 0.1 * rng.normal(size=(3, 6, 6)))
    context = Context.from_trajectory(rng.integers(0, 3, (6, 10)), rng.normal(size=(6, 9)), 3)
    gram = context.gram_matrix(GAMMA, scaled)
    found = compiled_estimates(weights, gram, 5)
    expected = [estimates(weights[run], gram[2 * run : 2 * run + 2], 5) for run in range(3)]
    np.testing.assert_allclose(found, np.concatenate(expected), rtol=1e-11)


@pytest.mark.parametrize(
    ("algo", "env", "states", "depth", "clip"),
    [
        ("td", "boyan", 3, 6, 1e9),
        ("td", "loop", 3, 9, 0.02),
        ("mc", "loop", 3, 3, 0.5),
        ("td", "boyan", 2 + UNROLLED // 2, 7, 0.5),
    ],
)
def test_training_on_sampled_prompts_equals_naive(algo, env, states, depth, clip):
    lengths = generator(0, env, states, "lengths").integers(1, 30, 40)
    tasks, batches, gram, paths = naive.sampled_material(env, states, 40, lengths, GAMMA)
    start = naive.larger_weights(states)
    engine = Engine(start, depth, GAMMA, RATE, clip=clip)
    _, updates = engine.train(tasks.reward, ALGORITHMS[algo].targets(tasks, batches, GAMMA), gram)
    u, A = naive.train_on_paths(tasks, batches, paths, lengths, algo, depth, GAMMA, RATE, start, clip)
    assert updates == 40 and np.abs(A - start.A).max() > 1e-3
    np.testing.assert_allclose(engine.weights().A, A, atol=ENGINES)
    np.testing.assert_allclose(engine.weights().u, u, atol=ENGINES)


@pytest.mark.parametrize("prompts", ["enumerated", "gram"])
def test_training_stops_before_an_estimate_that_is_not_finite(prompts):
    tasks, batches, gram, _ = naive.sampled_material("boyan", 3, 9, np.full(9, 4), GAMMA)
    reward = tasks.reward.copy()
    reward[5] = gram[5, :-1, -1] = gram[5, -1, :-1] = 1e308
    given = tasks.transition if prompts == "enumerated" else gram
    engine = Engine(naive.larger_weights(3), 5, GAMMA, RATE, clip=CLIP[prompts])
    estimates, updates = engine.train(reward, ALGORITHMS["td"].targets(tasks, batches, GAMMA), given)
    assert updates == engine.steps == 5
    assert np.isfinite(estimates[:5]).all() and np.isnan(estimates[6:]).all() and np.isfinite(engine.parameter).all()
