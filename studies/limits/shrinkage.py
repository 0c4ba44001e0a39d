"""What trained Transformers shrink towards: LSTD with k pseudo-steps of a chain Q, fitted to their outputs."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd

from ictd.pipeline.table_files import save_table
from ictd.streams import generator
from ictd.weights import initial_weights
from studies.limits.contexts import Sampled, draw_tasks, sampled, with_pseudo_steps
from studies.limits.course import train
from studies.limits.grid import KINDS
from studies.limits.minimise import Objective, flat

SECTION = "shrinkage"
CLIP, MANY = 1.0, 20_000  # Longer gradients are shortened; tasks whose mean is taken for that of a distribution.
NONE = 1e-3  # Pseudo-steps that do no more than keep states that were not left from having none.
FIT_STEPS, DIFFERENCE = 25, 1e-5


def main(
    kind: str, states: int, depth: int, discount: float, learning_rate: float, initial_gain: float, tasks: int,
    shortest: int, fit_tasks: int, lengths: list[int], seeds: int, output: Path,
) -> None:  # fmt: skip
    """Train on contexts of ``shortest`` to max(lengths) steps; write the MSVE on uniform tasks, and fits to outputs."""
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
    """Fits to outputs (N, n), weighted as the MSVE: variance ``explained`` by k pseudo-steps of the mean chain with a
    ``reward`` where none was left, and ``without`` k; for shifts the t of Q = (1 - t) Q_uniform + t Q_shifted."""
    (Q, share), root = chains["uniform"], np.sqrt(of.tasks.stationary)
    spread = root * (estimate - (root**2 * estimate).sum() / (root**2).sum())

    def fit(steps: Callable, *begin: float) -> tuple[float, np.ndarray]:
        """Levenberg and Marquardt's, by differences, of pseudo-steps by some parameters, the last being the reward."""

        def off(a: np.ndarray) -> np.ndarray:
            values = with_pseudo_steps(of.context, share[:, None] * steps(a), a[-1], discount)
            return (root * (values - estimate)).ravel()

        a, damping, residual = np.array(begin), 1e-3, off(np.array(begin))
        for _ in range(FIT_STEPS):
            J = np.stack([(off(a + d) - off(a - d)) / (2 * DIFFERENCE) for d in DIFFERENCE * np.eye(len(a))], axis=1)
            H = J.T @ J
            step = np.linalg.solve(H + damping * np.diag(np.diag(H) + 1e-12), J.T @ residual)
            trial = off(a - step)
            better = trial @ trial < residual @ residual
            a, residual, damping = (a - step, trial, damping / 5) if better else (a, residual, 4 * damping)
        return 1 - residual @ residual / (spread**2).sum(), a

    plain, mean = fit(lambda a: NONE * Q, 0.0), fit(lambda a: abs(a[0]) * Q, 5.0, 0.0)
    found = {"without": plain[0], "explained": mean[0], "k": abs(mean[1][0]), "reward": mean[1][1]}
    for name in ("steps", "last_row"):
        D = chains[name][0] - Q
        found[name] = fit(lambda a, D=D: abs(a[0]) * (Q + a[1] * D), 5.0, 0.5, 0.0)[1][1]
    return found
