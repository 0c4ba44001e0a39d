"""The study's kernels as plain Python, as in tests/test_without_jit.py."""

from pathlib import Path

from projects import without_compilation


def test_kernels_pass_their_tests_without_compilation():
    done = without_compilation([Path(__file__).with_name("test_attention.py")], "not (a_case_of_it or contexts-mc)")
    assert done.returncode == 0, done.stdout
