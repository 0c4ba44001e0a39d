"""Compiled kernels, and the folder that keeps them between processes.

A kernel is compiled once for each number of states, because ``size`` makes that number a part of its arguments' types.
Loops of a length that the compiler knows take half the time.

``kernel`` is for functions that other kernels call, and ``entry_kernel`` for those that Python calls: the compiled code
of these, with all kernels that they call, is kept by numba's cache.  Two properties of that cache need care:

- It sees an edit of a kernel's own file, but not of another file whose kernels it calls.  So its folder is named after
  the digest of all files with kernels, of this package and of the studies: an edit of any of them compiles all kernels
  again.  The old folder, a few MB, stays; remove it at any time.  What kernels name must be defined in these files.
- Two processes that keep one kernel for different types at the same time may exchange their files.  So there is a
  folder for each number of states.
"""

import hashlib
import logging
import os
import re
import tempfile
from functools import cache, partial, wraps
from pathlib import Path
from types import FunctionType

import llvmlite.binding
import numba

logger = logging.getLogger(__name__)


def kernel(function: FunctionType | None = None, *, noalias: bool = False):
    """Decorator: numba compiles the function into the kernels that call it.

    ``noalias`` states that no array that the kernel writes to overlaps another of its arguments.  The compiler can then
    compute several entries at once, which makes sums along rows faster and look-ups slower.
    """
    if function is None:
        return partial(kernel, noalias=noalias)
    return _compiled(function, noalias, cache=False)


def entry_kernel(function: FunctionType | None = None, *, noalias: bool = False):
    """Decorator: numba compiles the function at its first call, and later processes load the compiled code.

    ``noalias`` is as of ``kernel``.
    """
    if function is None:
        return partial(entry_kernel, noalias=noalias)

    @cache
    def compiled(*sizes: int):
        folder = cache_folder()
        if folder is None:
            return _compiled(function, noalias, cache=False)
        other_folder = numba.config.CACHE_DIR
        numba.config.CACHE_DIR = str(folder.joinpath(*map(str, sizes)))
        try:
            return _compiled(function, noalias, cache=True)
        finally:
            # Functions of other packages are kept where they were.
            numba.config.CACHE_DIR = other_folder

    @wraps(function)
    def call(*arguments):
        sizes = (len(argument) for argument in arguments if isinstance(argument, tuple))
        return compiled(*sizes)(*arguments)

    return call


def _compiled(function: FunctionType, noalias: bool, cache: bool):
    # Division by zero gives what NumPy's does, without a check.
    made = numba.njit(error_model="numpy", cache=cache)(function)
    # numba has no public option for noalias.  Without it a kernel is only slower.
    compiler = getattr(made, "_compiler", None)
    if noalias and hasattr(compiler, "_customize_flags"):
        compiler._customize_flags = _without_aliases
    return made


def _without_aliases(flags):
    flags.noalias = True
    return flags


def size(number: int) -> tuple[int, ...]:
    """A number that a kernel knows when it is compiled: the length of a tuple."""
    return (0,) * number


def kernel_files() -> list[Path]:
    """The files of the package and of the studies that define kernels, and this file."""
    this = Path(__file__)
    paths = [*this.parent.rglob("*.py"), *this.parents[2].glob("studies/*/*.py")]
    decorated = re.compile(rb"^@(entry_)?kernel", re.MULTILINE)
    return sorted(path for path in paths if path == this or decorated.search(path.read_bytes()))


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
