"""Computing times, the reference numbers, and the first page of Snakemake's report."""

import numpy as np
import pandas as pd
import pytest

from ictd.pipeline.provenance import PROJECT
from ictd.report import about, compute
from ictd.report.reference import differences
from ictd.storage import save_json


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
    old = pd.DataFrame(
        {"algo": ["td", "td", "mc"], "seed": [1, 2, 1], "x": [1.0, np.nan, 5.0], "said": ["a", "b", "c"]}
    )
    assert differences(old.iloc[::-1], old, ["algo", "seed"]) == []
    assert differences(old.assign(x=old["x"] * (1 + 0.9e-6)), old, ["algo", "seed"]) == []
    new = old.assign(x=[1.0, 2.0, 5.0 * (1 + 1.2e-6)], said=["a", "b", "d"])
    new = pd.concat([new[1:], new[:1].assign(seed=9)])
    assert differences(new, old, ["algo", "seed"]) == [
        "td-1 is missing", "td-9 is not in the reference", f"mc-1: x is {5.0 * (1 + 1.2e-6)}, in the reference 5.0",
        "td-2: x is 2.0, in the reference nan", "mc-1: said is d, in the reference c",
    ]  # fmt: skip


@pytest.mark.parametrize(("value", "number"), [(9e-13, 0), (2e-12, 1)])
def test_rounding_errors_near_zero_are_not_reported(value, number):
    zero = pd.DataFrame({"id": ["a"], "value": [0.0]})
    assert len(differences(zero.assign(value=value), zero, ["id"])) == number


def test_the_first_page_of_snakemakes_report(tmp_path):
    settings = {"seeds": 3, "readings": {}}
    save_json(tmp_path / "m.json", {"commit": None, "versions": {"python": "3"}, "settings": settings})
    kinds = [
        ("paper", "a/1", "holds"), ("paper", "a/2", "refuted"), ("paper", "b/1", "holds"),
        ("paper", "b/2", "not shown"), ("paper", "d/1", "holds"), ("check", "c/1", "holds"),
    ]  # fmt: skip
    claims = [{"kind": kind, "id": name, "verdict": verdict} for kind, name, verdict in kinds]
    save_json(tmp_path / "c.json", claims)
    save_json(tmp_path / "theory.json", claims[2:5])
    sentences = [("claim", "holds"), ("claim", "refuted"), ("claim", "holds"), ("question", "holds")]
    save_json(tmp_path / "s.json", [{"kind": kind, "verdict": verdict} for kind, verdict in sentences])
    schema = PROJECT / "workflow/schemas/config.schema.yaml"
    inputs = (tmp_path / f"{name}.json" for name in ("m", "c", "theory", "s"))
    about.main(*inputs, schema, tmp_path / "a.rst")
    said = (tmp_path / "a.rst").read_text()
    assert "By our thresholds, of the 3 sentences" in said and "2 hold; not shown: 0; refuted: 1." in said
    assert "1 of 2 statements and steps of the theory, 1 of 1 checks hold in all of their settings" in said
    assert "are not the paper's: seeds." in said and "python 3, matplotlib" in said and "git does not track" in said


@pytest.mark.parametrize(
    ("prefix", "contained", "said"),
    [(".snakemake/conda/x", True, "with conda"), ("usr", True, "in the container"), ("usr", False, "were not used")],
)
def test_where_jobs_ran(tmp_path, prefix, contained, said):
    assert said in about.environment(tmp_path / prefix, contained)
