"""The reference numbers."""

import numpy as np
import pandas as pd
import pytest

from ictd.report.reference import differences


def test_differences_from_the_reference_are_named():
    names = {"table": "t", "group": ["td", "td", "mc"], "column": ["x", "y", "x"]}
    old = pd.DataFrame(names | {"mean": [1.0, np.nan, 5.0], "check": [1.0, 2.0, 3.0]})
    assert differences(old.iloc[::-1], old) == []
    assert differences(old.assign(mean=old["mean"] * (1 + 0.9e-6), check=old["check"] + 0.9e-4), old) == []
    new = old.assign(mean=[1.0, 2.0, 5.0 * (1 + 1.2e-6)], check=[1.0, 2.0, 3.1])
    new = pd.concat([new[1:], new[:1].assign(column="z")])
    assert differences(new, old) == [
        "t-td-x is missing", "t-td-z is not in the reference",
        f"t-mc-x: mean is {5.0 * (1 + 1.2e-6)}, in the reference 5.0",
        "t-td-y: mean is 2.0, in the reference nan", "t-mc-x: check is 3.1, in the reference 3.0",
    ]  # fmt: skip


@pytest.mark.parametrize(("value", "number"), [(9e-13, 0), (2e-12, 1)])
def test_rounding_errors_near_zero_are_not_reported(value, number):
    zero = pd.DataFrame({"table": ["t"], "group": ["a"], "column": ["x"], "mean": [0.0]})
    assert len(differences(zero.assign(mean=value), zero)) == number
