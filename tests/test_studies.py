"""Studies live in folders of their own: each can be removed, added or broken, and nothing else notices."""

import itertools
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from projects import ROOT, SMOKE, STUDIES, copy_project, plans, snakemake

from ictd.pipeline.provenance import code_digests
from ictd.pipeline.steps import ROOTS, all_steps
from ictd.pipeline.studies import study_names, study_settings

# A study as small as one can be; a new one needs no more than its folder.
MINE = {
    "README.md": "# A study\n",
    "config.yaml": "numbers: [3, 1]\ninner: {a: 1}\n",
    "schema.yaml": """
type: object
additionalProperties: false
required: [numbers, inner]
properties:
  numbers: {description: What is added., type: array, items: {type: integer}}
  inner: {description: More., type: object, properties: {a: {type: integer}}, additionalProperties: false}
""",
    "total.py": '''"""Add numbers."""
from pathlib import Path


def main(numbers: list[int], discount: float, output: Path) -> None:
    """Write their sum."""
    output.write_text(f"{sum(numbers)} {discount}")
''',
    "rules.smk": """
use rule step as mine_total with:
    output:
        "<results>/mine/total.txt",
    pathvars:
        job="mine_total",
    params:
        **step("mine.total"),


rule mine:
    input:
        rules.mine_total.output,
""",
}


