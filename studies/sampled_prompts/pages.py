"""Write the tables of the page on prompts as an agent sees them, as HTML."""

from pathlib import Path

import pandas as pd

from ictd.prompt import ENUMERATED
from ictd.report import html
from ictd.report.claim_tables import claims_overview, claims_rows
from ictd.statistics import bootstrap_interval
from ictd.storage import load_json
from ictd.tables import load_tables
from studies.sampled_prompts.grid import SETTING, Setting
from studies.sampled_prompts.selection import (
    at_home,
    latest,
    of_setting,
    over_baseline,
    sampled_updates,
    with_baselines,
)

FAILED = 5


def main(claims: Path, tables: list[Path], setting: dict, tasks: int, lengths: list[int], output: Path) -> None:
    """Write the tables as HTML, a page each: the claims, and those of the functions below."""
    of, decided = load_tables(tables), load_json(claims)
    frames = {
        "claims": claims_overview(decided),
        "claims_all": claims_rows(decided),
        "values": values_page(of, Setting(**setting), tasks),
        "ratios_by_setting": ratios_page(of, max(lengths)),
        "shapes": shapes_page(of["shapes"], tasks),
        "attention_runs": attentions_page(of["attention"]),
    }
    html.save_frames(output, frames)


def values_page(of: dict[str, pd.DataFrame], main: Setting, tasks: int) -> pd.DataFrame:
    """A row a method and a column a context length: mean MSVE in the main setting."""
    place = of_setting(of["baselines"], main, "depth")
    rows = place.pivot(index="method", columns="context_length", values="mean").loc[place["method"].unique()]
    home = of_setting(at_home(sampled_updates(of["values"])), main)
    trained = {
        "on enumerated prompts": latest(home, prompts="enumerated"),
        "on contexts": latest(home, tasks),
    }
    found = [rows]
    for label, frame in trained.items():
        table = frame.groupby(["algo", "context_length"], sort=False)["mean"].mean(skipna=False).unstack()
        found.append(table.set_axis([f"{algo.upper()} {label}" for algo in table.index]))
    return pd.concat(found).rename_axis("method").reset_index().rename(columns=str)


def ratios_page(of: dict[str, pd.DataFrame], longest: int) -> pd.DataFrame:
    """A row a setting and a column a context length: the MSVE over the best baseline's at the end, with its intervals
    over trials and over tasks, and which baseline that is."""
    values = with_baselines(at_home(latest(of["values"])), of["baselines"]).assign(ratio=over_baseline)
    values = values[values["context_length"] <= longest]
    keys = ["algo", *SETTING, "tasks_seen", "context_length"]
    groups = values.groupby(keys, sort=False)
    over_tasks = at_home(of["over_tasks"])
    ends = over_tasks[over_tasks["baseline"] == "best"].set_index(keys).loc[list(groups.groups)]
    ratios = groups["ratio"].apply(with_interval)
    ratios += ", tasks " + ends["low"].map("{:.2f}".format) + " to " + ends["high"].map("{:.2f}".format)
    ratios += "; " + groups["best_is"].first()
    return ratios.unstack().reset_index().rename(columns=str)


def with_interval(samples: pd.Series) -> str:
    """Mean over trials with its 95% bootstrap interval."""
    if samples.isna().any():
        return f"{samples.isna().sum()} of {len(samples)} diverged"
    low, high = bootstrap_interval(samples.to_numpy())
    return f"{samples.mean():.2f} ({low:.2f} to {high:.2f})"


def shapes_page(shapes: pd.DataFrame, tasks: int) -> pd.DataFrame:
    """A row a setting: means over trials of the measures of its weights."""
    means = latest(shapes, tasks).groupby(["algo", *SETTING], sort=False).mean(skipna=False)
    return means.drop(columns=["seed", "tasks_seen"]).reset_index()


def attentions_page(table: pd.DataFrame) -> pd.DataFrame:
    """A row a kind of attention, prompts of pretraining and algorithm: median over trials of the mean MSVE.

    ``failed`` counts the trials that diverged, or whose MSVE on the prompts of pretraining, the longest ones if there
    are several, is more than FAILED times the median trial's.
    """
    keys = ["attention", "prompts", "algo"]
    medians = table.groupby([*keys, "context_length"], sort=False)["mean"].median().unstack()
    # The least length stands for enumerated prompts.
    longest = table["context_length"].max()
    on = table[table["context_length"] == table["prompts"].map({"enumerated": ENUMERATED, "contexts": longest})]
    failed = on.groupby(keys, sort=False)["mean"].agg(lambda trials: (~(trials <= FAILED * trials.median())).sum())
    ones = table.groupby(keys, sort=False)[["least_of_one", "most_of_one"]]
    medians = medians.rename(columns=lambda length: "enumerated" if length == ENUMERATED else f"{length} steps")
    ends = {"least_of_one": ones.min()["least_of_one"], "most_of_one": ones.max()["most_of_one"]}
    return medians.assign(failed=failed, **ends).reset_index()
