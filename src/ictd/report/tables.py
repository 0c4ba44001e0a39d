"""Reading of result tables as pandas DataFrames."""

from io import BytesIO
from pathlib import Path

import numpy as np

from ictd.extras import missing_extra
from ictd.storage import reading

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
