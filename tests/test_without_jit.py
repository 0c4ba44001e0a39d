"""The kernels as plain Python: compiled code agrees with its source, and stays within the bounds of its arrays."""

import os
import subprocess
import sys

import pytest

from ictd.pipeline.provenance import PROJECT

# Tests of the kernels by numerical comparison.
FILES = ["tests/test_sampling.py", "tests/test_engine.py", "tests/test_small_matrices.py"]


@pytest.mark.slow
@pytest.mark.parametrize("file", FILES)
def test_kernels_pass_their_tests_without_compilation(file):
    command = [sys.executable, "-P", "-m", "pytest", "-p", "no:cacheprovider", file]
    environment = os.environ | {"NUMBA_DISABLE_JIT": "1"}
    done = subprocess.run(command, cwd=PROJECT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
