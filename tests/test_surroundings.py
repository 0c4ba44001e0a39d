"""Jobs see what the workflow gives them and nothing else, and it changes nothing but its own jobs."""

import json
import os
import re
import shutil
import subprocess
import sys
from types import SimpleNamespace

import pytest
from projects import ROOT, SMOKE, copy_project, plans
from snakemake.shell import shell

from ictd.pipeline.studies import GLOBAL, left_out_if_it_fails
from ictd.steps.manifest import commit

TEXT = {"capture_output": True, "text": True}
# Rules that draw, start programs, or run what notebooks run, each with a job.
FORCED = {"environment_diagrams": "environment_diagrams", "manifest": "manifest", "notebook": "notebook"}


def planted(folder, home, marks):
    """Files that change figures, or leave a mark when they run; and variables that lead to them."""

    def mark(name):
        return f"import pathlib; pathlib.Path({str(marks / name)!r}).touch()\n"

    launch = f"touch {marks}/kernel; exec {sys.executable} -m ipykernel_launcher -f $0"
    kernel = {"argv": ["sh", "-c", launch, "{connection_file}"], "display_name": "x", "language": "python"}
    ugly = "font.size: 30\nlines.linewidth: 9\nsvg.fonttype: none\n"
    files = {
        "random.py": mark("folder"),
        "nbformat.py": mark("folder"),
        "matplotlibrc": ugly,
        "rc": ugly,
        "startup.py": mark("startup"),
        "modules/papermill.py": mark("PYTHONPATH"),
        "jupyter/kernels/python3/kernel.json": json.dumps(kernel),
        home / ".local/share/jupyter/kernels/python3/kernel.json": json.dumps(kernel),
        home / ".ipython/profile_default/startup/x.py": mark("ipython"),
        home / ".config/matplotlib/matplotlibrc": ugly,
    }
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    named = {"JUPYTER_PATH": "jupyter", "MATPLOTLIBRC": "rc", "PYTHONPATH": "modules", "PYTHONSTARTUP": "startup.py"}
    variables = {name: str(folder / path) for name, path in named.items()}
    return variables | {"IPYTHONDIR": str(home / ".ipython"), "GIT_DIR": str(ROOT / ".git"), "HOME": str(home)}


