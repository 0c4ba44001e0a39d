"""Write the tables of the page on what emerges, as HTML."""

from pathlib import Path

import numpy as np
import pandas as pd

from ictd.pipeline.grid import CELL
from ictd.prompt import ENUMERATED
from ictd.report.claim_tables import claims_overview, claims_rows
from ictd.report.html import save, save_frames
from ictd.report.slider import run_data, slider
from ictd.storage import load_arrays, load_json
from ictd.tables import load_tables, rows_with


def main(claims: Path, tables: list[Path], runs: list[Path], output: Path) -> None:
    """Write the tables as HTML, a page each: the claims, and those of the functions below."""
    of, decided = load_tables(tables), load_json(claims)
    pairs = of["correlations"].groupby(["kind", *CELL], sort=False)[["cosine", "null_entries", "null_states"]]
    frames = {
        "claims": claims_overview(decided),
        "claims_all": claims_rows(decided),
        "measures": of["measures"].groupby(CELL, sort=False).mean().drop(columns="seed").reset_index(),
        "correlations": pairs.mean().reset_index(),
        "other_readings": verdicts_by_reading(of["readings"]),
        "reading_runs": medians(of["reading_runs"]),
    }
    save_frames(output, frames)
    save(output / "slider.html", "slider", slider(courses_data(of["course"], runs)))


def courses_data(course: pd.DataFrame, runs: list[Path]) -> dict[str, dict]:
    """What the slider shows of the long runs, ALGO-ENV/SEED.npz, with cosine and MSVE from the table ``course``."""
    by_cell, shown = {}, {}
    for path in runs:
        tasks_seen, A = load_arrays(path, "tasks_seen", "A")
        if np.isfinite(A).all():
            by_cell.setdefault(path.parent.name, {})[int(path.stem)] = A, tasks_seen
    for cell, trials in by_cell.items():
        algo, env = cell.split("-")
        rows = rows_with(course, algo=algo, env=env).pivot(index="seed", columns="tasks_seen")
        found = [rows[name].loc[list(trials)].to_numpy() for name in ("cosine", f"msve_{ENUMERATED}")]
        shown[cell] = run_data(next(iter(trials.values()))[1], np.mean([A for A, _ in trials.values()], axis=0), *found)
    return shown


def verdicts_by_reading(readings: pd.DataFrame) -> pd.DataFrame:
    """A row a reading and a column a kind of claim: "holds", or that it fails, and with which algorithm."""
    cells = {}
    for place, rows in readings.groupby(["reading", "claim"], sort=False):
        failing = rows[rows["verdict"] == "fails"]
        algos = [algo.upper() for algo in failing["algo"] if algo != "both"]
        # A statistic that is not a number comes from trials that diverged.
        said = " ".join(["fails", ", ".join([*algos, *(["diverged"] if failing["value"].isna().any() else [])])])
        cells[place] = said.strip() if len(failing) else "holds"
    table = pd.Series(cells).unstack()[readings["claim"].unique()].loc[readings["reading"].unique()]
    return table.rename_axis("reading").reset_index().assign(reading=[name.replace("_", " ") for name in table.index])


def medians(runs: pd.DataFrame) -> pd.DataFrame:
    """A row a reading and algorithm: trials that diverged, and medians over the others."""
    grouped = runs.groupby(["reading", "algo"], sort=False)
    lengths = [name for name in runs if name.startswith("msve_")]
    shown = ["alpha", "theta", "outside", "beyond_P", "beyond_Q", *dict.fromkeys([*lengths[:2], lengths[-1]])]
    table = grouped[shown].median().reset_index()
    table.insert(2, "diverged", grouped["diverged_at"].agg(lambda at: f"{(at > 0).sum()} of {len(at)}").to_numpy())
    return table.assign(reading=table["reading"].str.replace("_", " "), algo=table["algo"].str.upper())
