"""What trained Transformers shrink towards: LSTD with k pseudo-steps of a chain Q, fitted to their outputs."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd

from ictd.baselines import lstd
from ictd.pipeline.table_files import save_table
from ictd.streams import generator
from ictd.weights import initial_weights
from studies.limits.contexts import Sampled, draw_tasks, sampled, with_pseudo_steps
from studies.limits.course import train
from studies.limits.forms import RIDGES
from studies.limits.grid import KINDS
from studies.limits.minimise import Objective, flat

SECTION = "shrinkage"
CLIP = 1.0  # Longer gradients are shortened, as some contexts make very long ones.
MANY = 20_000  # Tasks whose mean is taken for that of a distribution.
FIT_STEPS, DIFFERENCE = 25, 1e-5


def main(
    kind: str, states: int, depth: int, discount: float, learning_rate: float, initial_gain: float, tasks: int,
    shortest: int, fit_tasks: int, lengths: list[int], seeds: int, output: Path,
) -> None:  # fmt: skip
    """Train on contexts of ``shortest`` to max(lengths) steps, of tasks of one of grid.KINDS, and write a row a seed,
    algorithm and length: the MSVE on contexts of uniform tasks, and what is fitted to the outputs."""
    rng = generator(0, "boyan", states, "limits fits")
    uniform = draw_tasks("uniform", states, fit_tasks, rng)
    read = {m: sampled(uniform, m, discount, rng) for m in lengths}
    many = {name: draw_tasks(name, states, MANY, generator(0, "boyan", states, f"limits {name}")) for name in KINDS}
    chains = {name: (of.transition.mean(axis=0), of.stationary.mean(axis=0)) for name, of in many.items()}
    rows = []
    for seed in range(seeds):
        rng = generator(seed, "boyan", states, f"limits {kind} contexts")
        drawn = draw_tasks(kind, states, tasks, rng)
        seen = sampled(drawn, rng.integers(shortest, max(lengths) + 1, tasks), discount, rng)
        prompts = seen.prompts(discount)
        begin = flat(initial_weights(states, initial_gain, generator(seed, "boyan", states, "weights")))
        for algo in ("td", "mc"):
            end = train(begin, drawn, prompts, algo, depth, discount, learning_rate, [tasks], CLIP)[-1]
            for m, of in read.items():
                (estimate,) = Objective([(of.prompts(discount), np.eye(len(end)))], depth, 0 * end).estimates(end)
                place = {"kind": kind, "algo": algo, "seed": seed, "length": m, "msve": of.error(estimate).mean()}
                rows.append(place | fitted(of, estimate, chains, discount))
    save_table(output, pd.DataFrame(rows))


def fitted(of: Sampled, estimate: np.ndarray, chains: dict, discount: float) -> dict[str, float]:
    """Least squares fits of LSTD with pseudo-steps to outputs (N, n), weighted as in the MSVE, on every other context:
    k, the ``reward`` of states not left, and the share of variance of the rest ``explained`` by the mean chain of
    uniform tasks, and by LSTD with a ridge, ``without``; then ``steps`` and ``last_row``, the t_i of Q = Q_uniform +
    sum_i t_i (Q_i - Q_uniform), fitted together."""
    (Q, share), root = chains["uniform"], np.sqrt(of.tasks.stationary)
    fitted_to = np.arange(len(estimate)) % 2 == 0

    def explained(values: np.ndarray, on: np.ndarray) -> float:
        weight, wanted = root[on] ** 2, estimate[on]
        spread = wanted - (weight * wanted).sum() / weight.sum()
        return 1 - (weight * (values[on] - wanted) ** 2).sum() / (weight * spread**2).sum()

    def values(steps: np.ndarray, reward: float) -> np.ndarray:
        return with_pseudo_steps(of.context, share[:, None] * steps, reward, discount)

    def fit(steps: Callable, *begin: float) -> np.ndarray:
        """Levenberg and Marquardt's, by differences, of pseudo-steps by some parameters, the last being the reward."""

        def off(a: np.ndarray) -> np.ndarray:
            return (root * (values(steps(a), a[-1]) - estimate))[fitted_to].ravel()

        a, damping, residual = np.array(begin), 1e-3, off(np.array(begin))
        for _ in range(FIT_STEPS):
            J = np.stack([(off(a + d) - off(a - d)) / (2 * DIFFERENCE) for d in DIFFERENCE * np.eye(len(a))], axis=1)
            H = J.T @ J
            step = np.linalg.solve(H + damping * np.diag(np.diag(H) + 1e-12), J.T @ residual)
            trial = off(a - step)
            better = trial @ trial < residual @ residual
            a, residual, damping = (a - step, trial, damping / 5) if better else (a, residual, 4 * damping)
        return a

    plain = max((lstd(of.context, discount, ridge) for ridge in RIDGES), key=lambda v: explained(v, fitted_to))
    a = fit(lambda a: abs(a[0]) * Q, 5.0, 0.0)
    shares = {"without": explained(plain, ~fitted_to), "explained": explained(values(abs(a[0]) * Q, a[1]), ~fitted_to)}
    D = [chains[name][0] - Q for name in ("steps", "last_row")]
    both = fit(lambda a: abs(a[0]) * (Q + a[1] * D[0] + a[2] * D[1]), 5.0, 0.0, 0.0, 0.0)
    return shares | {"k": abs(a[0]), "reward": a[1], "steps": both[1], "last_row": both[2]}
