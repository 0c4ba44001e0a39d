"""The package as a library: what it depends on, its wheel, and the oldest versions of its dependencies."""

import json
import os
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path
from shutil import copy2, copytree, ignore_patterns

import numpy as np
import pytest
from pages import examples
from projects import ROOT
from test_envs import third_party

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
DEPENDENCIES = PROJECT["dependencies"]
EXTRAS = PROJECT["optional-dependencies"]
BIN = Path(sys.executable).parent
# Parts of the package that need an extra.
PARTS = {
    "ictd.attention": "torch",
    "ictd.torch_twin": "torch",
    "ictd.report": "report",
    "ictd.pipeline": "workflow",
    "ictd.steps.report": "report",
    "ictd.steps": "workflow",
}
MODULES = [
    ".".join(path.relative_to(ROOT / "src").with_suffix("").parts).removesuffix(".__init__")
    for path in sorted((ROOT / "src/ictd").rglob("*.py"))
]
# Modules that report a missing extra, and the first package that they miss.
MISSING = {
    "ictd.attention": ("torch", "torch"),
    "ictd.torch_twin": ("torch", "torch"),
    "ictd.report.tables": ("report", "pandas"),
    "ictd.report.figures.style": ("report", "matplotlib"),
    "ictd.pipeline.config": ("workflow", "jsonschema"),
}
EXAMPLE = """
import ictd

rng = ictd.generator(0, "boyan", 3, "tasks")
tasks = ictd.sample_tasks("boyan", 3, 20, rng)
batches = ictd.unroll(tasks, 64, 0.9, 200, rng)
start = ictd.initial_weights(3, 0.1, rng)
history = ictd.pretrain_history(tasks, batches, "td", 10, 0.9, 0.001, start)
model = ictd.Model(history.weights[-1], depth=10, discount=0.9)
model.values(ictd.Context.enumerated(tasks.transition, tasks.reward))
"""


def part_of(module: str) -> str:
    return next((part for part in PARTS if f"{module}.".startswith(f"{part}.")), "library")


def names(requirements: list[str]) -> set[str]:
    return {re.match(r"[\w.-]+", requirement)[0] for requirement in requirements}


def output_of(*command: str | Path, **options) -> str:
    done = subprocess.run(command, capture_output=True, text=True, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def uv(*arguments: str | Path) -> str:
    return output_of(BIN / "uv", *arguments)


def new_environment(folder: Path) -> Path:
    """The Python of a new virtual environment, which has no packages."""
    output_of(sys.executable, "-m", "venv", "--without-pip", folder)
    return folder / "bin/python"


def test_dependencies_and_extras_are_what_modules_import():
    """Snakemake, its report, and the kernel of the report's notebook are not imported.  Steps import of every part."""
    imported = {"library": set(), "torch": set(), "report": {"ipykernel"}, "workflow": {"pygments", "snakemake"}}
    for module in MODULES:
        if part_of(module) != "ictd.steps":
            imported[PARTS.get(part_of(module), "library")] |= third_party(module)
    assert imported.pop("library") == names(DEPENDENCIES)
    assert {extra: found - names(DEPENDENCIES) for extra, found in imported.items()} == {
        extra: names(requirements) for extra, requirements in EXTRAS.items()
    }


def imports_without_extras() -> str:
    """Code that imports the whole library, and prints the messages of other modules that cannot be imported."""
    library = [module for module in MODULES if part_of(module) == "library"]
    return f"""
from importlib import import_module
for name in {library}:
    import_module(name)
for name in {[*MISSING, "ictd"]}:
    try:
        import_module(name).LinearTransformer
    except ImportError as error:
        print(error)
from ictd import *
"""


def messages_without_extras() -> list[str]:
    sentences = [f"{package} is not installed; run: pip install 'ictd[{extra}]'" for extra, package in MISSING.values()]
    return [*sentences, sentences[0]]


def test_the_library_needs_no_extra_and_a_missing_extra_is_named(tmp_path):
    packages = {"PIL", "jsonschema", "matplotlib", "nbconvert", "nbformat", "pandas", "papermill", "torch", "yaml"}
    blocked = f"import sys; sys.modules.update(dict.fromkeys({packages}))\n"
    printed = output_of(sys.executable, "-P", "-c", blocked + imports_without_extras(), cwd=tmp_path)
    assert printed.splitlines() == messages_without_extras()


def test_the_type_checker_accepts_the_examples_of_pages(tmp_path):
    for page in (ROOT / "README.md", ROOT / "docs/python.md"):
        (tmp_path / f"{page.stem}.py").write_text("\n".join(code for code, _ in examples(page)))
    command = [BIN / "pyrefly", "check", "--python-interpreter-path", sys.executable]
    output_of(*command, "--search-path", ROOT / "src", "--preset", "default", *tmp_path.glob("*.py"))


@pytest.mark.slow
def test_a_wheel_has_all_files_and_works_with_the_dependencies_alone(tmp_path):
    """It is built from the source distribution of a copy of the package."""
    project = tmp_path / "project"
    copytree(ROOT / "src", project / "src", ignore=ignore_patterns("__pycache__", "*.egg-info"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        copy2(ROOT / name, project)
    uv("build", "--quiet", project)
    (wheel,) = (project / "dist").glob("*.whl")
    files = {f"{path.relative_to(project / 'src')}" for path in (project / "src/ictd").rglob("*") if path.is_file()}
    assert files == {name for name in zipfile.ZipFile(wheel).namelist() if not name.startswith("ictd-")}
    python = new_environment(tmp_path / "venv")
    uv("pip", "install", "--quiet", "--python", python, wheel)
    listed = json.loads(uv("pip", "list", "--python", python, "--format", "json"))
    assert {package["name"] for package in listed} == {"ictd", "llvmlite", *names(DEPENDENCIES)}
    code = imports_without_extras() + EXAMPLE
    options = {"cwd": tmp_path, "env": os.environ | {"XDG_CACHE_HOME": str(tmp_path / "cache")}}
    assert output_of(python, "-P", "-c", code, **options).splitlines() == messages_without_extras()


@pytest.mark.slow
def test_the_oldest_dependencies_pass_the_tests(tmp_path):
    """They are installed in a new environment; other packages, such as torch, come from this environment."""
    python = new_environment(tmp_path / "venv")
    install = ["pip", "install", "--quiet", "--python", python, "--requirement", ROOT / "pyproject.toml"]
    uv(*install, "--resolution", "lowest-direct")
    installed = uv("pip", "freeze", "--python", python)
    assert all(requirement.replace(">=", "==") in installed for requirement in DEPENDENCIES)
    (packages,) = (tmp_path / "venv/lib").glob("python*/site-packages")
    here = Path(np.__file__).parents[1]
    (packages / "here.pth").write_text(f"import site; site.addsitedir({str(here)!r})\n")
    variables = {"XDG_CACHE_HOME": str(tmp_path / "cache"), "PYTHONPATH": str(ROOT / "src")}
    command = [python, "-P", "-m", "pytest", "-p", "no:cacheprovider", "-m", "not slow", "@tests/library.txt"]
    output_of(*command, cwd=ROOT, env=os.environ | variables)
