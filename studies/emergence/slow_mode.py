"""Pretrain on tasks whose slow mode is not constant, and measure the leading direction of the weights.

For a stochastic matrix P the slow mode of TD is always constant: P 1 = 1.  With a discount gamma c(s) that depends on
the state, the slow mode is the right Perron vector x of C P, with C = diag(c).  If states form two blocks with rare
steps between them, there are two slow modes, 1 and the difference of the blocks.

For A = [G; 0] [-I, I], an update is w <- w + G' (mean TD errors).  To shrink errors along x, G needs a term y x', where
y weighs TD errors.  So x belongs on the right of G.
"""

import itertools
from pathlib import Path

import numpy as np

from ictd.engine import Engine
from ictd.mrp import Tasks, boyan
from ictd.rng import generator
from ictd.sampling import BatchStatistics, unroll
from ictd.storage import save_table
from ictd.transformer import estimates, initial_weights, preconditioned_td
from ictd.weight_measures import preconditioner, project_identifiable
from studies.emergence.few_numbers import basis, least_squares, rank_one_part, weights_at

# Smallest continuation c, and the probability to leave a block.
SMALLEST, CROSSING = 0.5, 0.02
# Number of tasks for mean Perron vectors and the best directions; the same number is used for evaluation.
MEASURED_ON = 500
# Starts of the best numbers, for directions of norm 1.
STARTS = ([4.0, 0.0, 0.0], [4.0, 8.0, 0.0], [4.0, 20.0, 2.0])
COLUMNS = (
    "design",
    "seed",
    "identity",
    "slow",
    "ones",
    "slow_left",
    "ones_left",
    "excess",
    "best_split",
    "other_split",
)
BEST_COLUMNS = ("design", "direction", "depth", "mean", "median")


def main(
    design: str,
    states: int,
    depth: int,
    seeds: int,
    tasks: int,
    depths: list[int],
    discount: float,
    batch_size: int,
    learning_rate: float,
    initial_gain: float,
    trained: Path,
    best: Path,
) -> None:
    """Write ``trained``, a row for each seed, and ``best``, a row for each direction of rank one and number of layers.

    ``slow`` and ``ones`` are the absolute cosines of the right singular vector of the rank-one part of G - alpha I to
    the slow mode and to constants; ``excess`` is the statistic of the claim.  ``excess`` is slow - ones, except for the
    design "blocks".  There it is the share of the difference of the blocks in the two leading right singular vectors,
    minus the largest share of the difference of any other split of the states into halves.
    """
    if design == "blocks":
        states += states % 2
    rows = [trained_row(design, states, depth, seed, tasks, discount, batch_size, learning_rate, initial_gain)
            for seed in range(seeds)]  # fmt: skip
    save_table(trained, dict(zip(COLUMNS, zip(*rows, strict=True), strict=True)))
    rows = best_rows(design, states, depths, discount)
    save_table(best, dict(zip(BEST_COLUMNS, zip(*rows, strict=True), strict=True)))


def continuation(design: str, states: int) -> np.ndarray:
    """The factors c (n,) of the discount."""
    ends = {"constant": (1, 1), "falling": (1, SMALLEST), "rising": (SMALLEST, 1), "blocks": (1, 1)}[design]
    return np.linspace(*ends, states)


def draw_tasks(design: str, states: int, size: int, rng: np.random.Generator) -> Tasks:
    """Boyan's chains, or random chains of two halves for "blocks"; a step leaves its half with probability CROSSING."""
    if design != "blocks":
        return Tasks(*boyan(states, size, rng))
    half = np.arange(states) < states // 2
    same = half[:, None] == half
    inner, outer = (rng.uniform(size=(size, states, states)) * mask for mask in (same, ~same))
    rows = [(1 - CROSSING) * inner / inner.sum(axis=-1, keepdims=True)]
    rows.append(CROSSING * outer / outer.sum(axis=-1, keepdims=True))
    return Tasks(sum(rows), rng.uniform(-1, 1, (size, states)))


def perron_vectors(matrices: np.ndarray) -> np.ndarray:
    """Right Perron vectors (N, n) of non-negative matrices (N, n, n), of norm 1."""
    eigenvalues, vectors = np.linalg.eig(matrices)
    greatest = eigenvalues.real.argmax(axis=-1)
    perron = np.abs(np.take_along_axis(vectors, greatest[:, None, None], axis=-1)[..., 0])
    return perron / np.linalg.norm(perron, axis=-1, keepdims=True)


