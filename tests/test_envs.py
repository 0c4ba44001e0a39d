"""Each rule's environment has exactly the packages that its step imports; images have the same files."""

import ast
import re
import subprocess
import sys
from functools import cache

import pytest
from projects import ROOT, STUDIES, rules_of_paper

from ictd.pipeline.config import load_yaml
from ictd.pipeline.provenance import PACKAGES, module_path
from ictd.pipeline.rules import modules_of

RUNNER = "ictd.pipeline.runner"
GROUPS = load_yaml(ROOT / "envs/groups.yaml")["groups"]
PACKAGE_OF = {"yaml": "pyyaml", "PIL": "pillow", "llvmlite": "numba", "pypandoc": "pypandoc-binary"}


@cache
def third_party(module: str) -> set[str]:
    """Packages that a module of ours imports itself, anywhere in its code."""
    names = set()
    for node in ast.walk(ast.parse(module_path(module).read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names.add(node.module)
    tops = {name.split(".")[0] for name in names} - {*PACKAGES, *sys.stdlib_module_names}
    # Cells of the page run in IPython, which ipykernel installs.
    return {PACKAGE_OF.get(top, top) for top in tops} - {"IPython"}


def test_every_environment_has_exactly_what_its_rules_import():
    found = {"studies": set()}
    for step, environment in rules_of_paper().values():
        found.setdefault(environment, set()).update(*map(third_party, modules_of(step, RUNNER)))
    # What the step of a part imports by a name, or starts, and what the results of studies import.
    parts = modules_of("ictd.report.paper.results", "ictd.report.page")
    found["report"] |= {"ipykernel", "numba"}.union(*map(third_party, parts))
    for study in STUDIES:
        rules = (ROOT / f"studies/{study}/rules.smk").read_text()
        steps = set(re.findall(r'"(studies\.\w+\.\w+)"', rules))
        assert steps
        found["studies"].update(*map(third_party, modules_of(*steps, RUNNER)))
    # A step of another study may use pandas.
    found["studies"].add("pandas")
    assert found == {name: {*packages} for name, packages in GROUPS.items()}


@pytest.mark.parametrize("name", GROUPS)
def test_every_environment_has_the_locks_versions_and_hashes(name):
    lock = "".join((ROOT / f"envs/{part}.txt").read_text() for part in ("installer", "requirements", "torch"))
    environment = load_yaml(ROOT / f"envs/{name}.yaml")
    assert environment["channels"] == ["conda-forge", "nodefaults"]
    lines = [line for line in environment["dependencies"][-1]["pip"] if not line.startswith("--")]
    assert {*GROUPS[name]} <= {line.split("==")[0] for line in lines}
    for line in lines:
        # torch has other builds for macOS.
        assert "hash=" in line and (line.split(" --")[0] not in lock or all(part in lock for part in line.split(" --")))


def test_both_images_have_the_same_files():
    docker = set(re.findall(r"^!(.+)$", (ROOT / ".dockerignore").read_text(), re.MULTILINE))
    apptainer = set(re.findall(r"^    (\S+) /opt/ictd/$", (ROOT / "ictd.def").read_text(), re.MULTILINE))
    assert docker == apptainer and all((ROOT / name).exists() for name in docker)
    assert re.search(r"^USER [1-9]", (ROOT / "Dockerfile").read_text(), re.MULTILINE)


@pytest.mark.parametrize("lost", [True, False])
def test_an_image_without_a_mounted_folder_warns_that_results_are_lost(lost, tmp_path):
    """The image is called in a folder that is not mounted, and in a mounted folder."""
    done = subprocess.run([ROOT / "envs/image", "echo", "run"], cwd=tmp_path if lost else "/proc", capture_output=True)
    assert done.stdout == b"run\n" and (b"Nothing is mounted at " in done.stderr) == lost
