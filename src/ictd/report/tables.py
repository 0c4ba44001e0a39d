"""Reading of result tables as pandas DataFrames."""

from collections.abc import Sequence
from io import BytesIO
from pathlib import Path

import numpy as np

from ictd.extras import missing_extra
from ictd.pipeline.grid import flat_settings
from ictd.storage import load_json, reading

try:
    import pandas as pd
except ModuleNotFoundError as error:
    raise missing_extra("report", error.name) from None


def load_table(path: Path) -> pd.DataFrame:
    """Read a table.  A missing or damaged file raises a ValueError, ``ictd.storage.Unusable``."""
    with reading(path):
        content = path.read_bytes()
        if content and not content.endswith(b"\n"):
            raise ValueError("it ends in the middle of a line")
        return pd.read_csv(BytesIO(content))


def load_tables(paths: list[Path]) -> dict[str, pd.DataFrame]:
    """Read tables, as a dict by the names of their files without the ending."""
    return {path.stem: load_table(path) for path in paths}


def rows_with(table: pd.DataFrame, **values) -> pd.DataFrame:
    """Select the rows with the given values in the columns of these names."""
    return table[np.logical_and.reduce([table[name] == value for name, value in values.items()])]


def load_sweep(folders: Sequence[Path | str], table: str) -> pd.DataFrame:
    """Join a table of several finished runs, with a column for each setting in which the runs differ.

    Parameters
    ----------
    folders : list of Path or str, results of finished runs
    table : str, the table within each folder, such as "metrics/over_tasks.csv"

    Returns
    -------
    DataFrame
        The rows of all runs.  The columns of settings are named by their keys, joined by dots, such as
        "readings.initial_gain", with "settings." in front if the table has a column of this name.  A value that is a
        list or a mapping is a text.

    Raises
    ------
    ValueError
        If there are no folders, or a file is missing or damaged.
    """
    if not folders:
        raise ValueError("folders is empty; give the results of at least one run.")
    settings = [flat_settings(load_json(Path(folder, "manifest.json"))["settings"]) for folder in folders]
    keys = dict.fromkeys(key for each in settings for key in each)
    differing = [key for key in keys if any(each.get(key) != settings[0].get(key) for each in settings)]
    parts = []
    for folder, each in zip(folders, settings, strict=True):
        part = load_table(Path(folder, table))
        # The table's own columns stay, such as the number of states beside all numbers of the grid.
        columns = {f"settings.{key}" if key in part else key: each.get(key) for key in differing}
        parts.append(part.assign(**columns))
    return pd.concat(parts, ignore_index=True)
