"""Copies of the project that tests run the workflow in."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from ictd.pipeline.needs import BASE, checked_needs
from ictd.pipeline.studies import study_names, study_settings

ROOT = Path(__file__).parents[1]
STUDIES = study_names(ROOT / "studies")
SMOKE = "tests/smoke.yaml"
# Small values for the studies too.
SMOKE_OF_ALL = [SMOKE, *(f"studies/{name}/smoke.yaml" for name in STUDIES)]
# Values for a smoke run of fewer cells and seeds.
FEW = ["seeds=2", "envs=[boyan]", "states=[4]", "depths=[6]"]
PARTS = "Snakefile config.yaml workflow docs envs profiles report src studies tests/smoke.yaml".split()


def copy_project(folder: Path, compiled: Path | None = None) -> Path:
    """Copy what the workflow needs to an empty folder; with the code of a finished one, if named."""
    for part in PARTS:
        target = folder / part
        target.parent.mkdir(parents=True, exist_ok=True)
        if part in ("src", "studies") and compiled:
            target.symlink_to(compiled / part)
        elif (ROOT / part).is_dir():
            shutil.copytree(ROOT / part, target)
        else:
            shutil.copy2(ROOT / part, target)
    return folder


def snakemake(folder: Path, *arguments: str, configfiles=(SMOKE,), **env: str) -> subprocess.CompletedProcess:
    """Run the workflow of a folder, at smoke size unless told otherwise."""
    command = [sys.executable, "-m", "snakemake", *arguments, "--configfile", *map(str, configfiles)]
    return subprocess.run(command, cwd=folder, env=os.environ | env, capture_output=True, text=True)


def finished_run(folder: Path) -> Path:
    """Run the workflow on two cores in a copy of the project, where no kernel is compiled yet."""
    copy_project(folder)
    done = snakemake(folder, "--cores", "2", XDG_CACHE_HOME=str(folder / "cache"))
    assert done.returncode == 0, done.stderr
    return folder


def finished_run_under_conda(folder: Path, compiled: Path) -> Path:
    """Run the workflow and its studies under ``--sdm conda``, where conda is a stand-in.

    Each log says which modules its job imported.
    """
    project, prefix = copy_project(folder / "project", compiled), folder / "prefix"
    (prefix / "bin").mkdir(parents=True)
    (prefix / "bin/conda").write_text(f'#!/bin/sh\nexec {sys.executable} {ROOT}/tests/stand_in_conda.py "$@"\n')
    (prefix / "bin/conda").chmod(0o755)
    (prefix / "bin/activate").write_text('export PATH="$1/telling:$1/bin:$PATH"\n')
    env = {"STAND_IN_PREFIX": str(prefix), "PATH": f"{prefix}/bin:{os.environ['PATH']}"}
    options = ["--cores", "2", "--sdm", "conda", "--config", *FEW]
    done = snakemake(project, "all", *STUDIES, *options, configfiles=SMOKE_OF_ALL, **env)
    assert done.returncode == 0, done.stderr[-5000:]
    return project


DRY = ["--cores", "1", "--dry-run", "--nolock"]


def plans(runs: list[tuple[Path, list[str]]]) -> list[tuple[int, str]]:
    """What dry runs return and say, each given by its folder and arguments."""
    jobs = json.dumps([(str(folder), [*DRY, *arguments]) for folder, arguments in runs])
    command = [sys.executable, ROOT / "tests/plans.py"]
    done = subprocess.run(command, input=jobs, stdout=subprocess.PIPE, check=True, text=True, timeout=900)
    return json.loads(done.stdout)


def rules_of(folder: Path, configfiles=(SMOKE,)) -> dict[str, dict]:
    """Every rule of a project with its step, the modules whose digests are its params, and its environment."""
    command = [sys.executable, ROOT / "tests/rules.py", *configfiles]
    done = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, check=True, text=True)
    return json.loads(done.stdout)


def without_compilation(files: list[Path], chosen: str) -> subprocess.CompletedProcess:
    """Tests of some files, chosen by a part of their names, with kernels as plain Python."""
    command = [sys.executable, "-P", "-m", "pytest", "-k", chosen, "-p", "no:cacheprovider", *map(str, files)]
    environment = os.environ | {"NUMBA_DISABLE_JIT": "1"}
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)


class Study:
    """A study's settings, and what is refused of them, beside the paper's configuration."""

    config = yaml.safe_load((ROOT / "config.yaml").read_text())
    schema = yaml.safe_load((ROOT / "workflow/schemas/config.schema.yaml").read_text())

    def __init__(self, name: str):
        self.name, self.folder = name, ROOT / "studies" / name

    def settings(self, given: dict) -> dict:
        return study_settings(self.folder, given, self.schema["$defs"])

    def whole(self, given: dict, **paper) -> dict:
        """The paper's configuration with the study's in it."""
        return {**self.config, **paper, self.name: self.settings(given)}

    def smoke(self) -> dict:
        return self.settings(yaml.safe_load((self.folder / "smoke.yaml").read_text())[self.name])

    def check_refusal(self, given: dict, message: str) -> None:
        """A setting is refused in one sentence."""
        with pytest.raises(ValueError) as raised:
            self.settings(given)
        assert message in str(raised.value) and "\n" not in str(raised.value)

    def check_need(self, needs, given: dict, message: str, **paper) -> None:
        """A setting that calls for too much is refused by its key."""
        with pytest.raises(ValueError, match=f"^Config: {message}"):
            checked_needs(needs, self.whole(given, **paper), self.schema["properties"], 2, 24e9)

    def undescribed(self) -> list[str]:
        """Keys of its schema, inner ones too, without a description."""

        def of(schema, name=""):
            for key, about in schema.get("items", schema).get("properties", {}).items():
                if "description" not in about:
                    yield name + key
                yield from of(about, f"{name}{key}.")

        return list(of(yaml.safe_load((self.folder / "schema.yaml").read_text())))


def in_megabytes(needs) -> tuple[int, float, dict[str, float]]:
    """Jobs, room and memory beside Python's, of which four digits are kept."""
    room, *memory = (
        float(f"{size / 1e6:.4g}") for size in (needs.room, *(one - BASE for one in needs.memory.values()))
    )
    return needs.jobs, room, dict(zip(needs.memory, memory, strict=True))
