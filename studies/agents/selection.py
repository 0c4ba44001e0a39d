"""Which rows of the study's tables are compared with which."""

import numpy as np
import pandas as pd

from ictd.report.claim import TENTH
from studies.agents.grid import Setting

SETTING = list(Setting._fields)  # The columns that name one.


def of_setting(table: pd.DataFrame, setting: Setting, *free: str) -> pd.DataFrame:
    """Rows of one setting, whatever they have in the ``free`` columns; those of baselines have no depth."""
    fixed = {name: value for name, value in setting._asdict().items() if name not in free}
    return table[(table[list(fixed)] == list(fixed.values())).all(axis=1)]


def last_within(table: pd.DataFrame, tasks: float = np.inf) -> pd.DataFrame:
    """Rows at each cell's last snapshot within a number of tasks."""
    within = table[table["tasks_seen"] <= tasks]
    return within[within["tasks_seen"] == within.groupby(["algo", *SETTING])["tasks_seen"].transform("max")]


def last_values(values: pd.DataFrame, tasks: float = np.inf, prompts: str = "contexts") -> pd.DataFrame:
    """The same of runs on sampled contexts, or of the paper's, on "enumerated" prompts."""
    return last_within(values[values["prompts"] == prompts], tasks)


def with_sampled_updates(table: pd.DataFrame) -> pd.DataFrame:
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
