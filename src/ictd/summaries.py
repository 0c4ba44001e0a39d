"""Tables for readers, made from the result tables, the claims, the configuration and the benchmarks."""

import json

import numpy as np
import pandas as pd

from ictd.grid import CELL

# The paper's table of hyperparameters and its hyperparameter study.
PAPER_SETTINGS = {
    "algos": '["td", "mc"]',
    "envs": '["boyan", "loop"]',
    "states": "[5, 3, 10]",
    "depths": "[30, 5, 10, 60]",
    "seeds": "20",
    "tasks": "20000",
    "discount": "0.9",
    "batch_size": "64",
    "rollout_steps": "200",
    "learning_rate": "0.001",
    "evaluation.tasks": "10",
    "evaluation.context_lengths": json.dumps(list(range(5, 101, 5))),
}
# The paper's appendix, section "Compute Resources".
PAPER_CORES, PAPER_TD_MINUTES, PAPER_MC_HOURS = 150, 50, 15


def claims_overview(claims: list[dict]) -> pd.DataFrame:
    """A row a kind of claim: in how many settings it holds, and where it fails with which value."""
    rows = []
    for _, group in pd.DataFrame(claims).groupby(lambda row: claims[row]["id"].split("/")[0], sort=False):
        first = group.iloc[0]
        failed = group[group["verdict"] == "fails"]
        where = [f"{row.setting} ({_number(row.value)})" for row in failed.itertuples()]
        where = where if len(group) > 1 else [_number(value) for value in failed["value"]]
        rows.append(
            {
                "claim": first["statement"],
                "decided by": f"{first['statistic']} {first['relation']} {first['threshold']:g}",
                "holds in": f"{len(group) - len(failed)} of {len(group)}",
                "where it fails": "fails: " + ", ".join(where) if where else "",
            }
        )
    return pd.DataFrame(rows)


def theory_overview(claims: list[dict], statements: pd.DataFrame) -> pd.DataFrame:
    """As ``claims_overview``, with the least ratio of bound to measured over tasks, layers and settings."""
    table = claims_overview(claims)
    tightest = statements[statements["layer"] > 0].groupby("statement")["tightest"].min()
    names = dict.fromkeys(claim["id"].split("/")[0] for claim in claims)
    ratios = [f"{tightest[name]:.3g}" if tightest.get(name, 0) > 0 else "" for name in names]
    table.insert(2, "least bound / measured", ratios)
    table.insert(0, "section", list({claim["id"].split("/")[0]: claim["section"] for claim in claims}.values()))
    return table


def _number(value: float | None) -> str:
    return "not finite" if pd.isna(value) else f"{value:.3g}"


def claims_listing(claims: list[dict]) -> pd.DataFrame:
    """Every claim with its value and verdict."""
    frame = pd.DataFrame(claims)
    frame["value"] = frame["value"].map(_number)
    frame["threshold"] = frame["relation"] + " " + frame["threshold"].map("{:g}".format)
    return frame[["id", "section", "statistic", "value", "threshold", "verdict"]]


def msve_summary(msve: pd.DataFrame, baselines: pd.DataFrame, weights: pd.DataFrame) -> pd.DataFrame:
    """Mean and median over trials of the MSVE at the shortest and the longest context, for cells and baselines, and of
    the cells' MSVE on enumerated prompts; trials that diverged are counted, and left out of both."""
    baselines = baselines[baselines["method"] != "batch_td"]
    without_depth = baselines["method"].isin(["lstd", "zero"])
    named = baselines.assign(algo=baselines["method"], env="", depth=baselines["depth"].mask(without_depth, 0))
    both = pd.concat([msve, named.drop_duplicates([*CELL, "seed", "context_length"])], ignore_index=True)
    ends = both[both["context_length"].isin([both["context_length"].min(), both["context_length"].max()])]
    table = ends.groupby([*CELL, "context_length"], sort=False)["msve"].agg(["mean", "median"]).unstack()
    table.columns = [f"{statistic}, context of {length}" for statistic, length in table.columns]
    enumerated = weights.groupby(CELL)["enumerated_msve"].agg(["mean", "median"])
    enumerated.columns = [f"{statistic}, enumerated prompt" for statistic in enumerated.columns]
    diverged = weights.groupby(CELL)["diverged_at"].agg(lambda tasks: f"{(tasks > 0).sum()} of {len(tasks)}")
    table = (
        table.join(enumerated)
        .join(diverged.rename("diverged"))
        .fillna({"diverged": ""})
        .reset_index()
        .rename(columns={"algo": "method"})
    )
    return table.assign(depth=table["depth"].astype(str).mask(table["depth"] == 0, ""))


def weights_summary(mean_weights: pd.DataFrame) -> pd.DataFrame:
    """The measures of the mean weights that the claims rest on."""
    measures = [
        "cosine",
        "cosine_A11",
        "cosine_A12",
        "energy_A21",
        "energy_A22",
        "diagonal_signs",
        "largest_u",
        "alpha",
    ]
    return mean_weights[CELL + measures]


def settings_table(settings: dict, schema: dict, section: str = "") -> pd.DataFrame:
    """Configuration keys, nested ones with dots, with their values, the paper's, and what the schema says of them."""
    rows = []
    for key, value in settings.items():
        about = schema["properties"][key]
        if "properties" in about:
            rows += settings_table(value, about, f"{section}{key}.").to_dict("records")
        else:
            name = section + key
            shown = value if isinstance(value, str) else json.dumps(value)
            row = {"key": name, "value": shown, "paper": PAPER_SETTINGS.get(name, ""), "meaning": about["description"]}
            rows.append(row)
    return pd.DataFrame(rows)


def difference_from_paper(settings: dict, schema: dict) -> str:
    """A sentence that says which settings are not the paper's."""
    table = settings_table(settings, schema)
    other = table[(table["paper"] != "") & (table["paper"] != table["value"])]["key"]
    if other.empty:
        return "The settings of this run are the paper's."
    return f"The settings of this run are not the paper's: {', '.join(other)}; see Settings."


def compute_table(benchmarks: dict[str, list[pd.DataFrame]]) -> pd.DataFrame:
    """A row a rule: jobs, wall and CPU time summed over them, and their greatest memory; and the paper's totals.

    Parameters
    ----------
    benchmarks : for each rule, the benchmark tables that Snakemake wrote
    """
    rows = []
    for rule, parts in benchmarks.items():
        jobs = pd.concat(parts).apply(pd.to_numeric, errors="coerce")
        rows.append([rule, str(len(jobs)), jobs["s"].sum(), jobs["cpu_time"].sum(), jobs["max_rss"].max()])
    columns = ["rule", "jobs", "time, summed over jobs (s)", "CPU time (s)", "peak memory (MiB)"]
    table = pd.DataFrame(rows, columns=columns)
    total = [
        "these rules together",
        str(table["jobs"].astype(int).sum()),
        *table[columns[2:4]].sum(),
        table[columns[4]].max(),
    ]
    td, mc = PAPER_CORES * PAPER_TD_MINUTES * 60.0, PAPER_CORES * PAPER_MC_HOURS * 3600.0
    paper = [
        [f"paper, multi-task TD, {PAPER_TD_MINUTES} minutes on {PAPER_CORES} cores", "", np.nan, td, np.nan],
        [f"paper, multi-task MC, {PAPER_MC_HOURS} hours on {PAPER_CORES} cores", "", np.nan, mc, np.nan],
    ]
    return pd.concat([table, pd.DataFrame([total, *paper], columns=columns)], ignore_index=True)
