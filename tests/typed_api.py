"""Calls of every public name, for the type checker of ``make lint``; the tests do not run them.

Types of results are asserted.  Lines with ``pyrefly: ignore`` are wrong calls that the type checker must reject; an
unused comment is an error.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any, assert_type

import numpy as np
import torch

import ictd
from ictd.pretraining import History


def tasks_and_values(p: np.ndarray, r: np.ndarray, rng: np.random.Generator) -> None:
    """Modules mrp and rng."""
    assert_type(ictd.generator(0, "boyan", 5, "tasks"), np.random.Generator)
    assert_type(ictd.Tasks([[0.9, 0.1], [0.2, 0.8]], reward=[1.0, 0.0]), ictd.Tasks)
    tasks = assert_type(ictd.Tasks(p, r, features=np.eye(5)), ictd.Tasks)
    assert_type(tasks[:10], ictd.Tasks)
    assert_type(tasks.transition, np.ndarray | Any)
    assert_type(tasks.stationary, np.ndarray | Any)
    assert_type(tasks.states, int)
    assert_type(ictd.sample_tasks("loop", states=5, size=100, rng=rng, threshold=0.4), ictd.Tasks)
    assert_type(ictd.stationary_distribution([[0.9, 0.1], [0.2, 0.8]]), np.ndarray)
    assert_type(ictd.value_function([[0.9, 0.1], [0.2, 0.8]], [1.0, 0.0], discount=0.9), np.ndarray)
    assert_type(ictd.msve(tasks.stationary, [0.0, 1.0], [0.5, 0.5]), np.ndarray)
    assert_type(ictd.__version__, str)
    assert_type(ictd.ENVIRONMENTS, dict[str, Callable[..., tuple[np.ndarray, np.ndarray]]])
    ictd.sample_tasks("loop", states="5", size=100, rng=rng)  # pyrefly: ignore[bad-argument-type]
    ictd.value_function(p, r)  # pyrefly: ignore[missing-argument]
    ictd.values  # pyrefly: ignore[missing-attribute]  # noqa: B018
    tasks.transition.size_of  # pyrefly: ignore[missing-attribute]  # noqa: B018


@ictd.register_environment("typed")
def environment(states: int, size: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Draw tasks with equal transition probabilities."""
    return np.full((size, states, states), 1 / states), rng.normal(size=(size, states))


def contexts(p: np.ndarray, r: np.ndarray, rng: np.random.Generator) -> None:
    """Modules prompt and sampling."""
    tasks = ictd.Tasks(p, r)
    paths = assert_type(ictd.sample_paths(tasks, steps=40, rng=rng), np.ndarray)
    assert_type(ictd.sample_steps(tasks, steps=40, rng=rng), tuple[np.ndarray, np.ndarray])
    context = assert_type(ictd.Context.from_trajectory([0, 1, 2, 0], [1.0, -1.0, 0.0], n=3), ictd.Context)
    assert_type(ictd.Context.from_transitions([0, 1], [1.0, -1.0], [1, 0], features=np.eye(2)), ictd.Context)
    assert_type(ictd.Context.from_features(np.eye(2), np.eye(2), [1.0, -1.0]), ictd.Context)
    assert_type(ictd.Context.enumerated(p, r), ictd.Context)
    assert_type(context.grouped().visits, np.ndarray)
    columns = assert_type(ictd.sampled_columns(paths, r, discount=0.9), np.ndarray)
    assert_type(ictd.enumerated_columns(p, r, discount=0.9), np.ndarray)
    assert_type(ictd.prompts_of(columns), np.ndarray)
    assert_type(ictd.joint_prompt(columns), np.ndarray)
    ictd.Context.from_trajectory([0, 1, 0], [1.0, -1.0], states=2)  # pyrefly: ignore[bad-keyword-argument]


def baselines(context: ictd.Context) -> None:
    """Module baselines."""
    assert_type(ictd.lstd(context, discount=0.9, ridge=0.01), np.ndarray)
    assert_type(ictd.batch_td(context, discount=0.9, step_size=[1.0, 2.0], depth=30), np.ndarray)
    assert_type(ictd.certainty_equivalence(context, discount=0.9), np.ndarray)
    assert_type(ictd.constant_estimate(context, discount=0.9), np.ndarray)
    assert_type(ictd.td_lambda([0, 1, 0], [1.0, -1.0], 0.9, decay=0.8, step_size=0.1, n=2), np.ndarray)
    assert_type(ictd.lstd_lambda([0, 1, 0], [1.0, -1.0], 0.9, decay=0.8, ridge=0.01, n=2), np.ndarray)
    assert_type(ictd.theta_preconditioned_td(np.eye(2)), ictd.Weights)
    ictd.lstd(np.eye(3), discount=0.9, ridge=0.01)  # pyrefly: ignore[bad-argument-type]


def models(context: ictd.Context, rng: np.random.Generator) -> None:
    """Modules transformer, weight_measures, training_data, pretraining, torch_twin and attention."""
    start = assert_type(ictd.initial_weights(5, gain=0.1, rng=rng), ictd.Weights)
    assert_type(ictd.Weights(start.u, 2.0 * ictd.theta_td(5).A).P(), np.ndarray)
    tasks = ictd.sample_tasks(environment, states=5, size=100, rng=rng)
    batches = assert_type(ictd.unroll(tasks, 64, 0.9, 200, rng), ictd.BatchStatistics)
    history = ictd.pretrain_history(tasks, batches, "td", depth=10, discount=0.9, learning_rate=0.001, start=start)
    assert_type(history, History)
    assert_type(history.weights[-1], ictd.Weights)
    distribution = ictd.TaskDistribution("boyan", states=5, features=3)
    for prompts in (ictd.EnumeratedPrompts(), ictd.SampledPrompts(5, 100)):
        model = ictd.pretrain(distribution, depth=10, discount=0.9, prompts=prompts, target="td", seeds=range(3))
        assert_type(model, ictd.Model)
        assert_type(model[0].values(context, queries=np.eye(5)), np.ndarray)
        model.save("mine.npz")
        assert_type(model.to_torch(), ictd.LinearTransformer)
    assert_type(ictd.cosine_to_theta_td(start), np.ndarray)
    assert_type(ictd.load_model(Path("results"), "td-boyan-5-30", seed=0), ictd.Model)
    transformer = assert_type(ictd.LinearTransformer(start, depth=10), ictd.LinearTransformer)
    assert_type(transformer.P(), torch.Tensor)
    output: Any = transformer(np.eye(5), queries=5)
    assert_type(output, Any)
    attention = ictd.GramAttention(5, depth=3, seeds=2)
    assert_type(attention.matrices(0), tuple[torch.Tensor, torch.Tensor])
    assert_type(ictd.pretrain_attention(attention, distribution, discount=0.9, seeds=[0, 1]), torch.nn.Module)
    ictd.pretrain(tasks, depth=10, discount=0.9)  # pyrefly: ignore[bad-argument-type]
    ictd.theta_td("5")  # pyrefly: ignore[bad-argument-type]
