"""Computing times and the reference numbers."""

import numpy as np
import pandas as pd
import pytest

from ictd.report import compute
from ictd.report.reference import differences


def test_computing_times(tmp_path):
    times = {"tasks/a": (4.0, 2.0, 10.0), "tasks/b": (2.0, 1.0, 30.0), "claims": (1.0, 0.0, 5.0)}
    for name, row in times.items():
        path = tmp_path / f"{name}.tsv"
        path.parent.mkdir(exist_ok=True)
        pd.DataFrame([row], columns=compute.MEASURED).to_csv(path, sep="\t", index=False)
    table = compute.compute_table(compute.load_benchmarks(tmp_path, ["tasks", "claims", "removed"]))
    assert table["rule"].tolist()[:3] == ["tasks", "claims", "these rules together"]
    # For jobs that ended before Snakemake's first measurement, only the time is known.
    found, nan = table.iloc[:3, 1:].astype(float), np.nan
    np.testing.assert_array_equal(found, [[2, 6, 3, 30], [1, 1, nan, nan], [3, 7, 3, 30]])
    # 50 minutes and 15 hours on 150 cores.
    assert table["CPU time (s)"].tolist()[3:] == [150 * 50 * 60, 150 * 15 * 3600]
    assert len(table) == 5


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
