"""The cache of compiled kernels is never stale, and processes that cannot write to it work without it."""

import ast
import os
import subprocess
import sys
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import pytest
from projects import ROOT

from ictd import kernels

CALLED = "from ictd.kernels import kernel\n@kernel\ndef called(x): return 2.0 * x\n"
CALLING = "from ictd.called import called, kernel\n@kernel(noalias=True)\ndef calling(x): return called(x) + 1.0\n"
SCRIPT = "from studies.own.calling import calling; print(calling(4.0)); "
MISSES = "print(sum(calling.stats.cache_misses.values()))"


@pytest.fixture
def project(tmp_path) -> Path:
    """A package of kernels.py and a kernel, and a study whose kernel calls that."""
    files = {"src/ictd/__init__.py": "", "src/ictd/kernels.py": Path(kernels.__file__).read_text()}
    for name, text in {**files, "src/ictd/called.py": CALLED, "studies/own/calling.py": CALLING}.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


COMPILES = "ictd compiles its kernels, once for each number of states (3 to 20 s).\n"


def run(project: Path, script: str, **env: str) -> tuple[list[str], str]:
    """Output of a process, and its warnings."""
    path = f"{project}/src{os.pathsep}{project}"
    env = {**os.environ, "PYTHONPATH": path, "XDG_CACHE_HOME": str(project / "cache"), **env}
    done = subprocess.run([sys.executable, "-P", "-c", script], env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.split(), done.stderr


def test_an_edit_of_a_called_kernel_gives_the_result_of_a_clean_run(project):
    for misses, said in (("1", COMPILES), ("0", "")):
        assert run(project, SCRIPT + MISSES) == (["9.0", misses], said)
    # Python compares the time and the size of a file with those of its compiled module, and this edit is quick.
    (project / "src/ictd/called.py").write_text(CALLED.replace("2.0", "3.00"))
    assert run(project, SCRIPT + MISSES) == run(project, SCRIPT + MISSES, XDG_CACHE_HOME=str(project / "clean"))
    assert run(project, SCRIPT) == (["13.0"], "")
    if os.name != "nt":
        assert (project / "cache/ictd").stat().st_mode & 0o777 == 0o700


@pytest.mark.skipif(os.name == "nt", reason="HOME is not the variable, and the error has another number")
def test_kernels_without_a_cache_folder_are_compiled_with_a_warning(project):
    printed, warnings = run(project, SCRIPT, XDG_CACHE_HOME="", HOME=str(project / "src/ictd/called.py"))
    assert printed == ["9.0"] and len(warnings.splitlines()) == 1
    assert warnings.startswith("Kernels are compiled in each process, which takes seconds: [Errno 20] Not a directory")
    assert "XDG_CACHE_HOME" in warnings


@pytest.mark.slow
def test_a_file_of_another_size_is_written_again(project):
    """Two processes that compile a kernel for different sizes at the same time can write to one file."""
    sizes = "from studies.own.calling import calling; from ictd.kernels import size; print(calling({})); " + MISSES
    (project / "studies/own/calling.py").write_text(
        "from ictd.kernels import kernel\n@kernel\ndef calling(n): return 2 * len(n)\n"
    )
    two, five = sizes.format("size(2)"), sizes.format("size(5)")
    assert run(project, two) == (["4", "1"], COMPILES) and run(project, five) == (["10", "1"], COMPILES)
    first, second = sorted(project.glob("cache/ictd/*/**/*.nbc"))
    second.write_bytes(first.read_bytes())
    assert run(project, five) == (["10", "1"], COMPILES)
    assert run(project, five) == (["10", "0"], "") and run(project, two) == (["4", "0"], "")


def test_a_damaged_file_is_written_again(project):
    run(project, SCRIPT)
    for ending in ("nbi", "nbc"):
        for path in project.glob(f"cache/ictd/*/**/*.{ending}"):
            path.write_bytes(path.read_bytes()[:40])
        printed, warnings = run(project, SCRIPT)
        assert printed == ["9.0"] and "is damaged" in warnings
    assert run(project, SCRIPT + MISSES) == (["9.0", "0"], "")


@pytest.mark.slow
def test_the_library_pretrains_without_modules_of_unix(tmp_path):
    blocked = "import sys; sys.modules.update(dict.fromkeys(['fcntl', 'grp', 'pwd', 'resource']))\n"
    pretrain = "import ictd; print(ictd.pretrain(ictd.TaskDistribution('boyan', 3), 2, 0.9, updates=9).weights.A.shape)"
    env = os.environ | {"XDG_CACHE_HOME": str(tmp_path)}
    done = subprocess.run([sys.executable, "-P", "-c", blocked + pretrain], env=env, capture_output=True, text=True)
    assert done.stdout == "(6, 6)\n", done.stderr


@cache
def origins(path: Path, name: str) -> set[Path | str]:
    """Files and modules that define a global of a file, and the globals in its definition; empty for other names."""
    found = set()
    for node in ast.parse(path.read_text()).body:
        imported = [alias.name for alias in getattr(node, "names", []) if name == (alias.asname or alias.name)]
        targets = [*getattr(node, "targets", []), getattr(node, "target", ast.Pass())]
        if isinstance(node, ast.ImportFrom) and imported:
            found |= origins(Path(find_spec(node.module).origin), imported[0])
        elif imported or getattr(node, "name", None) == name:
            found |= {*imported} or {path}
        elif name in names_in(*targets):
            found = found.union({path}, *(origins(path, used) for used in names_in(node.value) - {name}))
    return found


def names_in(*nodes: ast.AST) -> set[str]:
    return {part.id for node in nodes for part in ast.walk(node) if isinstance(part, ast.Name)}


def test_names_used_by_kernels_are_defined_in_files_with_kernels():
    """Otherwise an edit of these definitions would leave the cache stale."""
    files = kernels.kernel_files()
    for path in {*ROOT.glob("src/**/*.py"), *ROOT.glob("studies/**/*.py")} - {Path(kernels.__file__)}:
        text = path.read_text()
        assert (path in files) == ("@kernel" in text) and "import numba" not in text
        for function in ast.parse(text).body:
            if any("kernel" in ast.unparse(decorator) for decorator in getattr(function, "decorator_list", [])):
                for name in names_in(function):
                    assert origins(path, name) <= {*files, "numpy", "math"}, f"{path}: {name}"
