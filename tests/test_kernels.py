"""The cache of compiled kernels: never stale, never trusted beyond its owner, never in the way."""

import os
import pickle
import shutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from projects import ROOT

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
        if "\n@kernel\n" in path.read_text()
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


# For each module whose kernels others call, an edit that changes what these train.
EDITS = {
    "ictd.fused_engine": ("parameter[i] -= rate", "parameter[i] -= 2.0 * rate"),
    "studies.agents.context_engine": ("largest / np.sqrt", "-largest / np.sqrt"),
}
TRAINING = """
import hashlib
import numpy as np
import ictd
from ictd.gram import enumerated_gram
from studies.agents.attention_engine import Attention, AttentionEngine, columns_of
from studies.agents.context_engine import GramEngine
rng = np.random.default_rng(0)
tasks = ictd.sample_tasks("boyan", 3, 5, rng)
unrolls, start = ictd.unroll(tasks, 8, 0.9, 5, rng), ictd.initial_weights(3, 0.5, rng)
made = {
    "studies.agents.context_engine": (GramEngine, (), enumerated_gram(tasks, 0.9)),
    "studies.agents.attention_engine": (AttentionEngine, (Attention(),), columns_of(tasks, 0.9, tasks.reward)),
}
for name, (engine, more, contexts) in made.items():
    run = engine(start, "td", 3, 0.9, 0.01, 1e-3, *more)
    run.train(tasks, unrolls, contexts)
    print(name, hashlib.sha256(run.parameter.tobytes()).hexdigest())
"""


def test_an_edit_of_a_called_kernel_gives_the_bytes_of_a_clean_run(tmp_path):
    pairs = calls_across_modules()
    assert {callee for _, callee in pairs} == set(EDITS)
    for part in ("src", "studies"):
        shutil.copytree(ROOT / part, tmp_path / part, ignore=shutil.ignore_patterns("__pycache__"))

    def trained(cache: str) -> dict[str, str]:
        """Digests of what each caller trains, in a process of its own."""
        env = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / cache), "NUMBA_OPT": "0"}
        env |= {"PYTHONPATH": f"{tmp_path}/src:{tmp_path}", "PYTHONDONTWRITEBYTECODE": "1"}
        done = subprocess.run([sys.executable, "-P", "-c", TRAINING], env=env, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return dict(line.split() for line in done.stdout.splitlines())

    before = trained("cache")
    assert set(before) == {caller for caller, _ in pairs}
    for callee, (old, new) in EDITS.items():
        path = tmp_path / ROOTS[callee.split(".")[0]].relative_to(ROOT) / f"{callee.replace('.', '/')}.py"
        text = path.read_text()
        assert text.count(old) == 1
        path.write_text(text.replace(old, new))
        after = trained("cache")
        assert after == trained(callee)
        assert {caller for caller in before if before[caller] != after[caller]} >= {
            caller for caller, called in pairs if called == callee
        }
        path.write_text(text)
    assert trained("cache") == before


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

    def of(n):
        @kernel
        def closed(x):
            return n * x

        return closed

    assert code_of(of(3).py_func) == code_of(of(3).py_func) != code_of(of(4).py_func)


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
