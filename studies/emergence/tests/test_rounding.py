"""A run on a computer that rounds in another way agrees with the reference."""

import pytest
from projects import FEW, ROOT, SMOKE, copy_project, snakemake

from ictd.steps.report import reference, verify

STUDY = ROOT / "studies/emergence/smoke.yaml"
# Two threads for jobs that sum in torch or OpenBLAS; Snakemake sets the variables of a job by its threads.
THREADS = [
    f"{rule}=2" for rule in ("audit", "theory_agreement", "evaluate", "emergence_identities", "emergence_softmax")
]
RUNS = {"one": ([], {}), "other": (["--set-threads", *THREADS], {"OPENBLAS_CORETYPE": "PRESCOTT"})}


@pytest.mark.slow
def test_a_run_with_other_rounding_agrees(tmp_path, capsys):
    for name, (words, variables) in RUNS.items():
        project = copy_project(tmp_path / name, linked=("src", "studies"))
        targets = ["all", "emergence", "--cores", "2", *words, "--config", *FEW]
        done = snakemake(project, *targets, configfiles=(SMOKE, STUDY), **variables)
        assert done.returncode == 0, done.stdout[-5000:]
    one, other = (tmp_path / name / "results-smoke" for name in RUNS)
    reference.main(one, tmp_path / "reference")
    verify.main(other, tmp_path / "reference")
    assert "agrees with the reference" in capsys.readouterr().out
    tables = [(folder / "emergence/equivariance.csv").read_bytes() for folder in (one, other)]
    assert tables[0] != tables[1]
