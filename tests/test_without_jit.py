"""The kernels as plain Python: the compiled code does what its source says, and stays within its arrays."""

from projects import ROOT, without_compilation


def test_kernels_pass_their_tests_without_compilation():
    slow = "engines_agree or right_means or independent or learns or blocks or snapshots"
    files = [ROOT / "tests" / name for name in ("test_trajectories.py", "test_engines.py", "test_gram_engine.py")]
    done = without_compilation(files, f"not ({slow})")
    assert done.returncode == 0, done.stdout
