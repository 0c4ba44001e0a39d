"""Pretrain some seeds at all numbers of states and depths by all algorithms, and measure the weights."""

import itertools
from pathlib import Path

import numpy as np
import pandas as pd

from ictd.evaluation import UnseenTasks, batch_td_course, batch_td_msve, draw_unseen_tasks, index_of_best
from ictd.mrp import sample_tasks
from ictd.pipeline.grid import seeds_of
from ictd.pretraining import Divergence, pretrain_history
from ictd.prompt import ENUMERATED
from ictd.rng import generator
from ictd.sampling import unroll
from ictd.statistics import log_spaced
from ictd.storage import save_table
from ictd.transformer import estimates, initial_weights
from ictd.weight_measures import decomposition_measures
from studies.emergence.few_numbers import number_measures

# Number of tasks that are evaluated at once.  With 50 states, more contexts do not fit into a processor's cache.
EVALUATED = 32
MEASURES = ("alpha", "cosine", "theta", "preconditioner", "outside", "identity", "ones", "two")
COLUMNS = ["algo", "env", "states", "depth", "seed", "diverged_at", *MEASURES, "msve", "theta_msve"]


def main(
    algos: list[str],
    env: str,
    states: list[int],
    seeds: str,
    depths: list[int],
    tasks: int,
    test_tasks: int,
    tuning_tasks: int,
    discount: float,
    batch_size: int,
    rollout_steps: int,
    learning_rate: float,
    initial_gain: float,
    scaled_attention: bool,
    step_sizes: dict,
    env_options: dict,
    output: Path,
) -> None:
    """Write a row for each run: measures of its weights, and its MSVE on enumerated prompts of unseen tasks.

    ``theta_msve`` is the MSVE of theta^TD with its best step size.  A run that diverged has no measures and no MSVE.
    """
    scaled = scaled_attention
    table = []
    for seed, n in itertools.product(seeds_of(seeds), states):
        task_set = sample_tasks(env, n, tasks, generator(seed, env, n, "phase tasks"), **env_options[env])
        rng = generator(seed, env, n, "phase unrolls")
        batches = unroll(task_set, batch_size, discount, rollout_steps, rng)
        start = initial_weights(n, initial_gain, generator(seed, env, n, "weights"))
        # Contexts are enumerated, so one step of a trajectory is enough.
        data = draw_unseen_tasks(seed, n, test_tasks, 1, discount, env, "phase", **env_options[env])
        tuning = draw_unseen_tasks(seed, n, tuning_tasks, 1, discount, env, "phase tuning", **env_options[env])
        gram = data.gram_matrix(ENUMERATED, scaled)
        grams = [gram[first : first + EVALUATED] for first in range(0, test_tasks, EVALUATED)]
        theta_msve = tuned_theta_msve(data, tuning, depths, n * log_spaced(**step_sizes))
        for depth in depths:
            for algo in algos:
                row = {"algo": algo, "env": env, "states": n, "depth": depth, "seed": seed}
                row["theta_msve"] = theta_msve[depth]
                table.append(row)
                try:
                    weights = pretrain_history(
                        task_set, batches, algo, depth, discount, learning_rate, start, scaled=scaled
                    ).weights[-1]
                except Divergence as divergence:
                    row["diverged_at"] = divergence.task
                    continue
                with np.errstate(over="ignore", invalid="ignore"):
                    values = np.concatenate([estimates(weights, part, depth) for part in grams])
                    row["msve"] = data.error(values).mean()
                row["diverged_at"] = 0
                measures = decomposition_measures(weights, discount, scaled)
                measures |= number_measures(weights, discount, scaled)
                row |= {name: measures[name] for name in MEASURES}
    save_table(output, pd.DataFrame(table, columns=COLUMNS))


def tuned_theta_msve(
    data: UnseenTasks, tuning: UnseenTasks, depths: list[int], step_sizes: np.ndarray
) -> dict[int, float]:
    """Compute the mean MSVE of theta^TD with its best step size, for each number of layers, on enumerated prompts.

    Theta^TD carries out batch TD.

    Parameters
    ----------
    data : UnseenTasks
    tuning : UnseenTasks, on which the step size has the lowest mean MSVE
    depths : list of int
    step_sizes : (K,) array of candidates, if attention is divided by the context length
    """
    context = [data.context(ENUMERATED)]
    with np.errstate(over="ignore", invalid="ignore"):
        scores = batch_td_course(tuning, tuning.context(ENUMERATED), step_sizes, depths)
        best = [step_sizes[[index_of_best(scores_of_depth)]] for scores_of_depth in scores]
        return {
            depth: batch_td_msve(data, depth, context, step_size).mean()
            for depth, step_size in zip(depths, best, strict=True)
        }
