"""Custom attention: Gram matrices compared with whole prompts, and training compared with ``ictd.pretrain``."""

import numpy as np
import pytest
import torch
from tolerances import ENGINES, ROUNDING

import ictd
from ictd.torch_twin import Adam, batch_loss
from ictd.training_data import training_blocks
from ictd.transformer import linear_attention

GAMMA, SEEDS = 0.9, [3, 5]


def distribution(features=None):
    return ictd.TaskDistribution("boyan", 4 if features else 3, features)


def matrices(rng, dimension, layers, heads, seeds=2, gain=0.5):
    """Random P and Q (S, K, H, D, D)."""
    height = 2 * dimension + 1
    return rng.normal(0, gain / np.sqrt(height * heads), (2, seeds, layers, heads, height, height))


def attention_with(P, Q, depth, kind=ictd.GramAttention):
    """GramAttention with given P and Q."""
    seeds, layers, heads, height = P.shape[:4]
    module = kind((height - 1) // 2, depth, heads, looped=layers == 1, seeds=range(seeds))
    module.P.data, module.Q.data = torch.tensor(P), torch.tensor(Q)
    return module


class InTheta(ictd.GramAttention):
    """P and Q masked to Theta^looped."""

    def matrices(self, layer):
        P, Q = super().matrices(layer)
        ones = ictd.Weights(np.ones(2 * self.dimension), np.ones((2 * self.dimension,) * 2))
        corner = torch.zeros(P.shape[-2:], dtype=P.dtype)
        corner[-1, -1] = 1
        return P * (torch.tensor(ones.P()) - corner) + corner, Q * torch.tensor(ones.Q())


def in_theta(weights, depth):
    """Masked attention with the weights (S,) of Theta^looped; masked entries are not zero."""
    P, Q = weights.P()[:, None, None].copy(), weights.Q()[:, None, None].copy()
    P[..., :-1, :] = 0.7
    Q[..., -1] = -0.3
    return attention_with(P, Q, depth, InTheta)


def initial_in_theta(tasks, depth):
    """Masked attention with the initial weights of ``ictd.pretrain``."""
    streams = [ictd.generator(seed, tasks.name, tasks.states, "weights") for seed in SEEDS]
    weights = [ictd.initial_weights(tasks.dimension, 0.1, rng) for rng in streams]
    return in_theta(ictd.Weights(*(np.stack([getattr(one, name) for one in weights]) for name in "uA")), depth)


def whole_prompts(P, Q, columns, queries, depth):
    """Estimates (S, N, k) layer by layer on whole prompts (N, 2d+1, m), with tensors P and Q."""
    length = columns.shape[-1]
    Z = torch.tensor(ictd.joint_prompt(columns, queries))
    for layer in range(depth):
        own = layer % P.shape[1]
        heads = [(P[:, own, h, None] / length, Q[:, own, h, None]) for h in range(P.shape[2])]
        Z = Z + sum(linear_attention(Z, *head, length) - Z for head in heads)
    return -Z[..., -1, length:]


@pytest.mark.parametrize(("dimension", "layers", "heads"), [(2, 1, 1), (5, 1, 3), (2, 4, 2)])
def test_estimates_equal_those_on_whole_prompts(dimension, layers, heads):
    rng = np.random.default_rng(0)
    tasks = distribution(dimension).sample(5, rng)
    paths = ictd.sample_paths(tasks, 30, rng)
    columns = ictd.sampled_columns(paths, tasks.reward, GAMMA, tasks.features)
    rewards = np.take_along_axis(tasks.reward, paths[:, :-1], axis=1)
    contexts = ictd.Context.from_trajectory(paths, rewards, features=tasks.features)
    P, Q = matrices(rng, dimension, layers, heads, gain=1.0)
    G, queries = torch.tensor(contexts.gram_matrix(GAMMA)), torch.tensor(tasks.features)
    estimates = attention_with(P, Q, 4)(G, queries).detach().numpy()
    expected = whole_prompts(torch.tensor(P), torch.tensor(Q), columns, tasks.features, 4).numpy()
    assert np.abs(expected).max() > 0.1
    np.testing.assert_allclose(estimates, expected, rtol=ROUNDING, atol=ROUNDING * np.abs(expected).max())


def test_seeds_and_tasks_can_have_their_own_axes():
    rng = np.random.default_rng(0)
    P, Q = matrices(rng, 2, 1, 2)
    module = attention_with(P, Q, 3)
    X, queries = rng.normal(size=(2, 3, 5, 7)), torch.tensor(rng.normal(size=(4, 2)))
    G = torch.tensor(X @ X.mT / 7)
    own = module(G, queries)
    assert own.shape == (2, 3, 4)
    torch.testing.assert_close(module(G[1], queries.expand(3, 4, 2))[1], own[1])
    torch.testing.assert_close(attention_with(P[:1], Q[:1], 3)(G[:1], queries)[0], own[0])


def test_initial_values_of_seeds_do_not_depend_on_each_other():
    both, alone = (ictd.GramAttention(3, 2, heads=2, looped=False, seeds=seeds) for seeds in ([7, 8], 8))
    assert both.P.shape == (2, 2, 2, 7, 7)
    for name in "PQ":
        np.testing.assert_array_equal(getattr(both, name)[1:].detach(), getattr(alone, name).detach())
    assert (both.P[:, :, 0, -1, -1] == 1).all() and not (both.P[:, :, 1, -1, -1] == 1).any()


@pytest.mark.parametrize(
    ("target", "features", "prompts", "clip"),
    [
        ("td", None, ictd.SampledPrompts(4, 12), 0.05),
        ("mc", 2, ictd.EnumeratedPrompts(), 0.0),
        ("values", None, ictd.EnumeratedPrompts(), 0.0),
        (lambda v, r, following, discount: 0.5 * (r + discount * following), None, ictd.SampledPrompts(4, 12), 0.05),
    ],
)
def test_training_masked_to_theta_equals_pretrain(target, features, prompts, clip):
    tasks = distribution(features=features)
    settings = {"prompts": prompts, "target": target, "updates": 100, "seeds": SEEDS, "batch_size": 16, "clip": clip}
    settings |= {"rollout_steps": 20, "learning_rate": 0.003, "progress": False}
    expected = ictd.pretrain(tasks, 3, GAMMA, **settings).weights
    start = initial_in_theta(tasks, 3)
    P = start.P.detach().clone()
    module = ictd.pretrain_attention(start, tasks, GAMMA, **settings)
    assert module is start and np.abs(expected.A).max() > 0.1
    np.testing.assert_allclose(module.P[:, 0, 0, -1, :-1].detach(), expected.u, atol=ENGINES)
    np.testing.assert_allclose(module.Q[:, 0, 0, :-1, :-1].detach(), expected.A, atol=ENGINES)
    np.testing.assert_array_equal(module.P[..., :-1, :].detach(), P[..., :-1, :])


def test_any_matrices_are_trained_as_on_whole_prompts(target="td"):
    """Two heads, separate layers, three tasks for each update, by automatic differentiation on whole prompts."""
    tasks, per_update, updates, rng = distribution(features=2), 3, 20, np.random.default_rng(1)
    P, Q = matrices(rng, 2, 2, 2, seeds=1)
    module = attention_with(P, Q, 2)
    settings = {"batch_size": 16, "rollout_steps": 20}
    ictd.pretrain_attention(
        module, tasks, GAMMA, ictd.EnumeratedPrompts(), target, updates, tasks_per_update=per_update, progress=False,
        **settings,
    )  # fmt: skip
    (block,) = training_blocks(tasks, ictd.EnumeratedPrompts(), target, GAMMA, updates * per_update, 0, 16, 20)
    parameters = [torch.tensor(array, requires_grad=True) for array in (P, Q)]
    optimizer = Adam(parameters, 0.001)
    for first in range(0, updates * per_update, per_update):
        loss = 0
        for i in range(first, first + per_update):
            features, reward = block.tasks.features[i], block.tasks.reward[i]
            columns = ictd.enumerated_columns(block.tasks.transition[i], reward, GAMMA, features)
            value = whole_prompts(*parameters, columns[None], features, 2)[0, 0]
            loss = loss + batch_loss(value, reward, block.batches, i, target, GAMMA) / per_update
        optimizer.step([*torch.autograd.grad(loss, parameters)])
    assert np.abs(module.P.detach().numpy() - P).max() > 0.01
    for name, expected in zip("PQ", parameters, strict=True):
        np.testing.assert_allclose(getattr(module, name).detach(), expected.detach(), atol=ENGINES)


def test_blocks_contain_whole_updates(monkeypatch):
    """Seven tasks do not fill blocks of 10, and draws do not change with one block."""
    monkeypatch.setattr("ictd.training_data.BLOCK", 10)
    blocks = training_blocks(distribution(), ictd.EnumeratedPrompts(), "td", GAMMA, 3, 0, 8, 1, tasks_per_update=7)
    assert [len(block.tasks) for block in blocks] == [7, 7, 7]
    blocks = training_blocks(distribution(), ictd.EnumeratedPrompts(), "td", GAMMA, 1, 0, 8, 1, tasks_per_update=12)
    assert [len(block.tasks) for block in blocks] == [12]


def test_a_divergence_ends_no_other_seed(caplog):
    """The second seed starts with weights whose estimates overflow."""

    def trained(seeds, scales):
        module = ictd.GramAttention(3, 3, seeds=seeds)
        module.Q.data *= torch.tensor(scales)[:, None, None, None, None]
        return ictd.pretrain_attention(module, distribution(), GAMMA, updates=20, seeds=seeds, progress=False)

    both, alone = trained(SEEDS, [1.0, 1e200]), trained(SEEDS[:1], [1.0])
    assert both.Q[1].isnan().all() and both.P[1].isnan().all()
    assert caplog.messages == ["seed 5 diverged at update 1; its weights are NaN"]
    np.testing.assert_allclose(both.Q[0].detach(), alone.Q[0].detach(), atol=ENGINES)


class Shrunk(torch.nn.Module):
    """The mean reward of the context times a number, in float32 and without an axis of seeds; some of it is unused."""

    def __init__(self):
        super().__init__()
        self.factor, self.unused = (torch.nn.Parameter(torch.zeros(())) for _ in range(2))

    def forward(self, G, queries):
        return self.factor * G[..., -1, :3].sum(dim=-1, keepdim=True) * torch.ones_like(queries[..., 0])


def test_a_custom_module_is_trained(capsys):
    """The factor approaches the least-squares solution, which is 1 / (1 - gamma) if all states have the same value."""
    module = Shrunk()
    settings = {"target": "values", "updates": 200, "tasks_per_update": 32, "learning_rate": 0.1, "clip": 5.0}
    ictd.pretrain_attention(module, distribution(), GAMMA, **settings)
    tasks = distribution().sample(20_000, np.random.default_rng(0))
    value = ictd.value_function(tasks.transition, tasks.reward, GAMMA)
    mean = tasks.reward.mean(axis=1)
    best = (tasks.stationary * value).sum(axis=1) @ mean / (mean @ mean)
    assert module.factor.item() == pytest.approx(best, rel=0.05) and module.unused == 0
    assert "200 of 200 updates, 0 s left" in capsys.readouterr().err


class Transposed(ictd.GramAttention):
    def forward(self, G, queries):
        return super().forward(G, queries).mT


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ictd.GramAttention(3, 3)(torch.eye(7), torch.eye(3)), r"G has shape \(7, 7\)"),
        (lambda: pretrained(ictd.GramAttention(4, 3)), "for 4 features"),
        (lambda: pretrained(ictd.GramAttention(3, 3), seeds=range(2)), "P has shape .* leading axis of 2 seeds"),
        (lambda: pretrained(Transposed(3, 3)), r"module returns shape \(1, 3, 1\)"),
    ],
)
def test_invalid_arguments_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def pretrained(module, **settings):
    return ictd.pretrain_attention(module, distribution(), GAMMA, updates=2, progress=False, **settings)
