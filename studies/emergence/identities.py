"""Numerical checks of section "Symmetry" of docs/theory.md: one update and permutations, and the drift of theta^TD.

*Equivariance.*  With a permuted task and batch, and permuted weights (u S', S A S'), outputs are permuted and updated
weights are permuted; with rewards -r and -u, outputs and u change sign, and A is the same.

*Drift.*  At u = 0 and A = n alpha [-I, I; 0, 0], let T = I - alpha (I - gamma p) and rho = 1 - alpha (1 - gamma).  For
rewards with E[r r' | p] = I, the expected update along n [x 1'; 0] [-I, I], which adds 1 x' to the step size, is

    MC:  rho^L / (1 - gamma) sum_{j<L} rho^(L-1-j) x' T^j mu,    TD:  (1 - gamma) times this,

and along n [mu 1'; 0] [I, I], outside the family,

    MC:  |mu|^2 rho^L / (1 - gamma)^2 (2 gamma (1 - rho^L) / (1 - rho) - (1 + gamma) L rho^(L-1)),    TD: as above.

Expected updates are those of the compiled engine with shares in place of counts.  They are quadratic in r, so a mean
over the rewards sqrt(n) e_i is their expectation.

*Condition.*  A rounding error acts like a relative change of the numbers that it comes from.  The condition of a result
is its relative change over that of the weights and rewards, if these change at random.  It is large where terms nearly
cancel: Adam divides each entry of a gradient by its size, however small.
"""

import itertools
from pathlib import Path

import numpy as np

from ictd.context import Context
from ictd.mrp import Tasks, sample_tasks, value_function
from ictd.pretraining import ENGINES, pretrain_history
from ictd.sampling import BatchStatistics, unroll
from ictd.storage import long_table, save_table
from ictd.transformer import Model, Weights, initial_weights, preconditioned_td
from studies.emergence.symmetry import Gradient

ALGOS = "td", "mc"
# Layers and updates of the check of equivariance.
DEPTH, UPDATES = 6, 5
# Relative change of weights and rewards, whose effect is far above rounding and still linear.
CHANGE = 2.0**-30


def main(
    chains: list[str],
    states: list[int],
    depths: list[int],
    discounts: list[float],
    step_sizes: list[float],
    tasks: int,
    equivariance: Path,
    drift: Path,
) -> None:
    """Write the deviations of each setting, and expected updates with their formulas, as tables."""
    parts = [
        long_table({}, deviations(algo, env, n, engine), algo=algo, env=env, states=n, engine=engine)
        for algo, env, n, engine in itertools.product(ALGOS, chains, states, ENGINES)
    ]
    save_table(equivariance, *parts)
    parts = [
        drifts(env, states[0], depth, discount, step_size, tasks)
        for env, depth, discount, step_size in itertools.product(chains, depths, discounts, step_sizes)
    ]
    save_table(drift, *parts)


def deviations(algo: str, env: str, states: int, engine: str) -> dict[str, float]:
    """Largest relative deviations from equivariance and from oddness, of outputs, u and A, each over its condition."""
    discount, rng = 0.9, np.random.default_rng(0)
    tasks = sample_tasks(env, states, UPDATES, rng)
    batches = unroll(tasks, 64, discount, 200, rng)
    start = initial_weights(states, 1.0, rng)

    def changed(array: np.ndarray) -> np.ndarray:
        return array * (1 + CHANGE * rng.uniform(-1, 1, array.shape))

    def results(transition, reward, visits, transitions, return_sums, u, A) -> tuple[np.ndarray, ...]:
        """Outputs before the updates, and u and A after them."""
        tasks, first = Tasks(transition, reward), Weights(u, A)
        batches = BatchStatistics(visits, transitions, return_sums)
        values = Model(first, DEPTH, discount).values(Context.enumerated(transition, reward))
        last = pretrain_history(tasks, batches, algo, DEPTH, discount, 0.001, first, engine).weights[-1]
        return values, last.u, last.A

    P, r, (visits, transitions, sums, _) = tasks.transition, tasks.reward, vars(batches).values()
    first = values, u, A = results(P, r, visits, transitions, sums, start.u, start.A)
    relabelled = results(*map(permuted, (P, r, visits, transitions, sums)), *moved(start.u, start.A))
    odd = results(P, -r, visits, transitions, -sums, -start.u, start.A)
    nearby = results(P, changed(r), visits, transitions, sums, changed(start.u), changed(start.A))
    condition = relative(nearby, first) / CHANGE
    return {
        "permuted": (relative(relabelled, (permuted(values), *moved(u, A))) / condition).max(),
        "negative": (relative(odd, (-values, -u, A)) / condition).max(),
    }


