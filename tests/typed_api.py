"""Types of the public interface, for the type checker of ``make lint``; the tests do not run these calls.

The examples of pages are checked, too.  Lines with ``pyrefly: ignore`` are wrong calls that the type checker must
reject; an unused comment is an error.
"""

from typing import Any, assert_type

import numpy as np
import torch

import ictd
from ictd.pretraining import History


def tasks_and_contexts(p: np.ndarray, r: np.ndarray, rng: np.random.Generator) -> None:
    """Modules mrp, prompt, sampling and baselines."""
    tasks = assert_type(ictd.Tasks([[0.9, 0.1], [0.2, 0.8]], reward=[1.0, 0.0], features=np.eye(2)), ictd.Tasks)
    assert_type(tasks.transition, np.ndarray | Any)
    context = assert_type(ictd.Context.from_trajectory([0, 1, 2, 0], [1.0, -1.0, 0.0], n=3), ictd.Context)
    assert_type(ictd.batch_td(context, discount=0.9, step_size=[1.0, 2.0], depth=30), np.ndarray)
    ictd.sample_tasks("loop", states="5", size=100, rng=rng)  # pyrefly: ignore[bad-argument-type]
    ictd.value_function(p, r)  # pyrefly: ignore[missing-argument]


@ictd.register_environment("typed")
def environment(states: int, size: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Draw tasks with equal transition probabilities."""
    return np.full((size, states, states), 1 / states), rng.normal(size=(size, states))


def models(context: ictd.Context, rng: np.random.Generator) -> None:
    """Modules transformer, pretraining, torch_twin and attention."""
    start = assert_type(ictd.initial_weights(5, gain=0.1, rng=rng), ictd.Weights)
    tasks = ictd.sample_tasks(environment, states=5, size=100, rng=rng)
    batches = assert_type(ictd.unroll(tasks, 64, 0.9, 200, rng), ictd.BatchStatistics)
    assert_type(ictd.pretrain_history(tasks, batches, "td", 10, 0.9, learning_rate=0.001, start=start), History)
    distribution = ictd.TaskDistribution("boyan", states=5, features=3)
    model = ictd.pretrain(distribution, depth=10, discount=0.9, prompts=ictd.SampledPrompts(5, 100), seeds=range(3))
    assert_type(model[0].values(context, queries=np.eye(5)), np.ndarray)
    assert_type(ictd.LinearTransformer.of(model), ictd.LinearTransformer)
    assert_type(ictd.evaluate(model, distribution, ictd.EnumeratedPrompts(), size=10)["lstd"].median, float)
    attention = ictd.GramAttention(5, depth=3, seeds=2)
    assert_type(
        ictd.pretrain_attention(attention, distribution, discount=0.9, seeds=[0, 1]),
        torch.nn.Module | list[torch.nn.Module],
    )
    ictd.pretrain(tasks, depth=10, discount=0.9)  # pyrefly: ignore[bad-argument-type]
