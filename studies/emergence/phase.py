"""Pretrain one seed's runs of all depths, by both algorithms, on one number of states, and measure their weights."""

from pathlib import Path

import numpy as np
import pandas as pd

from ictd.anatomy import decomposition_measures
from ictd.evaluation import batch_td_msve, draw_unseen_tasks, log_spaced, tune_step_size, weights_msve
from ictd.mrp import sample_tasks
from ictd.pretraining import Divergence, pretrain_history
from ictd.prompt import ENUMERATED
from ictd.rng import generator
from ictd.sampling import unroll
from ictd.tables import save_table
from ictd.transformer import initial_weights

MEASURES = ("alpha", "cosine", "theta", "preconditioner", "outside")
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
    """Write a row a run: cosine to theta^TD, shares, and MSVE on enumerated prompts beside theta^TD's best."""
    scaled = scaled_attention
    task_set = sample_tasks(env, states, tasks, generator(seed, env, states, "phase tasks"), **env_options)
    rng = generator(seed, env, states, "phase unrolls")
    unrolls = unroll(task_set, batch_size, discount, rollout_steps, rng)
    start = initial_weights(states, initial_gain, generator(seed, env, states, "weights"))
    data, tuning = (
        draw_unseen_tasks(seed, states, size, 1, discount, env, purpose, **env_options)
        for purpose, size in (("phase", test_tasks), ("phase tuning", tuning_tasks))
    )
    coefficients, rows = log_spaced(**step_sizes) * (states if scaled else 1), []
    for depth in depths:
        scores = tune_step_size(tuning, depth, [tuning.context(ENUMERATED)], coefficients, scaled)
        best = coefficients[[scores.argmin()]]
        theta_msve = batch_td_msve(data, depth, [data.context(ENUMERATED)], best, scaled).mean()
        for algo in algos:
            row = {"algo": algo, "env": env, "states": states, "depth": depth, "seed": seed}
            try:
                weights = pretrain_history(
                    task_set, unrolls, algo, depth, discount, learning_rate, start.u, start.A, scaled=scaled
                ).weights
                with np.errstate(over="ignore", invalid="ignore"):
                    found = weights_msve(weights, data, [ENUMERATED], depth, scaled)
                measures = decomposition_measures(weights, discount, scaled)
                row |= {"diverged_at": 0, "msve": found[0, 0].mean(), **{name: measures[name][0] for name in MEASURES}}
            except Divergence as divergence:
                row |= {"diverged_at": divergence.task}
            rows.append({**row, "theta_msve": theta_msve})
    save_table(output, pd.DataFrame(rows, columns=COLUMNS))
