"""A run that was stopped at any moment, in any way, goes on to the same bytes; and what its user reads says how."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from projects import FEW, copy_project, snakemake

from ictd.pipeline.failures import check_writable, failed_jobs
from ictd.pipeline.storage import load_arrays, replacing

# make test-interruptions sets many.
KILLS = int(os.environ.get("KILLS", "1"))
SEED = int(os.environ.get("KILLS_SEED", "0"))
# Cores and jobs other than those of the run that it is compared with.
OTHERWISE = ["--cores", "3", "--config", "seeds_per_job=2"]
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGKILL)


def interrupt(folder: Path, rng: random.Random) -> str:
    """Run the plain command, and after some time signal Snakemake or one of its jobs; what it said until it ended."""
    command = [sys.executable, "-m", "snakemake", *OTHERWISE, "--configfile", "tests/smoke.yaml"]
    process = subprocess.Popen(
        command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
    )
    time.sleep(rng.uniform(1.5, 9))
    number, at_job = rng.choice(SIGNALS), rng.random() < 0.5
    family = psutil.Process(process.pid).children(recursive=True) if process.poll() is None else []
    jobs = [child for child in family if "ictd.steps" in " ".join(_command(child))]
    if at_job and jobs:
        _send(rng.choice(jobs).pid, number)
    else:
        _send(process.pid, number)
    return process.communicate(timeout=120)[0]


def _command(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return []


def _send(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass


def check_files(results: Path) -> None:
    """Whatever has its name is whole."""
    for path in results.rglob("*"):
        if path.name.startswith("."):
            continue
        if path.suffix == ".npz":
            load_arrays(path)
        if path.suffix == ".json":
            json.loads(path.read_text())
        if path.suffix in (".html", ".svg"):
            assert path.read_text().rstrip().endswith(("</html>", "</svg>")), path


def finish(folder: Path) -> None:
    """The plain command, after what it says to do first."""
    done = snakemake(folder, *OTHERWISE)
    if "--unlock" in done.stdout + done.stderr:
        assert snakemake(folder, "--unlock").returncode == 0
        done = snakemake(folder, *OTHERWISE)
    assert done.returncode == 0, done.stdout + done.stderr


def test_interrupted_runs_end_with_the_same_bytes(smoke, tmp_path):
    folder, rng = copy_project(tmp_path, smoke), random.Random(SEED)
    for _ in range(KILLS):
        said = interrupt(folder, rng)
        check_files(folder / "results-smoke")
        if "--unlock" in said:
            assert snakemake(folder, "--unlock").returncode == 0
        if "100%" in said:
            for path in rng.sample(sorted((folder / "results-smoke").rglob("*.npz")), 12):
                path.unlink()
    finish(folder)
    check_files(folder / "results-smoke")
    ours, theirs = (json.loads((where / "results-smoke/manifest.json").read_text()) for where in (folder, smoke))
    assert ours["files"] == theirs["files"]
    for path in (smoke / "results-smoke/figures").iterdir():
        assert path.read_bytes() == (folder / "results-smoke/figures" / path.name).read_bytes(), path.name
    assert {path.suffix for path in (folder / "results-smoke").rglob(".*")} == {".label"}


def test_a_killed_run_says_how_to_unlock(tmp_path):
    folder = copy_project(tmp_path)
    command = [sys.executable, "-m", "snakemake", "--cores", "2", "--configfile", "tests/smoke.yaml"]
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while not (folder / "results-smoke/logs").exists():
        assert process.poll() is None
        time.sleep(0.1)
    process.kill()
    process.wait()
    done = snakemake(folder, "results-smoke/figures/figure_03.png", "--cores", "1")
    assert done.returncode != 0
    assert "It can be removed with the --unlock argument." in " ".join((done.stdout + done.stderr).split())


def test_a_failing_job_is_the_last_thing_said(smoke, tmp_path):
    folder = copy_project(tmp_path, smoke)
    done = snakemake(folder, "--cores", "2", "--config", "learning_rate=1e300", *FEW)
    assert done.returncode != 0
    *_, message, log = (done.stdout + done.stderr).rstrip().splitlines()
    assert message.startswith("Rule pretrain failed: error: ") and "seed" in message and "finite at task 2" in message
    assert log.startswith("  Its log: results-smoke/logs/pretrain/")
    kept = next((folder / "results-smoke/diverged").iterdir())
    tasks_seen, A = load_arrays(kept, "tasks_seen", "A")
    assert tasks_seen.tolist() == [1] and len(A) == 1


def test_failures_name_rule_words_and_log(tmp_path):
    header = "2026-01-01 00:00:00 python -m ictd.steps tasks\n"
    logs = {
        "tasks/boyan-3/0-1.log": header + "error: no task.\n",
        "tasks/boyan-4/0-1.log": header,
        "metrics.log": header + "Traceback\nKeyError: 'a'\n",
        "claims.log": header + "2026-01-01 00:00:01 done in 1.0 s\nsome warning\n",
        "notebook.log": header + "error: of long ago.\n",
    }
    for name, text in logs.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    os.utime(tmp_path / "notebook.log", (10, 10))
    assert failed_jobs(tmp_path, 20, tmp_path).splitlines() == [
        "Rule metrics failed: KeyError: 'a'",
        f"  Its log: {tmp_path}/metrics.log",
        "Rule tasks failed: error: no task.",
        f"  Its log: {tmp_path}/tasks/boyan-3/0-1.log",
        "Rule tasks failed: it was stopped before it could say why.",
        f"  Its log: {tmp_path}/tasks/boyan-4/0-1.log",
    ]


def test_a_full_disk_is_named_with_the_file(tmp_path):
    """/dev/full takes nothing, as a full disk does."""
    code = "import sys\nfrom pathlib import Path\nfrom ictd.pipeline.runner import run\n"
    code += "from ictd.pipeline.storage import replacing\n"
    code += "def main(output: Path):\n    with replacing(output), open('/dev/full', 'w') as file:\n"
    code += "        file.write('x')\nrun(main, 'x', sys.argv[1:], {})\n"
    target = tmp_path / "table.csv"
    done = subprocess.run([sys.executable, "-c", code, "--output", target], capture_output=True, text=True)
    last = done.stderr.splitlines()[-1]
    assert (
        last == f"error: {target}: No space left on device; make room or give write access, then run snakemake again."
    )


def test_a_folder_that_cannot_be_written_to_is_refused(tmp_path):
    check_writable(tmp_path / "a/b/c")
    (tmp_path / "file").write_text("")
    for name in ("file", "file/results"):
        with pytest.raises(ValueError, match=r"Nothing can be written to .*/file; give write access"):
            check_writable(tmp_path / name)


def test_a_stopped_writer_leaves_nothing_that_the_next_one_keeps(tmp_path):
    code = "import sys, time\nfrom ictd.pipeline.storage import replacing\nwith replacing(sys.argv[1]) as temporary:\n"
    code += "    temporary.write_text('half')\n    print('now', flush=True)\n    time.sleep(60)\n"
    target = tmp_path / "table.csv"
    process = subprocess.Popen([sys.executable, "-c", code, target], stdout=subprocess.PIPE)
    process.stdout.readline()
    process.kill()
    process.wait()
    assert not target.exists() and len(list(tmp_path.iterdir())) == 1
    with replacing(target) as temporary:
        temporary.write_text("whole")
    assert [path.name for path in tmp_path.iterdir()] == ["table.csv"] and target.read_text() == "whole"
