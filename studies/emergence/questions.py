"""Three questions about pretrained weights: how many tasks, which depths, and which discounts.

Runs are those of ``ictd.pretrain`` by TD on enumerated prompts, except that tasks are drawn from a fixed set, or that
each update has a random depth or a random discount.
"""

import itertools
from pathlib import Path

import numpy as np

from ictd.context import Context
from ictd.engine import Engine, compiled_estimates
from ictd.evaluation import draw_unseen_tasks
from ictd.mrp import TaskDistribution, Tasks, msve, sample_tasks, value_function
from ictd.pretraining import pretrain
from ictd.rng import generator
from ictd.storage import long_table, save_table, stacked
from ictd.transformer import Weights, initial_weights
from studies.emergence.symmetry import constant_factor, tasks_of

STREAM = "questions"


def main(
    env: str,
    states: int,
    depth: int,
    discount: float,
    counts: list[int],
    count_states: list[int],
    count_depths: list[int],
    depths: list[int],
    discounts: list[float],
    trained_depths: list[int],
    near_depths: list[int],
    trained_discounts: list[float],
    seeds: int,
    updates: int,
    test_tasks: int,
    diversity: Path,
    ranges: Path,
) -> None:
    """Write ``diversity``, errors by the number of different tasks, and ``ranges``, errors by depth and discount.

    In ``ranges``, runs are trained at ``depth`` and ``discount``, or at a depth or a discount that is uniform between
    two numbers in each update, and tested at each of ``depths``, and at each of ``discounts`` with the greatest of
    ``depths``.
    """
    parts = [
        number_of_tasks(env, *setting, discount, seed, updates, test_tasks)
        for setting in itertools.product(count_states, count_depths, counts)
        for seed in range(seeds)
    ]
    save_table(diversity, *parts)
    ways = {
        "fixed": ([depth] * 2, [discount] * 2),
        "depths": (trained_depths, [discount] * 2),
        "near depths": (near_depths, [discount] * 2),
        "discounts": ([depth] * 2, trained_discounts),
    }
    tests = [(layers, discount) for layers in depths] + [(max(depths), gamma) for gamma in discounts]
    parts = []
    for name, (between_depths, between_discounts) in ways.items():
        setting = env, states, between_depths, between_discounts, updates
        runs = [random_settings(*setting, seed) for seed in range(seeds)]
        weights = Weights(**stacked(runs, seeds))
        for layers, gamma in tests:
            data = draw_unseen_tasks(0, states, test_tasks, 1, gamma, env, STREAM)
            columns = summary(enumerated_errors(weights, data.tasks, gamma, layers))
            radius = spectral_radius(weights.A, data.tasks.transition, gamma)
            columns["expanding"] = (radius > 1).mean(axis=1)
            columns["constant"] = constant_factor(weights.A, gamma)
            names = {"env": env, "trained": name, "depth": layers, "discount": gamma}
            parts.append(long_table({"seed": np.arange(seeds)}, columns, **names))
    save_table(ranges, *parts)


def number_of_tasks(env, states, depth, count, discount, seed, updates, test_tasks) -> dict:
    """Errors on unseen tasks and on the ``count`` tasks of pretraining; 0 means that each update has a new task."""
    unseen = draw_unseen_tasks(0, states, test_tasks, 1, discount, env, STREAM).tasks
    seen = sample_tasks(env, states, count or test_tasks, generator(seed, env, states, STREAM))
    chains = TaskDistribution(some_of(seen) if count else env, states=states)
    model = pretrain(chains, depth, discount, updates=updates, seeds=[seed], progress=False)
    columns = summary(enumerated_errors(model.weights, unseen, discount, depth))
    columns["seen"] = enumerated_errors(model.weights, seen, discount, depth).mean(axis=1)
    return long_table({"seed": [seed]}, columns, env=env, states=states, depth=depth, tasks=count)


def some_of(tasks: Tasks):
    """An environment that draws its tasks from a fixed set, with replacement."""

    def some(states, size, rng):
        index = rng.integers(len(tasks), size=size)
        return tasks.transition[index], tasks.reward[index]

    return some


def random_settings(env, states, depths, discounts, updates, seed) -> Weights:
    """Weights of a run in which depth and discount are uniform between two numbers in each update."""
    rng = generator(seed, env, states, "settings")
    layers = rng.integers(*depths, updates, endpoint=True)
    gammas = rng.uniform(*discounts, updates)
    start = initial_weights(states, 0.1, generator(seed, env, states, "weights"))
    engine, estimates = Engine(start, max(depths), discounts[0], 0.001), np.empty((1, states))
    # With a discount of 1, the bootstrap of TD is the number of transitions.
    drawn = tasks_of(env, states, "td", 1.0, updates, seed)
    for layer, gamma, (transition, reward, visits, sums, transitions) in zip(
        layers.tolist(), gammas.tolist(), drawn, strict=True
    ):
        engine.depth, engine.discount = layer, gamma
        batch = reward, visits, sums, gamma * transitions
        engine.steps += engine.train_block(transition, None, batch, estimates)
    return engine.weights()


def enumerated_errors(weights: Weights, tasks: Tasks, discount: float, depth: int) -> np.ndarray:
    """MSVE (S, tasks) of S runs on enumerated prompts, infinite if it overflows."""
    value = value_function(tasks.transition, tasks.reward, discount)
    context = Context.enumerated(tasks.transition, tasks.reward)
    with np.errstate(all="ignore"):
        found = msve(tasks.stationary, value, estimates_of_runs(weights, context, discount, depth))
    return np.where(np.isnan(found), np.inf, found)


def estimates_of_runs(weights: Weights, context: Context, discount: float, depth: int) -> np.ndarray:
    """Estimates (S, N, n) of S runs on the same N contexts."""
    G = np.tile(context.gram_matrix(discount), (len(weights.u), 1, 1))
    return compiled_estimates(weights, G, depth).reshape(len(weights.u), -1, weights.dimension)


def summary(errors: np.ndarray) -> dict[str, np.ndarray]:
    """Mean and median (S,) over tasks."""
    return {"mean": errors.mean(axis=1), "median": np.median(errors, axis=1)}


def spectral_radius(A: np.ndarray, transition: np.ndarray, discount: float) -> np.ndarray:
    """Spectral radius (S, N) of a layer, I + X'A X / n, of weights A (S, 2n, 2n) on N tasks."""
    n = transition.shape[-1]
    X = np.concatenate([np.broadcast_to(np.eye(n), transition.shape), discount * transition.mT], axis=1)
    layer = np.eye(n) + X.mT @ A[:, None] @ X / n
    return np.abs(np.linalg.eigvals(layer)).max(axis=-1)
