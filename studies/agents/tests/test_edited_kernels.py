"""An edit of a kernel that another module's kernels call is seen by these."""

import os
import shutil
import subprocess
import sys

from projects import ROOT
from test_kernels import calls_across_modules

from ictd.pipeline.steps import ROOTS

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
    pairs = {pair for pair in calls_across_modules() if pair[0].startswith("studies.agents.")}
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
