"""Provenance of results: digests of code, options files, records of jobs, and the manifest that is made from them."""

import json
import os
import re
import time
from pathlib import Path
from types import SimpleNamespace

import grimp
import pytest
from projects import RUN

from ictd.pipeline.provenance import PACKAGES, code_digest, options_digest, source_digest
from ictd.pipeline.rules import Steps, import_graph, modules_of
from ictd.pipeline.runner import check_unchanged
from ictd.steps.report import manifest
from ictd.steps.report.check import main as check_records
from ictd.storage import file_digest, load_json, save_json

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
    """Write files of a package "ours", by their paths in it."""
    monkeypatch.setitem(PACKAGES, "ours", tmp_path)
    monkeypatch.chdir(tmp_path)

    def forget():
        code_digest.cache_clear()
        import_graph.cache_clear()

    def write(**files):
        for name, text in files.items():
            path = tmp_path / "ours" / name.replace("__", "/").replace("_", ".")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        forget()

    yield write
    forget()


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
    before = code_digest("ours.q.m")
    package(q__m_py=MODULE.replace(*edit))
    assert (code_digest("ours.q.m") != before) == seen


def test_a_digest_has_the_style_sheet_beside_the_module(package):
    package(m_py=MODULE)
    before = code_digest("ours.m")
    package(m_css="x")
    styled = code_digest("ours.m")
    assert styled != before
    package(other_css="x", m_txt="x", other_py="x = 1")
    assert code_digest("ours.m") == styled


def test_the_code_of_a_step_is_what_it_imports(package):
    package(
        m_py="from ours.n import a\n\ndef main():\n    import ours.o", n_py="import ours.p", o_py="", p_py="", q_py=""
    )
    assert modules_of("ours.m") == ["ours.m", "ours.n", "ours.o", "ours.p"]
    assert modules_of("ours.p", "ours.q") == ["ours.p", "ours.q"]


DRY_RUN = SimpleNamespace(executor_plugin=1, dryrun=True, touch=False)
REPORT = SimpleNamespace(executor_plugin=None, dryrun=False, touch=False)
TOUCH = SimpleNamespace(executor_plugin=1, dryrun=False, touch=True)


def test_the_package_has_floors_and_no_circle():
    """Core below theory, below the report, below steps; the modules of a floor may import each other."""
    graph = import_graph()
    above = ["steps", "report", "theory"]
    core = {name.split(".")[1] for name in graph.modules if name.startswith("ictd.")} - {*above}
    floors = [*above, grimp.Layer(*core, independent=False)]
    assert graph.find_illegal_dependencies_for_layers(floors, containers={"ictd"}) == set()
    for module in graph.modules:
        for imported in graph.find_modules_directly_imported_by(module):
            assert module not in graph.find_upstream_modules(imported), (module, imported)


@pytest.fixture
def options(package):
    """Write the options file of a step, and return its path."""
    package(m_py=STEP)
    Path("claims.toml").write_text("a = 1")

    def write(workflow=RUN, **config) -> Path:
        step = Steps({"results": "results", "readings": {}, "envs": [], "tasks": 5} | config, "src", workflow)
        return Path(step("ours.m", text=Path("claims.toml"))({}))

    return write


def end_a_job(options: Path, seconds: float = 0) -> None:
    """Write a result and the log of its job with these options, at a time from now."""
    log = Path("results/logs/m.log")
    log.parent.mkdir(exist_ok=True)
    Path("results/made.txt").touch()
    digest = options_digest(load_json(options))
    log.write_text(json.dumps({"options": {f"options/{options.name}": digest}, "outputs": {"made.txt": ""}}))
    os.utime(log, (time.time() + seconds,) * 2)


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


def test_times_in_the_future_are_waited_for_or_a_sentence(options):
    step = Steps({"results": "results"}, "src", RUN)
    end_a_job(options(), seconds=1)
    ended = Path("results/logs/m.log").stat().st_mtime
    step.check_times()
    assert time.time() >= ended
    end_a_job(options(), seconds=7200)
    with pytest.raises(ValueError, match=r"times in the future; .*: find results -exec touch \{\} \+$"):
        step.check_times()


def test_files_made_with_other_options_are_not_touched(options):
    end_a_job(options())
    assert options(TOUCH) == options()
    options(tasks=6)
    with pytest.raises(ValueError, match=r"results/made.txt was made with other options; --touch would keep it"):
        options(TOUCH, tasks=6)


