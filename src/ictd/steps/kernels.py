"""Compile the kernels into numba's cache, so that no other job has to.

A hundred processes that start at once on an empty cache would each compile for themselves.
"""

from ictd.environments import sample_tasks
from ictd.fused import FusedEngine
from ictd.sampling import sample_paths, unroll
from ictd.steps import run
from ictd.streams import generator
from ictd.weights import initial_weights


def main(batch_size: int) -> None:
    """Run each kernel once on a small task set, on counts as wide as the batch size needs."""
    rng = generator(0, "boyan", 3, "kernels")
    tasks = sample_tasks("boyan", 3, 2, rng)
    sample_paths(tasks, 3, rng)
    unrolls = unroll(tasks, batch_size, 0.9, 2, rng)
    start = initial_weights(3, 0.1, rng)
    FusedEngine(start, "td", 2, 0.9, 0.001, scaled=True).train(tasks, unrolls)


if __name__ == "__main__":
    run(main)
