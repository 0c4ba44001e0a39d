"""Options of steps: what rules make of settings, and what a step makes of the words of a command line."""

import errno
import json
import logging
import os
import re
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml
from projects import ROOT

from ictd.pipeline import config, failures, rules, runner
from ictd.pipeline.provenance import code_digests, digest
from ictd.pipeline.studies import load_yaml
from ictd.steps import manifest

CONFIG = yaml.safe_load((ROOT / "config.yaml").read_text())


def test_the_order_of_keys_is_no_matter():
    evaluation = CONFIG["evaluation"]
    sizes = dict(sorted(evaluation["step_sizes"].items(), reverse=True))
    other = CONFIG | {"evaluation": evaluation | {"step_sizes": sizes}}
    said = [rules.step_params(one, [], "baselines", env_options={})["values"]({}) for one in (CONFIG, other)]
    assert said[0] == said[1] and json.dumps(sizes) != json.dumps(evaluation["step_sizes"])
    assert rules.env_options(CONFIG, "loop") == CONFIG["readings"]["env_options"].get("loop", {})
    assert rules.env_options(CONFIG, "ring") == {}


def test_words_of_the_command_line_have_the_types_of_parameters(caplog):
    got = []

    def main(count: int, ratio: float, name: str, a_list: list[int], paths: list[Path], options: dict, out: Path):
        got.append((count, ratio, name, a_list, paths, options, out))

    words = '--count 3 --ratio 1e-3 --name x --a-list 4 5 --paths a b/c --options {"k":1} --out o'.split()
    with caplog.at_level(logging.INFO, logger="ictd"):
        runner.run(main, "some.step", words, {})
    assert got == [(3, 1e-3, "x", [4, 5], [Path("a"), Path("b/c")], {"k": 1}, Path("o"))]
    first, second, last = (record.getMessage() for record in caplog.records)
    assert first == "python -m ictd.steps some.step " + " ".join(words).replace('{"k":1}', "'{\"k\":1}'")
    assert second.startswith("Python 3.") and "numpy" in second and "papermill" in second and "None" not in second
    assert re.fullmatch(r"done in 0\.\d s", last)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "the following arguments are required: --count, --options"),
        (["--count", "x", "--options", "{}"], "argument --count: invalid int value: 'x'"),
        (["--count", "1", "2", "--options", "{}"], "unrecognized arguments: 2"),
        (["--count", "1", "--options", "[1]"], "argument --options: invalid mapping value: '[1]'"),
        (["--coun", "1", "--options", "{}"], "the following arguments are required: --count"),
    ],
)
def test_words_that_do_not_fit_are_named(words, said, capsys):
    def main(count: int, options: dict):
        raise AssertionError

    with pytest.raises(SystemExit):
        runner.run(main, "step", words, {})
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ValueError("It is wrong."), "error: It is wrong."),
        (ImportError("there is no x"), "error: there is no x."),
        (
            FileNotFoundError(errno.ENOENT, "No such file", "a.npz"),
            "error: a.npz is missing; run snakemake to make it.",
        ),
        (
            OSError(errno.ENOSPC, "No space left", "a.npz"),
            "error: a.npz: No space left; make room or give write access, then run snakemake again.",
        ),
        (OSError(errno.EMFILE, "Too many open files"), "error: Too many open files."),
    ],
)
def test_what_goes_wrong_is_said_in_a_sentence(error, said):
    def main():
        raise error

    with pytest.raises(SystemExit) as ended:
        runner.run(main, "step", [], {})
    assert ended.value.code == said


def test_help_is_what_is_given(capsys):
    def main(count: int, lengths: list[float], options: dict):
        raise AssertionError

    with pytest.raises(SystemExit):
        runner.run(main, "a.step", ["--help"], {"": "What it does.\n\nMore.", "count": "How many."})
    said = capsys.readouterr().out
    assert said.startswith("usage: python -m ictd.steps a.step") and "What it does.\n\nMore." in said
    assert "--count int" in said and "--lengths float [float ...]" in said and "--options json" in said
    assert re.search(r"--count int +How many\.", said)


def test_the_least_may_be_the_most():
    schema = {"atMost": {"smallest": "largest"}}
    config.checked_values({"smallest": 2, "largest": 2}, schema)
    config.checked_values({"smallest": 2}, schema)
    with pytest.raises(ValueError, match="smallest is 3; give at most the largest, 2"):
        config.checked_values({"smallest": 3, "largest": 2}, schema)
    config.checked_values({"lengths": [1, 1, 2]}, {"properties": {"lengths": {"ascending": True}}})


