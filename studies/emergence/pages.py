"""Write the tables of the study's page as HTML."""

from pathlib import Path

import numpy as np
import pandas as pd

from ictd.pipeline.grid import CELL
from ictd.prompt import ENUMERATED
from ictd.report.claim_tables import claims_overview, claims_rows
from ictd.report.html import save, save_frames
from ictd.report.slider import run_data, slider
from ictd.report.tables import load_tables, rows_with
from ictd.report.verdicts import HOLDS, in_words, overall
from ictd.statistics import bootstrap_interval
from ictd.storage import load_arrays, load_json
from studies.emergence.claims import prediction_errors
from studies.emergence.runs import load_finite_runs

# Columns of alpha and beta, the multiples of I and 11' in G, in the page's words.
NUMBERS = {"identity": "α", "ones": "β", "identity_seen": "α seen", "ones_seen": "β seen"}
# An MSVE on enumerated prompts below which a trial has learned policy evaluation.
LEARNED = 0.5
# Tables of the measures of the weights, and their columns.
MEASURES = {
    "numbers": (
        "identity", "ones", "family_1", "family_2", "family_3", "all_1", "all_2", "all_3", "all_4", "unstable",
    ),
    "rank_one": ("family_1", "family_2", "ones_mu", "mu_ones", "best_rank_one", "random_rank_one"),
    "parts": (
        "unidentifiable", "alpha", "cosine", "theta", "preconditioner", "outside", "H", "diagonal", "symmetric", "u",
    ),
}  # fmt: skip
# Labels of the curves of the slider.
LABELS = ("cosine of A to theta^TD (median over trials)", "MSVE on enumerated prompts (median over trials)")


def main(claims: Path, tables: list[Path], runs: list[Path], env: str, output: Path) -> None:
    """Write the tables of the claims, the tables of the functions below, and the slider, each to one HTML file.

    ``env`` is the environment of the predictions.
    """
    table, records = load_tables(tables), load_json(claims)
    measures = table["measures"].groupby(CELL, sort=False).mean().reset_index()
    frames = {
        "claims": claims_overview(records),
        "claims_all": claims_rows(records),
        **{name: measures[[*CELL, *columns]] for name, columns in MEASURES.items()},
        "exchanged": by_rest(table["exchanged"]),
        "trained": trained_methods(table["trained"]),
        "slow_mode": table["slow_mode"].groupby("design", sort=False).mean().drop(columns="seed").reset_index(),
        "dynamics": prediction_errors(table["dynamics"], rows_with(table["course"], env=env)),
        "other_readings": verdicts_by_reading(table["readings"]),
        "reading_runs": medians_by_reading(table["reading_runs"]),
    }
    for name in ("numbers", "trained", "dynamics"):
        frames[name] = frames[name].rename(columns=NUMBERS)
    # "ones" is a cosine in this table.
    frames["slow_mode"] = frames["slow_mode"].rename(columns={"identity": "α"})
    save_frames(output, frames)
    save(output / "slider.html", "slider", slider(slider_data(table["course"], runs), LABELS))


def by_rest(exchanged: pd.DataFrame) -> pd.DataFrame:
    """A row for each cell, with the mean MSVE over trials for each exchange of the rest of A."""
    table = exchanged.pivot_table(index=CELL, columns="rest", values="mean", aggfunc="mean", sort=False)
    return table[exchanged["rest"].unique()].reset_index()


def trained_methods(trained: pd.DataFrame) -> pd.DataFrame:
    """A row for each cell, method, format and length: means over trials of means and of medians over tasks.

    ``low`` and ``high`` are the 95% interval of the mean: over trials, or from the standard error over tasks for
    methods without trials.
    """
    rows = []
    for key, trials in trained.groupby([*CELL, "method", "format", "context_length"], sort=False):
        mean = trials["mean"].mean()
        if len(trials) > 1:
            low, high = bootstrap_interval(trials["mean"].to_numpy())
        else:
            low, high = mean + np.array([-1.96, 1.96]) * trials["error"].iloc[0]
        rows.append((*key, *trials[["identity", "ones"]].mean(), mean, low, high, trials["median"].mean()))
    columns = [*CELL, "method", "format", "context_length", "identity", "ones", "mean", "low", "high", "median"]
    return pd.DataFrame(rows, columns=columns)


def slider_data(course: pd.DataFrame, runs: list[Path]) -> dict[str, dict]:
    """Data of the slider for the long runs that did not diverge, by cell in words.

    A and the numbers of tasks come from ``runs``, files ALGO-ENV/SEEDS.npz; cosine and MSVE come from the table
    ``course``.
    """
    data = {}
    for cell in dict.fromkeys(path.parent.name for path in runs):
        files = [path for path in runs if path.parent.name == cell]
        (tasks_seen,) = load_arrays(files[0], "tasks_seen")
        seeds, snapshots = load_finite_runs(files)
        if not len(seeds):
            continue
        algo, env = cell.split("-")
        table = rows_with(course, algo=algo, env=env).pivot(index="seed", columns="tasks_seen")
        cosine, msve = (table[name].loc[seeds].to_numpy() for name in ("cosine", f"msve_{ENUMERATED}"))
        data[in_words(cell)] = run_data(tasks_seen, snapshots.A.mean(axis=0), cosine, msve)
    return data


def verdicts_by_reading(readings: pd.DataFrame) -> pd.DataFrame:
    """A row for each reading, a column for each claim: the verdict, and the algorithms for which it does not hold."""
    cells = {}
    for (reading, claim), rows in readings.groupby(["reading", "claim"], sort=False):
        others = rows[rows["verdict"] != HOLDS]
        reasons = [algo.upper() for algo in others["algo"] if algo != "both"]
        # A value is NaN because trials diverged.
        if others["value"].isna().any():
            reasons.append("diverged")
        cells[reading, claim] = f"{overall(rows['verdict'].tolist())} {', '.join(reasons)}".strip()
    table = pd.Series(cells).unstack()[readings["claim"].unique()].loc[readings["reading"].unique()]
    return table.rename_axis("reading").reset_index().assign(reading=[name.replace("_", " ") for name in table.index])


def medians_by_reading(runs: pd.DataFrame) -> pd.DataFrame:
    """A row for each reading and algorithm: numbers of trials, and medians over the trials that did not diverge.

    The numbers are those of the trials that diverged, and of the trials that learned policy evaluation: their MSVE on
    enumerated prompts is below LEARNED.
    """
    groups = runs.groupby(["reading", "algo"], sort=False)
    lengths = [name for name in runs if name.startswith("msve_")]
    shown = ["alpha", "theta", "outside", "beyond_P", "beyond_Q", *dict.fromkeys([*lengths[:2], lengths[-1]])]
    table = groups[shown].median().reset_index()
    counted = {"diverged": runs["diverged_at"] > 0, f"MSVE below {LEARNED}": runs[f"msve_{ENUMERATED}"] < LEARNED}
    for place, (name, trials) in enumerate(counted.items(), 2):
        of_group = trials.groupby([runs["reading"], runs["algo"]], sort=False)
        table.insert(place, name, of_group.agg(lambda true: f"{true.sum()} of {len(true)}").to_numpy())
    table = table.rename(columns={name: f"MSVE, {name.removeprefix('msve_')} steps" for name in lengths[1:]})
    return table.assign(reading=table["reading"].str.replace("_", " "), algo=table["algo"].str.upper())
