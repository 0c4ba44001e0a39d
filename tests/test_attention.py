"""Custom attention: Gram matrices compared with whole prompts, and training compared with ``ictd.pretrain``."""

import numpy as np
import pytest
import torch
from tolerances import ENGINES, ROUNDING

import ictd
from ictd.torch_twin import Adam, batch_loss
from ictd.training_data import training_blocks

GAMMA, SEEDS = 0.9, [3, 5]


def distribution(features=None):
    return ictd.TaskDistribution("boyan", 4 if features else 3, features)


def matrices(rng, dimension, layers, heads, seeds=2, gain=0.5):
    """Random P and Q (S, K, H, D, D)."""
    height = 2 * dimension + 1
    return rng.normal(0, gain / np.sqrt(height * heads), (2, seeds, layers, heads, height, height))


def attention_with(P, Q, depth):
    """GramAttention with given P and Q."""
    seeds, layers, heads, height = P.shape[:4]
    module = ictd.GramAttention((height - 1) // 2, depth, heads, looped=layers == 1, seeds=range(seeds))
    module.P.data, module.Q.data = torch.tensor(P), torch.tensor(Q)
    return module


class Looped(torch.nn.Module):
    """The Transformer in Theta^looped with the initial weights of ``ictd.pretrain``, of all seeds."""

    def __init__(self, tasks, depth):
        super().__init__()
        streams = [ictd.generator(seed, tasks.name, tasks.states, "weights") for seed in SEEDS]
        weights = [ictd.initial_weights(tasks.dimension, 0.1, rng) for rng in streams]
        stacked = (torch.tensor(np.stack([getattr(one, name) for one in weights])) for name in "uA")
        self.u, self.A = map(torch.nn.Parameter, stacked)
        self.depth = depth

    def forward(self, G, queries):
        M, A, total = G[..., :-1, :-1], self.A[:, None], 0
        k = self.u[:, None, None] @ M + G[..., -1:, :-1]
        for _ in range(self.depth):
            total, k = total + k, k + k @ A @ M
        return -(queries @ (total @ A[..., : queries.shape[-1]]).mT)[..., 0]


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
    own = [layer % layers for layer in range(4)]
    modules = (ColumnAttention(torch.tensor(P[[s]][:, own]), torch.tensor(Q[[s]][:, own])) for s in range(2))
    expected = np.stack([module(torch.tensor(columns.mT), queries).detach() for module in modules])
    assert np.abs(expected).max() > 0.1
    np.testing.assert_allclose(estimates, expected, rtol=ROUNDING, atol=ROUNDING * np.abs(expected).max())


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
    ],
)
def test_training_in_theta_equals_pretrain(target, features, prompts, clip):
    tasks = distribution(features=features)
    settings = {"prompts": prompts, "target": target, "updates": 100, "seeds": SEEDS, "batch_size": 16, "clip": clip}
    settings |= {"rollout_steps": 20, "learning_rate": 0.003, "progress": False}
    expected, start = ictd.pretrain(tasks, 3, GAMMA, **settings).weights, Looped(tasks, 3)
    module = ictd.pretrain_attention(start, tasks, GAMMA, **settings)
    assert module is start and np.abs(expected.A).max() > 0.1
    np.testing.assert_allclose(module.u.detach(), expected.u, atol=ENGINES)
    np.testing.assert_allclose(module.A.detach(), expected.A, atol=ENGINES)


def test_blocks_contain_whole_updates(monkeypatch):
    """Blocks of up to 10 tasks, with 75 transition probabilities of tasks with 5 states, or of one update."""
    monkeypatch.setattr("ictd.training_data.BLOCK", 10)
    monkeypatch.setattr("ictd.training_data.PROBABILITIES", 75)
    for states, updates, each, sizes in ((2, 3, 7, [7, 7, 7]), (2, 1, 12, [12]), (5, 7, 1, [3, 3, 1])):
        tasks = ictd.TaskDistribution("boyan", states)
        blocks = training_blocks(tasks, ictd.EnumeratedPrompts(), "td", GAMMA, updates, 0, 8, 1, each)
        assert [len(block.tasks) for block in blocks] == sizes


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


