"""Write the tables of the page on what emerges, as HTML."""

from pathlib import Path

import pandas as pd

from ictd.pipeline.grid import CELL
from ictd.pipeline.storage import load_json
from ictd.pipeline.table_files import load_tables
from ictd.report.claim_tables import claims_listing, claims_overview
from ictd.report.html import save_frames


def main(claims: Path, tables: list[Path], output: Path) -> None:
    """Write the tables as HTML, a page each: the claims, and those of the functions below."""
    of, decided = load_tables(tables), load_json(claims)
    pairs = of["correlations"].groupby(["kind", *CELL], sort=False)[["cosine", "null_entries", "null_states"]]
    frames = {
        "claims": claims_overview(decided),
        "claims_all": claims_listing(decided),
        "measures": of["measures"].groupby(CELL, sort=False).mean().drop(columns="seed").reset_index(),
        "correlations": pairs.mean().reset_index(),
        "other_readings": verdicts_by_reading(of["readings"]),
        "reading_runs": medians(of["reading_runs"]),
    }
    save_frames(output, frames)


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