def test_jobs_see_nothing_of_what_lies_around(smoke, tmp_path):
    """In a project whose path a shell would take apart, called from another folder."""
    project, folder, home, marks = (tmp_path / name for name in ("a $(touch x) 'b' \"c\"", "work", "home", "marks"))
    copy_project(project)
    for part in ("results-smoke", ".snakemake"):
        shutil.copytree(smoke / part, folder / part)
    marks.mkdir()
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    variables = planted(folder, home, marks) | {"TMPDIR": str(temporary)}
    variables |= {"XDG_CACHE_HOME": os.environ.get("XDG_CACHE_HOME", os.path.expanduser("~/.cache"))}
    command = [f"{os.path.dirname(sys.executable)}/snakemake", "-s", project / "Snakefile", "-d", folder]
    command += ["--configfile", project / SMOKE, "--cores", "2", "--rerun-triggers", "mtime", "--forcerun", *FORCED]
    command += ["--", "results-smoke/report.ipynb", "results-smoke/manifest.json"]
    done = subprocess.run(command, cwd=folder, env=os.environ | variables, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    results, expected = folder / "results-smoke", smoke / "results-smoke"
    for job in FORCED.values():
        assert (results / f"logs/{job}.log").stat().st_mtime > (expected / f"logs/{job}.log").stat().st_mtime
    assert not list(marks.iterdir()) and not list(tmp_path.rglob("x")) and not list(temporary.iterdir())
    for ending in ("png", "svg"):
        name = f"figures/figure_03.{ending}"
        assert (results / name).read_bytes() == (expected / name).read_bytes()
    assert json.loads((results / "manifest.json").read_text())["commit"] is None


WITHOUT_NUMPY = """
import sys
from importlib.machinery import PathFinder

class Finder(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return None if name == "numpy" else PathFinder.find_spec(name, path, target)

sys.meta_path = [Finder if finder is PathFinder else finder for finder in sys.meta_path]
"""


def test_a_snakemake_without_our_packages_says_which_one_to_run(tmp_path):
    (tmp_path / "sitecustomize.py").write_text(WITHOUT_NUMPY)
    for arguments in (["--lint"], ["--dry-run", "--cores", "1"]):
        command = [sys.executable, "-m", "snakemake", *arguments, "--directory", tmp_path]
        done = subprocess.run(command, cwd=ROOT, env=os.environ | {"PYTHONPATH": str(tmp_path)}, **TEXT)
        *_, said = done.stderr.splitlines()
        assert done.returncode == 1 and said.startswith("This Snakemake runs without numpy; run that of the project")
        assert "Error" not in done.stderr


OUTER = """
shell.prefix("export SAID=outer; ")


rule before:
    output:
        "before.txt",
    resources:
        runtime=10,
    shell:
        "echo $SAID > {output}; env >> {output}"


module ictd:
    snakefile:
        "SNAKEFILE"


use rule * from ictd as ictd_*


assert "ictd_tasks" not in workflow._localrules and "ictd_claims" in workflow._localrules
assert "before" not in workflow._localrules


rule both:
    input:
        "before.txt",
        "results-smoke/tasks/boyan-3/0-1.npz",
    default_target: True
"""


def test_as_a_module_it_leaves_the_outer_workflow_alone(smoke, tmp_path):
    (tmp_path / "Snakefile").write_text(OUTER.replace("SNAKEFILE", str(ROOT / "Snakefile")))
    command = [sys.executable, "-m", "snakemake", "--cores", "1", "--configfile", ROOT / SMOKE]
    variables = {name: value for name, value in os.environ.items() if not name.startswith("SNAKEMAKE")}
    done = subprocess.run(command, cwd=tmp_path, env=variables, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    said, *lines = (tmp_path / "before.txt").read_text().splitlines()
    assert said == "outer"
    seen = dict(line.split("=", 1) for line in lines if "=" in line)
    for name in ("PATH", "PYTHONPATH", "PYTHONDONTWRITEBYTECODE", "HOME", "LANG"):
        assert seen.get(name) == variables.get(name)
    assert (tmp_path / "results-smoke/tasks/boyan-3/0-1.npz").exists()


def test_commit_is_that_of_the_source(monkeypatch, tmp_path):
    expected = commit()
    subprocess.run(["git", "init", "--quiet", tmp_path], check=True)
    monkeypatch.setenv("GIT_DIR", str(tmp_path / ".git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(tmp_path))
    assert commit() == expected


def test_an_image_keeps_the_commit_of_its_files(monkeypatch, tmp_path):
    """It has no git; and where no commit was named, none is known."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("ictd.steps.manifest.PROJECT", tmp_path)
    assert commit() is None
    for kept in ("", "0123abcd-dirty"):
        (tmp_path / "commit.txt").write_text(kept)
        assert commit() == (kept or None)


@pytest.mark.parametrize("directive", [*GLOBAL, "shell.prefix"])
def test_a_study_sets_nothing_for_the_whole_workflow(directive):
    methods = {method: lambda *_, **__: None for method in GLOBAL.values()}
    workflow = SimpleNamespace(
        included_stack=[], default_target=None, _rules={}, _localrules=set(), linemaps={}, globals={"shell": shell}
    )
    vars(workflow).update(methods)
    failed = {}
    with left_out_if_it_fails(workflow, "mine", failed):
        getattr(workflow, GLOBAL[directive])() if directive in GLOBAL else shell.prefix("export A=1; ")
    assert f"its rules.smk sets {directive} for the whole workflow" in failed["mine"]
    assert all(getattr(workflow, name) is method for name, method in methods.items())
    assert shell._process_prefix is None and vars(shell)["prefix"].__func__.__name__ == "prefix"


def test_swapped_names_run_again_and_base_rules_are_no_targets(smoke, tmp_path):
    folder = copy_project(tmp_path)
    for part in ("results-smoke", ".snakemake"):
        shutil.copytree(smoke / part, folder / part)
    path = folder / "workflow/rules/evaluate.smk"
    text = path.read_text().replace("tuned=", "x=").replace(" baselines=expand", " tuned=expand", 1)
    path.write_text(text.replace("x=", "baselines="))
    targets = (["all"], ["step"], ["gather"])
    (_, said), *asked = plans([(folder, [*target, "--configfile", SMOKE]) for target in targets])
    assert re.search(r"^baselines +\d+$", said, re.MULTILINE) and not re.search(r"^pretrain +", said, re.MULTILINE)
    for (ended, _), (name,) in zip(asked, targets[1:], strict=True):
        assert ended == f"Rule {name} is for making others; see `snakemake --list`."


MODULE = """
module ictd:
    snakefile:
        SNAKEFILE
    config:
        {"seeds": 2, "envs": ["boyan"], "states": [3], "depths": [4], "evaluation": {"tasks": 7}, "results": "out"}


use rule * from ictd
"""


def planned(folder, snakefile, **variables):
    """What a dry run says of the workflow as a module with a part of a configuration."""
    (folder / "Snakefile").write_text(MODULE.replace("SNAKEFILE", snakefile))
    command = [sys.executable, "-m", "snakemake", "--cores", "1", "--dry-run", "--printshellcmds"]
    done = subprocess.run(command, cwd=folder, env=os.environ | variables, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout + done.stderr


def test_what_a_modules_configuration_does_not_give_is_the_papers(tmp_path):
    said = planned(tmp_path, repr(str(ROOT / "workflow/Snakefile")))
    assert re.search(r"^pretrain +2$", said, re.MULTILINE) and re.search(r"^paper +1$", said, re.MULTILINE)
    assert "--tasks 20000 " in said and "--unseen-tasks 7 " in said and "--lstd-ridge 0.01 " in said


def test_a_module_from_a_hosted_repository(tmp_path):
    """As snakedeploy writes it; git takes a folder for the host."""
    hosted, home, folder = tmp_path / "me/ictd.git", tmp_path / "home", tmp_path / "work"
    for part in (home, folder):
        part.mkdir()
    copy_project(tmp_path / "project")
    git = ["git", "-c", "user.name=me", "-c", "user.email=me@example.org", "-C", tmp_path / "project"]
    for command in (["init", "-q", "-b", "main"], ["add", "."], ["commit", "-q", "-m", "all"]):
        subprocess.run([*git, *command], check=True)
    subprocess.run(["git", "clone", "-q", "--bare", tmp_path / "project", hosted], check=True)
    (home / ".gitconfig").write_text(f'[url "file://{tmp_path}/me/"]\n    insteadOf = https://github.com/me/\n')
    variables = {
        "HOME": str(home),
        "XDG_CACHE_HOME": str(home / "cache"),
        "GIT_CONFIG_GLOBAL": str(home / ".gitconfig"),
    }
    said = planned(folder, 'github("me/ictd", path="workflow/Snakefile", branch="main")', **variables)
    assert re.search(r"^pretrain +2$", said, re.MULTILINE)
    (files,) = (folder / ".snakemake/ictd").iterdir()
    assert (files / "src/ictd/gram.py").read_bytes() == (ROOT / "src/ictd/gram.py").read_bytes()


def test_what_is_deployed_has_the_configuration():
    """snakedeploy copies the folder ``config``."""
    assert (ROOT / "config/config.yaml").read_bytes() == (ROOT / "config.yaml").read_bytes()
