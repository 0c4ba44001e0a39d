"""The cache of compiled kernels: never stale, never trusted beyond its owner, never in the way."""

import os
import pickle
import sys
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from edited_kernels import check_edits

from ictd import kernels
from ictd.kernels import code_of, kernel
from ictd.pipeline.steps import ROOTS

CONSTANT = 2.0


@kernel
def inner(x):
    return CONSTANT * x


@kernel
def outer(x):
    return inner(x) + 1.0


def modules_with_kernels() -> list[str]:
    paths = [(top, path) for top, root in ROOTS.items() for path in sorted((root / top).rglob("*.py"))]
    return [
        ".".join(path.relative_to(ROOTS[top]).with_suffix("").parts) for top, path in paths
        if "\n@kernel" in path.read_text()
    ]  # fmt: skip


def calls_across_modules() -> set[tuple[str, str]]:
    """Pairs of modules of which the first one's kernels call the second one's."""
    pairs = set()
    for name in modules_with_kernels():
        for value in vars(import_module(name)).values():
            if hasattr(value, "py_func") and value.__module__ == name:
                homes = {text.partition("\n")[0].rpartition(".")[0] for text in code_of(value.py_func)}
                pairs |= {(name, home) for home in homes - {name}}
    return pairs


TRAINING = """
from edited_kernels import say_what_it_trains
from ictd.gram import enumerated_gram
from ictd.gram_engine import GramEngine
say_what_it_trains("ictd.gram_engine", GramEngine, lambda tasks: enumerated_gram(tasks, 0.9))
"""


def test_an_edit_of_a_called_kernel_gives_the_bytes_of_a_clean_run(tmp_path):
    """Of the core; studies try edits of what their kernels call."""
    pairs = {pair for pair in calls_across_modules() if pair[0].startswith("ictd.")}
    check_edits(tmp_path, TRAINING, pairs, {"ictd.fused_engine": ("parameter[i] -= rate", "parameter[i] += rate")})


def test_code_of_a_kernel_is_that_of_all_that_it_calls(monkeypatch):
    text = code_of(outer.py_func)
    assert len(text) == 2 and "CONSTANT = 2.0" in "".join(text)
    monkeypatch.setattr(sys.modules[__name__], "CONSTANT", 3.0)
    assert code_of(outer.py_func) != text
    monkeypatch.setattr(sys.modules[__name__], "CONSTANT", np)
    assert code_of(outer.py_func) != text
    monkeypatch.setattr(sys.modules[__name__], "CONSTANT", os)
    with pytest.raises(TypeError, match=r"names <module 'os'.*kernels, numbers"):
        code_of(outer.py_func)


def test_code_of_a_kernel_has_its_closure_and_defaults():
    def of(n):
        @kernel
        def closed(x):
            return n * x

        return closed

    def with_default(n):
        @kernel
        def defaulting(x, factor=n):
            return factor * x

        return defaulting

    for make in (of, with_default, lambda n: of((outer, of(n)))):
        assert code_of(make(3).py_func) == code_of(make(3).py_func) != code_of(make(4).py_func)


def test_code_of_a_kernel_has_its_constants_and_not_its_docstring():
    def written(body):
        exec(f"def function(x):\n    {body}", made := {"__name__": "made"})
        return code_of(made["function"])

    assert written("'One.'; return 2.5 * x") == written("'Another.'; return 2.5 * x")
    assert written("'One.'; return 2.5 * x") != written("'One.'; return 3.5 * x")


def test_code_of_a_kernel_has_the_option_noalias_of_those_that_it_calls():
    def calling(noalias):
        @kernel(noalias=noalias)
        def called(x):
            return x

        @kernel
        def calls(x):
            return called(x)

        return code_of(calls.py_func)

    assert calling(True) == calling(True) != calling(False)


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    """An empty cache."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    kernels.cache_folder.cache_clear()
    yield tmp_path / "ictd"
    kernels.cache_folder.cache_clear()


def called_afresh() -> tuple[float, bool]:
    """What a kernel returns that this process has not compiled, and whether it had to."""
    fresh = kernel(inner.py_func)
    found = fresh(4.0)
    return found, bool(fresh.stats.cache_misses)


def test_a_kept_kernel_is_found_and_a_damaged_one_counts_as_absent(folder):
    assert called_afresh() == (8.0, True)
    assert called_afresh() == (8.0, False)
    (path,) = folder.iterdir()
    whole = path.read_bytes()
    flipped = bytearray(whole)
    flipped[len(whole) // 2] ^= 1
    for damaged in (b"", whole[:20], whole[:5000], bytes(flipped), b"\0" * 9000):
        path.write_bytes(damaged)
        assert called_afresh() == (8.0, True)
        assert path.read_bytes() != damaged and called_afresh() == (8.0, False)


class Planted:
    """Unpickling it makes a file."""

    def __init__(self, target):
        self.target = target

    def __reduce__(self):
        return open, (str(self.target), "w")


def test_what_others_can_write_to_is_not_read(folder, tmp_path, caplog):
    called_afresh()
    (path,) = folder.iterdir()
    path.write_bytes(pickle.dumps(Planted(tmp_path / "ran")))
    assert called_afresh() == (8.0, True)
    for spoil in (lambda: folder.chmod(0o770), lambda: (folder.rename(tmp_path / "x"), folder.symlink_to("x"))):
        spoil()
        kernels.cache_folder.cache_clear()
        assert called_afresh() == (8.0, True)
        assert f"others can write to {folder}" in caplog.text
        folder.chmod(0o700)
        caplog.clear()
    assert not (tmp_path / "ran").exists()


def test_without_a_folder_kernels_are_compiled_and_not_kept(folder, monkeypatch):
    (folder.parent / "file").write_text("")
    for home in (folder.parent / "file", "/proc"):
        monkeypatch.setenv("XDG_CACHE_HOME", str(home))
        kernels.cache_folder.cache_clear()
        assert called_afresh() == (8.0, True)
