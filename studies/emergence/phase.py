"""Pretrain one seed at one number of states, with all depths and algorithms, and measure the weights."""

from pathlib import Path

import numpy as np
import pandas as pd

from ictd.anatomy import decomposition_measures
from ictd.evaluation import UnseenTasks, batch_td_msve, draw_unseen_tasks, tune_step_size, weights_msve
from ictd.mrp import sample_tasks
from ictd.pretraining import Divergence, pretrain_history
from ictd.prompt import ENUMERATED
from ictd.rng import generator
from ictd.sampling import unroll
from ictd.statistics import log_spaced
from ictd.storage import save_table
from ictd.transformer import initial_weights
from studies.emergence.few_numbers import number_measures

MEASURES = ("alpha", "cosine", "theta", "preconditioner", "outside", "identity", "ones", "two")
COLUMNS = ["algo", "env", "states", "depth", "seed", "diverged_at", *MEASURES, "msve", "theta_msve"]


def main(
    algos: list[str],
    env: str,
    states: int,
    seed: int,
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
    task_set = sample_tasks(env, states, tasks, generator(seed, env, states, "phase tasks"), **env_options)
    rng = generator(seed, env, states, "phase unrolls")
    batches = unroll(task_set, batch_size, discount, rollout_steps, rng)
    start = initial_weights(states, initial_gain, generator(seed, env, states, "weights"))
    # Contexts are enumerated, so one step of a trajectory is enough.
    data = draw_unseen_tasks(seed, states, test_tasks, 1, discount, env, "phase", **env_options)
    tuning = draw_unseen_tasks(seed, states, tuning_tasks, 1, discount, env, "phase tuning", **env_options)
    candidates = log_spaced(**step_sizes) * (states if scaled else 1)
    table = []
    for depth in depths:
        coefficient = best_coefficient(tuning, depth, ENUMERATED, candidates, scaled)
        theta_msve = batch_td_msve(data, depth, [data.context(ENUMERATED)], np.array([coefficient]), scaled).mean()
        for algo in algos:
            row = {"algo": algo, "env": env, "states": states, "depth": depth, "seed": seed, "theta_msve": theta_msve}
            table.append(row)
            try:
                weights = pretrain_history(
                    task_set, batches, algo, depth, discount, learning_rate, start, scaled=scaled
                ).weights[-1]
            except Divergence as divergence:
                row["diverged_at"] = divergence.task
                continue
            with np.errstate(over="ignore", invalid="ignore"):
                row["msve"] = weights_msve(weights, data, [ENUMERATED], depth, scaled).mean()
            row["diverged_at"] = 0
            measures = decomposition_measures(weights, discount, scaled)
            measures |= number_measures(weights, discount, scaled)
            row |= {name: measures[name] for name in MEASURES}
    save_table(output, pd.DataFrame(table, columns=COLUMNS))


def best_coefficient(data: UnseenTasks, depth: int, length: int, candidates: np.ndarray, scaled: bool) -> float:
    """The coefficient of theta^TD with the least mean MSVE at one context length, from candidates (K,)."""
    scores = tune_step_size(data, depth, [data.context(length)], candidates, scaled)
    return candidates[scores.argmin()]