def test_a_custom_module_is_trained(capsys):
    """The mean reward of the context times a number, in float32 and without an axis of seeds; some of it is unused.

    The factor approaches the least-squares solution, which is 1 / (1 - gamma) if all states have the same value.
    """
    module = Given(lambda own, G, queries: own * G[..., -1, :3].sum(-1, True) * torch.ones_like(queries[..., 0]))
    module.float().unused = torch.nn.Parameter(torch.zeros(()))
    settings = {"target": "values", "updates": 200, "tasks_per_update": 32, "learning_rate": 0.1, "clip": 5.0}
    ictd.pretrain_attention(module, distribution(), GAMMA, **settings)
    tasks = distribution().sample(20_000, np.random.default_rng(0))
    value = ictd.value_function(tasks.transition, tasks.reward, GAMMA)
    mean = tasks.reward.mean(axis=1)
    best = (tasks.stationary * value).sum(axis=1) @ mean / (mean @ mean)
    assert module.own.item() == pytest.approx(best, rel=0.05) and module.unused == 0
    assert " 200/200 " in capsys.readouterr().err


class Transposed(ictd.GramAttention):
    def forward(self, G, queries):
        return super().forward(G, queries).mT


class Given(torch.nn.Module):
    """A module with one number and a function of it and the arguments."""

    def __init__(self, function):
        super().__init__()
        self.own, self.function = torch.nn.Parameter(torch.ones((), dtype=torch.float64)), function

    def forward(self, *arguments):
        return self.function(self.own, *arguments)


class ColumnAttention(torch.nn.Module):
    """Linear or softmax attention with the P and Q of GramAttention for one seed, layer by layer on whole columns."""

    def __init__(self, P, Q, softmax=False):
        super().__init__()
        self.P, self.Q, self.softmax = torch.nn.Parameter(P[0]), torch.nn.Parameter(Q[0]), softmax

    def forward(self, columns, queries, padding=None):
        m = columns.shape[1]
        padding = torch.zeros(columns.shape[:2]).bool() if padding is None else padding
        Z = torch.cat([columns, torch.nn.functional.pad(queries, (0, queries.shape[2] + 1))], dim=1)
        for P, Q in zip(self.P, self.Q, strict=True):
            scores = torch.einsum("bui,hij,btj->bhtu", Z[:, :m], Q, Z)
            if self.softmax:
                shares = scores.masked_fill(padding[:, None, None], -torch.inf).softmax(dim=-1)
            else:
                shares = scores / (~padding).sum(dim=1)[:, None, None, None]
            Z = Z + torch.einsum("bhtu,buj,hij->bti", shares, Z[:, :m], P)
        return -Z[:, m:, -1]


