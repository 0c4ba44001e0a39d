"""Surrounding files and variables change no result; as a module, the workflow does not change the outer workflow."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from projects import ROOT, SMOKE, copy_project, with_results

from ictd.steps.report.manifest import commit
from ictd.storage import load_json

# Rules that draw figures, start programs or run notebooks, each with a job.
FORCED = ("results", "manifest")


def planted(folder: Path, home: Path, marks: Path) -> dict[str, str]:
    """Files that would change figures, or leave a mark when they run; and variables that lead to them."""

    def mark(name):
        return f"import pathlib; pathlib.Path({str(marks / name)!r}).touch()\n"

    ugly = "font.size: 30\nlines.linewidth: 9\nsvg.fonttype: none\n"
    files = {
        "random.py": mark("folder"),
        "matplotlibrc": ugly,
        "modules/papermill.py": mark("PYTHONPATH"),
        home / ".local/lib/python3.11/site-packages/papermill.py": mark("user site"),
        home / ".config/matplotlib/matplotlibrc": ugly,
    }
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    paths = {"MATPLOTLIBRC": folder / "matplotlibrc", "PYTHONPATH": folder / "modules"}
    paths |= {"GIT_DIR": ROOT / ".git", "HOME": home}
    others = {"LANG": "de_DE.UTF-8", "PYTHONHASHSEED": "7", "PYTHONOPTIMIZE": "2"}
    return {name: str(path) for name, path in paths.items()} | others


@pytest.mark.slow
def test_hostile_surroundings_change_no_result(smoke, tmp_path):
    """In a project whose path has characters that are special to a shell, called from another folder."""
    project, folder, home, marks = (tmp_path / name for name in ("a'b\"$HOME", "work", "home", "marks"))
    copy_project(project, without=("studies",))
    folder.mkdir()
    marks.mkdir()
    with_results(smoke, folder)
    variables = planted(folder, home, marks)
    command = [sys.executable, "-P", "-m", "snakemake", "-s", project / "Snakefile", "-d", folder]
    command += ["--configfile", project / SMOKE, "--cores", "2", "--rerun-triggers", "mtime", "--forcerun", *FORCED]
    command += ["--", "results-smoke/report.ipynb", "results-smoke/manifest.json"]
    done = subprocess.run(command, cwd=folder, env=os.environ | variables, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    results, expected = folder / "results-smoke", smoke / "results-smoke"
    for job in FORCED:
        assert (results / f"logs/{job}.log").stat().st_mtime > (expected / f"logs/{job}.log").stat().st_mtime
    assert not list(marks.iterdir())
    for name in ("figures/figure_03.png", "figures/figure_03.svg", "report.html"):
        assert (results / name).read_bytes() == (expected / name).read_bytes()
    assert load_json(results / "manifest.json")["commit"] is None


def test_the_commit_is_that_of_the_source(monkeypatch, tmp_path):
    """For any GIT_DIR in the environment; images have no git, and store the commit in a file."""
    expected = commit()
    subprocess.run(["git", "init", "--quiet", tmp_path], check=True)
    monkeypatch.setenv("GIT_DIR", str(tmp_path / ".git"))
    assert commit() == expected
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("ictd.steps.report.manifest.PROJECT", tmp_path)
    assert commit() is None
    (tmp_path / "commit.txt").write_text("0123abcd-dirty")
    assert commit() == "0123abcd-dirty"


# Variables that the workflow sets for its own jobs.
NAMES = ("PYTHONPATH", "PYTHONDONTWRITEBYTECODE", "HOME", "LANG")
MODULE = """
rule before:
    output:
        "before.txt",
    shell:
        "env > {output}"


module ictd:
    snakefile:
        SNAKEFILE
    config:
        {"seeds": 2, "envs": ["boyan"], "states": [3], "depths": [4], "tasks": 50, "results": "out"}


use rule * from ictd as ictd_*
"""


@pytest.mark.slow
def test_a_module_from_a_hosted_repository_runs_and_leaves_the_outer_workflow_alone(tmp_path):
    """A module as written by snakedeploy, with a partial configuration; git uses a folder as the host."""
    hosted, home, folder = tmp_path / "me/ictd.git", tmp_path / "home", tmp_path / "work"
    for part in (home, folder):
        part.mkdir()
    copy_project(tmp_path / "project", without=("studies",))
    git = ["git", "-c", "user.name=me", "-c", "user.email=me@example.org", "-C", tmp_path / "project"]
    for command in (["init", "-q", "-b", "main"], ["add", "."], ["commit", "-q", "-m", "all"]):
        subprocess.run([*git, *command], check=True)
    subprocess.run(["git", "clone", "-q", "--bare", tmp_path / "project", hosted], check=True)
    (home / ".gitconfig").write_text(f'[url "file://{tmp_path}/me/"]\n    insteadOf = https://github.com/me/\n')
    variables = {"HOME": home, "XDG_CACHE_HOME": home / "cache", "GIT_CONFIG_GLOBAL": home / ".gitconfig"}
    env = os.environ | {name: str(path) for name, path in variables.items()}
    snakefile = 'github("me/ictd", path="workflow/Snakefile", branch="main")'
    (folder / "Snakefile").write_text(MODULE.replace("SNAKEFILE", snakefile))

    def said(*arguments: str) -> str:
        command = [sys.executable, "-m", "snakemake", "--cores", "1", "--printshellcmds", *arguments]
        done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr[-3000:]
        return done.stdout + done.stderr

    assert "--tasks 50 " in said("before.txt", "out/tasks/boyan-3/0-1.npz")
    assert (folder / "out/tasks/boyan-3/0-1.npz").exists()
    seen = dict(line.split("=", 1) for line in (folder / "before.txt").read_text().splitlines() if "=" in line)
    assert {name: seen.get(name) for name in NAMES} == {name: env.get(name) for name in NAMES}
    assert re.search(r"^ictd_pretrain +2$", said("--dry-run", "ictd_paper"), re.MULTILINE)


def test_a_deployed_workflow_has_the_configuration():
    """snakedeploy copies the folder ``config``."""
    assert (ROOT / "config/config.yaml").read_bytes() == (ROOT / "config.yaml").read_bytes()
