"""Compile a module's kernels into numba's cache, so that no other job has to.

A hundred processes that start at once on an empty cache would each compile for themselves.
"""

import numpy as np

from ictd.attention import Attention, AttentionEngine, enumerated_columns
from ictd.contexts import GramEngine
from ictd.environments import sample_tasks
from ictd.fused import FusedEngine, value_gradients
from ictd.gram import enumerated_gram
from ictd.sampling import Unrolls, sample_paths, unroll
from ictd.steps import run
from ictd.streams import generator
from ictd.weights import initial_weights


def main(module: str) -> None:
    """Run each kernel of "sampling", "fused", "contexts" or "attention" on a small task set."""
    rng = generator(0, "boyan", 3, "kernels")
    tasks = sample_tasks("boyan", 3, 2, rng)
    if module == "sampling":
        sample_paths(tasks, 3, rng)
        for batch_size in (4, 300):
            unroll(tasks, batch_size, 0.9, 2, rng)
    else:
        start = initial_weights(3, 0.1, rng)
        # Counts have two widths; only the fused engine takes them as they are.
        for count in (np.uint8, np.uint32):
            unrolls = Unrolls(np.full((2, 3), 3, count), np.ones((2, 3, 3), count), np.zeros((2, 3)))
            if module == "fused":
                FusedEngine(start, "td", 2, 0.9, 0.001, scaled=True).train(tasks, unrolls)
        if module == "fused":
            value_gradients(start, tasks, 0, 0.9, 2)
        elif module == "contexts":
            GramEngine(start, "td", 2, 0.9, 0.001, 1).train(tasks, unrolls, enumerated_gram(tasks, 0.9))
        else:
            columns = enumerated_columns(tasks, 0.9, tasks.reward)
            AttentionEngine(start, "td", 2, 0.9, 0.001, 1, Attention()).train(tasks, unrolls, columns)


if __name__ == "__main__":
    run(main)
