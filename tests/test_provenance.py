"""Provenance of results: digests of code, and the record that is written when a run starts."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ictd.pipeline import provenance
from ictd.pipeline.provenance import code_digests, notebook_digests, text_digest
from ictd.pipeline.record import check_code, check_results, write_record
from ictd.storage import save_json

MODULE = '''"""Module."""
a = 1

def f(b=3):
    """Function."""
    return b

class C:
    """Class."""
    d = 7
'''


@pytest.fixture
def package(tmp_path, monkeypatch):
    """Write modules of a package "ours", by their paths in it, and clear the cache of digests."""
    monkeypatch.setattr(provenance, "PACKAGES", {"ours": tmp_path, "ictd": provenance.PROJECT / "src"})
    monkeypatch.chdir(tmp_path)

    def write(**modules):
        for name, text in modules.items():
            path = tmp_path / "ours" / f"{name.replace('.', '/')}.py"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        provenance._digest_and_imports.cache_clear()

    yield write
    provenance._digest_and_imports.cache_clear()


def test_digests_follow_all_kinds_of_imports(package, tmp_path):
    package(
        **{"__init__": "", "q.__init__": "", "other": ""},
        a="def f():\n    from . import b\n",
        b="import ours.q.c as c\n",
        d="import numpy\nx = 1\nif TYPE_CHECKING:\n    from ours import other\n",
        **{"q.c": "from ..d import x\n"},
    )
    assert [*code_digests("ours.a")] == ["ours", "ours.a", "ours.b", "ours.d", "ours.q", "ours.q.c"]
    package(**{"q.alone": "x = 1"})
    assert [*code_digests("ours.q.alone")] == ["ours", "ours.q", "ours.q.alone"]
    cells = [{"cell_type": "markdown", "source": ["# ours"]}]
    cells += [
        {"cell_type": "code", "source": [text]} for text in ("import os\n", "if True:\n    from ours.q import c\n")
    ]
    (tmp_path / "n.ipynb").write_text(json.dumps({"cells": cells}))
    assert notebook_digests(tmp_path / "n.ipynb").keys() == {"ours", "ours.q", "ours.q.c", "ours.d"}


@pytest.mark.parametrize("ending", ["js", "css"])
def test_a_digest_has_the_scripts_and_styles_of_a_module(package, tmp_path, ending):
    digests = []
    for text in (None, "a", "b"):
        package(__init__="", page="x = 1")
        if text:
            (tmp_path / f"ours/page.{ending}").write_text(text)
        digests.append(code_digests("ours.page")["ours.page"])
    assert len({*digests}) == 3


@pytest.mark.parametrize(
    ("edit", "seen"),
    [
        (("a = 1", "a = 2"), True),
        (("b=3", "b=4"), True),
        (("d = 7", "d = 8"), True),
        (('"""Class."""', "x: int"), True),
        (("Module.", "Text."), False),
        (("Function.", "Text."), False),
        (("a = 1", "a  =  1  # why"), False),
    ],
)
def test_digests_see_each_statement_but_no_docstring(package, edit, seen):
    package(m=MODULE)
    before = code_digests("ours.m")
    package(m=MODULE.replace(*edit))
    assert (code_digests("ours.m") != before) == seen


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("import ictd", "ours/m.py, line 1: import what is used of ictd from the module that defines it."),
        ("\nfrom ictd import msve", "ours/m.py, line 2: import msve from the module that defines it."),
        ("from ictd import mrp, __version__", None),
        ("x = (\n", "ours/m.py, line 1: '(' was never closed."),
        (None, "There is no module ours.m."),
    ],
)
def test_imports_that_digests_cannot_follow_are_refused(package, text, message):
    package(**{"__init__": ""} | ({"m": text} if text else {}))
    if message is None:
        assert "ictd.mrp" in code_digests("ours.m")
        return
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        code_digests("ours.m")


def test_captions_are_part_of_a_page(tmp_path):
    (tmp_path / "a.rst").write_text("A caption.")
    before = text_digest(tmp_path)
    (tmp_path / "notes.txt").write_text("No caption.")
    assert text_digest(tmp_path) == before
    (tmp_path / "a.rst").write_text("Another caption.")
    assert text_digest(tmp_path) != before


SETTINGS = {"discount": 0.9, "seeds": 3}
CODE = {"ours.m": "digest"}


@pytest.mark.parametrize(
    ("settings", "code", "message"),
    [
        ({}, {}, None),
        # Old results do not contain new keys and modules.
        ({"more": 1}, {"ours.more": "digest"}, None),
        ({"discount": 0.8}, {}, r"results was made with other settings or code \(discount\), and \.snakemake has no "),
        ({"seeds": 4}, {"ours.m": "other"}, r"\(seeds, ours\.m\).*Remove results, or give another folder as results"),
    ],
)
def test_results_without_a_record_of_snakemake_are_refused(package, settings, code, message, capsys):
    """As after ``rm -r .snakemake``; what Snakemake knows of reruns by itself."""
    package(m=MODULE)
    results = Path("results")
    check_results(results, SETTINGS, CODE)
    write_record(results, SETTINGS, CODE)
    check_results(results, SETTINGS | settings, CODE | code)
    assert not capsys.readouterr().err
    shutil.rmtree(".snakemake")
    if message is None:
        check_results(results, SETTINGS | settings, CODE | code)
        assert "If results is a copy whose files have new times, run snakemake --touch" in capsys.readouterr().err
        return
    with pytest.raises(ValueError, match=message):
        check_results(results, SETTINGS | settings, CODE | code)
    # Or after a run that started, but made no result.
    save_json(results / "manifest.json", {"settings": SETTINGS, "code": CODE})
    write_record(results, SETTINGS | settings, CODE | code)
    shutil.rmtree(".snakemake")
    with pytest.raises(ValueError, match=message):
        check_results(results, SETTINGS | settings, CODE | code)


@pytest.mark.parametrize(
    ("name", "text", "refused"),
    [
        ("imported", MODULE.replace("a = 1", "a = 2"), True),
        ("imported", MODULE + "# Why.\n", False),
        ("imported", MODULE.replace("Module", "Text"), False),
        ("other", MODULE.replace("a = 1", "a = 2"), False),
        ("m", "def main():\n    from ours import imported, json\n", True),
    ],
)
def test_a_job_refuses_code_that_was_edited_since_the_run_was_planned(package, name, text, refused):
    package(m="def main():\n    from ours import imported\n", imported=MODULE, other=MODULE)
    write_record(Path("results"), SETTINGS, code_digests("ours.m") | code_digests("ours.other"))
    check_code(Path("results/run.json"), "ours.m")
    package(**{name: text})
    if not refused:
        check_code(Path("results/run.json"), "ours.m")
        return
    with pytest.raises(ValueError, match=f"{name}.py was edited after this run was planned; run snakemake again: "):
        check_code(Path("results/run.json"), "ours.m")


def test_an_edit_of_the_same_size_and_time_is_seen(package, tmp_path):
    """Python's own check of compiled modules does not detect such an edit."""
    command = [sys.executable, "-c", "import ours.m; print(ours.m.a)"]
    variables = os.environ | {"PYTHONPATH": str(tmp_path)}
    variables.pop("PYTHONDONTWRITEBYTECODE", None)

    def imported() -> str:
        return subprocess.run(command, cwd="/", env=variables, stdout=subprocess.PIPE, text=True).stdout.strip()

    path = tmp_path / "ours/m.py"
    for compiled_before in (True, False):
        package(m=MODULE)
        os.utime(path, (10**9, 10**9))
        assert not compiled_before or imported() == "1"
        write_record(tmp_path / "results", SETTINGS, CODE)
        for value in ("1", "2", "3"):
            path.write_text(MODULE.replace("a = 1", f"a = {value}"))
            os.utime(path, (10**9, 10**9))
            assert imported() == value
