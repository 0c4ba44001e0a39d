"""Pretraining with expected updates, for which nothing but tasks is drawn, and what is outside of K [-I, I] meanwhile.

TD's target is r + gamma p TF_L and MC's is v.  Besides, all is as in the paper, but for what a run of RUNS changes.
"""

from pathlib import Path

import numpy as np
import pandas as pd

from ictd.anatomy import decomposition_measures, project_identifiable, squared_norm
from ictd.kernels import size
from ictd.mrp import Tasks, sample_tasks
from ictd.rng import generator
from ictd.storage import save_table
from ictd.transformer import Weights, initial_weights, theta_td
from studies.limits.descend import enumerated
from studies.limits.engine import Prompts, train_block
from studies.limits.minimise import Objective, flat, unflat

# Algorithm; whether A is put on K [-I, I]; whether a gain is trained; alpha of a theta^TD that is added to the start.
RUNS = {
    "td": ("td", False, False, 0), "mc": ("mc", False, False, 0), "inside": ("td", True, False, 0),
    "gain": ("td", False, True, 0), "start": ("td", False, False, 1),
}  # fmt: skip


def main(
    env: str, states: int, seed: int, discounts: list[float], depths: list[int], marks: list[int], test_tasks: int,
    learning_rate: float, initial_gain: float, env_options: dict, output: Path,
) -> None:  # fmt: skip
    """Write a row a run, discount, depth and number of tasks, of ``marks``, for one seed."""
    tasks = sample_tasks(env, states, marks[-1], generator(seed, env, states, "limits course"), **env_options)
    test = sample_tasks(env, states, test_tasks, generator(0, env, states, "limits held out"), **env_options)
    drawn, theta = initial_weights(states, initial_gain, generator(seed, env, states, "weights")), theta_td(states)
    rows = []
    for discount in discounts:
        prompts, beside = enumerated(tasks, discount), enumerated(test, discount)
        for depth in depths:
            for run, (algo, inside, gain, alpha) in RUNS.items():
                begin = flat(Weights(drawn.u, drawn.A + alpha * states * theta.A))
                how = algo, depth, discount, learning_rate, marks, 0.0, inside, gain
                kept = train(begin[None], np.ones((len(tasks), 1)), tasks, prompts, *how)[:, 0]
                of = decomposition_measures(unflat(kept, states), discount)
                errors = Objective([(beside, np.eye(len(begin)))], depth, 0 * begin)
                found = {name: of[name] for name in ("alpha", "theta", "preconditioner", "outside")}
                norm = np.sqrt(of["outside"] * squared_norm(project_identifiable(unflat(kept, states), discount).A))
                found |= {"outside_norm": norm, "gain": kept[:, -1], "zero": errors.value_and_gradient(0 * begin)[0]}
                found["msve"] = [errors.value_and_gradient(one)[0] for one in kept]
                place = {"run": run, "discount": discount, "depth": depth, "seed": seed, "tasks": marks}
                rows.append(pd.DataFrame(place | found))
    save_table(output, pd.concat(rows, ignore_index=True))


def train(
    begin: np.ndarray, shares: np.ndarray, tasks: Tasks, prompts: Prompts, algo: str, depth: int, discount: float,
    learning_rate: float, marks: list[int], clip: float, inside: bool = False, gain: bool = False,
) -> np.ndarray:  # fmt: skip
    """Heads (marks, h, 2n + 4n^2 + 1), which begin as (h, 2n + 4n^2 + 1) and have ``shares`` (N, h) in each prompt,
    after some numbers of tasks, a prompt each; NaN from a divergence on."""
    state = begin.copy(), np.zeros_like(begin), np.zeros_like(begin)
    kept, done = np.full((len(marks), *begin.shape), np.nan), 0
    for i, mark in enumerate(marks):
        one, of, share = prompts[done:mark], tasks[done:mark], shares[done:mark]
        done += train_block(
            size(tasks.states), size(one.y.shape[1]), one.X, one.y, of.transition, of.reward, one.target, one.weight,
            share, algo == "td", depth, discount, learning_rate, clip, inside, gain, *state, done,
        )  # fmt: skip
        if done < mark:
            break
        kept[i] = state[0]
    return kept