def permuted(array: np.ndarray) -> np.ndarray:
    """An array (T, n, ...) of tasks with the state before in place of each."""
    return np.roll(array, 1, tuple(range(1, array.ndim)))


def moved(u: np.ndarray, A: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Weights of the permuted states."""
    order = np.roll(np.arange(len(u)).reshape(2, -1), 1, axis=1).ravel()
    return u[order], A[np.ix_(order, order)]


def relative(found: tuple[np.ndarray, ...], expected: tuple[np.ndarray, ...]) -> np.ndarray:
    """Largest difference of each of several arrays, over its largest entry."""
    pairs = zip(found, expected, strict=True)
    return np.array([np.abs(one - other).max() / np.abs(other).max() for one, other in pairs])


def drifts(env: str, states: int, depth: int, discount: float, step_size: float, tasks: int) -> dict:
    """Expected updates along directions, of each task: those of the engine, and the formulas."""
    drawn = sample_tasks(env, states, tasks, np.random.default_rng(0))
    ones, rng = np.ones(states), np.random.default_rng(1)
    found = {algo: np.empty((tasks, 4)) for algo in ALGOS}
    formula = np.empty((tasks, 4))
    for i, (P, mu) in enumerate(zip(drawn.transition, drawn.stationary, strict=True)):
        vectors = [ones, np.eye(states)[0], rng.uniform(0, 1, states)]
        blocks = [preconditioned_td(half(np.outer(x, ones))) for x in vectors]
        blocks.append(np.tile(half(np.outer(mu, ones)), 2))
        for algo in ALGOS:
            update = expected_update(algo, P, mu, depth, discount, step_size)
            found[algo][i] = [(update * states * block).sum() for block in blocks]
        formula[i, :3] = [deflation_drift(P, mu, x, depth, discount, step_size) for x in vectors]
        formula[i, 3] = outside_drift(mu, depth, discount, step_size)
    names = np.array(["ones", "first_state", "random", "outside"])
    axes = {"task": np.arange(tasks), "direction": names}
    columns = {"formula": formula, **found}
    return long_table(axes, columns, env=env, states=states, depth=depth, discount=discount, step_size=step_size)


def half(G: np.ndarray) -> np.ndarray:
    """[G; 0], (2n, n)."""
    return np.concatenate([G, np.zeros_like(G)])


def expected_update(
    algo: str, P: np.ndarray, mu: np.ndarray, depth: int, discount: float, step_size: float
) -> np.ndarray:
    """The expected update (2n, 2n) of A = n alpha [-I, I; 0, 0] on one chain, for E[r r'] = I."""
    n = len(P)
    gradient = Gradient(n, depth, discount)
    A = n * step_size * preconditioned_td(half(np.eye(n)))
    parameter = np.concatenate([np.zeros(2 * n), A.ravel()])
    value = np.sqrt(n) * value_function(P[None], np.eye(n), discount)  # (rewards, n)
    total = np.zeros(4 * n**2)
    for reward, v in zip(np.sqrt(n) * np.eye(n), value, strict=True):
        targets = (mu * reward, discount * mu[:, None] * P) if algo == "td" else (mu * v, 0 * P)
        task = P, reward, mu, *targets
        total -= gradient(parameter, tuple(array[None] for array in task))[2 * n :]
    return total.reshape(2 * n, 2 * n) / n


def deflation_drift(P, mu, x, depth, discount, step_size) -> float:
    """The drift of Monte Carlo along 1 x'."""
    rho = 1 - step_size * (1 - discount)
    total, moved = 0.0, mu
    for j in range(depth):
        total += rho ** (depth - 1 - j) * x @ moved
        moved = (1 - step_size) * moved + step_size * discount * P @ moved
    return rho**depth / (1 - discount) * total


def outside_drift(mu, depth, discount, step_size) -> float:
    """The drift of Monte Carlo along [mu 1'; 0] [I, I]."""
    rho = 1 - step_size * (1 - discount)
    bracket = 2 * discount * (1 - rho**depth) / (1 - rho) - (1 + discount) * depth * rho ** (depth - 1)
    return (mu @ mu) * rho**depth / (1 - discount) ** 2 * bracket
