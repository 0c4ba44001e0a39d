"""Copies of the project in which tests run the workflow, and the settings of studies."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

from ictd.pipeline.config import study_names

ROOT = Path(__file__).parents[1]
STUDIES = study_names(ROOT)
SMOKE = "tests/smoke.yaml"
# Values for a smoke run of two cells.
FEW = ["envs=[boyan]", "states=[5]", "depths=[6]"]
PARTS = "Snakefile config.yaml workflow docs envs profiles report src studies tests/smoke.yaml".split()
# Snakemake's workflow in a run, as the options of steps see it.
RUN = SimpleNamespace(executor_plugin=1, dryrun=False, touch=False)
DRY_RUN = ["--quiet", "host", "--cores", "1", "--dry-run", "--nolock"]


def copy_project(folder: Path, linked: tuple[str, ...] = (), without: tuple[str, ...] = ()) -> Path:
    """Copy the files of the workflow, but link some parts: kernels would be compiled again for copied code."""
    for part in PARTS:
        target = folder / part
        target.parent.mkdir(parents=True, exist_ok=True)
        if part in linked:
            target.symlink_to(ROOT / part)
        elif part not in without and (ROOT / part).is_dir():
            shutil.copytree(ROOT / part, target, ignore=shutil.ignore_patterns("__pycache__"))
        elif part not in without:
            shutil.copy2(ROOT / part, target)
    return folder


def small_project(folder: Path) -> Path:
    """A project for running jobs, with the repository's code and no study."""
    return copy_project(folder, linked=("src",), without=("studies",))


def with_results(smoke: Path, folder: Path) -> Path:
    """Copy a finished run into a project."""
    for part in (".snakemake", "results-smoke"):
        shutil.copytree(smoke / part, folder / part)
    return folder


def snakemake(folder: Path, *arguments: str, configfiles=(SMOKE,), **env: str) -> subprocess.CompletedProcess:
    """Run Snakemake in a folder, with smoke settings by default; stdout contains stderr."""
    command = [sys.executable, "-m", "snakemake", *arguments, "--configfile", *map(str, configfiles)]
    output = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    return subprocess.run(command, cwd=folder, env=os.environ | env, **output)


def finished_run(folder: Path) -> None:
    """Run the whole workflow on two cores."""
    done = snakemake(small_project(folder), "--cores", "2")
    assert done.returncode == 0, done.stdout[-5000:]


def plans(runs: list[tuple[Path, list[str]]]) -> list[tuple[int, str]]:
    """Exit codes and messages of dry runs with smoke settings, each given by its folder and further arguments."""
    values = ["--configfile", SMOKE]
    jobs = [
        (str(folder), [*DRY_RUN, *arguments, *(values if "--configfile" not in arguments else [])])
        for folder, arguments in runs
    ]
    command = [sys.executable, ROOT / "tests/plans.py"]
    done = subprocess.run(command, input=json.dumps(jobs), stdout=subprocess.PIPE, check=True, text=True)
    return json.loads(done.stdout)


def planned_rules(said: str) -> set[str]:
    """Rules that a dry run lists with the number of their jobs."""
    return set(re.findall(r"^(\w+) +\d+$", said, re.MULTILINE)) - {"total"}


def rules_of_paper() -> dict[str, tuple[str, str]]:
    """Step and environment of each of the paper's rules."""
    text = "\n".join(path.read_text() for path in sorted((ROOT / "workflow/rules").glob("*.smk")))
    found = {}
    for rule, block in re.findall(r"^use rule step as (\w+) with:\n((?:[ \t].*\n|\n)*)", text, re.MULTILINE):
        environment = re.search(r"\{ENVS\}/(\w+)\.yaml", block)
        step = re.search(r'options=step\(\s*"([\w.]+)"', block)
        found[rule] = step[1] if step else "ictd.steps.report.results", environment[1] if environment else "simulate"
    return found
