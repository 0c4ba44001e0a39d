"""Decompose the pretrained weights of a cell, and evaluate them with parts removed."""

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
from ictd.evaluation import UnseenTasks, batch_td_msve, draw_unseen_tasks, tune_step_size, weights_msve
from ictd.prompt import ENUMERATED
from ictd.statistics import log_spaced
from ictd.storage import load_arrays, save_arrays
from ictd.transformer import Weights, theta_td

# Seed of the unseen tasks, which are the same for all models.
SEED = 0
# Variants that are also evaluated with controls: A multiplied by the best of FACTORS, and REPEATED times the layers.
CONTROLLED = ("theta", "structure", "theta_outside", "no_u")
FACTORS = log_spaced(0.5, 16, 16)
REPEATED = (3, 10)
CONTROLS = ("scaled", *(f"repeated_{times}" for times in REPEATED))
# Largest number of tasks on which factors are tuned.
TUNED_ON = 100


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
    """Write the measures of each run, and the MSVE of each run and variant, on enumerated and on sampled prompts.

    For comparison, the MSVE of theta^TD with its best step size is written too.  The MSVE may rise without a part only
    because the step becomes smaller, or because the number of layers is too small without it.  So the variants in
    CONTROLLED are also evaluated with A multiplied by a factor, and in more layers.  Step sizes and factors are tuned
    on other tasks, for each context length.
    """
    seeds, runs = finite_runs(weights)
    if not len(seeds):
        raise ValueError(f"All runs of {weights.stem} diverged, so none can be decomposed; choose other settings.")
    scaled = scaled_attention
    lengths = [ENUMERATED, *context_lengths]
    options = {"steps": max(context_lengths), "discount": discount, "env": evaluation_env, **env_options}
    data = draw_unseen_tasks(SEED, states, tasks, stream="ablation", **options)
    tuning = draw_unseen_tasks(SEED, states, tuning_tasks, stream="ablation tuning", **options)
    factor_tuning = draw_unseen_tasks(SEED, states, min(TUNED_ON, tuning_tasks), stream="ablation tuning", **options)
    candidates = log_spaced(**step_sizes) * (states if scaled else 1)
    variants = without_parts(runs, discount)
    with np.errstate(over="ignore", invalid="ignore"):
        coefficients = [best_coefficient(tuning, depth, length, candidates, scaled) for length in lengths]
        theta_msve = [
            batch_td_msve(data, depth, [data.context(length)], np.array([coefficient]), scaled)[0, 0]
            for length, coefficient in zip(lengths, coefficients, strict=True)
        ]  # (lengths, tasks)
        msve = [weights_msve(variant, data, lengths, depth, scaled) for variant in variants.values()]
        factors, control_msve = [], []
        for name in CONTROLLED:
            variant = variants[name]
            best_factors = [best_factor(variant, factor_tuning, length, depth, scaled) for length in lengths]
            with_factor = [
                weights_msve(multiplied(variant, factor), data, [length], depth, scaled)
                for factor, length in zip(best_factors, lengths, strict=True)
            ]
            in_more_layers = [weights_msve(variant, data, lengths, times * depth, scaled) for times in REPEATED]
            factors.append(best_factors)
            control_msve.append([np.concatenate(with_factor, axis=1), *in_more_layers])
    save_arrays(
        output, seeds=seeds, variants=np.array(list(variants)), lengths=np.array(lengths),
        mean=np.mean(msve, axis=-1), median=np.median(msve, axis=-1),
        best_coefficient=np.array(coefficients), best_mean=np.mean(theta_msve, axis=1),
        best_median=np.median(theta_msve, axis=1), controlled=np.array(CONTROLLED), controls=np.array(CONTROLS),
        factor=np.array(factors), control_mean=np.mean(control_msve, axis=-1),
        control_median=np.median(control_msve, axis=-1), **decomposition_measures(runs, discount, scaled),
    )  # fmt: skip


def finite_runs(path: Path) -> tuple[np.ndarray, Weights]:
    """Seeds (S,) and weights of the runs of a cell that did not diverge."""
    seeds, u, A, diverged_at = load_arrays(path, "seeds", "u", "A", "diverged_at")
    kept = diverged_at == 0
    return seeds[kept], Weights(u[kept], A[kept])


def best_coefficient(data: UnseenTasks, depth: int, length: int, candidates: np.ndarray, scaled: bool) -> float:
    """The coefficient of theta^TD with the least mean MSVE at one context length, from candidates (K,)."""
    scores = tune_step_size(data, depth, [data.context(length)], candidates, scaled)
    return candidates[scores.argmin()]


def multiplied(weights: Weights, factor: float) -> Weights:
    """The weights with A multiplied by a factor."""
    return Weights(weights.u, factor * weights.A)


def best_factor(weights: Weights, data: UnseenTasks, length: int, depth: int, scaled: bool) -> float:
    """The factor of A, from FACTORS, with the least mean MSVE over runs and tasks; NaN counts as infinite."""
    means = [weights_msve(multiplied(weights, factor), data, [length], depth, scaled).mean() for factor in FACTORS]
    return FACTORS[np.where(np.isnan(means), np.inf, means).argmin()]


def without_parts(weights: Weights, discount: float) -> dict[str, Weights]:
    """Make variants of weights with parts removed.

    The identifiable part of A has three parts: the part along theta^TD (``theta``), the ``rest`` of the nearest
    K [-I, I] (``structure``), and what is ``outside`` of it.

    Parameters
    ----------
    weights : Weights with any leading axes
    discount : float, gamma

    Returns
    -------
    dict of Weights
        whole : the given weights
        no_u : all three parts, without u
        structure, theta_outside, rest_outside : two of the three parts, without u
        theta, rest, outside : one of the three parts, without u
        G : [G; 0] [-I, I] in place of [G; H] [-I, I], without u
        no_A11, no_A12, no_A21, no_A22 : the identifiable part of A without this block, with u
    """
    A, n = project_identifiable(weights, discount).A, weights.states
    K = preconditioner(A)
    upper_K = K.copy()
    upper_K[..., n:, :] = 0
    theta = theta_coefficient(A)[..., None, None] * theta_td(n).A
    structure = preconditioned_td(K)
    without_u = {
        "no_u": A,
        "structure": structure,
        "theta_outside": theta + A - structure,
        "theta": theta,
        "rest_outside": A - theta,
        "rest": structure - theta,
        "outside": A - structure,
        "G": preconditioned_td(upper_K),
    }
    variants = {"whole": weights}
    variants |= {name: Weights(0 * weights.u, part) for name, part in without_u.items()}
    halves = {"1": slice(None, n), "2": slice(n, None)}
    for block in BLOCKS:
        without_block = A.copy()
        without_block[..., halves[block[1]], halves[block[2]]] = 0
        variants[f"no_{block}"] = Weights(weights.u, without_block)
    return variants
