"""The kernels as plain Python: the compiled code does what its source says."""

import os
import subprocess
import sys
from pathlib import Path


def test_kernels_pass_their_tests_without_compilation():
    chosen = ["test_trajectories.py", "test_engines.py"]
    slow = "engines_agree or right_means or independent or learns or blocks or snapshots"
    command = [sys.executable, "-m", "pytest", "-k", f"not ({slow})", "-p", "no:cacheprovider", *chosen]
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    done = subprocess.run(command, cwd=Path(__file__).parent, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
