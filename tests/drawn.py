"""Checks of the artists in a figure, and tables of numbers to draw."""

import itertools

import numpy as np
import pandas as pd


def check_lines(axes, expected: list[tuple]) -> None:
    """Compare lines, in order, with (label, x, y); the label None stands for no label."""
    found = [line.get_label() for line in axes.lines]
    assert [None if label.startswith("_") else label for label in found] == [label for label, *_ in expected]
    for line, (label, x, y) in zip(axes.lines, expected, strict=True):
        np.testing.assert_allclose(np.asarray(line.get_xdata(), float), np.asarray(x, float), err_msg=str(label))
        np.testing.assert_allclose(np.asarray(line.get_ydata(), float), np.asarray(y, float), err_msg=str(label))


def check_bands(axes, expected: list[tuple]) -> None:
    """Compare filled bands, in their order, with (x, low, high)."""
    assert len(axes.collections) == len(expected)
    for band, (x, low, high) in zip(axes.collections, expected, strict=True):
        corners = {tuple(np.round(corner, 9)) for path in band.get_paths() for corner in path.vertices}
        for edge in (low, high):
            assert {tuple(np.round(corner, 9)) for corner in zip(x, edge, strict=True)} <= corners


def numbered(axes: dict[str, list], columns: list[str], seed: int = 0) -> pd.DataFrame:
    """A table with a row for each combination of values, and arbitrary numbers in the other columns."""
    rng, table = np.random.default_rng(seed), pd.DataFrame(list(itertools.product(*axes.values())), columns=list(axes))
    return table.assign(**{name: rng.uniform(0.1, 1, len(table)) for name in columns})


def where(table: pd.DataFrame, **values) -> pd.DataFrame:
    """Rows with these values."""
    for name, value in values.items():
        table = table[table[name] == value]
    return table