def with_study(folder: Path, **changes: str | bytes | None) -> Path:
    """A copy of the project with that study beside the others; files may be changed or left out."""
    copy_project(folder)
    (folder / "studies/mine").mkdir()
    for name, text in (MINE | changes).items():
        if text is not None:
            (folder / "studies/mine" / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    return folder


def test_a_new_study_needs_no_edit_outside_its_folder(tmp_path):
    folder = with_study(tmp_path)
    done = snakemake(folder, "mine", "--cores", "1", "--config", "mine={numbers: [4, 5]}")
    assert done.returncode == 0, done.stderr
    assert (folder / "results-smoke/mine/total.txt").read_text() == "9 0.9"
    log = (folder / "results-smoke/logs/mine_total.log").read_text()
    assert "python -m ictd.steps mine.total --numbers 4 5 --discount 0.9 --output" in log.splitlines()[0]
    (code, said), (again, nothing) = plans(
        [
            (folder, ["mine", "--configfile", SMOKE]),
            (folder, ["mine", "--configfile", SMOKE, "--config", "mine={numbers: [4, 5]}"]),
        ]
    )
    assert code == 0 and "mine_total" in said and again == 0 and "Nothing to be done" in nothing


BROKEN = {
    "no schema": ({"schema.yaml": None}, "studies/mine lacks schema.yaml."),
    "no rules": ({"rules.smk": None}, "studies/mine lacks rules.smk."),
    "settings that are no YAML": (
        {"config.yaml": "numbers: [3, 1]\ninner: {a: 1\n"},
        "studies/mine/config.yaml, line 3: expected ',' or '}', but got '<stream end>'.",
    ),
    "settings that are empty": ({"config.yaml": ""}, "studies/mine/config.yaml holds no keys with values."),
    "settings that do not fit": (
        {"config.yaml": "numbers: [3, x]\ninner: {a: 1}\n"},
        "Config: value 2 of mine.numbers is 'x'; give an integer.",
    ),
    "an unknown setting": (
        {"config.yaml": "numbers: [3]\ninner: {b: 1}\n"},
        "Config: mine.inner has an unknown key 'b'; the keys are a.",
    ),
    "a rule that is not closed": (
        {"rules.smk": MINE["rules.smk"].replace('**step("mine.total"),', '**step("mine.total"')},
        "studies/mine/rules.smk, line",
    ),
    "a colon that lacks": (
        {"rules.smk": MINE["rules.smk"].replace("rule mine:", "rule mine")},
        "studies/mine/rules.smk, line 11: ",
    ),
    "a name that is not there": (
        {"rules.smk": MINE["rules.smk"].replace("rules.mine_total.output", "TOTAL")},
        "studies/mine/rules.smk, line 13: name 'TOTAL' is not defined.",
    ),
    "a step that is not there": (
        {"rules.smk": MINE["rules.smk"].replace("mine.total", "mine.totals")},
        "there is no step 'mine.totals'; `python -m ictd.steps` lists all.",
    ),
    "a step that is not Python": (
        {"total.py": MINE["total.py"].replace("discount: float, ", "discount: (float, ")},
        "left out: studies/mine/total.py, line 5: invalid syntax.",
    ),
    "an assertion": (
        {"rules.smk": "assert not RESULTS\n" + MINE["rules.smk"]},
        "studies/mine/rules.smk, line 1: AssertionError.",
    ),
    "settings that are no text": (
        {"README.md": "# A study\n", "config.yaml": b"numbers: [3]\xff"},
        "studies/mine/config.yaml is no UTF-8 text",
    ),
    "a section that is no text": (
        {"total.py": MINE["total.py"].replace("\n\ndef", "\nSECTION = 3\n\ndef")},
        "studies/mine/total.py, line 4: give SECTION as a text, the name of a section.",
    ),
    "a section that has no keys": (
        {"total.py": MINE["total.py"].replace("\n\ndef", "\nSECTION: str = 'numbers'  # ours\n\ndef")},
        "SECTION names 'mine.numbers', which is no section of the configuration.",
    ),
    "a constraint of all rules": (
        {"rules.smk": MINE["rules.smk"] + 'wildcard_constraints:\n    module="none",\n'},
        "left out: its rules.smk sets wildcard_constraints for the whole workflow; say it in the study's rules.",
    ),
    "a rule of the paper's name": (
        {"rules.smk": MINE["rules.smk"].replace("as mine_total", "as tasks")},
        ": The name tasks is already used by another rule.",
    ),
}


def test_a_broken_study_stops_only_what_asks_for_it(tmp_path):
    folders = {name: with_study(tmp_path / name.replace(" ", "-"), **changes) for name, (changes, _) in BROKEN.items()}
    # One other study is enough beside it, and each more is read in each of these plans.
    for folder, other in itertools.product(folders.values(), STUDIES[1:]):
        shutil.rmtree(folder / "studies" / other)
    # All of the paper, with what fails before any rule is read, and with what fails on the way: some of it may be left.
    paper = ["no schema", *(name for name, (changes, _) in BROKEN.items() if "rules.smk" in changes)]
    target = "results-smoke/runs/td-boyan-4-6/0-2.npz"
    runs = [(folder, ["mine", "--configfile", SMOKE]) for folder in folders.values()]
    runs += [(folders["no schema"], ["results-smoke/mine/total.txt", "--configfile", SMOKE])]
    runs += [(folders[name], ["all" if name == paper[0] else target, "--configfile", SMOKE]) for name in paper]
    said = plans(runs)
    sentences = {}
    for (name, (_, expected)), (ended, text) in zip(BROKEN.items(), said, strict=False):
        sentences[name] = next(line for line in text.splitlines() if line.startswith("Study mine is left out: "))
        assert ended == sentences[name] and "Traceback" not in text, (name, ended)
        assert ended.endswith(".") and expected in ended, (name, ended)
    assert said[len(BROKEN)][0] == sentences["no schema"]
    for name, (code, text) in zip(paper, said[len(BROKEN) + 1 :], strict=True):
        assert code == 0 and sentences[name] in text and "Traceback" not in text, (name, text)
        assert re.search(r"^pretrain +\d+$", text, re.MULTILINE), name


def test_what_lies_about_in_a_study_leaves_the_paper_as_it_is(tmp_path):
    folder = with_study(tmp_path, **{"latin.py": b"def main(a):\n  '\xff'", "open.py": "def main(:"})
    inner = folder / "studies/mine"
    (inner / ".#total.py").symlink_to("nowhere")
    (inner / "folder.py").mkdir()
    (folder / "studies/loose.py").write_text("def main():\n    pass\n")
    (folder / "studies/old/__pycache__").mkdir(parents=True)
    (folder / "studies/old/__pycache__/a.cpython-311.pyc").touch()
    (code, said), (again, asked) = plans([(folder, [target, "--configfile", SMOKE]) for target in ("all", "mine")])
    assert code == 0 and "left out" not in said and again == 0 and "mine_total" in asked
    done = subprocess.run(
        [sys.executable, "-m", "ictd.steps"],
        env={**os.environ, "PYTHONPATH": str(folder / "src")},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0 and "studies/mine/open.py, line 1: invalid syntax." in done.stdout, done.stderr


def test_a_name_that_is_taken_leaves_the_paper_as_it_is(tmp_path):
    names = {
        "theory": "of that name",
        "tasks": "of that name",
        "claims": "of that name",
        "runs": "of that name",
        "pipeline": "of that name",
        "my-study": "no name of small",
    }
    runs = []
    for name in names:
        folder = with_study(tmp_path / name)
        (folder / "studies/mine").rename(folder / f"studies/{name}")
        runs.append((folder, ["--configfile", SMOKE]))
    for (name, why), (code, said) in zip(names.items(), plans(runs), strict=True):
        assert code == 0 and re.search(r"^pretrain +\d+$", said, re.MULTILINE), said
        assert f"Study {name} is left out: " in said and why in said


def test_settings_that_a_user_gives_stop_only_their_study(tmp_path):
    folder = with_study(tmp_path)
    cases = {
        "mine={numbers: 3}": "mine.numbers is 3; give a list",
        "mine=3": "Config: mine is 3; give keys with values.",
    }
    runs = [(folder, [target, "--configfile", SMOKE, "--config", case]) for case in cases for target in ("all", "mine")]
    said = iter(plans(runs))
    for expected in cases.values():
        (code, paper), (ended, _) = next(said), next(said)
        assert code == 0 and expected in paper and expected in ended


def without(gone: list[str], smoke: Path, folder: Path) -> Path:
    """A copy of the whole repository, and of what the smoke run made, without some studies."""
    ignored = shutil.ignore_patterns(".venv", ".git", ".snakemake", "results*", "__pycache__", ".*_cache")
    shutil.copytree(ROOT, folder, ignore=ignored)
    for part in (".snakemake", "results-smoke"):
        shutil.copytree(smoke / part, folder / part)
    for name in gone:
        shutil.rmtree(folder / "studies" / name)
    return folder


@pytest.mark.parametrize("gone", [[name] for name in STUDIES] + [STUDIES] * (len(STUDIES) > 1), ids="-".join)
def test_without_a_study_nothing_is_to_be_done_anew(gone, smoke, tmp_path):
    done = snakemake(without(gone, smoke, tmp_path / "project"), "--cores", "1", "--dry-run")
    assert done.returncode == 0 and "Nothing to be done" in done.stdout + done.stderr, done.stderr
    assert "left out" not in done.stderr


def test_without_any_study_all_is_as_before(smoke, tmp_path):
    """Linters and those tests that speak of the whole repository pass, and Snakemake's report is made."""
    folder = without(STUDIES, smoke, tmp_path / "project")
    assert snakemake(folder, "--report", "results-smoke/report-of-all.html").returncode == 0
    bin = Path(sys.executable).parent
    linters = [
        "ruff check .",
        "ruff format --check .",
        "snakefmt --check Snakefile workflow studies",
        "snakemake --lint",
    ]
    structure = [f"tests/test_{name}.py" for name in ("config", "steps", "envs", "studies")]
    # Of those that speak of the whole repository, the quick ones.
    others = " and ".join(
        f"not {name}" for name in ("without_a", "gives_the_same", "broken_study", "name_that_is", "random")
    )
    tests = f"python -m pytest -p no:cacheprovider {' '.join(structure)} -k '{others}'"
    environment = os.environ | {"PYTHONPATH": str(folder / "src"), "PATH": f"{bin}{os.pathsep}{os.environ['PATH']}"}
    for command in (*linters, tests):
        done = subprocess.run(command, shell=True, cwd=folder, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, (command, done.stdout[-3000:], done.stderr[-3000:])


def test_nothing_else_names_a_study():
    """README and Makefile may; everything else knows studies only as the folders that are there."""
    words = "|".join(rf"studies[./]{name}|\b{name}[_.]\w+\.(?:csv|npz|json)|results/{name}" for name in STUDIES)
    free = ("README.md", "Makefile", "CHANGELOG.md")
    for path in subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True).stdout.splitlines():
        file = ROOT / path
        if path.startswith("studies/") or path in free or file.suffix in (".png", ".txt") or not file.is_file():
            continue
        assert not re.search(words or "$^", file.read_text()), path


def test_studies_use_the_core_and_not_one_another():
    for path in (ROOT / "src").rglob("*.py"):
        assert not re.search(r"^\s*(?:from|import) studies\b", path.read_text(), re.MULTILINE), path
    for step in all_steps().values():
        modules = {line.split()[0] for line in code_digests(step.module, ROOTS)}
        assert {name.split(".")[1] for name in modules if name.startswith("studies.")} <= {step.study}


@pytest.mark.parametrize("name", STUDIES)
def test_every_study_is_complete(name):
    """Besides what the workflow needs: small values for tests, notebook, captions, tests, and rules of its name."""
    folder = ROOT / "studies" / name
    for part in ("smoke.yaml", "notebook.ipynb", "captions", "tests"):
        assert (folder / part).exists(), part
    rules = re.findall(r"^(?:use rule \w+ as|rule) (\w+)(?: with)?:$", (folder / "rules.smk").read_text(), re.MULTILINE)
    assert name in rules and all(rule == name or rule.startswith(f"{name}_") for rule in rules)


def test_settings_are_merged_and_checked(tmp_path):
    folder = tmp_path / "mine"
    folder.mkdir()
    for name, text in MINE.items():
        (folder / name).write_text(text)
    assert study_settings(folder, {"inner": {"a": "7"}}, {}) == {"numbers": [3, 1], "inner": {"a": 7}}
    with pytest.raises(ValueError, match=r"Config: there is an unknown key|mine has an unknown key 'b'"):
        study_settings(folder, {"b": 1}, {})
    (tmp_path / "old/__pycache__").mkdir(parents=True)
    assert study_names(tmp_path) == ["mine"] and study_names(tmp_path / "nothing") == []


def test_rules_are_short():
    """What every job shares stands in the base rule."""
    lines, total = [], 0
    for path in [*(ROOT / "workflow/rules").glob("*.smk"), *(ROOT / "studies").glob("*/rules.smk")]:
        text = path.read_text()
        assert len(text.splitlines()) <= 250, path
        total += len(text.splitlines()) * ("studies" not in path.parts)
        for block in re.findall(r"^(?:use )?rule .*\n(?:(?:[ \t].*)?\n)*", text, re.MULTILINE):
            lines.append(len([line for line in block.splitlines() if line.strip()]))
    assert total < 650 and max(lines) <= 20 and sum(lines) / len(lines) <= 13


def test_a_parameter_without_a_type_is_named(tmp_path):
    folder = with_study(tmp_path, **{"total.py": MINE["total.py"].replace("discount: float", "discount: float | None")})
    ((_, said),) = plans([(folder, ["--configfile", SMOKE])])
    assert "studies/mine/total.py, line 5: give main's discount a type, int, float, str, dict, Path or a list" in said