@pytest.mark.parametrize(
    ("features", "prompts", "behaviour"),
    [(None, ictd.SampledPrompts(4, 12), None), (2, ictd.EnumeratedPrompts(), [0.4, 0.3, 0.2, 0.1])],
)
def test_any_matrices_are_trained_as_on_whole_prompts(features, prompts, behaviour):
    """Two heads, separate layers, five tasks for each update, on Gram matrices and on columns with padding."""
    tasks = ictd.TaskDistribution("boyan", 4, features, behaviour)
    P, Q = matrices(np.random.default_rng(0), tasks.dimension, 2, 2, seeds=1)
    literal, columns = (ColumnAttention(torch.tensor(P), torch.tensor(Q)) for _ in range(2))
    settings = {"prompts": prompts, "updates": 20, "seeds": 4, "tasks_per_update": 5, "progress": False}
    gram = ictd.pretrain_attention(attention_with(P, Q, 2), tasks, GAMMA, **settings)
    ictd.pretrain_attention(columns, tasks, GAMMA, columns=True, **settings)
    (block,) = training_blocks(tasks, prompts, "td", GAMMA, 20 * 5, 4, 64, 200)
    optimizer = Adam([literal.P, literal.Q], 0.001)
    for first in range(0, 100, 5):
        loss = 0
        for i in range(first, first + 5):
            given = (torch.tensor(part) for part in (block.columns(slice(i, i + 1), GAMMA)[0].mT, block.queries[[i]]))
            loss = loss + batch_loss(literal(*given)[0], block.targets, i) / 5
        optimizer.step([*torch.autograd.grad(loss, [literal.P, literal.Q])])
    assert np.abs(literal.P.detach().numpy() - P[0]).max() > 0.01
    for name in "PQ":
        for found in (getattr(gram, name)[0], getattr(columns, name)):
            np.testing.assert_allclose(found.detach(), getattr(literal, name).detach(), atol=ENGINES)


def test_columns_are_those_of_trajectories_and_padding_follows_them():
    """Softmax attention sees padding unless it is told: estimates of a batch are those of each context alone."""
    tasks = distribution(2)
    given = tasks, ictd.SampledPrompts(3, 9), "td", GAMMA, 6, 0, 8, 1
    (block,) = training_blocks(*given)
    columns, padding = block.columns(slice(0, 6), GAMMA)
    P, Q = matrices(np.random.default_rng(0), 2, 2, 2, seeds=1)
    module = ColumnAttention(torch.tensor(P), torch.tensor(Q), softmax=True)
    found = module(*map(torch.tensor, (columns.mT, block.queries, padding)))
    lengths = block.steps.lengths
    assert len({*lengths}) > 2 and padding.shape == (6, max(lengths)) and not columns.mT[padding].any()
    for i, m in enumerate(lengths):
        path = np.append(block.steps.states[i, :m], block.steps.next_states[i, m - 1])
        own = ictd.sampled_columns(path, block.tasks.reward[i], GAMMA, block.tasks.features[i])
        np.testing.assert_array_equal(columns[i, :, :m], own)
        alone = module(torch.tensor(own.T[None]), torch.tensor(block.queries[i : i + 1]))
        torch.testing.assert_close(found[i], alone[0])


def test_a_list_of_modules_is_trained_evaluated_and_saved_as_each_of_them(tmp_path):
    """Softmax attention on contexts of different lengths, which need padding within and between seeds."""
    tasks, prompts = ictd.TaskDistribution("boyan", 3), ictd.SampledPrompts(2, 9)
    settings = {"updates": 15, "tasks_per_update": 2, "learning_rate": 0.01, "clip": 0.5, "progress": False}
    starts = matrices(np.random.default_rng(0), 3, 2, 2, seeds=3)

    def modules():
        return [
            ColumnAttention(torch.tensor(P[None]), torch.tensor(Q[None]), True) for P, Q in zip(*starts, strict=True)
        ]

    together = ictd.pretrain_attention(modules(), tasks, GAMMA, prompts, seeds=range(3), columns=True, **settings)
    scores = ictd.evaluate(together, tasks, prompts, size=60, discount=GAMMA, columns=True)
    ictd.save_module(together, tmp_path / "modules.pt")
    loaded = ictd.load_module(tmp_path / "modules.pt", lambda: modules()[0])
    for seed, alone in enumerate(modules()):
        ictd.pretrain_attention(alone, tasks, GAMMA, prompts, seeds=seed, columns=True, **settings)
        assert (alone.P - modules()[seed].P).abs().max() > 0.01
        torch.testing.assert_close(together[seed].P, alone.P, rtol=0, atol=ENGINES)
        torch.testing.assert_close(loaded[seed].Q, together[seed].Q, rtol=0, atol=0)
        own = ictd.evaluate(alone, tasks, prompts, size=60, discount=GAMMA, columns=True)
        np.testing.assert_allclose(own["model"], scores[f"model[{seed}]"], rtol=1e-9)


