"""Compiled kernels, and the folder that stores them between processes.

A kernel is compiled once for each number of states, because ``size`` makes this number a part of the types of its
arguments.  Loops whose length the compiler knows take half the time.

After an edit, numba compiles the kernels of the edited file again, but not the kernels in other files that call them.
So the folder is named after the digest of all files with kernels, of this package and of the studies.  An edit of one
of these files compiles all kernels again.  The old folder, a few MB, remains and can be removed at any time.  Functions
and constants that a kernel uses must be defined in these files.
"""

import fcntl
import hashlib
import logging
import os
import tempfile
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import TypeVar, overload

import llvmlite.binding
import numba

logger = logging.getLogger(__name__)
Function = TypeVar("Function", bound=Callable)


@overload
def kernel(function: Function) -> Function: ...


@overload
def kernel(*, noalias: bool, inline: bool = False) -> Callable[[Function], Function]: ...


def kernel(function=None, *, noalias=False, inline=False):
    """Decorate a function: numba compiles it at its first call, and later processes load the compiled code.

    Parameters
    ----------
    function : function
    noalias : bool, False by default
        States that an array to which the kernel writes overlaps no other argument.  The compiler can then compute
        several entries at once, which makes sums along rows faster and look-ups slower.
    inline : bool, False by default
        Whether kernels that call this one get a copy of its code: a call takes longer than a short row.
    """
    if function is None:
        return partial(kernel, noalias=noalias, inline=inline)
    folder = cache_folder()
    other_folder = numba.config.CACHE_DIR
    numba.config.CACHE_DIR = str(folder or "")
    try:
        # With this error model, division by zero gives inf or NaN as in NumPy, without a check.  No kernel is called
        # from C, and without that entry point kernels compile faster.
        compiled = numba.njit(error_model="numpy", no_cfunc_wrapper=True, cache=folder is not None, forceinline=inline)(
            function
        )
    finally:
        # Compiled functions of other packages remain in their own folder.
        numba.config.CACHE_DIR = other_folder
    if folder and hasattr(compiled, "_cache"):
        compiled._cache.save_overload = partial(_save_alone, folder / "lock", compiled._cache.save_overload)
    # numba has no public option for noalias.  If this private attribute is missing, kernels are slower but correct.
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
    """Make a number that the compiler of a kernel knows: the length of a tuple."""
    return (0,) * number


def kernel_files() -> list[Path]:
    """List the files of the package, and of the studies in a checkout, that define kernels, and this file."""
    this = Path(__file__)
    paths = [*this.parent.rglob("*.py")]
    # An installed package has no studies: other folders of this name may be near it.
    if this.parents[1].name == "src":
        paths += this.parents[2].glob("studies/*/*.py")
    return sorted(path for path in paths if path == this or b"\n@kernel" in path.read_bytes())


@cache
def cache_folder() -> Path | None:
    """Find or make the folder of compiled kernels; None, with a warning in the log, if it cannot be written to."""
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
