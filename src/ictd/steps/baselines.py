"""Evaluate the baselines (``ictd.baselines.BASELINES``) on the contexts that the Transformers are evaluated on.

Their factors are tuned on other tasks, which are not used for evaluation: the step size of theta^TD for each context
length, and numbers of pseudo-steps for all lengths together.
"""

from dataclasses import replace
from pathlib import Path

import numpy as np

from ictd.baselines import BASELINES, Given, best_factors, tuned_baselines
from ictd.context import Context
from ictd.evaluation import UnseenTasks, baseline_msve, draw_unseen_tasks, factor_scores, joined
from ictd.pipeline.grid import parse_name
from ictd.prompt import ENUMERATED
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

    The candidates are scored on enumerated contexts, too, and at each length (``ictd.baselines.best_factors``).

    The files of ``outputs`` are named after numbers of states and layers, "states-depth".  Baselines with the same
    number of states are evaluated on the same contexts.
    """
    candidates = log_spaced(**step_sizes)
    place = {"steps": max(context_lengths), "discount": discount, "env": evaluation_env}
    place |= env_options[evaluation_env]

    def contexts_of(data: UnseenTasks) -> list[Context]:
        return [data.context(length) for length in [ENUMERATED, *context_lengths]]

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
                    [
                        factor_scores(BASELINES[name], tuning, [context], given, candidates)
                        for context in tuning_contexts
                    ]
                    for name in tuned_baselines()
                ]
            )
            tuned = [replace(given, factors=factors) for factors in best_factors(candidates, tuning_msve)]
            by_length = [
                baseline_msve(BASELINES, unseen, [context], one)
                for context, one in zip(contexts[1:], tuned[1:], strict=True)
            ]
            errors = {name: np.concatenate([part[name] for part in by_length]) for name in BASELINES}
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
