"""Commands of make that cannot run print one sentence with the reason; a working environment is never harmed."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from projects import ROOT


def test_a_command_names_its_missing_prerequisite():
    command = ["make", "--no-print-directory", "--old-file", ".venv/ready", "report", "RESULTS=nowhere"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 2 and done.stdout.startswith("There is no finished run in nowhere/; run make reproduce")
    assert done.stdout.count("\n") == 1 and not (ROOT / "nowhere").exists()


def make_environment(project: Path, *words: str, **variables: str) -> subprocess.CompletedProcess:
    command = ["make", *words, f"PYTHON={sys.executable}", "environment"]
    return subprocess.run(command, cwd=project, env=os.environ | variables, capture_output=True, text=True)


def is_made_again(project: Path) -> bool:
    return "envs/install" in make_environment(project, "--dry-run").stdout


def new_environment(folder: Path) -> Path:
    """A virtual environment with one script, which prints the folder of its environment."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    (folder / "bin/where").write_text(f"#!{folder}/bin/python\nimport sys; print(sys.prefix)")
    (folder / "bin/where").chmod(0o755)
    return folder


def where(folder: Path) -> str:
    return subprocess.run([folder / "bin/where"], capture_output=True, text=True, check=True).stdout.strip()


@pytest.fixture
def project(tmp_path) -> Path:
    """What `make environment` reads, and an environment that it takes for finished."""
    folder = tmp_path / "project"
    shutil.copytree(ROOT / "envs", folder / "envs")
    for part in ("Makefile", "pyproject.toml"):
        shutil.copy2(ROOT / part, folder)
    show = ["make", "--no-print-directory", "--eval=show: ; @echo '$(MADE_FOR)'", "show"]
    made_for = subprocess.run(show, cwd=folder, capture_output=True, text=True, check=True).stdout
    (new_environment(folder / ".venv") / "ready").write_text(made_for)
    return folder


@pytest.mark.parametrize(
    ("python", "uv", "last"),
    [
        ("exit 1", "echo /found", "/found"),
        ("exit 1", "exit 1", "python3 is not Python 3.11, and uv could not download one ("),
        ('case "$*" in *ensurepip*) exit 1; esac', "", "python3 cannot make virtual environments; install what"),
    ],
)
def test_without_python_3_11_uv_gets_it_or_one_sentence_says_what_to_install(tmp_path, python, uv, last):
    for name, text in {"python3": python, "uv": uv}.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755 if text else 0)
    command = f"PATH={tmp_path}:/usr/bin:/bin {ROOT}/envs/python a-shim-of-pyenv {tmp_path}/new 2>&1"
    said = subprocess.run(command, shell=True, stdout=subprocess.PIPE, text=True).stdout
    assert said.splitlines()[-1].startswith(last)


def test_the_environment_is_made_again_for_another_folder_or_content_but_not_for_newer_files(project, tmp_path):
    for path in [project / "pyproject.toml", *(project / "envs").iterdir()]:
        os.utime(path)
    assert not is_made_again(project)
    assert is_made_again(shutil.copytree(project, tmp_path / "moved", symlinks=True))
    (project / "envs/torch.txt").write_text("torch==0\n")
    assert is_made_again(project)


@pytest.mark.slow
def test_an_installation_that_fails_leaves_the_environment_as_it_is(project):
    (project / "envs/torch.txt").write_text("torch==0\n")
    done = make_environment(project, PIP_NO_INDEX="1", PIP_FIND_LINKS="", PIP_CONFIG_FILE=os.devnull)
    assert done.returncode == 2 and "all that was said is in .venv.new/install.log" in done.stderr
    assert "XDG_CACHE_HOME" in done.stderr and where(project / ".venv") == str(project / ".venv")


def test_an_environment_can_be_moved_in_the_place_of_another(tmp_path):
    folder = new_environment(tmp_path / "folder")
    (new_environment(tmp_path / "new") / "made as new").touch()
    subprocess.run([sys.executable, ROOT / "envs/move.py", "new", "folder"], cwd=tmp_path, check=True)
    assert [*tmp_path.iterdir()] == [folder] and (folder / "made as new").exists()
    assert where(folder) == str(folder)
