"""Pretraining on sampled contexts beside whole prompts in torch."""

import numpy as np
import pytest
import torch
from naive import larger_weights, sampled_material
from tolerances import ENGINES, ROUNDING

import ictd
from ictd.engine import Engine
from ictd.literal import batch_of
from ictd.prompt import Gram, enumerated_columns
from ictd.rng import generator

GAMMA = 0.9


def naive_training(tasks, unrolls, paths, lengths, algo, depth, start, clip):
    """Algorithms 1 and 2 with a sampled context as the prompt, in torch on whole prompts."""
    model = ictd.LinearTransformer(start, depth)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for i in range(len(tasks)):
        context = ictd.sampled_columns(paths[i, : lengths[i] + 1], tasks.reward[i], GAMMA)
        prompts = torch.from_numpy(ictd.prompts_of(context))
        state, following, mean_return = batch_of(unrolls, i)
        estimate = model(prompts[state])
        target = mean_return
        if algo == "td":
            target = torch.from_numpy(tasks.reward[i])[state] + GAMMA * model(prompts[following]).detach()
        optimizer.zero_grad()
        (0.5 * ((target - estimate) ** 2).mean()).backward()
        if clip:
            norm = torch.sqrt((model.u.grad**2).sum() + (model.A.grad**2).sum())
            for parameter in model.parameters():
                parameter.grad *= min(1, clip / norm)
        optimizer.step()
    return model.u.detach().numpy(), model.A.detach().numpy()


@pytest.mark.parametrize(
    ("algo", "env", "states", "depth", "clip"),
    [("td", "boyan", 3, 6, 0), ("mc", "boyan", 3, 3, 0.5), ("td", "loop", 3, 9, 0.02), ("mc", "loop", 3, 1, 0)],
)
def test_gram_engine_is_training_on_whole_sampled_prompts(algo, env, states, depth, clip):
    lengths = generator(0, env, states, "lengths").integers(1, 30, 40)
    tasks, unrolls, gram, paths = sampled_material(env, states, 40, lengths, GAMMA)
    start = larger_weights(states)
    engine = Engine(start, algo, depth, GAMMA, 1e-3, clip=clip)
    _, done = engine.train(tasks.reward, unrolls, gram)
    u, A = naive_training(tasks, unrolls, paths, lengths, algo, depth, start, clip)
    assert done == 40 and np.abs(A - start.A).max() > 1e-3
    np.testing.assert_allclose(engine.weights()[1], A, atol=ENGINES)
    np.testing.assert_allclose(engine.weights()[0], u, atol=ENGINES)


@pytest.mark.parametrize("algo", ["td", "mc"])
def test_the_enumerated_prompt_is_a_case_of_it(algo):
    tasks, unrolls, _, _ = sampled_material("boyan", 3, 300, np.full(300, 3), GAMMA)
    start = ictd.initial_weights(3, 0.1, generator(0, "boyan", 3, "weights"))
    engine = Engine(start, algo, 30, GAMMA, 1e-3)
    for part in (slice(0, 7), slice(7, 300)):
        engine.train(
            tasks.reward[part],
            unrolls[part],
            Gram.of_columns(enumerated_columns(tasks[part].transition, tasks[part].reward, GAMMA)),
        )
    fused = ictd.pretrain(tasks, unrolls, algo, 30, GAMMA, 1e-3, start.u, start.A)
    np.testing.assert_allclose(engine.weights()[1], fused.A, atol=ROUNDING)


def test_training_stops_where_estimates_are_not_finite():
    tasks, unrolls, gram, _ = sampled_material("boyan", 3, 9, np.full(9, 4), GAMMA)
    wrong = gram.c.copy()
    wrong[5] = 1e308
    engine = Engine(larger_weights(3), "td", 5, GAMMA, 1e-3, clip=1)
    estimates, done = engine.train(tasks.reward, unrolls, Gram(gram.length, gram.M, wrong))
    assert done == 5 == engine.steps and np.isfinite(estimates[:5]).all() and np.isnan(estimates[6:]).all()
