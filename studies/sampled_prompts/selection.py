"""Which rows of the study's tables are compared with which."""

import numpy as np
import pandas as pd

from ictd.tables import rows_with
from studies.sampled_prompts.grid import SETTING, Setting

# Methods that a Transformer is measured by.  The last two know the mean chain of the tasks that they are tuned on.
BASELINES = (
    "lstd", "theta_td", "batch_td", "td_lambda", "certainty_equivalence", "ce_uniform", "ce_prior", "lstd_prior"
)  # fmt: skip


def of_setting(table: pd.DataFrame, setting: Setting, *free: str) -> pd.DataFrame:
    """Rows of one setting, whatever they have in the ``free`` columns; those of baselines have no depth."""
    fixed = {name: value for name, value in setting._asdict().items() if name not in free}
    return rows_with(table, **fixed)


def latest(table: pd.DataFrame, tasks: float = np.inf, prompts: str = "contexts") -> pd.DataFrame:
    """Rows at each cell's last snapshot within a number of tasks.

    Where the paper's runs, on "enumerated" prompts, stand beside those on sampled contexts, of one of these kinds.
    """
    within = table[(table["tasks_seen"] <= tasks) & (table.get("prompts", prompts) == prompts)]
    return within[within["tasks_seen"] == within.groupby(["algo", *SETTING])["tasks_seen"].transform("max")]


def sampled_updates(table: pd.DataFrame) -> pd.DataFrame:
    """Rows of runs by the paper's algorithms; the other teachers make expected updates."""
    return table[~table["algo"].str.startswith("expected_")]


def at_home(values: pd.DataFrame) -> pd.DataFrame:
    """Rows evaluated on the environment and discount of pretraining."""
    return values[(values["env"] == values["on_env"]) & (values["discount"] == values["on_discount"])]


def with_baselines(values: pd.DataFrame, baselines: pd.DataFrame) -> pd.DataFrame:
    """Values with columns for the MSVE of each baseline at the same place and length, ``NAME_mean`` and
    ``NAME_median`` over tasks.

    ``best`` is the baseline with the least mean at that place and length, which ``best_is`` names, and ``bayes`` the
    floor, NaN where the environment has none.
    """
    keys = ["env", "states", "discount", "context_length"]
    wide = {over: baselines.pivot(index=keys, columns="method", values=over) for over in ("mean", "median")}
    best = wide["mean"].reindex(columns=list(BASELINES)).idxmin(axis=1)
    columns = {"best_is": best}
    for over, table in wide.items():
        columns[f"best_{over}"] = [table.loc[place, name] for place, name in best.items()]
        columns |= {f"{name}_{over}": table[name] for name in table}
        columns.setdefault(f"bayes_{over}", np.nan)
    places = pd.DataFrame(columns, index=best.index).reset_index()
    places = places.rename(columns={"env": "on_env", "discount": "on_discount"})
    return values.merge(places, on=["on_env", "states", "on_discount", "context_length"], how="left")


def over_baseline(rows: pd.DataFrame, baseline: str = "best", over: str = "mean") -> pd.Series:
    """MSVE over that of a baseline, both the ``over`` over tasks: below 1 where the Transformer is better."""
    return rows[over] / rows[f"{baseline}_{over}"]
