"""Compiled kernels, and the folder that keeps them between processes.

A kernel is compiled once for each number of states, because ``size`` makes that number a part of its arguments' types.
Loops of a length that the compiler knows take half the time.

numba compiles a kernel again after an edit of the kernel's own file, but not after an edit of another file whose
kernels it calls.  So the folder is named after the digest of all files with kernels, of this package and of the
studies, and an edit of any of them compiles all kernels again.  The old folder, a few MB, stays; remove it at any time.
What kernels name must be defined in these files.
"""

import fcntl
import hashlib
import logging
import os
import tempfile
from functools import cache, partial
from pathlib import Path
from types import FunctionType

import llvmlite.binding
import numba

logger = logging.getLogger(__name__)


def kernel(function: FunctionType | None = None, *, noalias: bool = False):
    """Decorator: numba compiles the function at its first call, and later processes load the compiled code.

    ``noalias`` states that no array that the kernel writes to overlaps another of its arguments.  The compiler can then
    compute several entries at once, which makes sums along rows faster and look-ups slower.
    """
    if function is None:
        return partial(kernel, noalias=noalias)
    folder = cache_folder()
    other_folder = numba.config.CACHE_DIR
    numba.config.CACHE_DIR = str(folder or "")
    try:
        # Division by zero gives what NumPy's does, without a check.
        compiled = numba.njit(error_model="numpy", cache=folder is not None)(function)
    finally:
        # Functions of other packages are kept where they were.
        numba.config.CACHE_DIR = other_folder
    if folder and hasattr(compiled, "_cache"):
        compiled._cache.save_overload = partial(_save_alone, folder / "lock", compiled._cache.save_overload)
    # numba has no public option for noalias.  Without it a kernel is only slower.
    compiler = getattr(compiled, "_compiler", None)
    if noalias and hasattr(compiler, "_customize_flags"):
        compiler._customize_flags = _without_aliases
    return compiled


def _without_aliases(flags):
    flags.noalias = True
    return flags


def _save_alone(lock: Path, save, signature, compiled):
    """Save a compiled kernel while no other process saves one.

    numba chooses the name of a file and writes the file in separate steps.  Without the lock, two processes that
    compile a kernel for different numbers of states can write to one file, and later processes cannot use the kernel.
    """
    try:
        with lock.open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            save(signature, compiled)
    except OSError as error:
        logger.warning("A compiled kernel is not kept: %s.", error)


def size(number: int) -> tuple[int, ...]:
    """A number that a kernel knows when it is compiled: the length of a tuple."""
    return (0,) * number


def kernel_files() -> list[Path]:
    """The files of the package and of the studies that define kernels, and this file."""
    this = Path(__file__)
    paths = [*this.parent.rglob("*.py"), *this.parents[2].glob("studies/*/*.py")]
    return sorted(path for path in paths if path == this or b"\n@kernel" in path.read_bytes())


@cache
def cache_folder() -> Path | None:
    """Folder of compiled kernels; None, with a warning in the log, where this process cannot write."""
    try:
        content = b"".join(path.read_bytes() for path in kernel_files())
        made_for = f"{numba.__version__} {llvmlite.binding.get_host_cpu_name()}"
        digest = hashlib.sha256(made_for.encode() + content).hexdigest()[:32]
        caches = Path(os.environ.get("XDG_CACHE_HOME", ""))
        folder = (caches if caches.is_absolute() else Path.home() / ".cache") / "ictd"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder = folder / digest
        folder.mkdir(mode=0o700, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except (OSError, RuntimeError) as error:
        logger.warning("Kernels are compiled in each process, which takes seconds: %s.", error)
        return None
    return folder
