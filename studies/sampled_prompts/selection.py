"""Select and join rows of the study's tables for comparisons."""

import numpy as np
import pandas as pd

from ictd.report.tables import rows_with
from studies.sampled_prompts.grid import SETTING, Setting

# Baselines of the Transformer.  The last two use the mean chain of the tuning tasks.
BASELINES = (
    "lstd", "theta_td", "batch_td", "td_lambda", "certainty_equivalence", "ce_uniform", "ce_prior", "lstd_prior"
)  # fmt: skip


def rows_of_setting(table: pd.DataFrame, setting: Setting, *free: str) -> pd.DataFrame:
    """Rows of one setting, with any values in the ``free`` columns; tables of baselines have no column "depth"."""
    fixed = {name: value for name, value in setting._asdict().items() if name not in free}
    return rows_with(table, **fixed)


def latest(table: pd.DataFrame, tasks: float = np.inf, prompts: str = "contexts") -> pd.DataFrame:
    """Rows at the last snapshot of each run after at most ``tasks`` tasks.

    If the table also has the paper's runs, only the runs that were pretrained on one kind of ``prompts`` are kept:
    "contexts", or "enumerated" for the paper's.
    """
    within = table[(table["tasks_seen"] <= tasks) & (table.get("prompts", prompts) == prompts)]
    return within[within["tasks_seen"] == within.groupby(["algo", *SETTING])["tasks_seen"].transform("max")]


def sampled_updates(table: pd.DataFrame) -> pd.DataFrame:
    """Rows of runs with sampled batches and a column for each step; other runs have expected updates or formats."""
    return table[table["algo"].isin(["td", "mc"])]


def evaluated_as_trained(values: pd.DataFrame) -> pd.DataFrame:
    """Rows that were evaluated on the environment and discount of pretraining."""
    return values[(values["env"] == values["on_env"]) & (values["discount"] == values["on_discount"])]


def with_baselines(values: pd.DataFrame, baselines: pd.DataFrame) -> pd.DataFrame:
    """Add columns with the MSVE of each baseline on the same tasks and contexts, ``NAME_mean`` and ``NAME_median``.

    ``best`` is the baseline with the lowest mean for an environment, discount and context length; ``best_is`` is its
    name.  ``bayes`` is the Bayes error, NaN for environments without one.
    """
    keys = ["env", "states", "discount", "context_length"]
    means, medians = (baselines.pivot(index=keys, columns="method", values=name) for name in ("mean", "median"))
    best = means.reindex(columns=list(BASELINES)).idxmin(axis=1)
    columns = {"best_is": best}
    for statistic, table in (("mean", means), ("median", medians)):
        columns[f"best_{statistic}"] = [table.loc[key, name] for key, name in best.items()]
        columns |= {f"{name}_{statistic}": table[name] for name in table}
        columns.setdefault(f"bayes_{statistic}", np.nan)
    joined = pd.DataFrame(columns, index=best.index).reset_index()
    joined = joined.rename(columns={"env": "on_env", "discount": "on_discount"})
    return values.merge(joined, on=["on_env", "states", "on_discount", "context_length"], how="left")


def ratio_to_baseline(values: pd.DataFrame, baseline: str = "best", statistic: str = "mean") -> pd.Series:
    """Ratio of the MSVE to a baseline's, from means or medians over tasks; below 1 the Transformer is better."""
    return values[statistic] / values[f"{baseline}_{statistic}"]
