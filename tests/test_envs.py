"""Each rule's environment holds what its step imports, and nothing that no rule of it needs."""

import ast
import re
import subprocess
import sys

import numpy as np
import yaml
from projects import ROOT, SMOKE_OF_ALL, rules_of

from ictd.pipeline.steps import ROOTS

GROUPS = yaml.safe_load((ROOT / "envs/groups.yaml").read_text())["groups"]
LOCKS = ("installer", "requirements", "torch")
PACKAGE_OF = {"yaml": "pyyaml", "PIL": "pillow"}


def third_party(module: str) -> set[str]:
    """Packages that a module of ours imports itself, anywhere in its code."""
    path = ROOTS[module.split(".")[0]].joinpath(*module.split("."))
    file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    names = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add(node.module)
    tops = {name.split(".")[0] for name in names} - {*ROOTS, *sys.stdlib_module_names}
    # The page's cells run where IPython is, which comes with ipykernel.
    return {PACKAGE_OF.get(top, top) for top in tops} - {"IPython"}


def test_every_environment_holds_just_what_its_rules_import():
    """That of the studies serves whatever study there is, and may hold more."""
    by_group = {}
    for rule in rules_of(ROOT, SMOKE_OF_ALL).values():
        if rule["step"]:
            # Cells of studies' notebooks read tables.
            packages = {"ipykernel", "pandas"} if rule["step"] == "report.notebook" else set()
            packages |= set().union(*map(third_party, rule["modules"]))
            by_group.setdefault(rule["environment"], set()).update(packages)
    groups = {name: set(packages) for name, packages in GROUPS.items()}
    assert by_group.pop("studies", set()) <= groups.pop("studies")
    assert by_group == groups


def test_every_environment_pins_the_locks_versions():
    text = "".join((ROOT / f"envs/{name}.txt").read_text() for name in LOCKS)
    locked = dict(re.findall(r"^([\w.-]+)==([^ +\\\n]+)", text, re.MULTILINE))
    direct = dict(re.findall(r"^([\w.-]+)==(\S+)", (ROOT / "envs/requirements.in").read_text(), re.MULTILINE))
    assert direct.items() <= locked.items()
    for name, packages in GROUPS.items():
        environment = yaml.safe_load((ROOT / f"envs/{name}.yaml").read_text())
        assert environment["channels"] == ["conda-forge", "nodefaults"]
        lines = [line for line in environment["dependencies"][-1]["pip"] if "Darwin" not in line]
        pins = dict(re.match(r"([\w.-]+)==([^ +]+)", line).groups() for line in lines if not line.startswith("--"))
        assert pins.items() <= locked.items()
        assert set(packages) <= set(pins)


def test_every_environment_wants_the_locks_hashes():
    text = "".join((ROOT / f"envs/{name}.txt").read_text() for name in LOCKS)
    blocks = re.split(r"^(?=[\w.-]+==)", text, flags=re.MULTILINE)[1:]
    hashes = {
        block.split(" \\\n")[0]: set(re.findall(r"^ +(--hash=sha256:\w{64})", block, re.MULTILINE)) for block in blocks
    }
    for name in GROUPS:
        lines = yaml.safe_load((ROOT / f"envs/{name}.yaml").read_text())["dependencies"][-1]["pip"]
        for pin, *rest in (line.split(" --") for line in lines if not line.startswith("--")):
            assert {f"--{part}" for part in rest} == hashes[pin] if pin in hashes else "hash=" in rest[-1], pin


def test_every_rule_runs_in_its_environment_and_gives_the_same_arrays(smoke, under_conda):
    folder = under_conda
    environments = list((folder / ".snakemake/conda").glob("*_"))
    used = {rule["environment"] for rule in rules_of(folder, SMOKE_OF_ALL).values()} - {None}
    assert len(environments) == len({tuple(GROUPS[name]) for name in used}) > 2
    for kind, name in (("weights", "A"), ("evaluation", "msve"), ("baselines", "lstd")):
        paths = list((folder / f"results-smoke/{kind}").glob("*.npz"))
        assert paths
        for path in paths:
            array, expected = (np.load(file)[name][:2] for file in (path, smoke / path.relative_to(folder)))
            assert array.tobytes() == expected.tobytes()


def test_images_have_a_user_and_no_folder_that_others_know():
    docker, apptainer = ((ROOT / name).read_text() for name in ("Dockerfile", "ictd.def"))
    assert re.search(r"^USER [1-9]", docker, re.MULTILINE) and "/tmp" not in apptainer


def test_both_images_hold_the_same_files():
    docker = set(re.findall(r"^!(.+)$", (ROOT / ".dockerignore").read_text(), re.MULTILINE))
    apptainer = set(re.findall(r"^    (\S+) /opt/ictd/$", (ROOT / "ictd.def").read_text(), re.MULTILINE))
    assert docker == apptainer and all((ROOT / name).exists() for name in docker)


def test_a_run_without_a_mounted_folder_is_told_that_its_results_go(tmp_path):
    """The folder of any image; here of no mount, and then of one."""
    for folder, lost in ((tmp_path, True), ("/proc", False)):
        done = subprocess.run([ROOT / "envs/image", "echo", "run"], cwd=folder, capture_output=True, text=True)
        assert done.stdout == "run\n" and done.stderr.startswith(f"Nothing is mounted at {folder}:") == lost
        assert len(done.stderr.splitlines()) == lost


def test_what_a_hosted_run_calls_is_there(smoke, tmp_path):
    """Commands of make by what make would do, and what is published from a finished run."""
    jobs = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text())["jobs"]
    commands = [step["run"] for job in jobs.values() for step in job["steps"] if "run" in step]
    made = [command.split() for command in commands if command.startswith("make ")]
    assert len(made) == 4 and ".ci/run" in commands
    for command in made:
        done = subprocess.run([*command, "--dry-run"], cwd=ROOT, capture_output=True, text=True)
        assert done.returncode == 0 and done.stdout, done.stderr
    results = tmp_path / "results"
    results.symlink_to(smoke / "results-smoke")
    (copied,) = (command for command in commands if command.startswith("mkdir"))
    copied = copied.replace("results/snakemake-report.html", "")
    subprocess.run(["bash", "-euc", copied], cwd=tmp_path, check=True)
    assert {path.name for path in (tmp_path / "pages").iterdir()} == {"claims.json", "index.html", "manifest.json"}
    wanted = re.search(r"sys.version_info\[:2\] != \((\d+), (\d+)\)", (ROOT / "Makefile").read_text())
    assert jobs["test"]["strategy"]["matrix"]["python"] == [".".join(wanted.groups())]
