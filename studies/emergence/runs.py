"""Weights of pretrained runs, and the seed of the unseen tasks on which steps measure them."""

from pathlib import Path

import numpy as np

from ictd.storage import join_arrays
from ictd.transformer import Weights

# Seed of the unseen tasks, which are the same for all models.
SEED = 0


def load_runs(files: list[Path]) -> tuple[np.ndarray, Weights]:
    """Load the seeds (S,) and the weights (S,) or (S, snapshots) of the runs of all files."""
    seeds, u, A = join_arrays(files, "seeds", "u", "A")
    return seeds, Weights(u, A)


def load_finite_runs(files: list[Path]) -> tuple[np.ndarray, Weights]:
    """Load the runs that did not diverge, as ``load_runs``."""
    seeds, weights = load_runs(files)
    finite = np.array([np.isfinite(A).all() for A in weights.A], dtype=bool)
    return seeds[finite], weights[finite]
