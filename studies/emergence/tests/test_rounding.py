"""A run on a computer that rounds in another way agrees with the reference, and the identities hold there."""

import pytest
from projects import FEW, ROOT, SMOKE, copy_project, snakemake

from ictd.report.tables import load_table
from ictd.steps.report import reference, verify
from ictd.storage import load_json
from studies.emergence.symmetry_results import identities

STUDY = ROOT / "studies/emergence/smoke.yaml"
IDENTITIES = "equivariance", "drift"
# Two threads for jobs that sum in torch or OpenBLAS; Snakemake sets the variables of a job by its threads.
THREADS = [f"{rule}=2" for rule in ("audit", "theory_agreement", "evaluate", "emergence_identities")]
RUNS = {"one": ([], {}), "other": (["--set-threads", *THREADS], {"OPENBLAS_CORETYPE": "PRESCOTT"})}


@pytest.mark.slow
def test_a_run_with_other_rounding_agrees(tmp_path, capsys):
    tables = []
    for name, (words, variables) in RUNS.items():
        project = copy_project(tmp_path / name, linked=("src", "studies"))
        paths = [f"results-smoke/emergence/{table}.csv" for table in IDENTITIES]
        targets = ["all", *paths, "--cores", "2", *words, "--config", *FEW]
        done = snakemake(project, *targets, configfiles=(SMOKE, STUDY), **variables)
        assert done.returncode == 0, done.stdout[-5000:]
        tables.append({table: load_table(project / path) for table, path in zip(IDENTITIES, paths, strict=True)})
    one, other = (tmp_path / name / "results-smoke" for name in RUNS)
    reference.main(one, tmp_path / "reference")
    verify.main(other, tmp_path / "reference")
    assert "agrees with the reference" in capsys.readouterr().out
    files = [load_json(folder / "manifest.json")["files"] for folder in (one, other)]
    assert files[0] != files[1], "the runs round alike"
    assert {claim.verdict for one in tables for claim in identities.decide(one)} == {"holds"}
