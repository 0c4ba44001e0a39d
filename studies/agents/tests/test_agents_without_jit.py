"""The study's kernels as plain Python, as in tests/test_without_jit.py."""

from pathlib import Path

from projects import without_compilation


def test_kernels_pass_their_tests_without_compilation():
    files = [Path(__file__).with_name(name) for name in ("test_attention.py", "test_context_engine.py")]
    done = without_compilation(files, "not (a_case_of_it or contexts-mc)")
    assert done.returncode == 0, done.stdout
