"""Finished smoke runs of the whole workflow, shared by the tests that look at their results."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PARTS = ("Snakefile", "config.yaml", "workflow", "envs", "profiles", "report", "src", "tests/smoke.yaml")


def copy_project(folder: Path, compiled: Path | None = None) -> Path:
    """Copy what the workflow needs to an empty folder; with the code and the kernels of a finished one, if named."""
    for part in PARTS:
        target = folder / part
        target.parent.mkdir(parents=True, exist_ok=True)
        if part == "src" and compiled:
            target.symlink_to(compiled / part)
            shutil.copytree(compiled / "results-smoke/kernels", folder / "results-smoke/kernels")
        elif (ROOT / part).is_dir():
            shutil.copytree(ROOT / part, target)
        else:
            shutil.copy2(ROOT / part, target)
    return folder


def snakemake(folder: Path, *arguments: str, configfile="tests/smoke.yaml") -> subprocess.CompletedProcess:
    """Run the workflow of a folder, at smoke size unless told otherwise."""
    command = [sys.executable, "-m", "snakemake", *arguments, "--configfile", str(configfile)]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True)


@pytest.fixture(scope="session")
def smoke(tmp_path_factory) -> Path:
    """Folder of a finished smoke run on two cores."""
    folder = copy_project(tmp_path_factory.mktemp("smoke"))
    done = snakemake(folder, "--cores", "2")
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="session")
def under_conda(smoke, tmp_path_factory) -> Path:
    """Folder of a smoke run with the studies under ``--sdm conda``, with environments made from exactly their pins.

    conda is a stand-in, and cells and seeds are fewer than in ``smoke``: results do not depend on that either.
    """
    folder = copy_project(tmp_path_factory.mktemp("conda") / "project", smoke)
    prefix = folder.parent / "prefix"
    (prefix / "bin").mkdir(parents=True)
    (prefix / "bin/conda").write_text(f'#!/bin/sh\nexec {sys.executable} {ROOT}/tests/stand_in_conda.py "$@"\n')
    (prefix / "bin/conda").chmod(0o755)
    (prefix / "bin/activate").write_text('export PATH="$1/bin:$PATH"\n')
    few = ["seeds=2", "envs=[boyan]", "states=[4]", "depths=[6]"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("STAND_IN_PREFIX", str(prefix))
        patch.setenv("PATH", f"{prefix}/bin:{os.environ['PATH']}")
        done = snakemake(folder, "all", "anatomy", "beyond", "--cores", "2", "--sdm", "conda", "--config", *few)
    assert done.returncode == 0, done.stderr
    return folder
