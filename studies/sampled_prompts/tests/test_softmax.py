"""Softmax attention, compared with whole prompts in torch."""

import numpy as np
import pytest
import torch
from naive import clipped_step, larger_weights, sampled_material, step_loss
from tolerances import ENGINES

import ictd
from ictd.algorithms import ALGORITHMS
from ictd.rng import generator
from ictd.training_data import sample_contexts
from studies.sampled_prompts.softmax import CORNER, Columns, SoftmaxEngine, estimates

GAMMA, SIZE = 0.9, 12


class WholePrompts(torch.nn.Module):
    """TF_L on whole prompts: every layer computes all scores again, and changes all of Z by P and Q."""

    def __init__(self, weights, depth):
        super().__init__()
        self.u, self.A = (torch.nn.Parameter(torch.tensor(part)) for part in (weights.u, weights.A))
        self.depth = depth

    def forward(self, context):
        """Estimates (n,) for one context (2n+1, m) with the rewards of the task, by one prompt for each query."""
        return torch.cat([self.answer(context, query) for query in range(len(self.u) // 2)])

    def answer(self, context, query):
        wide, length = len(self.u), context.shape[1]
        context = context.copy()
        context[-1] /= 1 - GAMMA
        Z = torch.from_numpy(np.concatenate([context, np.eye(wide + 1)[:, [query]]], axis=1))
        P = torch.zeros(wide + 1, wide + 1, dtype=torch.float64)
        P[-1] = torch.cat([self.u, self.u.new_tensor([CORNER])])
        Q = torch.nn.functional.pad(self.A, (0, 1, 0, 1))
        for _ in range(self.depth):
            scores = Z.T @ Q @ Z
            Z = Z + P @ Z[:, :length] @ scores[:length].softmax(dim=0)
        return -Z[-1, length:]


def whole(tasks, paths, lengths, prompts):
    """Columns of the context of each task, all of them."""
    if prompts == "enumerated":
        return list(ictd.enumerated_columns(tasks.transition, tasks.reward, GAMMA))
    return [ictd.sampled_columns(paths[i, : m + 1], tasks.reward[i], GAMMA) for i, m in enumerate(lengths)]


def distinct(tasks, lengths, prompts):
    if prompts == "enumerated":
        return Columns.enumerated(tasks, GAMMA)
    contexts = sample_contexts(tasks, lengths, generator(0, "boyan", tasks.states, "contexts"))
    return Columns.sampled(contexts, tasks.reward, GAMMA)


@pytest.mark.parametrize(
    ("prompts", "algo", "depth", "clip"),
    [
        ("step", "td", 5, 0.3),
        # Compiles the kernels again, for prompts of another kind.
        pytest.param("enumerated", "mc", 7, 0, marks=pytest.mark.slow),
        ("step", "mc", 1, 0.05),
    ],
)
def test_training_equals_autograd_on_whole_prompts(prompts, algo, depth, clip):
    lengths = generator(0, "boyan", 3, "lengths").integers(1, 30, SIZE)
    tasks, batches, _, paths = sampled_material("boyan", 3, SIZE, lengths, GAMMA)
    start = larger_weights(3)
    engine = SoftmaxEngine(start, depth, GAMMA, 1e-3, clip=clip)
    found, done = engine.train(
        tasks.reward, ALGORITHMS[algo].targets(tasks, batches, GAMMA), distinct(tasks, lengths, prompts)
    )
    model = WholePrompts(start, depth)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for i, context in enumerate(whole(tasks, paths, lengths, prompts)):
        estimate = model(context)
        np.testing.assert_allclose(found[i], estimate.detach(), rtol=ENGINES, atol=ENGINES)
        clipped_step(optimizer, step_loss(estimate, tasks, batches, i, algo, GAMMA), clip)
    assert done == SIZE and np.abs(model.A.detach().numpy() - start.A).max() > 1e-3
    np.testing.assert_allclose(engine.weights().u, model.u.detach(), atol=ENGINES)
    np.testing.assert_allclose(engine.weights().A, model.A.detach(), atol=ENGINES)


@pytest.mark.parametrize("prompts", ["step", "enumerated"])
def test_estimates_equal_those_on_whole_prompts(prompts):
    lengths = np.array([1, 2, 7, 40])
    tasks, _, _, paths = sampled_material("boyan", 4, 4, lengths, GAMMA)
    found = estimates(larger_weights(4), distinct(tasks, lengths, prompts), 6)
    model = WholePrompts(larger_weights(4), 6)
    for i, context in enumerate(whole(tasks, paths, lengths, prompts)):
        np.testing.assert_allclose(found[i], model(context).detach(), rtol=ENGINES)
