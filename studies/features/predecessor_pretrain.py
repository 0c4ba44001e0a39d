"""Pretrain a variant of the predecessor's setting, and measure it on unseen tasks along the way."""

from pathlib import Path

import numpy as np

from ictd.mrp import Tasks
from ictd.rng import generator
from ictd.storage import save_arrays
from studies.features.predecessor import (
    Batches,
    draw_paths,
    draw_tasks,
    enumerated_batches,
    enumerated_rows,
    initial_matrices,
    metrics,
    sampled_batches,
    sampled_rows,
    td_matrices,
    value_error,
)
from studies.features.predecessor_engine import Engine, StepSize, implicit_weights

MEASURES = ("step_size", "value_difference", "similarity", "msve", "td_msve", "zero_msve")


def main(
    variant: dict,
    length: int,
    batch: int,
    discount: float,
    learning_rate: float,
    snapshots: int,
    test_tasks: int,
    output: Path,
) -> None:
    """Write P and Q, the task at which each run diverged (0 if none), and the measures at snapshots.

    After a divergence P, Q and measures are NaN.  MSVEs are medians over the unseen tasks, because the errors of some
    tasks are very large; the predecessor's metrics are means.
    """
    setting = Setting(variant, length, batch, discount, learning_rate)
    tasks_seen = np.unique(np.linspace(0, variant["tasks"], snapshots + 1).round().astype(int)[1:])
    runs = [setting.pretrain(seed, tasks_seen, test_tasks) for seed in range(variant["seeds"])]
    matrices, diverged_at, measures = (np.stack(arrays) for arrays in zip(*runs, strict=True))
    save_arrays(
        output, tasks_seen=tasks_seen, P=matrices[:, :, 0], Q=matrices[:, :, 1], diverged_at=diverged_at,
        **dict(zip(MEASURES, np.moveaxis(measures, -1, 0), strict=True)),
    )  # fmt: skip


class Setting:
    """A variant with the settings that all variants share; parameters are those of ``main``."""

    def __init__(self, variant: dict, length: int, batch: int, discount: float, learning_rate: float):
        self.variant, self.batch, self.discount, self.learning_rate = variant, batch, discount, learning_rate
        self.sampled = variant["prompts"] == "sampled"
        self.one_hot = variant["features"] == "one_hot"
        self.length = length if self.sampled else variant["states"]

    def generator(self, seed: int, purpose: str) -> np.random.Generator:
        """The random stream for a purpose; variants with the same tasks have the same streams."""
        name = f"boyan-{self.variant['features']}-{self.variant['dimension']}"
        return generator(seed, name, self.variant["states"], f"predecessor {purpose}")

    def draw(self, size: int, batches: int, seed: int, purpose: str) -> tuple[Tasks, np.ndarray]:
        """Draw tasks, and trajectories as long as prompts and batches need."""
        variant, rng = self.variant, self.generator(seed, purpose)
        tasks, start = draw_tasks(size, variant["states"], variant["dimension"], self.one_hot, rng)
        steps = self.batch + (self.length + 1 if self.sampled else 0)
        return tasks, draw_paths(tasks, start, batches, steps, rng)

    def batches(self, tasks: Tasks, paths: np.ndarray) -> Batches:
        """Batches of prompts."""
        if self.sampled:
            return sampled_batches(tasks, paths, self.length, self.discount)
        return enumerated_batches(tasks, paths, self.discount)

    def engine(self, seed: int) -> Engine:
        """The engine, with initial P and Q."""
        variant = self.variant
        layers = variant["depth"] if variant["layers"] == "separate" else 1
        rng = self.generator(seed, "weights")
        P, Q = initial_matrices(variant["dimension"], layers, variant["gain"] / layers, rng)
        trained = np.ones((2, 1, *P.shape[1:]))
        if variant["trained"] == "theta":
            # u, the last row of P but for its corner, and A, the block of Q.
            trained[:] = 0
            trained[0, :, -1, :-1] = 1
            trained[1, :, :-1, :-1] = 1
            P, Q = P * trained[0], Q * trained[1]
        if variant["trained"] == "theta" or variant["corner"] == "one":
            P[:, -1, -1] = 1
        return Engine(
            P, Q, variant["depth"], self.length, self.discount, self.learning_rate, variant["decay"], variant["clip"],
            trained,
        )  # fmt: skip

    def pretrain(self, seed: int, tasks_seen: np.ndarray, test_tasks: int) -> tuple[np.ndarray, int, np.ndarray]:
        """Pretrain one run.

        Returns
        -------
        matrices : (T, 2, K, D, D) array, P and Q at T snapshots
        diverged_at : int
            Number, from 1, of the first task with an estimate that is not finite; 0 if there is none.
        measures : (T, 6) array of ``MEASURES``
        """
        variant = self.variant
        engine = self.engine(seed)
        options = self.length, self.discount, self.learning_rate, variant["decay"]
        step_size = StepSize(variant["dimension"], variant["depth"], *options)
        tasks, paths = self.draw(variant["tasks"], variant["batches"], seed, "tasks")
        # The same unseen tasks for all seeds.
        unseen, unseen_paths = self.draw(test_tasks, 1, 0, "unseen tasks")
        matrices = np.full((len(tasks_seen), *engine.shape), np.nan)
        measures = np.full((len(tasks_seen), len(MEASURES)), np.nan)
        for k, (first, last) in enumerate(zip([0, *tasks_seen[:-1]], tasks_seen, strict=True)):
            block = self.batches(tasks[first:last], paths[first:last])
            updates = engine.train(block.columns, block.queries, block.rewards)
            if updates < len(block.rewards):
                return matrices, int(first + updates // variant["batches"] + 1), measures
            step_size.train(block.columns, block.queries, block.rewards)
            matrices[k] = engine.matrices()
            measures[k] = self.measure(matrices[k], step_size.value(), unseen, unseen_paths)
        return matrices, 0, measures

    def measure(self, matrices: np.ndarray, step_size: float, tasks: Tasks, paths: np.ndarray) -> list[float]:
        """Compute ``MEASURES`` on unseen tasks."""
        depth, dimension = self.variant["depth"], self.variant["dimension"]
        if self.sampled:
            rows = sampled_rows(tasks, paths[:, :, : self.length + 1], self.discount)[:, 0]
        else:
            rows = enumerated_rows(tasks, self.discount)
        grams = rows.mT @ rows / self.length
        P_td, Q_td = td_matrices(dimension, step_size)
        with np.errstate(over="ignore", invalid="ignore"):
            w = implicit_weights(*matrices, grams, depth)
            td = implicit_weights(P_td[None], Q_td[None], grams, depth)
            found = metrics(w, td, tasks)
            errors = [np.median(value_error(weights, tasks, self.discount)) for weights in (w, td, np.zeros_like(w))]
            return [step_size, found["value_difference"].mean(), found["similarity"].mean(), *errors]
