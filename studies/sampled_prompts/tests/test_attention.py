"""Softmax and ReLU attention, compared with whole prompts in torch."""

import numpy as np
import pytest
import torch
from naive import larger_weights, sampled_material
from tolerances import ENGINES, ROUNDING

import ictd
from ictd.engine import Engine
from ictd.prompt import Context
from ictd.rng import generator
from ictd.torch_twin import batch_of
from ictd.training_data import sample_contexts
from studies.sampled_prompts.attention_engine import Attention, AttentionEngine, WeightedColumns, estimates

GAMMA, SIZE = 0.9, 15
SOFTMAX = ("softmax", "softmax_with_query")
KINDS = [
    Attention(),
    Attention("relu", -0.7),
    Attention("softmax", -0.6),
    Attention("softmax", -0.3, scaled_rewards=True),
    Attention("softmax_with_query", -0.8),
]


class WholePrompts(torch.nn.Module):
    """TF_L on whole prompts: every layer computes all scores again, and changes all of Z by P and Q."""

    def __init__(self, weights, attention, depth):
        super().__init__()
        self.u, self.A = (torch.nn.Parameter(torch.tensor(part)) for part in (weights.u, weights.A))
        self.attention, self.depth = attention, depth

    def forward(self, context):
        """Estimates (n,) for one context (2n+1, m) with the rewards of the task, by one prompt for each query."""
        return torch.cat([self.answer(context, query) for query in range(len(self.u) // 2)])

    def answer(self, context, query):
        wide, length = len(self.u), context.shape[1]
        context = context.copy()
        context[-1] = self.attention.prompt_rewards(context[-1], GAMMA)
        Z = torch.from_numpy(np.concatenate([context, np.eye(wide + 1)[:, [query]]], axis=1))
        P = torch.zeros(wide + 1, wide + 1, dtype=torch.float64)
        P[-1] = torch.cat([self.u, self.u.new_tensor([self.attention.corner])])
        Q = torch.nn.functional.pad(self.A, (0, 1, 0, 1))
        for _ in range(self.depth):
            scores = Z.T @ Q @ Z
            weigh = {
                "linear": lambda x: x[:length] / length,
                "relu": lambda x: x[:length].clamp(min=0) / length,
                "softmax": lambda x: x[:length].softmax(dim=0),
                "softmax_with_query": lambda x: x.softmax(dim=0)[:length],
            }[self.attention.kind]
            Z = Z + P @ Z[:, :length] @ weigh(scores)
        return -Z[-1, length:]


def contexts_of(tasks, paths, lengths, prompts):
    """Columns of the context of each task."""
    if prompts == "enumerated":
        return list(ictd.enumerated_columns(tasks.transition, tasks.reward, GAMMA))
    return [ictd.sampled_columns(paths[i, : m + 1], tasks.reward[i], GAMMA) for i, m in enumerate(lengths)]


def columns(tasks, lengths, prompts, attention, env):
    reward = attention.prompt_rewards(tasks.reward, GAMMA)
    if prompts == "enumerated":
        return WeightedColumns.enumerated(tasks.transition, reward, GAMMA)
    contexts = sample_contexts(tasks, lengths, generator(0, env, tasks.states, "contexts"))
    return WeightedColumns.sampled(contexts, reward, GAMMA)


@pytest.mark.parametrize("attention", KINDS, ids=str)
@pytest.mark.parametrize(
    ("prompts", "algo", "env", "states", "depth", "clip"),
    [
        ("contexts", "td", "boyan", 3, 5, 0.3), ("contexts", "mc", "loop", 3, 4, 0),
        ("enumerated", "mc", "boyan", 3, 7, 0), ("contexts", "td", "boyan", 3, 1, 0.05),
    ],
)  # fmt: skip
def test_training_equals_autograd_on_whole_prompts(attention, prompts, algo, env, states, depth, clip):
    lengths = generator(0, env, states, "lengths").integers(1, 30, SIZE)
    tasks, unrolls, _, paths = sampled_material(env, states, SIZE, lengths, GAMMA)
    start = larger_weights(states)
    engine = AttentionEngine(start, algo, depth, GAMMA, 1e-3, clip, attention)
    found, done = engine.train(tasks.reward, unrolls, columns(tasks, lengths, prompts, attention, env))
    model = WholePrompts(start, attention, depth)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for i, context in enumerate(contexts_of(tasks, paths, lengths, prompts)):
        state, following, target = batch_of(unrolls, i)
        estimate = model(context)
        np.testing.assert_allclose(found[i], estimate.detach(), rtol=ENGINES, atol=ENGINES)
        if algo == "td":
            target = torch.from_numpy(tasks.reward[i])[state] + GAMMA * estimate.detach()[following]
        optimizer.zero_grad()
        (0.5 * ((target - estimate[state]) ** 2).mean()).backward()
        if clip:
            norm = torch.sqrt((model.u.grad**2).sum() + (model.A.grad**2).sum())
            for parameter in model.parameters():
                parameter.grad *= min(1, clip / norm)
        optimizer.step()
    assert done == SIZE and np.abs(model.A.detach().numpy() - start.A).max() > 1e-3
    np.testing.assert_allclose(engine.weights().u, model.u.detach(), atol=ENGINES)
    np.testing.assert_allclose(engine.weights().A, model.A.detach(), atol=ENGINES)


@pytest.mark.parametrize("attention", KINDS, ids=str)
@pytest.mark.parametrize("prompts", ["contexts", "enumerated"])
def test_estimates_equal_those_on_whole_prompts(attention, prompts):
    lengths = np.array([1, 2, 7, 40])
    tasks, _, _, paths = sampled_material("boyan", 4, 4, lengths, GAMMA)
    weights = larger_weights(4)
    found, _ = estimates(weights, columns(tasks, lengths, prompts, attention, "boyan"), attention, 6, 1.0)
    model = WholePrompts(weights, attention, 6)
    for i, context in enumerate(contexts_of(tasks, paths, lengths, prompts)):
        np.testing.assert_allclose(found[i], model(context).detach(), rtol=ENGINES)


def test_linear_attention_equals_gram_matrices():
    lengths = np.full(200, 12)
    tasks, unrolls, gram, _ = sampled_material("boyan", 3, 200, lengths, GAMMA)
    start = larger_weights(3)
    by_gram = Engine(start, "mc", 20, GAMMA, 1e-3, clip=1)
    by_columns = AttentionEngine(start, "mc", 20, GAMMA, 1e-3, 1, Attention())
    by_gram.train(tasks.reward, unrolls, gram)
    by_columns.train(tasks.reward, unrolls, columns(tasks, lengths, "contexts", Attention(), "boyan"))
    np.testing.assert_allclose(by_columns.parameter, by_gram.parameter, atol=ROUNDING)


@pytest.mark.parametrize("depth", [1, 4])
def test_response_of_softmax_to_constant_rewards_does_not_depend_on_the_weights(depth):
    """The columns of W and Wq sum to one, so estimates rise by 1 - (1 + c)^L for every A; values rise by 10."""
    lengths = np.array([3, 30])
    paths = sampled_material("boyan", 4, 2, lengths, GAMMA)[3]
    for corner, scaled in ((-0.4, False), (-1.7, True)):
        attention = Attention("softmax", corner, scaled)
        model = WholePrompts(larger_weights(4), attention, depth)
        difference = 0
        for reward, sign in ((1.0, 1), (0.0, -1)):
            context = ictd.sampled_columns(paths[1], np.full(4, reward), GAMMA)
            difference = difference + sign * model(context).detach().numpy()
        np.testing.assert_allclose(
            difference, attention.prompt_rewards(1 - (1 + attention.corner) ** depth, GAMMA), atol=ENGINES
        )


def test_response_of_softmax_that_masks_the_query_afterwards_reaches_values():
    """Its attention weights need not sum to one, so the response is close to 10, not bounded by 1."""
    context = ictd.enumerated_columns(np.full((5, 5), 0.2), np.ones(5), GAMMA)
    lower = np.repeat([0.0, 1], 5)
    weights = ictd.Weights(np.zeros(10), -5 * np.outer(lower, lower))
    reached = [WholePrompts(weights, Attention(kind, -1.0), 30)(context).detach().numpy() for kind in SOFTMAX]
    np.testing.assert_allclose(reached[0], 1)
    np.testing.assert_allclose(reached[1], 9.55, atol=0.005)


@pytest.mark.parametrize("attention", KINDS, ids=str)
def test_columns_with_share_zero_have_no_effect(attention):
    lengths = np.array([2, 50, 50])
    tasks = sampled_material("boyan", 5, 3, lengths, GAMMA)[0]
    contexts = sample_contexts(tasks, lengths, generator(0, "boyan", 5, "contexts"))
    first = Context(**{name: array[:1] for name, array in vars(contexts).items()})
    many = WeightedColumns.sampled(contexts, tasks.reward, GAMMA)
    few = WeightedColumns.sampled(first, tasks.reward[:1], GAMMA)
    assert few.y.shape[1] == 2 < many.y.shape[1]
    weights = larger_weights(5)
    expected, _ = estimates(weights, few, attention, 8, 1.0)
    found, _ = estimates(weights, many, attention, 8, 1.0)
    np.testing.assert_allclose(found[:1], expected, rtol=ENGINES)


def test_an_unknown_kind_of_attention_is_refused():
    with pytest.raises(ValueError, match="'cosine'; give one of linear, relu, softmax"):
        Attention("cosine")


def test_training_stops_before_an_estimate_that_is_not_finite():
    lengths = np.full(9, 12)
    tasks, unrolls, _, _ = sampled_material("boyan", 3, 9, lengths, GAMMA)
    given = columns(tasks, lengths, "contexts", Attention("relu", -1), "boyan")
    given.y[5] = np.inf
    engine = AttentionEngine(larger_weights(3), "td", 5, GAMMA, 1e-3, 1, Attention("relu", -1))
    found, done = engine.train(tasks.reward, unrolls, given)
    assert done == 5 == engine.steps and np.isfinite(found[:5]).all() and np.isnan(found[6:]).all()
