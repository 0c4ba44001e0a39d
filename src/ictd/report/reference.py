"""The reference numbers that the repository keeps: summary figures of a finished run, and what differs from them."""

from pathlib import Path

import numpy as np
import pandas as pd

from ictd.pipeline.grid import CELL
from ictd.pipeline.storage import load_json, save_json
from ictd.pipeline.table_files import load_table, save_tables

# Processors round differently, and training carries that on.
TOLERANCE = 1e-6
# What is rounding and nothing else, such as the difference of two ways to compute the same.
ROUNDING = 1e-12

TABLES = ("msve", "baselines", "weights")
KEYS = {"runs": [*CELL, "seed"], "baselines": ["method", "states", "depth", "context_length"], "claims": ["id"]}


def main(results: Path, output: Path) -> None:
    """Write the summary figures of a finished run as CSV and its settings as JSON (``make reference``)."""
    save_tables(output, summary_tables(results))
    save_json(output / "settings.json", load_json(results / "manifest.json")["settings"])


def summary_tables(results: Path) -> dict[str, pd.DataFrame]:
    """Summary figures of a finished run, one table for each name in KEYS; ValueError names a missing or damaged file.

    Returns
    -------
    dict with
        runs : a row a run; measures of its weights, and its mean MSVE at the shortest and the longest context
        baselines : a row for each method, setting and context length; the mean MSVE over seeds
        claims : a row a claim; value and verdict
    """
    msve, baselines, weights = (load_table(results / f"metrics/{name}.csv") for name in TABLES)
    claims = pd.DataFrame(load_json(results / "claims.json"))
    ends = {"msve_shortest": msve["context_length"].min(), "msve_longest": msve["context_length"].max()}
    runs = weights[[*KEYS["runs"], "cosine", "alpha", "largest_u", "enumerated_msve"]]
    for name, length in ends.items():
        part = msve[msve["context_length"] == length].rename(columns={"msve": name})
        runs = runs.merge(part[[*KEYS["runs"], name]], on=KEYS["runs"])
    return {
        "runs": runs,
        "baselines": baselines.groupby(KEYS["baselines"], sort=False)["msve"].mean().reset_index(),
        "claims": claims[["id", "value", "verdict"]],
    }


def differences(found: pd.DataFrame, reference: pd.DataFrame, keys: list[str]) -> list[str]:
    """What differs between two tables, a sentence each; numbers may differ by TOLERANCE, relative, and ROUNDING."""
    found, reference = (table.set_index(keys).sort_index() for table in (found, reference))
    sentences = [f"{_name(key)} is missing" for key in reference.index.difference(found.index)]
    sentences += [f"{_name(key)} is not in the reference" for key in found.index.difference(reference.index)]
    both = reference.index.intersection(found.index)
    for column in reference.columns:
        new, old = found.loc[both, column], reference.loc[both, column]
        if pd.api.types.is_numeric_dtype(old):
            same = np.isclose(new, old, rtol=TOLERANCE, atol=ROUNDING, equal_nan=True)
        else:
            same = (new == old).to_numpy()
        pairs = zip(both[~same], new[~same], old[~same], strict=True)
        sentences += [f"{_name(key)}: {column} is {a}, in the reference {b}" for key, a, b in pairs]
    return sentences


def _name(key) -> str:
    return "-".join(map(str, key)) if isinstance(key, tuple) else str(key)
