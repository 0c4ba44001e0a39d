"""Compile the kernels for the types that the workflow uses, so that they stand in numba's cache.

Many processes that start at once on an empty cache would each compile, which is slow but harmless; where the cache
cannot be written, each would compile every time.
"""

from ictd.environments import sample_tasks
from ictd.pretraining import pretrain
from ictd.sampling import sample_paths, unroll
from ictd.streams import generator
from ictd.weights import initial_weights


def main() -> None:
    """Run each kernel once on a small task set, with counts of both widths."""
    rng = generator(0, "boyan", 3, "compile")
    tasks = sample_tasks("boyan", 3, 2, rng)
    sample_paths(tasks, 3, rng)
    start = initial_weights(3, 0.1, rng)
    for batch_size in (4, 300):
        unrolls = unroll(tasks, batch_size, 0.9, 2, rng)
        pretrain(tasks, unrolls, "td", 2, 0.9, 0.001, start.u, start.A)


if __name__ == "__main__":
    main()
