"""The weights that carry out policy evaluation in the limit: an open set of them, of which theta^TD is one point.

On enumerated prompts, with u = 0 and A = K [-I, I], K = [G; H], eq. (Yl dissection) is Y_{l+1} = Y_l B with

    B = I - (G + gamma P H) (I - gamma P'),    TF_L = v' - r' B^L (I - gamma P')^{-1}

for all query states at once.  So where c = ||B||_1 < 1 for every P, |v - TF_L| <= c^L ||r||_inf / (1 - gamma), and J
and J' vanish too, as the gradient grows with L no faster than L^2.  theta^TD is G = I, H = 0, where B = gamma P'.  With
N [I, I] added the limit is v if and only if gamma X'N P' = 0, that is if N is what no prompt sees.  docs/theory.md has
the proof.
"""

from pathlib import Path

import numpy as np

from ictd.anatomy import preconditioned_td
from ictd.mrp import Tasks, sample_tasks
from ictd.rng import generator
from ictd.storage import save_arrays
from ictd.theory.embeddings import ALGOS, Embeddings, embeddings
from ictd.theory.neu import expected_updates, norm
from ictd.transformer import Weights

# Random members of the family, and depths, log-spaced, at which their expected updates are taken.
DRAWS = 5
DEPTHS = 12
# What errors are of, along their first axis: members of the family, and the same with N [I, I] added.
MEMBERS = ("inside", "beyond")
# What rounding may add to an error, over the largest value.
ROUNDING = 1e-12


def depths_of_updates(depth: int) -> np.ndarray:
    """Depths (K,) at which expected updates are taken, up to ``depth``."""
    return np.unique(np.geomspace(1, depth, DEPTHS).round().astype(int))


def contraction(discount: float) -> float:
    """c of the members that are drawn, half way from theta^TD's, gamma, to 1."""
    return (1 + discount) / 2


def main(
    env: str, states: int, pretrained_tasks: int, update_depth: int, discount: float, env_options: dict, output: Path
) -> None:
    """Write, for random members of the family and for the same with N [I, I] added, the largest error over tasks and
    query states at each layer, over the largest value; the members' bound on it; at how many layers they exceed it; and
    J and J' at some depths."""
    sampled = sample_tasks(env, states, pretrained_tasks, generator(0, env, states, "theory"), **env_options)
    rng, depths = generator(0, env, states, "family"), depths_of_updates(update_depth)
    errors, updates, violations = np.empty((2, DRAWS, update_depth + 1)), np.empty((2, DRAWS, len(depths))), []
    bound = contraction(discount) ** np.arange(update_depth + 1) * np.abs(sampled.reward).max() / (1 - discount)
    for i in range(DRAWS):
        K, N = member(sampled, discount, rng), rng.normal(size=(2 * states, states))
        N *= np.linalg.norm(K - identity(states)) / np.linalg.norm(N)
        inside, beyond = (
            embeddings(Weights(np.zeros(2 * states), A), sampled, discount, update_depth)
            for A in (preconditioned_td(K), preconditioned_td(K) + np.concatenate([N, N], axis=-1))
        )
        largest = np.abs(inside.value).max()
        errors[:, i] = [largest_error(rows) / largest for rows in (inside, beyond)]
        violations.append((largest_error(inside) > bound + ROUNDING * largest).sum())
        for j, algo in enumerate(ALGOS):
            expected = inside.expected_errors(algo)
            sums = (expected_updates(inside, expected[:, L], L).sum(axis=1) for L in depths)
            updates[j, i] = [norm(one) for one in sums]
    save_arrays(
        output, errors=errors, bound=bound / largest, violations=np.array(violations), depths=depths, updates=updates
    )  # fmt: skip


def identity(states: int) -> np.ndarray:
    """K of theta^TD, [I; 0]."""
    return np.eye(2 * states, states)


def member(tasks: Tasks, discount: float, rng: np.random.Generator) -> np.ndarray:
    """K (2n, n) of a random member of the family, for which ||B||_1 is at most ``contraction`` on all the tasks."""
    P, n = tasks.transition, tasks.states
    E = rng.normal(size=(2 * n, n))
    change = (E[:n] + discount * P @ E[n:]) @ (np.eye(n) - discount * P.mT)
    most = np.abs(change).sum(axis=-2).max()
    return identity(n) + (contraction(discount) - discount) / most * E


def largest_error(rows: Embeddings) -> np.ndarray:
    """max |v - TF_l| over tasks and query states, (L+1,)."""
    return np.abs(rows.mc_errors).max(axis=(0, 2))
