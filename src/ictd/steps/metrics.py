"""Gather the evaluations and weights of all cells into the result tables."""

from pathlib import Path

import pandas as pd

from ictd import tables
from ictd.frames import save_table
from ictd.grid import Cell
from ictd.steps import run
from ictd.storage import load_json, load_named

EVALUATION = ("seeds", "context_lengths", "msve", "enumerated_msve")
BASELINES = ("seeds", "context_lengths", "theta_td", "batch_td", "lstd", "zero")
WEIGHTS = ("seeds", "u", "A", "history_u", "history_A", "tasks_seen", "online_msve", "diverged_at")


def main(
    weights: list[Path],
    evaluations: list[Path],
    baselines: list[Path],
    audit: Path,
    discount: float,
    rollout_steps: int,
    env_options: dict,
    output: Path,
) -> None:
    """Write the tables, msve to audit, into the folder ``output``."""
    runs = {Cell.parse(path.stem): load_named(path, *WEIGHTS) for path in weights}
    evaluated = {Cell.parse(path.stem): load_named(path, *EVALUATION) for path in evaluations}
    beside = {tuple(map(int, path.stem.split("-"))): load_named(path, *BASELINES) for path in baselines}
    settings = sorted({(cell.env, cell.states) for cell in runs})
    made = {
        "msve": tables.msve_table(evaluated),
        "baselines": tables.baselines_table(beside),
        "weights": tables.weights_table(runs, evaluated),
        "mean_weights": tables.mean_weights_table(runs),
        "agreement": tables.agreement_table(runs),
        "learning": tables.learning_table(runs),
        "truncation": tables.truncation_table(settings, discount, rollout_steps, env_options),
        "audit": pd.DataFrame(load_json(audit)),
    }
    for name, table in made.items():
        save_table(output / f"{name}.csv", table)


if __name__ == "__main__":
    run(main)
