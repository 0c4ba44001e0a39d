"""Measure the share of a few numbers in the pretrained weights of a cell."""

from pathlib import Path

import numpy as np

from ictd.evaluation import draw_unseen_tasks
from ictd.pipeline.grid import Cell
from ictd.prompt import ENUMERATED
from ictd.storage import load_arrays, long_table, save_table
from ictd.transformer import Weights, estimates, preconditioned_td
from ictd.weight_measures import preconditioner, project_identifiable, shortest_identifiable
from studies.emergence.few_numbers import basis, nearest, nearest_numbers, share, without_u

# Number of random matrices of rank one in an average.
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
    output: Path,
) -> None:
    """Write a row for each run that did not diverge: ``measures``, and MSVEs on enumerated prompts of unseen tasks.

    ``msve`` is the mean MSVE of A without u, and ``msve_2`` that of the nearest two numbers.
    """
    seeds, u, A = load_arrays(weights, "seeds", "u", "A")
    finite = np.isfinite(A).all(axis=(1, 2))
    if not finite.any():
        raise ValueError(f"All runs of {weights.stem} diverged, so none can be measured; choose other settings.")
    A = project_identifiable(Weights(u[finite], A[finite]), discount).A
    columns = measures(A, discount, scaled_attention)
    options = env_options[evaluation_env]
    data = draw_unseen_tasks(0, states, tasks, 1, discount, evaluation_env, "ablation", **options)
    gram = data.gram_matrix(ENUMERATED, scaled_attention)
    compared = {"msve": shortest_identifiable(A, discount), "msve_2": nearest(A, basis(2, states), discount)}
    for name, matrices in compared.items():
        with np.errstate(over="ignore", invalid="ignore"):
            columns[name] = data.error(estimates(without_u(matrices), gram, depth)).mean(axis=-1)
    cell = Cell(algo, env, states, depth)._asdict()
    save_table(output, long_table({"seed": seeds[finite]}, columns, **cell))


def measures(A: np.ndarray, discount: float, scaled: bool) -> dict[str, np.ndarray]:
    """The two numbers of A (S, 2n, 2n), and shares of a few numbers in squared norms.

    Returns
    -------
    dict of (S,) arrays
        identity, ones : alpha and beta, divided by n if attention is divided by the context length
        family_1, family_2 : shares of one and two numbers in the family part K [-I, I]
        random : share of alpha I and a random matrix of rank one in the family part, on average
        all_2, all_4, all_8 : shares of two, four and eight numbers in all of A
    """
    n = A.shape[-1] // 2
    family = preconditioned_td(preconditioner(A))
    numbers = nearest_numbers(family, basis(2, n), discount) / (n if scaled else 1)
    rng, random = np.random.default_rng(0), []
    for _ in range(DRAWS):
        G = np.outer(*rng.normal(size=(2, n)))
        second = preconditioned_td(np.vstack([G, np.zeros((n, n))]))
        random.append(share(family, np.stack([*basis(1, n), second]), discount))
    return {
        "identity": numbers[:, 0],
        "ones": numbers[:, 1],
        **{f"family_{count}": share(family, basis(count, n), discount) for count in (1, 2)},
        "random": np.mean(random, axis=0),
        **{f"all_{count}": share(A, basis(count, n), discount) for count in (2, 4, 8)},
    }
