"""Which rows of the study's tables are compared with which."""

import numpy as np
import pandas as pd

from ictd.pipeline.table_files import rows_with
from ictd.report.claim import TENTH
from studies.agents.grid import SETTING, Setting


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
    """Values with a column for the mean MSVE of each baseline at the same place and length, and LSTD's median.

    Bayes is NaN where the environment has no floor.
    """
    keys = ["env", "states", "discount", "context_length"]
    wide, medians = (baselines.pivot(index=keys, columns="method", values=over) for over in ("mean", "median"))
    wide = wide.assign(bayes=wide.get("bayes", np.nan), lstd_median=medians["lstd"])
    places = wide.reset_index().rename(columns={"env": "on_env", "discount": "on_discount"})
    return values.merge(places, on=["on_env", "states", "on_discount", "context_length"], how="left")


def has_gap(rows: pd.DataFrame) -> pd.Series:
    """Whether LSTD is above the floor, where there is one, by more than a tenth of it."""
    return rows["lstd"] > (1 + TENTH) * rows["bayes"]


def gap_closed(rows: pd.DataFrame) -> pd.Series:
    """Share of the gap between LSTD and the Bayesian floor that is closed: 0 at LSTD's MSVE, 1 at the floor.

    NaN where there is no gap.
    """
    return ((rows["lstd"] - rows["mean"]) / (rows["lstd"] - rows["bayes"])).where(has_gap(rows))
