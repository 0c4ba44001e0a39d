"""Provenance of results: digests of code, options files, records of jobs, and the manifest that is made from them."""

import json
import os
import time
from pathlib import Path
from types import SimpleNamespace

import grimp
import pytest
from projects import RUN

from ictd.pipeline.provenance import code_digest, options_digest, source_digest
from ictd.pipeline.rules import Steps, import_graph
from ictd.pipeline.runner import check_unchanged
from ictd.steps.report import manifest
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


@pytest.mark.parametrize(
    ("file", "edit", "seen"),
    [
        ("m.py", ("a = 1", "a = 2"), True),
        ("m.py", ('"""Class."""', "x: int"), True),
        ("m.py", ("Module.", "Text."), False),
        ("m.py", ("a = 1", "a  =  1  # why"), False),
        ("m.css", ("a", "b"), True),
        ("m.txt", ("a", "b"), False),
        ("other.py", ("a = 1", "a = 2"), False),
    ],
)
def test_a_digest_sees_each_statement_and_style_but_no_docstring(package, file, edit, seen):
    for name in ("m.py", "m.css", "m.txt", "other.py"):
        package(name, MODULE)
    before = code_digest("ours.m")
    package(file, MODULE.replace(*edit))
    assert (code_digest("ours.m") != before) == seen


DRY_RUN = SimpleNamespace(**vars(RUN) | {"dryrun": True})
REPORT = SimpleNamespace(**vars(RUN) | {"executor_plugin": None})
TOUCH = SimpleNamespace(**vars(RUN) | {"touch": True})


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
    package("m.py", STEP)
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


def test_an_options_file_is_written_if_its_content_changes(options):
    def state() -> tuple[bytes, int]:
        path = options()
        return path.read_bytes(), path.stat().st_mtime_ns

    before = state()
    content = load_json(options())
    assert content["step"] == "ours.m" and content["options"] == {"tasks": 5}
    assert content["code"].keys() == {"ours.m"} and len(content["texts"]) == 1
    assert state() == before
    options(tasks=6)
    after = state()
    assert after[0] == before[0] and after[1] > before[1]
    Path("claims.toml").write_text("a = 2")
    assert state()[0] != before[0]


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
    with pytest.raises(ValueError, match=r"results/made.txt was made with other options; --touch would keep it"):
        options(TOUCH, tasks=6)


@pytest.mark.parametrize("workflow", [DRY_RUN, REPORT])
def test_a_dry_run_plans_with_another_file_if_the_content_changes(options, workflow):
    path = options()
    before = path.read_bytes()
    assert options(workflow) == path
    planned = options(workflow, tasks=6)
    assert planned != path and load_json(planned)["options"] == {"tasks": 6} and path.read_bytes() == before


def test_a_job_stops_if_what_it_depends_on_changed_during_the_run(options, package):
    content = load_json(options())
    sources = source_digest(content["code"], content["texts"])
    job = {"options": str(options()), "digest": options_digest(content), "sources": sources}

    def refused(name: str) -> None:
        with pytest.raises(ValueError, match=f"{name} changed during this run; run snakemake again: "):
            check_unchanged(job)

    check_unchanged(job)
    package("m.py", STEP + "# A comment.\n")
    check_unchanged(job)
    package("m.py", STEP + "a = 1\n")
    refused("ours.m")
    package("m.py", STEP)
    Path("claims.toml").write_text("a = 2")
    refused("claims.toml")
    options(tasks=6)
    refused("results/options/ours.m.json")


def test_a_folder_that_cannot_be_written_to_is_a_sentence(options):
    Path("results").write_text("no folder")
    with pytest.raises(ValueError, match=r"^results/options: .*; make room or give write access\.$"):
        options()


def test_rules_with_different_values_need_different_files(package):
    package("m.py", STEP)
    step = Steps({"results": "results", "readings": {}, "envs": []}, "src", RUN)
    step("ours.m", text=Path("results/a"), tasks=1)({})
    with pytest.raises(ValueError, match=r"Several rules run ours\.m with other values; give one an options_file\."):
        step("ours.m", text=Path("results/a"), tasks=2)({})


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
    made("b", options={"options/m.json": "another"})
    said = r"^results/b.txt was made with other options than those in results/options/m.json; rm results/b.txt, "
    with pytest.raises(ValueError, match=said):
        manifest_of("a.txt")
