"""Checks of what a figure draws, and tables of numbers to draw."""

import itertools

import numpy as np
import pandas as pd


def check_lines(axes, *expected: tuple) -> None:
    """Compare the lines of a panel, in their order, with pairs x, y."""
    assert len(axes.lines) == len(expected)
    for line, points in zip(axes.lines, expected, strict=True):
        np.testing.assert_allclose(line.get_xydata(), np.transpose(points).astype(float))


def check_band(band, x, *edges) -> None:
    """Require that a filled band has these corners."""
    corners = {tuple(np.round(corner, 9)) for path in band.get_paths() for corner in path.vertices}
    assert {tuple(np.round(corner, 9)) for edge in edges for corner in zip(x, edge, strict=True)} <= corners


def numbered(axes: dict[str, list], columns: list[str], seed: int = 0) -> pd.DataFrame:
    """A table with a row for each combination of values, and arbitrary numbers in the other columns."""
    rng, table = np.random.default_rng(seed), pd.DataFrame(list(itertools.product(*axes.values())), columns=list(axes))
    return table.assign(**{name: rng.uniform(0.1, 1, len(table)) for name in columns})


def where(table: pd.DataFrame, **values) -> pd.DataFrame:
    """Rows with these values."""
    for name, value in values.items():
        table = table[table[name] == value]
    return table
