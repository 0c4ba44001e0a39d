"""Finished smoke runs of the whole workflow, shared by the tests that look at their results."""

import os
import shutil
import subprocess
import sys
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
RUNS = {"smoke", "under_conda"}
# Values for a smoke run of fewer cells and seeds.
FEW = ["seeds=2", "envs=[boyan]", "states=[4]", "depths=[6]"]
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


def snakemake(folder: Path, *arguments: str, configfile="tests/smoke.yaml", **env: str) -> subprocess.CompletedProcess:
    """Run the workflow of a folder, at smoke size unless told otherwise."""
    command = [sys.executable, "-m", "snakemake", *arguments, "--configfile", str(configfile)]
    return subprocess.run(command, cwd=folder, env=os.environ | env, capture_output=True, text=True)


def finished_run(folder: Path) -> Path:
    """Run the workflow on two cores in a copy of the project."""
    copy_project(folder)
    done = snakemake(folder, "--cores", "2")
    assert done.returncode == 0, done.stderr
    return folder


def finished_run_under_conda(folder: Path, compiled: Future) -> Path:
    """Run the workflow and its studies under ``--sdm conda``, where conda is a stand-in."""
    project, prefix = copy_project(folder / "project", compiled.result()), folder / "prefix"
    (prefix / "bin").mkdir(parents=True)
    (prefix / "bin/conda").write_text(f'#!/bin/sh\nexec {sys.executable} {ROOT}/tests/stand_in_conda.py "$@"\n')
    (prefix / "bin/conda").chmod(0o755)
    (prefix / "bin/activate").write_text('export PATH="$1/bin:$PATH"\n')
    env = {"STAND_IN_PREFIX": str(prefix), "PATH": f"{prefix}/bin:{os.environ['PATH']}"}
    targets = ("all", "anatomy", "beyond")
    done = snakemake(project, *targets, "--cores", "2", "--sdm", "conda", "--config", *FEW, **env)
    assert done.returncode == 0, done.stderr
    return project


def pytest_collection_modifyitems(items):
    """Put last what needs a finished run."""
    items.sort(key=lambda item: RUNS.intersection(item.fixturenames) != set())


@pytest.fixture(scope="session", autouse=True)
def runs(request, tmp_path_factory):
    """Runs of the workflow that tests ask for, one after the other, while tests that need none are under way."""
    asked = {name for item in request.session.items for name in RUNS.intersection(item.fixturenames)}
    pool, found = ThreadPoolExecutor(1), {}
    if asked:
        found["smoke"] = pool.submit(finished_run, tmp_path_factory.mktemp("smoke"))
    if "under_conda" in asked:
        folder = tmp_path_factory.mktemp("conda")
        found["under_conda"] = pool.submit(finished_run_under_conda, folder, found["smoke"])
    yield found
    pool.shutdown(cancel_futures=True)


@pytest.fixture(scope="session")
def smoke(runs) -> Path:
    """Folder of a finished smoke run."""
    return runs["smoke"].result()


@pytest.fixture(scope="session")
def under_conda(runs) -> Path:
    """Folder of a smoke run with the studies, in environments made from exactly their pins.

    Cells and seeds are fewer than in ``smoke``: results do not depend on that either.
    """
    return runs["under_conda"].result()
