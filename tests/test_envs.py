"""Each rule's environment has exactly the packages that its step imports; images have the same files."""

import ast
import re
import subprocess
import sys

import numpy as np
import pytest
from imports import imported_modules
from projects import ROOT, rules_of_paper

from ictd.pipeline.config import load_yaml
from ictd.pipeline.provenance import PACKAGES, module_path

RUNNER = imported_modules("ictd.pipeline.runner")
GROUPS = load_yaml(ROOT / "envs/groups.yaml")["groups"]
LOCK = "".join((ROOT / f"envs/{name}.txt").read_text() for name in ("installer", "requirements", "torch"))
PACKAGE_OF = {"yaml": "pyyaml", "PIL": "pillow", "llvmlite": "numba", "pypandoc": "pypandoc-binary"}


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
    """The environment of studies has the packages for every study."""
    found = {}
    for step, environment in rules_of_paper().values():
        modules = imported_modules(step) | RUNNER
        found.setdefault(environment, set()).update(*map(third_party, modules))
    # What the step of a part imports by a name, or starts, and what the results of studies import.
    parts = imported_modules("ictd.report.paper.results") | imported_modules("ictd.report.page")
    found["report"] |= {"ipykernel", "numba"}.union(*map(third_party, parts))
    assert found == {name: {*packages} for name, packages in GROUPS.items() if name != "studies"}


@pytest.mark.parametrize("name", GROUPS)
def test_every_environment_has_the_locks_versions_and_hashes(name):
    locked = {}
    for block in re.split(r"^(?=[\w.-]+==)", LOCK, flags=re.MULTILINE)[1:]:
        locked.setdefault(block.split(" \\\n")[0], set()).update(re.findall(r"--hash=sha256:\w{64}", block))
    environment = load_yaml(ROOT / f"envs/{name}.yaml")
    assert environment["channels"] == ["conda-forge", "nodefaults"]
    lines = [line for line in environment["dependencies"][-1]["pip"] if not line.startswith("--")]
    assert {*GROUPS[name]} <= {line.split("==")[0] for line in lines}
    for pin, *hashes in (line.split(" --") for line in lines):
        expected = locked.get(pin)
        assert {f"--{part}" for part in hashes} == expected if expected else "hash=" in hashes[-1], pin


@pytest.mark.slow
def test_every_rule_runs_in_an_environment_with_its_pins_only_and_gives_the_same_results(smoke, under_conda):
    assert len(list((under_conda / ".snakemake/conda").glob("*_"))) == len({*map(tuple, GROUPS.values())})
    for kind, name in (("weights", "A"), ("evaluation", "msve"), ("baselines", "lstd")):
        paths = list((under_conda / f"results-smoke/{kind}").glob("*.npz"))
        assert paths
        for path in paths:
            array, expected = (np.load(file)[name] for file in (path, smoke / path.relative_to(under_conda)))
            assert array.tobytes() == expected.tobytes()


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
