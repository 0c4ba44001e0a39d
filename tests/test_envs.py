"""Each rule's environment holds what its step imports, and nothing that no rule of it needs."""

import ast
import re
import sys
from pathlib import Path

import numpy as np
import yaml

from ictd.pipeline.provenance import code_digests

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src"
GROUPS = yaml.safe_load((ROOT / "envs/groups.yaml").read_text())["groups"]
PACKAGE_OF = {"yaml": "pyyaml"}


def rules() -> dict[str, tuple[str, str]]:
    """For each rule its environment and its shell command; rules made from others take theirs."""
    found = {}
    for path in sorted((ROOT / "workflow/rules").glob("*.smk")):
        for name, body in re.findall(r"^rule (\w+):\n(.*?)(?=^\S|\Z)", path.read_text(), re.DOTALL | re.MULTILINE):
            if "shell:" not in body:
                continue
            environment = re.search(r"conda:\s+\"../../envs/(\w+)\.yaml\"", body)[1]
            found[name] = environment, re.search(r"shell:\n(.*)", body, re.DOTALL)[1]
    return found


def third_party(step: str) -> set[str]:
    """Packages that a step imports, by itself or through modules of ours, anywhere in its code."""
    names = set()
    for module in (line.split()[0] for line in code_digests(step, SOURCE)):
        path = SOURCE / module.replace(".", "/")
        file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Import):
                names |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                names.add(node.module)
    tops = {name.split(".")[0] for name in names} - {"ictd", *sys.stdlib_module_names}
    return {PACKAGE_OF.get(top, top) for top in tops}


def needed(command: str) -> set[str]:
    """Packages that a rule's command needs."""
    packages = {"ipykernel"} if "ictd.steps.notebook" in command else set()
    for step in re.findall(r"python -m (ictd\.steps\.\w+)", command):
        packages |= third_party(step)
    return packages


def test_every_environment_holds_just_what_its_rules_import():
    by_group = {}
    for environment, command in rules().values():
        by_group.setdefault(environment, set()).update(needed(command))
    assert by_group == {name: set(packages) for name, packages in GROUPS.items()}


def test_every_environment_pins_the_locks_versions():
    locked = dict(re.findall(r"^([\w.-]+)==([^ \\\n]+)", (ROOT / "envs/requirements.txt").read_text(), re.MULTILINE))
    locked |= dict(re.findall(r"^(torch)==([^ \\\n]+)", (ROOT / "envs/torch.txt").read_text(), re.MULTILINE))
    direct = dict(re.findall(r"^([\w.-]+)==(\S+)", (ROOT / "envs/requirements.in").read_text(), re.MULTILINE))
    assert direct.items() <= locked.items()
    for name, packages in GROUPS.items():
        environment = yaml.safe_load((ROOT / f"envs/{name}.yaml").read_text())
        assert environment["channels"] == ["conda-forge", "nodefaults"]
        pins = dict(pin.split("==") for pin in environment["dependencies"][-1]["pip"] if "==" in pin)
        assert pins.items() <= locked.items()
        assert set(packages) <= set(pins)


def test_every_rule_runs_in_its_environment_and_gives_the_same_arrays(smoke, under_conda):
    folder = under_conda
    environments = list((folder / ".snakemake/conda").glob("*_"))
    assert len(environments) == len(set(map(tuple, GROUPS.values())))
    for kind, name in (("weights", "A"), ("evaluation", "msve"), ("baselines", "lstd")):
        paths = list((folder / f"results-smoke/{kind}").glob("*.npz"))
        assert paths
        for path in paths:
            array, expected = (np.load(file)[name][:2] for file in (path, smoke / path.relative_to(folder)))
            assert array.tobytes() == expected.tobytes()


def test_both_images_hold_the_same_files():
    copied = re.findall(r"^COPY (.+) /opt/ictd/", (ROOT / "Dockerfile").read_text(), re.MULTILINE)
    docker = {name.split("/")[0] for line in copied for name in line.split()}
    apptainer = set(re.findall(r"^    (\S+) /opt/ictd/$", (ROOT / "ictd.def").read_text(), re.MULTILINE))
    assert docker == apptainer and all((ROOT / name).exists() for name in docker)
