"""Write the tables of the study's page as HTML."""

from pathlib import Path

import pandas as pd

from ictd.pipeline.grid import CELL
from ictd.prompt import ENUMERATED
from ictd.report import html
from ictd.report.claim_tables import claims_overview, claims_rows
from ictd.report.tables import load_tables
from ictd.statistics import bootstrap_interval
from ictd.storage import load_json
from studies.sampled_prompts.grid import SETTING, Setting
from studies.sampled_prompts.selection import (
    evaluated_as_trained,
    latest,
    ratio_to_baseline,
    rows_of_setting,
    sampled_updates,
    with_baselines,
)

# A trial fails if its MSVE exceeds the MSVE of the median trial by more than this factor.
FAILED = 5


def main(claims: Path, tables: list[Path], setting: dict, tasks: int, lengths: list[int], output: Path) -> None:
    """Write the tables of the claims, and the tables of the functions below, each to one HTML file."""
    table = load_tables(tables)
    records = load_json(claims)
    frames = {
        "formats_table": formats_page(table["formats"], table["baselines"], Setting(**setting)),
        "cells": cells_page(table["formats"]),
        "claims": claims_overview(records),
        "claims_all": claims_rows(records),
        "values": values_page(table["values"], table["baselines"], Setting(**setting), tasks),
        "ratios_by_setting": ratios_page(table["values"], table["baselines"], table["over_tasks"], max(lengths)),
        "weights": weights_page(table["weights"], tasks),
        "attention_runs": attention_page(table["attention"]),
    }
    html.save_frames(output, frames)


# Baselines in the table of formats, and labels of the formats and of the pretraining prompts.
BESIDE = ("lstd", "ce_uniform", "mean_chain", "lstd_prior", "bayes")
FORMATS = {"step": "a column for each step", "grouped": "grouped", "pseudo": "grouped, one pseudo-step"}
PRETRAINED_ON = {
    "paper": "enumerated prompts, as in the paper",
    "enumerated": "enumerated prompts",
    "contexts": "contexts, a column for each step",
    "grouped": "grouped contexts",
}


def formats_page(formats: pd.DataFrame, baselines: pd.DataFrame, main: Setting) -> pd.DataFrame:
    """A row for each kind of pretraining and format, or baseline, and a column for each context length.

    Entries have the mean over tasks, its standard error and the median over tasks of the MSVE in the main setting.
    """
    here = (formats["env"] == main.env) & (formats["states"] == main.states) & (formats["depth"] == main.depth)
    rows = formats[here]
    rows = rows.assign(
        pretrained_on=rows["algo"].str.upper() + ", " + rows["prompts"].map(PRETRAINED_ON),
        shown=rows["shown"].map(FORMATS),
        entry=with_error(rows),
    )
    beside = rows_of_setting(baselines, main, "depth")
    beside = beside[beside["method"].isin(BESIDE) & beside["context_length"].isin(rows["context_length"])]
    beside = beside.assign(pretrained_on=beside["method"], shown="", entry=with_error(beside))
    both = pd.concat([rows, beside])
    keys = ["pretrained_on", "shown"]
    order = both[keys].drop_duplicates()
    table = both.pivot(index=keys, columns="context_length", values="entry")
    return table.loc[list(order.itertuples(index=False, name=None))].reset_index().rename(columns=str)


def with_error(rows: pd.DataFrame) -> list[str]:
    """The mean with its standard error, and the median, as texts."""
    return [f"{row.mean:.3g} ± {row.standard_error:.2g} ({row.median:.2g})" for row in rows.itertuples(index=False)]


def cells_page(formats: pd.DataFrame) -> pd.DataFrame:
    """A row for each of the paper's cells and format, and a column for each context length: the ratio to LSTD.

    Each entry has the ratio of the mean MSVEs, its 95% interval over tasks, and whether the interval is above or below
    1.
    """
    rows = formats[(formats["prompts"] == "paper") & (formats["shown"] != "pseudo")]
    entries = []
    for row in rows.itertuples():
        verdict = "below LSTD" if row.high < 1 else "above LSTD" if row.low > 1 else "not shown"
        entries.append(f"{row.mean / row.lstd:.2f} ({row.low:.2f} to {row.high:.2f}), {verdict}")
    keys = [*CELL, "shown"]
    table = rows.assign(entry=entries, shown=rows["shown"].map(FORMATS))
    return table.pivot(index=keys, columns="context_length", values="entry").reset_index().rename(columns=str)