def trained_row(
    design: str, states: int, depth: int, seed: int, size: int, discount: float, batch_size: int,
    learning_rate: float, initial_gain: float,
) -> tuple:  # fmt: skip
    """Pretrain one run by multi-task TD with all of u and A, and compare its direction with the slow mode."""
    rng = generator(seed, "boyan", states, f"slow mode {design}")
    tasks, c = draw_tasks(design, states, size, rng), continuation(design, states)
    batches = unroll(tasks, batch_size, discount, 1, rng)
    scaled = BatchStatistics.unchecked(
        visits=batches.visits, transitions=c[:, None] * batches.transitions, return_sums=batches.return_sums
    )
    start = initial_weights(states, initial_gain, generator(seed, "boyan", states, "weights"))
    engine = Engine(start, "td", depth, discount, learning_rate)
    _, done = engine.train(tasks.reward, scaled, c[:, None] * tasks.transition)
    if done < size:
        raise ValueError(f"The run on the design {design} with seed {seed} diverged; choose other settings.")
    A = project_identifiable(engine.weights(), discount * c).A
    alpha, left, right = rank_one_part(preconditioner(A)[:states])
    slow, slow_left = mean_perron_vectors(design, states)
    ones = np.ones(states) / np.sqrt(states)
    cosines = [abs(v @ w) for v, w in ((right[:, 0], slow), (right[:, 0], ones), (left[:, 0], slow_left),
                                       (left[:, 0], ones))]  # fmt: skip
    if design == "blocks":
        own, *others = (((right[:, :2].T @ split) ** 2).sum() for split in splits(states))
        return design, seed, alpha / states, *cosines, own - max(others), own, max(others)
    return design, seed, alpha / states, *cosines, cosines[0] - cosines[1], np.nan, np.nan


def mean_perron_vectors(design: str, states: int) -> tuple[np.ndarray, np.ndarray]:
    """Mean right and left Perron vectors (n,) of C P over tasks, of norm 1."""
    tasks = draw_tasks(design, states, MEASURED_ON, generator(0, "boyan", states, f"slow mode {design} best"))
    matrices = continuation(design, states)[:, None] * tasks.transition
    right, left = (perron_vectors(part).mean(axis=0) for part in (matrices, matrices.mT))
    return right / np.linalg.norm(right), left / np.linalg.norm(left)


def splits(states: int) -> list[np.ndarray]:
    """Differences (n,) of two halves of the states, of norm 1, that of the two blocks first."""
    first_halves = itertools.combinations(range(1, states), states // 2 - 1)
    masks = [np.isin(np.arange(states), (0, *half)) for half in first_halves]
    return [np.where(mask, 1, -1) / np.sqrt(states) for mask in masks]


def best_rows(design: str, states: int, depths: list[int], discount: float) -> list[tuple]:
    """The MSVE on other tasks of the best alpha I + beta D in G, for several D of rank one, and without D."""
    slow, slow_left = mean_perron_vectors(design, states)
    ones, difference = np.ones(states) / np.sqrt(states), splits(states + states % 2)[0][:states]
    sides = {"none": [], "ones": [(ones, ones)], "slow on the right": [(ones, slow)], "slow": [(slow_left, slow)]}
    if design == "blocks":
        other = np.tile([1, -1], states // 2) / np.sqrt(states)
        sides = {name: sides[name] for name in ("none", "ones")}
        sides["ones and blocks"] = [(ones, ones), (difference, difference)]
        sides["ones and another split"] = [(ones, ones), (other, other)]
    (gram, value, weight), (other_gram, other_value, other_weight) = (
        best_tasks(design, states, discount, purpose) for purpose in ("best", "best test")
    )
    rows = []
    for depth in depths:
        for name, pairs in sides.items():
            terms = [preconditioned_td(np.kron([[1], [0]], np.outer(*pair))) for pair in pairs]
            bases = np.stack([basis(1, states)[0], *terms])
            ends = [
                least_squares(np.array(start[: len(bases)]), bases, [gram], value, weight, depth) for start in STARTS
            ]
            best = min(ends, key=lambda end: end.msve)
            estimate = estimates(weights_at(best.numbers, bases), other_gram, depth)
            errors = (other_weight * (estimate - other_value) ** 2).sum(axis=-1)
            rows.append((design, name, depth, errors.mean(), np.median(errors)))
    return rows


def best_tasks(design: str, states: int, discount: float, purpose: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """G of the enumerated prompts of MEASURED_ON tasks, their values v = (I - gamma C P)^{-1} r and their mu."""
    tasks = draw_tasks(design, states, MEASURED_ON, generator(0, "boyan", states, f"slow mode {design} {purpose}"))
    p = discount * continuation(design, states)[:, None] * tasks.transition
    value = np.linalg.solve(np.eye(states) - p, tasks.reward[..., None])[..., 0]
    features = np.broadcast_to(np.eye(states), p.shape)
    columns = np.concatenate([features, p.mT, tasks.reward[:, None]], axis=1)
    return columns @ columns.mT / states, value, tasks.stationary
