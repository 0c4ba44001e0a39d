"""Commands of make that cannot run print one sentence with the reason."""

import subprocess

import pytest
from projects import ROOT


def make(*words: str) -> subprocess.CompletedProcess:
    """Run make without installing the environment."""
    command = ["make", "--no-print-directory", "--old-file", ".venv/ready", *words]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True)


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("report", "There is no finished run in nowhere/; run make reproduce"),
        ("container", "Install and start docker or podman"),
        ("reproduce-container", "Install and start docker or podman"),
    ],
)
def test_commands_name_missing_prerequisites(target, message):
    done = make(target, "RESULTS=nowhere", "BUILDER=")
    assert done.returncode == 2 and done.stdout.startswith(message) and done.stdout.count("\n") == 1
    assert not (ROOT / "nowhere").exists() and len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize("moved", [False, True])
def test_a_folder_that_was_moved_gets_a_new_environment(tmp_path, moved):
    for part in ("Makefile", "envs", "pyproject.toml"):
        (tmp_path / part).symlink_to(ROOT / part)
    (tmp_path / ".venv").mkdir()
    (tmp_path / ".venv/ready").write_text("/elsewhere\n" if moved else f"{tmp_path}\n")
    done = subprocess.run(["make", "--dry-run", "environment"], cwd=tmp_path, capture_output=True, text=True)
    assert ("envs/install" in done.stdout) == moved