def values_page(values: pd.DataFrame, baselines: pd.DataFrame, main: Setting, tasks: int) -> pd.DataFrame:
    """A row for each method and a column for each context length: mean (median) MSVE in the main setting."""
    in_main = rows_of_setting(baselines, main, "depth")
    methods = in_main["method"].unique()
    in_main = in_main.assign(entry=with_error(in_main))
    frames = [in_main.pivot(index="method", columns="context_length", values="entry").loc[methods]]
    runs = rows_of_setting(evaluated_as_trained(sampled_updates(values)), main)
    by_prompts = {
        "on enumerated prompts": latest(runs, prompts="enumerated"),
        "on contexts": latest(runs, tasks),
    }
    for label, selected in by_prompts.items():
        trials = selected.groupby(["algo", "context_length"], sort=False)[["mean", "median"]]
        means = trials.mean(numeric_only=True)
        errors = trials.sem()["mean"].fillna(0)
        means = means.assign(standard_error=errors)
        means = means.assign(entry=with_error(means))["entry"].unstack()
        frames.append(means.set_axis([f"{algo.upper()} {label}" for algo in means.index]))
    return pd.concat(frames).rename_axis("method").reset_index().rename(columns=str)


def ratios_page(values: pd.DataFrame, baselines: pd.DataFrame, over_tasks: pd.DataFrame, longest: int) -> pd.DataFrame:
    """A row for each setting and a column for each context length: the ratio of the MSVE to the best baseline's.

    Each entry has the mean over trials at the end of pretraining, its intervals over trials and over tasks, and the
    name of the best baseline.
    """
    runs = with_baselines(evaluated_as_trained(latest(values)), baselines)
    runs = runs[runs["context_length"] <= longest].assign(ratio=ratio_to_baseline)
    keys = ["algo", *SETTING, "tasks_seen", "context_length"]
    groups = runs.groupby(keys, sort=False)
    over_tasks = evaluated_as_trained(over_tasks)
    ends = over_tasks[over_tasks["baseline"] == "best"].set_index(keys).loc[list(groups.groups)]
    entries = groups["ratio"].apply(with_interval)
    entries += ", tasks " + ends["low"].map("{:.2f}".format) + " to " + ends["high"].map("{:.2f}".format)
    entries += "; " + groups["best_is"].first()
    return entries.unstack().reset_index().rename(columns=str)


def with_interval(samples: pd.Series) -> str:
    """The mean over trials with its 95% bootstrap interval, as text."""
    if samples.isna().any():
        return f"{samples.isna().sum()} of {len(samples)} diverged"
    low, high = bootstrap_interval(samples.to_numpy())
    return f"{samples.mean():.2f} ({low:.2f} to {high:.2f})"


def weights_page(weights: pd.DataFrame, tasks: int) -> pd.DataFrame:
    """A row for each setting: means over trials of the measures of its weights."""
    means = latest(weights, tasks).groupby(["algo", *SETTING], sort=False).mean(skipna=False)
    return means.drop(columns=["seed", "tasks_seen"]).reset_index()


def attention_page(attention: pd.DataFrame) -> pd.DataFrame:
    """A row for each kind of attention, prompts of pretraining and algorithm: median over trials of the mean MSVE.

    ``failed`` counts the trials that diverged, or whose MSVE is more than FAILED times the MSVE of the median trial, on
    the prompts of pretraining (for sampled contexts, on the longest length).
    """
    keys = ["attention", "prompts", "algo"]
    medians = attention.groupby([*keys, "context_length"], sort=False)["mean"].median().unstack()
    length_of_prompts = {"enumerated": ENUMERATED, "contexts": attention["context_length"].max()}
    as_trained = attention[attention["context_length"] == attention["prompts"].map(length_of_prompts)]
    failed = as_trained.groupby(keys, sort=False)["mean"].agg(
        lambda trials: (~(trials <= FAILED * trials.median())).sum()
    )
    medians = medians.rename(columns=lambda length: "enumerated" if length == ENUMERATED else f"{length} steps")
    groups = attention.groupby(keys, sort=False)
    return medians.assign(
        failed=failed,
        least_response=groups["least_response"].min(),
        greatest_response=groups["greatest_response"].max(),
    ).reset_index()