def test_settings_that_a_file_cannot_give_back_are_refused(tmp_path):
    with pytest.raises(ValueError, match="give numbers, texts and lists"):
        ictd.save_module(ictd.GramAttention(3, 3), tmp_path / "a.pt", seeds=range(2))
    assert not [*tmp_path.iterdir()]


def test_columns_of_episodes_end_with_zeros():
    p = np.stack([[[0, a, 0], [0.2, 0, 0.3], [0, 0.4, 0]] for a in (0.9, 0.5, 0.1)])
    tasks = ictd.Tasks(p, np.arange(9.0).reshape(3, 3), episodic=True)
    steps = ictd.SampledPrompts(4, 20).steps(tasks, np.random.default_rng(0))
    columns, padding = steps.columns(tasks, GAMMA)
    ends = ~columns[:, 3:6].any(axis=1) & ~padding
    np.testing.assert_array_equal(ends, (steps.next_states[:, : padding.shape[1]] == 3) & ~padding)
    G = columns @ columns.mT / steps.lengths[:, None, None]
    np.testing.assert_allclose(steps.contexts(tasks).gram_matrix(GAMMA), G, rtol=0, atol=ROUNDING)
    assert ends.sum() > 3 and padding.any()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ictd.GramAttention(3, 3)(torch.eye(7)[None], torch.tensor(1.0)), r"queries \(\); give"),
        (lambda: pretrained(ictd.GramAttention(7, 3)), "have 3 features, and .* for 7; make it with dimension=3"),
        (lambda: pretrained(ictd.GramAttention(3, 3), seeds=range(2)), "P has shape .* leading axis of 2 seeds"),
        (lambda: pretrained(Transposed(3, 3)), r"returns \(1, 3, 1\) .* return a tensor of shape \(1, 1, 3\)"),
        (lambda: pretrained(ictd.GramAttention(3, 3), seeds=range(2), columns=True), "has one; give a list of modules"),
        (lambda: pretrained([ictd.GramAttention(3, 3)], seeds=range(2)), "a list of 1, and there are 2 seeds"),
        (lambda: pretrained([ictd.GramAttention(n, 3) for n in (3, 4)], seeds=range(2)), "cannot be computed at once"),
        (lambda: pretrained([ictd.GramAttention(3, 3)] * 2, seeds=range(2)), "list share parameters; make a module"),
        (lambda: ictd.load_module("/dev/null", ictd.GramAttention), "/dev/null cannot be loaded"),
        (lambda: ictd.save_module(ictd.GramAttention(3, 3), "/dev/null/a.pt"), "a.pt cannot be written"),
        (lambda: ictd.evaluate(ictd.GramAttention(3, 3), distribution(3), ictd.EnumeratedPrompts()), "discount is mis"),
        (
            lambda: ictd.evaluate(
                torch.nn.Bilinear(9, 9, 1), distribution(), ictd.SampledPrompts(5, 5), discount=GAMMA
            ),
            "module fails on G",
        ),
        (lambda: pretrained(Given(lambda own, G, queries: [own])), "module returns list for G"),
        (lambda: pretrained(Given(lambda own, G, queries: queries[..., 0].detach())), "float64 without a gradient"),
        (
            lambda: pretrained(Given(lambda own, G, queries: own @ own)),
            r"fails on G \(1, 1, 7, 7\) and queries \(1, 1, 3, 3\) of torch.float64: .* needs columns=True",
        ),
        (
            lambda: pretrained(Given(lambda own, G, queries: queries @ own.float().expand(3))),
            r"same dtype.* such as by module.to\(torch.float64\)",
        ),
    ],
)
def test_invalid_arguments_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def pretrained(module, **settings):
    return ictd.pretrain_attention(module, distribution(), GAMMA, updates=2, progress=False, **settings)
