"""Provenance of results: digests of code, options files, and the manifest that is made from the records of jobs."""

import json
import re
from pathlib import Path

import pytest
from projects import ROOT, STUDIES

from ictd.pipeline import provenance
from ictd.pipeline.provenance import code_digest, files_of, parts_of
from ictd.pipeline.rules import Steps
from ictd.report import manifest
from ictd.storage import file_digest, load_json, save_json

STUDY = f"studies.{STUDIES[0]}"
OWN_STEP = min(path.stem for path in (ROOT / "studies" / STUDIES[0]).glob("*.py") if path.stem != "results")
MODULE = '''"""Module."""
a = 1

def f(b=3):
    """Function."""
    return b

class C:
    """Class."""
    d = 7
'''
STEP = "from pathlib import Path\n\ndef main(tasks: int, text: Path, output: Path) -> None:\n    pass\n"


@pytest.fixture
def package(tmp_path, monkeypatch):
    """Write modules of a package "ours", by their paths in it, in a project whose folder is called tests."""
    project = tmp_path / "tests"
    project.mkdir()
    monkeypatch.setattr(provenance, "PACKAGES", {"ours": project, "ictd": provenance.PROJECT / "src"})
    monkeypatch.chdir(project)

    def write(**files):
        for name, text in files.items():
            path = project / "ours" / name.replace("__", "/").replace("_", ".")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        code_digest.cache_clear()

    yield write
    code_digest.cache_clear()


@pytest.mark.parametrize(
    ("edit", "seen"),
    [
        (("a = 1", "a = 2"), True),
        (('"""Class."""', "x: int"), True),
        (("Module.", "Text."), False),
        (("a = 1", "a  =  1  # why"), False),
        (("\n", "\r\n"), False),
    ],
)
def test_a_digest_sees_each_statement_but_no_docstring(package, edit, seen):
    package(q__m_py=MODULE)
    before = code_digest("ours")
    package(q__m_py=MODULE.replace(*edit))
    assert (code_digest("ours") != before) == seen


def test_a_digest_has_new_modules_scripts_and_styles_but_no_tests(package):
    package(m_py=MODULE)
    digests = [code_digest("ours")]
    for name in ("other_py", "page_js", "page_css"):
        package(**{name: "x"})
        digests.append(code_digest("ours"))
    assert len({*digests}) == 4
    package(tests__m_py="x", page_txt="x")
    assert code_digest("ours") == digests[-1]


@pytest.mark.parametrize(
    ("step", "texts", "parts"),
    [
        ("ictd.steps.tasks", [], ["ictd"]),
        ("ictd.report.claims", [], ["ictd", "ictd.report"]),
        (f"{STUDY}.{OWN_STEP}", [], ["ictd", STUDY]),
        ("ictd.report.study", [f"studies/{STUDIES[0]}/README.md"], ["ictd", "ictd.report", STUDY, f"{STUDY}.results"]),
    ],
)
def test_the_code_of_a_step_is_that_of_its_packages(step, texts, parts):
    assert parts_of(step, [provenance.PROJECT / text for text in texts]) == parts
    assert "mrp.py" in {path.name for path in files_of("ictd")}
    assert not any("report" in path.parts for path in files_of("ictd"))


@pytest.fixture
def options(package):
    """Write the options file of a step, and return its path."""
    package(m_py=STEP)
    Path("claims.toml").write_text("a = 1")

    def write(**config) -> Path:
        step = Steps({"results": "results", "readings": {}, "tasks": 5} | config, "src")
        return Path(step("ours.m", text=Path("claims.toml"))({}))

    return write


def state(path: Path) -> tuple[bytes, int]:
    return path.read_bytes(), path.stat().st_mtime_ns


def test_an_options_file_has_what_the_step_depends_on(options, package):
    content = load_json(options())
    assert content["step"] == "ours.m" and content["options"] == {"tasks": 5} and content.keys() >= {"code", "texts"}
    digests = {file_digest(options())}
    digests.add(file_digest(options(tasks=6)))
    Path("claims.toml").write_text("a = 2")
    digests.add(file_digest(options(tasks=6)))
    assert len(digests) == 3


def test_an_options_file_is_written_if_its_content_changes(options):
    before = state(options())
    assert state(options()) == before
    assert state(options(tasks=6))[0] != before[0]
    after = state(options())
    assert after[0] == before[0] and after[1] > before[1]


def test_a_folder_that_cannot_be_written_to_is_a_sentence(options):
    Path("results").write_text("no folder")
    with pytest.raises(ValueError, match=r"^results/options: .*; make room or give write access\.$"):
        options()


def test_rules_with_different_values_need_different_files(options):
    step = Steps({"results": "results", "readings": {}}, "src")
    one, other = (step("ours.m", text=Path("claims.toml"), tasks=tasks) for tasks in (1, 2))
    one({})
    with pytest.raises(ValueError, match=r"Several rules run ours\.m with other values; give one an options_file\."):
        other({})


@pytest.fixture
def made(tmp_path, monkeypatch):
    """Results a.txt, made from b.txt, with their logs; write one again with other values of its record."""
    monkeypatch.chdir(tmp_path)
    for folder in ("results/options", "results/logs"):
        Path(folder).mkdir(parents=True)
    save_json(Path("results/options/m.json"), {"code": {"ictd": "c"}})
    digest = file_digest(Path("results/options/m.json"))

    def write(name: str, inputs=(), **changes):
        path = Path(f"results/{name}.txt")
        path.write_text(name)
        record = {"options": {"options/m.json": digest}, "versions": {"numpy": "1"}}
        record |= {"seconds": 1, "inputs": [*inputs], "outputs": {path.name: file_digest(path)}} | changes
        Path(f"results/logs/{name}.log").write_text(f"a message\n{json.dumps(record)}\nprinted later\n")

    write("b")
    write("a", ["b.txt", "gone.toml", "/elsewhere/claims.toml"])
    return write


def manifest_of(*names: str) -> dict:
    manifest.main(Path("results"), Path("results/logs"), [*names], [], {"seeds": 3}, Path("results/manifest.json"))
    return load_json(Path("results/manifest.json"))


def test_the_manifest_names_the_versions_that_made_each_file(made):
    found = manifest_of("a.txt")
    assert found["files"] == {"a.txt": file_digest(Path("results/a.txt"))} and found["code"] == {"ictd": "c"}
    assert found["made_with"] == [{"versions": {"numpy": "1"}, "files": ["a.txt", "b.txt"]}]
    made("a", ["b.txt"], versions={"numpy": "2"})
    groups = [(group["versions"]["numpy"], group["files"]) for group in manifest_of("a.txt")["made_with"]]
    assert groups == [("2", ["a.txt"]), ("1", ["b.txt"])]


def test_the_manifest_refuses_files_of_unknown_provenance(made):
    def refused() -> str:
        with pytest.raises(ValueError, match=r"; rm results/\w.txt.*, then run snakemake as before\.$") as raised:
            manifest_of("a.txt")
        return str(raised.value)

    Path("results/a.txt").write_text("another")
    assert "results/a.txt is not the file that its job wrote, according to results/logs/a.log;" in refused()
    made("a", ["b.txt"])
    made("b", options={"options/m.json": "another"})
    assert "results/b.txt was made with other options than those in results/options/m.json;" in refused()
    Path("results/logs/b.log").write_text('{"options": {"options')
    assert re.match("results/b.txt has no record in a log;", refused())
    Path("results/logs/a.log").unlink()
    assert "rm results/a.txt, then" in refused()
