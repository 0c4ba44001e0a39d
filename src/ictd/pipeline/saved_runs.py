"""Models that a finished run has pretrained."""

from pathlib import Path

import numpy as np

from ictd.checks import choice, instance, integer, validate
from ictd.gram import Model
from ictd.pipeline.storage import load_arrays
from ictd.weights import Weights


@validate(results=instance(str, Path), seed=integer(0))
def load_model(results: str | Path, run: str, seed: int) -> Model:
    """The Transformer that one seed of a run has pretrained, with its depth, discount and division of attention.

    ValueError for a folder that holds no runs, a run or a seed that is not there, a run that diverged, or a file that
    is damaged.

    Parameters
    ----------
    results : str or Path, the folder that snakemake wrote
    run : str, "algo-env-states-depth", such as "td-boyan-5-30"
    seed : int
    """
    folder = Path(results) / "weights"
    there = sorted(path.stem for path in folder.glob("[!.]*.npz"))
    if not there:
        raise ValueError(f"{results} holds no weights of runs; give the folder that snakemake wrote its results to.")
    path = folder / f"{choice(there)('run', run, {})}.npz"
    seeds, u, A, diverged_at = load_arrays(path, "seeds", "u", "A", "diverged_at")
    depth, discount, scaled = (array.item() for array in load_arrays(path, "depth", "discount", "scaled"))
    if seed not in seeds:
        raise ValueError(f"{run} has no seed {seed}; choose from {', '.join(map(str, sorted(seeds)))}.")
    at = np.flatnonzero(seeds == seed)[0]
    if diverged_at[at]:
        raise ValueError(f"{run} with seed {seed} diverged at task {diverged_at[at]}; choose another seed.")
    return Model(Weights(u[at], A[at]), depth, discount, scaled)
