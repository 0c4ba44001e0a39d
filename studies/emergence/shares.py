"""Measure the share of a few numbers in the pretrained weights of a cell, and the effect of the rest."""

from pathlib import Path

import numpy as np

from ictd.evaluation import UnseenTasks, draw_unseen_tasks
from ictd.mrp import sample_tasks
from ictd.pipeline.grid import Cell
from ictd.prompt import ENUMERATED
from ictd.rng import generator
from ictd.storage import long_table, save_table
from ictd.transformer import Weights, estimates, preconditioned_td
from ictd.weight_measures import (
    decomposition_measures,
    preconditioner,
    project_identifiable,
    shortest_identifiable,
    squared_norm,
)
from studies.emergence.few_numbers import (
    IN_FAMILY,
    SETS,
    basis,
    nearest,
    number_measures,
    rank_one_part,
    share,
)
from studies.emergence.runs import SEED, load_finite_runs

# Number of random directions, of random orders of the states, and of random matrices in an average.
DRAWS = 5


def main(
    algo: str,
    env: str,
    states: int,
    depth: int,
    discount: float,
    scaled_attention: bool,
    evaluation_env: str,
    env_options: dict,
    tasks: int,
    weights: Path,
    measures: Path,
    exchanged: Path,
) -> None:
    """Write ``measures``, a row for each run, and ``exchanged``, a row for each run and exchange of the rest of A.

    The MSVE is on enumerated prompts of unseen tasks.
    """
    seeds, runs = load_finite_runs([weights])
    if not len(seeds):
        raise ValueError(f"All runs of {weights.stem} diverged, so none can be measured; choose other settings.")
    cell = Cell(algo, env, states, depth)._asdict()
    options = env_options[evaluation_env]
    data = draw_unseen_tasks(SEED, states, tasks, 1, discount, evaluation_env, "ablation", **options)
    own = sample_tasks(env, states, tasks, generator(SEED, env, states, "mean task"), **env_options[env])
    columns = decomposition_measures(runs, discount, scaled_attention)
    columns |= number_measures(runs, discount, scaled_attention)
    columns |= shares(runs.A, own.stationary.mean(axis=0), discount)
    columns["unstable"] = unstable_tasks(runs, data, scaled_attention)
    save_table(measures, long_table({"seed": seeds}, columns, **cell))
    variants = exchanges(project_identifiable(runs, discount).A, discount)
    columns = {"mean": [], "median": []}
    for drawn in variants.values():
        errors = np.array([msve(A, data, depth, scaled_attention) for A in drawn])  # (draws, S, tasks)
        columns["mean"].append(errors.mean(axis=(0, 2)))
        columns["median"].append(np.median(errors, axis=2).mean(axis=0))
    columns = {name: np.array(column) for name, column in columns.items()}
    save_table(exchanged, long_table({"rest": np.array(list(variants)), "seed": seeds}, columns, **cell))


def shares(A: np.ndarray, mean_stationary: np.ndarray, discount: float) -> dict[str, np.ndarray]:
    """Shares of a few numbers in the squared norm of A (S, 2n, 2n), without directions that change no output.

    Parameters
    ----------
    A : (S, 2n, 2n) array
    mean_stationary : (n,) array, the mean stationary distribution mu of tasks
    discount : float, gamma

    Returns
    -------
    dict of (S,) arrays
        family_1, family_2, family_3 : shares of 1, 2 and 3 numbers in the family part K [-I, I]
        all_1, ..., all_4 : shares of each of SETS in A
        ones_mu, mu_ones, best_rank_one, random_rank_one : shares in the family part of alpha I and of a matrix in
            place of 11': 1 mu', mu 1', the best matrix of rank one, and random matrices of rank one
    """
    n = A.shape[-1] // 2
    family = preconditioned_td(preconditioner(A))
    found = {f"family_{count}": share(family, basis(count, n), discount) for count in IN_FAMILY}
    found |= {f"all_{count}": share(A, basis(count, n), discount) for count in SETS}
    ones, rng = np.ones(n), np.random.default_rng(0)
    found["ones_mu"] = share(family, with_rank_one(ones, mean_stationary), discount)
    found["mu_ones"] = share(family, with_rank_one(mean_stationary, ones), discount)
    best = []
    for run in project_identifiable(Weights(np.zeros(A.shape[:-1]), family), discount).A:
        _, left, right = rank_one_part(preconditioner(run)[:n])
        best.append(share(run, with_rank_one(left[:, 0], right[:, 0]), discount))
    found["best_rank_one"] = np.array(best)
    random = [share(family, with_rank_one(*rng.normal(size=(2, n))), discount) for _ in range(DRAWS)]
    found["random_rank_one"] = np.mean(random, axis=0)
    return found


def with_rank_one(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """The directions (2, 2n, 2n) of alpha I and of left right' in G."""
    G = np.outer(left, right)
    return np.stack([basis(1, len(left))[0], preconditioned_td(np.vstack([G, 0 * G]))])


def unstable_tasks(weights: Weights, data: UnseenTasks, scaled: bool) -> np.ndarray:
    """Share (S,) of the tasks on whose enumerated prompt the iteration of the layers has a spectral radius above 1.

    A M and X' A X / n have the same nonzero eigenvalues, so I + A M and a layer have the same eigenvalues other than 1.
    """
    n = weights.dimension
    X = data.columns(ENUMERATED)[:, :-1]  # (tasks, 2n, n)
    scale = 1 / n if scaled else 1.0
    layers = [np.eye(n) + scale * X.mT @ A @ X for A in weights.A]
    return np.array([(np.abs(np.linalg.eigvals(layer)).max(axis=-1) > 1).mean() for layer in layers])


def exchanges(A: np.ndarray, discount: float) -> dict[str, list[np.ndarray]]:
    """Exchange the rest of A beyond alpha I + beta 11' in G.

    Parameters
    ----------
    A : (S, 2n, 2n) array, identifiable parts of S runs
    discount : float, gamma

    Returns
    -------
    dict of lists of DRAWS (S, 2n, 2n) arrays, or of one array if nothing is sampled
        own : all of A
        none : only alpha I + beta 11'
        other_seed : with the rest of the next run
        permuted : with the same rest, its states in a random order
        random : with a random matrix of the same norm
    """
    n = A.shape[-1] // 2
    rng = np.random.default_rng(0)
    A = shortest_identifiable(A, discount)
    two = nearest(A, basis(2, n), discount)
    rest = A - two
    permuted, random = [], []
    for _ in range(DRAWS):
        order = rng.permutation(n)
        while (order == np.arange(n)).all():
            order = rng.permutation(n)
        index = np.concatenate([order, order + n])
        permuted.append(two + rest[:, index[:, None], index])
        noise = shortest_identifiable(rng.normal(size=A.shape), discount)
        random.append(two + noise * np.sqrt(squared_norm(rest) / squared_norm(noise))[:, None, None])
    return {
        "own": [A],
        "none": [two],
        "other_seed": [two + np.roll(rest, -1, axis=0)],
        "permuted": permuted,
        "random": random,
    }


def msve(A: np.ndarray, data: UnseenTasks, depth: int, scaled: bool) -> np.ndarray:
    """MSVE (S, tasks) of weights without u on enumerated prompts."""
    weights = Weights(np.zeros(A.shape[:-1]), A)
    with np.errstate(over="ignore", invalid="ignore"):
        return data.error(estimates(weights, data.gram_matrix(ENUMERATED, scaled), depth))
