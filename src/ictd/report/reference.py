"""The reference numbers that the repository keeps: every table of a finished run in summary, its claims, settings and
files; and what differs from them."""

from pathlib import Path

import numpy as np
import pandas as pd

from ictd.pipeline.grid import CELL
from ictd.storage import load_json, save_json
from ictd.tables import load_table, save_tables

# Processors round differently, and training carries that on.
TOLERANCE = 1e-6
# What is rounding and nothing else, such as the difference of two ways to compute the same.
ROUNDING = 1e-12
# The same for a sum over hundreds of rows of what changes with an entry's logarithm.
CHECK_TOLERANCE = 1e-4
# Magnitude below which an entry counts by its value, and above it by its logarithm; differences of values near 10, at
# which the theory looks, round by 1e-14.
UNIT = 1e-6
# The tables, each with the columns whose values tell its groups of rows apart.
TABLES = {
    "metrics/msve": CELL,
    "metrics/baselines": ["method", "states", "depth"],
    "metrics/step_sizes": ["states", "depth"],
    "metrics/weights": CELL,
    "metrics/mean_weights": CELL,
    "metrics/mean_entries": [*CELL, "matrix"],
    "metrics/agreement": CELL[1:],
    "metrics/learning": CELL,
    "metrics/truncation": ["env", "states"],
    "metrics/audit": CELL,
    "theory/statements": ["statement", "env", "states"],
    "theory/neu": ["algo", "space", "env", "states"],
    "theory/pretrained": CELL,
    "theory/repeated": CELL,
    "theory/agreement": [*CELL[1:], "weights"],
    "theory/precision": ["quantity", "env", "states"],
    "theory/family": ["member", "env", "states"],
    "theory/family_updates": ["algo", "env", "states"],
}
KEYS = {"tables": ["table", "group", "column"], "claims": ["id"]}


def main(results: Path, output: Path) -> None:
    """Write the summaries of a finished run as CSV, and as JSON its settings and the names of its files (``make
    reference``)."""
    manifest = load_json(results / "manifest.json")
    save_tables(output, summaries(results))
    save_json(output / "run.json", {"settings": manifest["settings"], **names_of_files(manifest)})


def names_of_files(manifest: dict) -> dict[str, list[str]]:
    """Names of the files that a manifest lists, results and pages."""
    return {kind: sorted(manifest[kind]) for kind in ("files", "pages")}


def summaries(results: Path) -> dict[str, pd.DataFrame]:
    """Summaries of a finished run, one for each name in KEYS; ValueError names a missing or damaged file.

    Returns
    -------
    dict with
        tables : a row a table, group of rows and column, as ``summary`` has them
        claims : a row a claim; value, relation, threshold and verdict
    """
    parts = [summary(load_table(results / f"{name}.csv"), keys).assign(table=name) for name, keys in TABLES.items()]
    claims = pd.DataFrame(load_json(results / "claims.json"))[["id", "value", "relation", "threshold", "verdict"]]
    return {
        "tables": pd.concat(parts)[[*KEYS["tables"], "rows", "entries", "mean", "check"]],
        "claims": claims.astype({"value": float, "threshold": float}),
    }


def summary(table: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    """A row a group and column: how many rows and entries that are numbers there are, their mean, and a check.

    The check is the sum over rows of sinh^{-1}(entry / UNIT), weighted by 1 to 2 in their order, so that it changes by
    what share an entry changes, however large the others are, and with the order.
    """
    rows = []
    for key, group in table.groupby(keys, sort=False):
        weights = np.linspace(1, 2, len(group))
        for column in group.drop(columns=keys):
            entries = group[column].to_numpy(dtype=float)
            there = np.isfinite(entries)
            with np.errstate(over="ignore"):
                check = (weights * np.arcsinh(entries / UNIT))[there].sum()
                mean = entries[there].mean() if there.any() else np.nan
            rows.append([_name(key), column, len(group), there.sum(), mean, check])
    return pd.DataFrame(rows, columns=["group", "column", "rows", "entries", "mean", "check"])


def differences(found: pd.DataFrame, reference: pd.DataFrame, keys: list[str]) -> list[str]:
    """What differs between two tables, a sentence each.

    Numbers may differ by TOLERANCE, relative, and ROUNDING, and checks by CHECK_TOLERANCE.
    """
    found, reference = (table.set_index(keys).sort_index() for table in (found, reference))
    twice = found.index[found.index.duplicated()]
    if len(twice):
        return [f"{_name(twice[0])} is there twice"]
    sentences = [f"{_name(key)} is missing" for key in reference.index.difference(found.index)]
    sentences += [f"{_name(key)} is not in the reference" for key in found.index.difference(reference.index)]
    both = reference.index.intersection(found.index)
    for column in reference.columns:
        new, old = found.loc[both, column], reference.loc[both, column]
        if pd.api.types.is_numeric_dtype(old):
            rtol, atol = (0, CHECK_TOLERANCE) if column == "check" else (TOLERANCE, ROUNDING)
            same = np.isclose(new, old, rtol=rtol, atol=atol, equal_nan=True)
        else:
            same = (new == old).to_numpy()
        pairs = zip(both[~same], new[~same], old[~same], strict=True)
        sentences += [f"{_name(key)}: {column} is {a}, in the reference {b}" for key, a, b in pairs]
    return sentences


def _name(key) -> str:
    return "-".join(map(str, key)) if isinstance(key, tuple) else str(key)
