"""Evaluate the baselines (``ictd.baselines.BASELINES``) on the contexts that the Transformers are evaluated on.

Their factors, the step size of theta^TD and numbers of pseudo-steps, are tuned on other tasks, which are not used for
evaluation.
"""

from dataclasses import replace
from pathlib import Path

import numpy as np

from ictd.baselines import BASELINES, Given, best_factors, tuned_baselines
from ictd.context import Context
from ictd.evaluation import UnseenTasks, baseline_msve, draw_unseen_tasks, factor_scores, joined
from ictd.pipeline.grid import parse_name
from ictd.statistics import log_spaced
from ictd.storage import save_arrays


def main(
    discount: float,
    scaled_attention: bool,
    evaluation_env: str,
    env_options: dict,
    seeds: int,
    tasks: int,
    tuning_tasks: int,
    context_lengths: list[int],
    step_sizes: dict,
    lstd_ridge: float,
    outputs: list[Path],
) -> None:
    """Write the MSVE of each method, seed, context length and task, and the MSVE of each candidate factor.

    The files of ``outputs`` are named after numbers of states and layers, "states-depth".  Baselines with the same
    number of states are evaluated on the same contexts.
    """
    candidates = log_spaced(**step_sizes)
    place = {"steps": max(context_lengths), "discount": discount, "env": evaluation_env}
    place |= env_options[evaluation_env]

    def contexts_of(data: UnseenTasks) -> list[Context]:
        return [data.context(length) for length in context_lengths]

    # Files by number of states, and by depth.
    files = {}
    for output in outputs:
        states, depth = parse_name(output.stem)
        files.setdefault(states, {})[depth] = output
    for states, by_depth in files.items():
        tuning = draw_unseen_tasks(0, states, tuning_tasks, stream="tuning", **place)
        tuning_contexts = contexts_of(tuning)
        # The tasks of all seeds are evaluated together.
        unseen = joined([draw_unseen_tasks(seed, states, tasks, **place) for seed in range(seeds)])
        contexts = contexts_of(unseen)
        for depth, output in by_depth.items():
            given = Given(discount, depth, lstd_ridge, scaled_attention, factors={})
            tuning_msve = np.stack(
                [
                    factor_scores(BASELINES[name], tuning, tuning_contexts, given, candidates)
                    for name in tuned_baselines()
                ]
            )
            tuned = replace(given, factors=best_factors(candidates, tuning_msve))
            errors = baseline_msve(BASELINES, unseen, contexts, tuned)
            save_arrays(
                output,
                seeds=np.arange(seeds),
                context_lengths=np.array(context_lengths),
                step_sizes=candidates,
                tuning_msve=tuning_msve,
                **{name: _by_seed(msve, seeds) for name, msve in errors.items()},
            )


def _by_seed(errors: np.ndarray, seeds: int) -> np.ndarray:
    """Errors (S, contexts, k) from errors (contexts, S k) of the tasks of all seeds."""
    return np.ascontiguousarray(np.moveaxis(errors.reshape(len(errors), seeds, -1), 1, 0))
