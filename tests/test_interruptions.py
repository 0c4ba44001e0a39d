"""A run that is stopped at any moment, in any way, continues to the same bytes."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import psutil
import pytest
from projects import SMOKE, small_project, snakemake

from ictd.storage import load_json

# KILLS=60 python -P -m pytest tests/test_interruptions.py
KILLS = int(os.environ.get("KILLS", "3"))
SEED = int(os.environ.get("KILLS_SEED", "0"))
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGKILL)
# Other numbers of cores and seeds in a job than in the reference run.
OTHERWISE = ["--cores", "3", "--config", "seeds_per_job=2"]


def started(folder: Path, *arguments: str) -> subprocess.Popen:
    """Start Snakemake in a process group of its own."""
    command = [sys.executable, "-m", "snakemake", *arguments, "--configfile", SMOKE]
    output = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    return subprocess.Popen(command, cwd=folder, start_new_session=True, **output)


def jobs_of(process: subprocess.Popen) -> list[psutil.Process]:
    """Steps that a run is carrying out."""
    found = []
    for child in psutil.Process(process.pid).children(recursive=True):
        try:
            found += [child] * ("ictd.pipeline.runner" in child.cmdline() and child.name().startswith("python"))
        except psutil.Error:
            continue
    return found


def check_files(results: Path) -> None:
    """Every file with its final name is complete."""
    for path in results.rglob("[!.]*.npz"):
        with np.load(path) as archive:
            assert all(archive[name] is not None for name in archive.files)
    for path in results.rglob("[!.]*.json"):
        load_json(path)
    for path in [*results.rglob("[!.]*.html"), *results.rglob("[!.]*.svg")]:
        assert path.read_text().rstrip().endswith(("</html>", "</svg>")), path


@pytest.mark.slow
def test_repeated_interruptions_end_with_the_same_bytes(smoke, tmp_path):
    folder, rng = small_project(tmp_path), random.Random(SEED)
    results = folder / "results-smoke"
    for _ in range(KILLS):
        process = started(folder, *OTHERWISE)
        time.sleep(rng.uniform(1.5, 12))
        if process.poll() is None:
            victims = [process.pid, *(job.pid for job in jobs_of(process))]
            os.kill(rng.choice(victims), rng.choice(SIGNALS))
        process.wait(timeout=300)
        check_files(results)
        if process.returncode == 0:
            for path in rng.sample(sorted(results.rglob("*.npz")), 12):
                path.unlink()
        snakemake(folder, "--unlock")
    done = snakemake(folder, *OTHERWISE)
    assert done.returncode == 0, done.stdout
    check_files(results)
    whole = smoke / "results-smoke"
    manifest = load_json(results / "manifest.json")
    figures = {name for name in manifest["pages"] if name.startswith("figures/")}
    assert figures
    for name in manifest["files"].keys() | figures:
        assert (results / name).read_bytes() == (whole / name).read_bytes(), name
    # Snakemake notes the times of folders in files.
    assert {path.name for path in results.rglob(".*")} == {".snakemake_timestamp"}