@pytest.mark.parametrize("workflow", [DRY_RUN, REPORT])
def test_a_dry_run_plans_with_another_file_if_the_content_changes(options, workflow):
    path, before = options(), state(options())
    assert options(workflow) == path
    planned = options(workflow, tasks=6)
    assert planned != path and load_json(planned)["options"] == {"tasks": 6} and state(path) == before


def test_a_job_stops_if_what_it_depends_on_changed_during_the_run(options, package, monkeypatch):
    path = options()
    content = load_json(path)
    job = {
        "options": str(path),
        "digest": options_digest(content),
        "sources": source_digest(content["code"], content["texts"]),
    }

    def refused(name: str) -> None:
        with pytest.raises(ValueError, match=f"{name} changed during this run; run snakemake again: "):
            check_unchanged(job)

    check_unchanged(job)
    package(m_py=STEP + "# A comment.\n")
    check_unchanged(job)
    package(m_py=STEP + "a = 1\n")
    refused("ours.m")
    package(m_py=STEP)
    Path("claims.toml").write_text("a = 2")
    refused("claims.toml")
    options(tasks=6)
    refused("results/options/ours.m.json")


def test_a_folder_that_cannot_be_written_to_is_a_sentence(options):
    Path("results").write_text("no folder")
    with pytest.raises(ValueError, match=r"^results/options: .*; make room or give write access\.$"):
        options()


def test_rules_with_different_values_need_different_files(options):
    step = Steps({"results": "results", "readings": {}, "envs": []}, "src", RUN)
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
    content = {"code": {"ictd": "c"}}
    save_json(Path("results/options/m.json"), content)

    def write(name: str, inputs=(), **changes):
        path = Path(f"results/{name}.txt")
        path.write_text(name)
        record = {"options": {"options/m.json": options_digest(content)}, "versions": {"numpy": "1"}}
        record |= {"seconds": 1, "inputs": [*inputs], "outputs": {path.name: file_digest(path)}} | changes
        Path(f"results/logs/{name}.log").write_text(f"a message\n{json.dumps(record)}\nprinted later\n")

    write("b")
    write("a", ["b.txt", "gone.toml", "/elsewhere/claims.toml"])
    return write


def manifest_of(*names: str) -> dict:
    manifest.main(Path("results"), [*names], [], {"seeds": 3}, Path("results/manifest.json"))
    return load_json(Path("results/manifest.json"))


def test_the_manifest_names_the_modules_and_the_versions_that_made_each_file(made):
    found = manifest_of("a.txt")
    assert found["files"] == {"a.txt": file_digest(Path("results/a.txt"))} and found["code"] == {"ictd": "c"}
    assert found["modules"] == {"a.txt": ["ictd"], "b.txt": ["ictd"]}
    assert found["made_with"] == [{"versions": {"numpy": "1"}, "files": ["a.txt", "b.txt"]}]
    made("a", ["b.txt"], versions={"numpy": "2"})
    groups = [(group["versions"]["numpy"], group["files"]) for group in manifest_of("a.txt")["made_with"]]
    assert groups == [("2", ["a.txt"]), ("1", ["b.txt"])]


def test_files_that_are_not_what_their_records_say_are_refused(made):
    def refused() -> str:
        with pytest.raises(ValueError, match=r"; rm results/\w.txt.*, then run snakemake as before\.$") as raised:
            manifest_of("a.txt")
        return str(raised.value)

    for name in ("a", "b"):
        Path(f"results/{name}.txt").write_text("another")
        assert (
            f"results/{name}.txt is not the file that its job wrote, according to results/logs/{name}.log;" in refused()
        )
        made(name, ["b.txt"] if name == "a" else [])
    made("b", options={"options/m.json": "another"})
    assert "results/b.txt was made with other options than those in results/options/m.json;" in refused()


def test_a_lost_log_is_said(made, capsys):
    Path("results/logs/b.log").write_text('{"options": {"options')
    assert manifest_of("a.txt")["without_record"] == ["b.txt"]
    check_records(Path("results"))
    assert re.match(
        "2 file.* have no record in a log, such as b.txt: their options are not known", capsys.readouterr().out
    )
