"""Decompose a cell's pretrained weights, and evaluate them with parts removed."""

from pathlib import Path

import numpy as np

from ictd.anatomy import (
    BLOCKS,
    decomposition_measures,
    preconditioned_td,
    preconditioner,
    project_identifiable,
    theta_coefficient,
)
from ictd.evaluation import UnseenTasks, batch_td_msve, draw_unseen_tasks, log_spaced, tune_step_size, weights_msve
from ictd.prompt import ENUMERATED
from ictd.storage import load_arrays, save_arrays
from ictd.transformer import Weights, theta_td

# All models are evaluated on the same tasks.
SEED = 0
# Variants that are also multiplied by the best of some factors, and repeated in some times as many layers.
CONTROLLED = ("theta", "structure", "theta_outside", "no_u")
FACTORS = log_spaced(0.5, 16, 16)
REPEATED = (3, 10)
TUNED_ON = 100
CONTROLS = ("scaled", *(f"repeated_{times}" for times in REPEATED))


def main(
    states: int,
    depth: int,
    discount: float,
    scaled_attention: bool,
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

    Beside these is the MSVE of theta^TD with the step size that is best on other tasks.  A part may be missed for no
    more than the size of the step, or for layers that are too few; so the variants in CONTROLLED are evaluated with A
    multiplied by the factor that is best for a cell and length on others still, and in more layers.
    """
    seeds, runs = finite_runs(weights)
    if not len(seeds):
        raise ValueError(
            f"All runs of {weights.stem} diverged, which leaves nothing to take apart; choose settings that last."
        )
    lengths, scaled = [ENUMERATED, *context_lengths], scaled_attention
    place = {"steps": max(context_lengths), "discount": discount, "env": evaluation_env, **env_options}
    data = draw_unseen_tasks(SEED, states, tasks, stream="ablation", **place)
    tuning = draw_unseen_tasks(SEED, states, tuning_tasks, stream="ablation tuning", **place)
    coefficients = log_spaced(**step_sizes) * (states if scaled else 1)
    best, theta_msve, variants = [], [], without_parts(runs, discount)
    with np.errstate(over="ignore", invalid="ignore"):
        for length in lengths:
            scores = tune_step_size(tuning, depth, [tuning.context(length)], coefficients, scaled)
            best.append(coefficients[scores.argmin()])
            theta_msve.append(batch_td_msve(data, depth, [data.context(length)], np.array(best[-1:]), scaled)[0, 0])
        found = [weights_msve(one, data, lengths, depth, scaled) for one in variants.values()]
        few = draw_unseen_tasks(SEED, states, min(TUNED_ON, tuning_tasks), stream="ablation tuning", **place)
        controls, factors = [], []
        for name in CONTROLLED:
            one = variants[name]
            factors.append([best_factor(one, few, length, depth, scaled) for length in lengths])
            bigger = [
                weights_msve(multiplied(one, factor), data, [length], depth, scaled)
                for factor, length in zip(factors[-1], lengths, strict=True)
            ]
            more = [weights_msve(one, data, lengths, times * depth, scaled) for times in REPEATED]
            controls.append([np.concatenate(bigger, axis=1), *more])
    save_arrays(
        output, seeds=seeds, variants=np.array(list(variants)), lengths=np.array(lengths),
        mean=np.mean(found, axis=-1), median=np.median(found, axis=-1),
        best_coefficient=np.array(best), best_mean=np.mean(theta_msve, axis=1),
        best_median=np.median(theta_msve, axis=1), controlled=np.array(CONTROLLED), controls=np.array(CONTROLS),
        factor=np.array(factors), control_mean=np.mean(controls, axis=-1), control_median=np.median(controls, axis=-1),
        **decomposition_measures(runs, discount, scaled),
    )  # fmt: skip


def finite_runs(path: Path) -> tuple[np.ndarray, Weights]:
    """Seeds (S,) and weights of the runs of a cell that did not diverge."""
    seeds, u, A, diverged_at = load_arrays(path, "seeds", "u", "A", "diverged_at")
    kept = diverged_at == 0
    return seeds[kept], Weights(u[kept], A[kept])


def multiplied(weights: Weights, factor: float) -> Weights:
    """The weights with A multiplied, as by a larger step."""
    return Weights(weights.u, factor * weights.A)


def best_factor(weights: Weights, data: UnseenTasks, length: int, depth: int, scaled: bool) -> float:
    """The one of FACTORS with the least mean MSVE over runs and tasks; what is no number counts as infinite."""
    means = [weights_msve(multiplied(weights, factor), data, [length], depth, scaled).mean() for factor in FACTORS]
    return FACTORS[np.where(np.isnan(means), np.inf, means).argmin()]


def without_parts(weights: Weights, discount: float) -> dict[str, Weights]:
    """Weights with parts removed, by names of what is left or of what is gone.

    Without u all subsets are there of the three parts of what prompts see of A: that along theta^TD, the ``rest`` of
    K [-I, I], and what is ``outside``; ``no_u`` is all three.  ``weights`` have any leading axes, and ``discount`` is
    gamma.
    """
    A, n, none = project_identifiable(weights, discount).A, weights.states, 0 * weights.u
    K = preconditioner(A)
    G = K.copy()
    G[..., n:, :] = 0
    theta, structure = theta_coefficient(A)[..., None, None] * theta_td(n).A, preconditioned_td(K)
    left = {
        "no_u": A, "structure": structure, "theta_outside": theta + A - structure, "theta": theta,
        "rest_outside": A - theta, "rest": structure - theta, "outside": A - structure, "G": preconditioned_td(G),
    }  # fmt: skip
    variants = {"whole": weights} | {name: Weights(none, part) for name, part in left.items()}
    for block in BLOCKS:
        rows, columns = (slice(None, n) if place == "1" else slice(n, None) for place in block[1:])
        left = A.copy()
        left[..., rows, columns] = 0
        variants[f"no_{block}"] = Weights(weights.u, left)
    return variants
