"""Decompose a cell's pretrained weights, and evaluate them with parts removed."""

from pathlib import Path

import numpy as np

from ictd.decomposition import decomposition_measures, preconditioner, seen, structured
from ictd.evaluation import batch_td_msve, log_spaced, tune_step_size, weights_msve
from ictd.pattern import BLOCKS, theta_coefficient
from ictd.pipeline.storage import load_arrays, save_arrays
from ictd.prompts import ENUMERATED
from ictd.unseen_tasks import draw_unseen_tasks
from ictd.weights import Weights, theta_td

# All models are evaluated on the same tasks.
SEED = 0


def main(
    states: int,
    depth: int,
    discount: float,
    attention_scale: str,
    evaluation_env: str,
    env_options: dict,
    tasks: int,
    tuning_tasks: int,
    context_lengths: list[int],
    step_sizes: dict,
    weights: Path,
    output: Path,
) -> None:
    """Write each run's measures, and its MSVE and that of each variant, on enumerated prompts and sampled contexts.

    Beside these is the MSVE of theta^TD with the step size that is best on other tasks.
    """
    seeds, runs = finite_runs(weights)
    lengths, scaled = [ENUMERATED, *context_lengths], attention_scale == "context_length"
    place = {"steps": max(context_lengths), "discount": discount, "env": evaluation_env, **env_options}
    data = draw_unseen_tasks(SEED, states, tasks, stream="ablation", **place)
    tuning = draw_unseen_tasks(SEED, states, tuning_tasks, stream="ablation tuning", **place)
    coefficients = log_spaced(**step_sizes) * (states if scaled else 1)
    best, theta_msve, variants = [], [], without_parts(runs, discount)
    with np.errstate(over="ignore", invalid="ignore"):
        for length in lengths:
            best.append(coefficients[tune_step_size(tuning, depth, [length], coefficients, scaled).argmin()])
            theta_msve.append(batch_td_msve(data, depth, [data.context(length)], np.array(best[-1:]), scaled)[0, 0])
        found = [weights_msve(one, data, lengths, depth, scaled) for one in variants.values()]
    save_arrays(
        output, seeds=seeds, variants=np.array(list(variants)), lengths=np.array(lengths),
        mean=np.mean(found, axis=-1), median=np.median(found, axis=-1),
        best_coefficient=np.array(best), best_mean=np.mean(theta_msve, axis=1),
        best_median=np.median(theta_msve, axis=1), **decomposition_measures(runs, discount, scaled),
    )  # fmt: skip


def finite_runs(path: Path) -> tuple[np.ndarray, Weights]:
    """Seeds (S,) and weights of the runs of a cell that did not diverge."""
    seeds, u, A, diverged_at = load_arrays(path, "seeds", "u", "A", "diverged_at")
    kept = diverged_at == 0
    return seeds[kept], Weights(u[kept], A[kept])


def without_parts(weights: Weights, discount: float) -> dict[str, Weights]:
    """Weights with parts removed, by names of what is left or of what is gone.

    ``weights`` have any leading axes, and ``discount`` is gamma.
    """
    A, n, none = seen(weights, discount).A, weights.states, 0 * weights.u
    K = preconditioner(A)
    G = K.copy()
    G[..., n:, :] = 0
    variants = {
        "whole": weights,
        "no_u": Weights(none, weights.A),
        "structure": Weights(none, structured(K)),
        "G": Weights(none, structured(G)),
        "theta": Weights(none, theta_coefficient(A)[..., None, None] * theta_td(n).A),
    }
    for block in BLOCKS:
        rows, columns = (slice(None, n) if place == "1" else slice(n, None) for place in block[1:])
        left = A.copy()
        left[..., rows, columns] = 0
        variants[f"no_{block}"] = Weights(weights.u, left)
    return variants
