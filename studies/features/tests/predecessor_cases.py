"""Small cases in which our engine and the predecessor's public code train on the same tasks."""

from dataclasses import dataclass

import numpy as np

from ictd.mrp import Tasks
from studies.features.predecessor import draw_paths, draw_tasks, initial_matrices


@dataclass(frozen=True)
class Case:
    """Settings of a case; ``mode`` and ``loss`` are the predecessor's words."""

    mode: str = "auto"
    loss: str = "mstde"
    depth: int = 3
    states: int = 10
    dimension: int = 4
    length: int = 30
    batch: int = 64
    batches: int = 5
    tasks: int = 40
    interval: int = 10
    discount: float = 0.9
    learning_rate: float = 0.001
    decay: float = 1e-6
    cycle: bool = False

    @property
    def layers(self) -> int:
        """Number of layers with parameters of their own."""
        return self.depth if self.mode == "sequential" else 1

    def data(self) -> tuple[Tasks, np.ndarray, np.ndarray]:
        """Tasks, trajectories with one more batch than pretraining uses, and initial P and Q."""
        rng = np.random.default_rng(0)
        tasks, start = draw_tasks(self.tasks, self.states, self.dimension, False, rng)
        if self.cycle:
            # Returns of a deterministic cycle need no random numbers.
            following = np.roll(np.eye(self.states), 1, axis=1)
            tasks = Tasks(np.tile(following, (self.tasks, 1, 1)), tasks.reward, features=tasks.features)
        paths = draw_paths(tasks, start, self.batches + 1, self.length + self.batch + 1, rng)
        return tasks, paths, initial_matrices(self.dimension, self.layers, 1.0 / self.layers, rng)


CASES = {
    "auto 1": Case(depth=1),
    "auto 3": Case(tasks=100, interval=20),
    "auto 4": Case(depth=4),
    "sequential 3": Case(mode="sequential"),
    "sequential 2": Case(mode="sequential", depth=2),
    "other sizes": Case(states=5, dimension=2, length=7, batch=9, batches=2, discount=0.7, decay=1e-2),
    "true values": Case(loss="msve_true", tasks=20),
    "returns": Case(loss="msve_mc", tasks=20, cycle=True),
}


def is_deterministic(transition: np.ndarray) -> bool:
    """Whether each state has one successor."""
    return bool((transition.max(axis=-1) == 1).all())


def numbers(
    tasks: int, P: np.ndarray, Q: np.ndarray, step_size: float, value_difference: float, sensitivity: float,
    implicit_weights: float,
) -> list[tuple[int, str, float]]:  # fmt: skip
    """Rows of the table for one time: all parameters by their sums with fixed weights, and the metrics."""
    rows = [(tasks, "step size", step_size)]
    for name, matrix in (("P", P), ("Q", Q)):
        flat = matrix.ravel()
        rows += [
            (tasks, f"norm of {name}", np.linalg.norm(flat)),
            (tasks, f"weighted sum of {name}", flat @ np.cos(np.arange(len(flat)))),
        ]
    return [
        *rows,
        (tasks, "value difference", value_difference),
        (tasks, "sensitivity similarity", sensitivity),
        (tasks, "implicit weight similarity", implicit_weights),
    ]
