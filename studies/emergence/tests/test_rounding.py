"""A run on a computer that rounds in another way agrees with the reference, and the identities hold there."""

import pytest
from projects import FEW, ROOT, SMOKE, copy_project, snakemake

from ictd.report.tables import load_table
from ictd.steps.report import reference, verify
from ictd.storage import load_json

STUDY = ROOT / "studies/emergence/smoke.yaml"
IDENTITIES = "results-smoke/emergence/equivariance.csv"
# Two threads for jobs that sum in torch or OpenBLAS; Snakemake sets the variables of a job by its threads.
THREADS = [f"{rule}=2" for rule in ("audit", "theory_agreement", "evaluate", "emergence_identities")]
RUNS = {"one": ([], {}), "other": (["--set-threads", *THREADS], {"OPENBLAS_CORETYPE": "PRESCOTT"})}


@pytest.mark.slow
def test_a_run_with_other_rounding_agrees(tmp_path, capsys):
    tables = []
    for name, (words, variables) in RUNS.items():
        project = copy_project(tmp_path / name, linked=("src", "studies"))
        targets = ["all", IDENTITIES, "--cores", "2", *words, "--config", *FEW]
        done = snakemake(project, *targets, configfiles=(SMOKE, STUDY), **variables)
        assert done.returncode == 0, done.stdout[-5000:]
        tables.append(load_table(project / IDENTITIES))
    one, other = (tmp_path / name / "results-smoke" for name in RUNS)
    reference.main(one, tmp_path / "reference")
    verify.main(other, tmp_path / "reference")
    assert "agrees with the reference" in capsys.readouterr().out
    deviations = [table[["outputs", "updates", "odd_outputs", "odd_updates"]] for table in tables]
    files = [load_json(folder / "manifest.json")["files"] for folder in (one, other)]
    assert files[0] != files[1], "the runs round alike"
    assert all((deviation < 1e-9).all(axis=None) for deviation in deviations)
