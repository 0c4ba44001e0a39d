"""The reference numbers in the repository, and their comparison with those of a run.

They are a summary of each table of a finished run, its settings, the names of its files, and the claims and numbers of
each part (``ictd.report.numbers``).
"""

from pathlib import Path

import numpy as np
import pandas as pd

from ictd.pipeline.grid import CELL
from ictd.report.numbers import PAPER, reference_of
from ictd.report.tables import load_table
from ictd.storage import load_json, save_json, save_table

# Relative: processors round differently, and training propagates the differences.
TOLERANCE = 1e-6
# Absolute: for differences between two computations of the same number, which are rounding errors only.
ROUNDING = 1e-12
# Absolute, for a check, which is a sum over hundreds of rows.
CHECK_TOLERANCE = 1e-4
# Checks are linear in entries below this magnitude, and logarithmic in entries above it.  It is far above the rounding
# errors of differences of values near 10, 1e-14.
UNIT = 1e-6
# The tables, each with the columns that its rows are grouped by.
TABLES = {
    "metrics/msve": CELL,
    "metrics/baselines": ["method", "states", "depth"],
    "metrics/unseen_msve": CELL,
    "metrics/unseen_baselines": ["method", "states", "depth"],
    "metrics/over_tasks": ["method", "env", "states", "depth"],
    "metrics/layers": CELL,
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
KEYS = ["table", "group", "column"]


def main(results: Path, output: Path) -> None:
    """Write summaries of a finished run as CSV, and its settings and names of files as JSON (``make reference``).

    The references of pages are written for the paper's part, and for each study that has run.
    """
    manifest = load_json(results / "manifest.json")
    save_table(output / "tables.csv", summaries(results))
    save_json(output / "run.json", {"settings": manifest["settings"], **names_of_files(manifest)})
    for part, folder in parts(results).items():
        save_table(output / f"pages/{part}.csv", reference_of(folder))


def parts(results: Path) -> dict[str, Path]:
    """Folders of results of the paper's part, and of each study that has run, by their names."""
    studies = {path.parent.name: path.parent for path in sorted(results.glob("*/numbers.csv"))}
    return {PAPER: results} | studies


def names_of_files(manifest: dict) -> dict[str, list[str]]:
    """Names of the results, "files", and of the pages that a manifest lists."""
    return {kind: sorted(manifest[kind]) for kind in ("files", "pages")}


def summaries(results: Path) -> pd.DataFrame:
    """Tabulate rows of ``summary`` for each of TABLES; a missing or damaged file raises a ValueError."""
    parts = [summary(load_table(results / f"{name}.csv"), keys).assign(table=name) for name, keys in TABLES.items()]
    return pd.concat(parts)[[*KEYS, "rows", "entries", "mean", "check"]]


def summary(table: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    """Summarise each column in each group of rows.

    The summary has the number of rows, the number of finite entries, their mean, and a check.  The check is the sum
    over rows of sinh^{-1}(entry / UNIT), with weights from 1 for the first row to 2 for the last.  A relative change of
    any entry changes the check, however large the other entries are, and so does another order of the rows.
    """
    lines = []
    for key, group in table.groupby(keys, sort=False):
        weights = np.linspace(1, 2, len(group))
        for column in group.drop(columns=keys):
            entries = group[column].to_numpy(dtype=float)
            finite = np.isfinite(entries)
            with np.errstate(over="ignore"):
                check = (weights * np.arcsinh(entries / UNIT))[finite].sum()
                mean = entries[finite].mean() if finite.any() else np.nan
            lines.append([_name(key), column, len(group), finite.sum(), mean, check])
    return pd.DataFrame(lines, columns=["group", "column", "rows", "entries", "mean", "check"])


def differences(table: pd.DataFrame, reference: pd.DataFrame) -> list[str]:
    """Compare ``summaries`` with their reference; a sentence for each difference."""
    table = table.set_index(KEYS).sort_index()
    reference = reference.set_index(KEYS).sort_index()
    duplicates = table.index[table.index.duplicated()]
    if len(duplicates):
        return [f"{_name(duplicates[0])} is there twice"]
    sentences = [f"{_name(key)} is missing" for key in reference.index.difference(table.index)]
    sentences += [f"{_name(key)} is not in the reference" for key in table.index.difference(reference.index)]
    both = reference.index.intersection(table.index)
    for column in reference.columns:
        new, old = table.loc[both, column], reference.loc[both, column]
        rtol, atol = (0, CHECK_TOLERANCE) if column == "check" else (TOLERANCE, ROUNDING)
        same = np.isclose(new, old, rtol=rtol, atol=atol, equal_nan=True)
        pairs = zip(both[~same], new[~same], old[~same], strict=True)
        sentences += [f"{_name(key)}: {column} is {a}, in the reference {b}" for key, a, b in pairs]
    return sentences


def _name(key) -> str:
    return "-".join(map(str, key)) if isinstance(key, tuple) else str(key)