def test_a_file_that_is_no_result_is_there_by_its_digest(tmp_path):
    (tmp_path / "claims.toml").write_text("a = 1")
    changed = CONFIG | {"results": str(tmp_path / "results")}
    given = {"statements": tmp_path / "claims.toml", "theory": tmp_path / "results/theory.json"}
    found = rules.step_params(changed, [], "report.paper_claims", **given)
    assert found["statements"] == f"claims.toml {digest('claims.toml', 'a = 1')}" and "theory" not in found
    assert found["ictd.statistics"].startswith("ictd.statistics ") and found["step"] == "report.paper_claims"


@pytest.mark.parametrize(("free", "full"), [(2**20 - 1, True), (2**20, False), (2**40, False)])
def test_a_full_disk_is_named(tmp_path, monkeypatch, free, full):
    monkeypatch.setattr(failures.shutil, "disk_usage", lambda path: SimpleNamespace(free=free))
    said = f"The disk that holds {tmp_path} is full: make room, and run the same command again."
    assert failures.failed_jobs(tmp_path / "logs", 0, tmp_path) == (said if full else "")
    assert failures.failed_jobs(tmp_path / "logs", 0, tmp_path / "none") == ""


def test_jobs_that_did_not_end_well_are_named_with_their_last_words(tmp_path):
    began = "2026-01-01 10:00:00 python -m ictd.steps x\n"
    logs = {
        "pretrain/a/0-1.log": began + "error: It is wrong.\n",
        "tasks.log": began + "2026-01-01 10:00:09 done in 9.0 s\n",
        "notebook.log": began,
        "old.log": began + "error: Of another run.\n",
        "empty.log": "",
    }
    for name, text in logs.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
        os.utime(tmp_path / name, (99, 99) if name == "old.log" else (100, 100))
    stopped = "it was stopped before it could say why."
    assert failures.failed_jobs(tmp_path, 100, tmp_path / "none").splitlines() == [
        f"Rule empty failed: {stopped}", f"  Its log: {tmp_path}/empty.log",
        f"Rule notebook failed: {stopped}", f"  Its log: {tmp_path}/notebook.log",
        "Rule pretrain failed: error: It is wrong.", f"  Its log: {tmp_path}/pretrain/a/0-1.log",
    ]  # fmt: skip


def test_a_folder_that_cannot_be_written_to_is_refused(tmp_path, monkeypatch):
    failures.check_writable(tmp_path / "not/yet/there")
    (tmp_path / "file").touch()
    with pytest.raises(ValueError, match=r"Nothing can be written to .*/file; give write access"):
        failures.check_writable(tmp_path / "file/results")
    asked = []
    monkeypatch.setattr(failures.os, "access", lambda folder, mode: asked.append((folder, mode)))
    with pytest.raises(ValueError, match="Nothing can be written to"):
        failures.check_writable(tmp_path)
    assert asked == [(tmp_path, os.W_OK | os.X_OK)]


@pytest.mark.parametrize(
    ("edit", "seen"),
    [
        (("a = 1", "a = 2"), True), (("b = 3", "b = 4"), True), (("c = 5", "c = 6"), True), (("d = 7", "d = 8"), True),
        (("Module.", "Text."), False), (("Function.", "Text."), False), (("a = 1", "a  =  1  # why"), False),
        (('"""Class."""', "x: int"), True),
    ],
)  # fmt: skip
def test_digests_see_each_statement_but_no_docstring(tmp_path, edit, seen):
    text = (
        '"""Module."""\na = 1\nb = 3\n\ndef f():\n    """Function."""\n    c = 5\n    return c\n\n'
        'class C:\n    """Class."""\n    d = 7\n'
    )
    (tmp_path / "one/ours").mkdir(parents=True)
    (tmp_path / "two/ours").mkdir(parents=True)
    (tmp_path / "one/ours/m.py").write_text(text)
    (tmp_path / "two/ours/m.py").write_text(text.replace(*edit))
    before, after = (code_digests("ours.m", {"ours": tmp_path / name}) for name in ("one", "two"))
    assert (before != after) == seen


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"a: 1\nb: [\n", r"a\.yaml, line 3: expected the node content"),
        (b"a: \x00", r"a\.yaml: it is not valid YAML"),
        (b"\xff", r"a\.yaml is no UTF-8 text"),
        (b"- 1", r"a\.yaml holds no keys with values\."),
    ],
)
def test_a_file_of_settings_that_is_none_is_named_with_the_line(tmp_path, content, said):
    (tmp_path / "a.yaml").write_bytes(content)
    with pytest.raises(ValueError, match=said):
        load_yaml(tmp_path / "a.yaml")


def test_the_commit_is_named_where_git_tracks_the_source(monkeypatch):
    said = {"ls-files": "manifest.py\n", "describe": "abc-dirty\n"}
    answer = lambda words, **_: SimpleNamespace(stdout=next(text for word, text in said.items() if word in words))  # noqa: E731
    monkeypatch.setattr(manifest.subprocess, "run", answer)
    assert manifest.commit() == "abc-dirty"
    said["ls-files"] = ""
    assert manifest.commit() is None
