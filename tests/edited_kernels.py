"""Edits of kernels that kernels of other modules call, and what these train before and after."""

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
from projects import ROOT

import ictd
from ictd.pipeline.steps import ROOTS


def say_what_it_trains(name: str, engine, contexts, *more) -> None:
    """Print a module's name and the digest of what its engine's class trains from contexts of five tasks."""
    tasks, unrolls, start = material()
    run = engine(start, "td", 3, 0.9, 0.01, 1e-3, *more)
    run.train(tasks.reward, unrolls, contexts(tasks))
    print(name, hashlib.sha256(run.parameter.tobytes()).hexdigest())


def material():
    rng = np.random.default_rng(0)
    tasks = ictd.sample_tasks("boyan", 3, 5, rng)
    return tasks, ictd.unroll(tasks, 8, 0.9, 5, rng), ictd.initial_weights(3, 0.5, rng)


def check_edits(folder: Path, training: str, pairs: set[tuple[str, str]], edits: dict[str, tuple[str, str]]) -> None:
    """An edit of a called kernel gives the bytes of a clean run.

    ``training`` says what each caller trains, ``pairs`` are of caller and called, and ``edits`` change each called one.
    """
    assert {callee for _, callee in pairs} == set(edits)
    for part in ("src", "studies"):
        shutil.copytree(ROOT / part, folder / part, ignore=shutil.ignore_patterns("__pycache__"))

    def trained(cache: str) -> dict[str, str]:
        """Digests of what each caller trains, in a process of its own."""
        env = {**os.environ, "XDG_CACHE_HOME": str(folder / cache), "NUMBA_OPT": "0"}
        env |= {"PYTHONPATH": f"{folder}/src:{folder}:{ROOT}/tests", "PYTHONDONTWRITEBYTECODE": "1"}
        done = subprocess.run([sys.executable, "-P", "-c", training], env=env, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return dict(line.split() for line in done.stdout.splitlines())

    before = trained("cache")
    assert set(before) == {caller for caller, _ in pairs}
    for callee, (old, new) in edits.items():
        path = folder / ROOTS[callee.split(".")[0]].relative_to(ROOT) / f"{callee.replace('.', '/')}.py"
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
