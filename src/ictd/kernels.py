"""Compiled kernels, and the folder that stores them between processes.

A kernel is compiled once for each number of states, because ``size`` makes this number a part of the types of its
arguments.  Loops whose length the compiler knows take half the time.

After an edit, numba compiles the kernels of the edited file again, but not the kernels in other files that call them.
So the folder is named after the digest of all files with kernels, of this package and of the studies.  An edit of one
of these files compiles all kernels again.  The old folder, a few MB, remains and can be removed at any time.  Functions
and constants that a kernel uses must be defined in these files.
"""

import hashlib
import logging
import os
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from functools import cache, partial
from pathlib import Path

import llvmlite.binding
import numba
from numba.core.caching import FunctionCache

logger = logging.getLogger(__name__)
# Greatest length of a tuple that numba compiles.
LONGEST = 1000


def kernel(function: Callable | None = None, *, noalias: bool = False, inline: bool = False) -> Callable:
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
    # With this error model, division by zero gives inf or NaN as in NumPy, without a check.  No kernel is called from
    # C, and without that entry point kernels compile faster.
    compiled = numba.njit(error_model="numpy", no_cfunc_wrapper=True, forceinline=inline)(function)
    folder = cache_folder()
    if folder and hasattr(compiled, "_cache"):
        other_folder = numba.config.CACHE_DIR
        numba.config.CACHE_DIR = str(folder)
        compiled._cache = _Cache(function)
        # Compiled functions of other packages remain in their own folder.
        numba.config.CACHE_DIR = other_folder
    # numba has no public option for noalias.  If this private attribute is missing, kernels are slower but correct.
    compiler = getattr(compiled, "_compiler", None)
    if noalias and hasattr(compiler, "_customize_flags"):
        compiler._customize_flags = _without_aliases
    return compiled


def _without_aliases(flags):
    flags.noalias = True
    return flags


class _Cache(FunctionCache):
    """The stored versions of a kernel.  A file that cannot be read or written is as good as none.

    numba chooses the name of a file and writes the file in separate steps, so two processes that compile a kernel for
    different numbers of states can write to one file.  Then the file has another signature than the one that it is
    loaded for.  The kernel is compiled again, and the file is written again.
    """

    def load_overload(self, signature, target):
        try:
            compiled = super().load_overload(signature, target)
        except Exception as error:  # Damaged files raise errors of many types.
            logger.warning("A kernel is compiled again, as its file in %s is damaged: %r.", self.cache_path, error)
            with suppress(OSError):
                self.flush()
            compiled = None
        if compiled and compiled.signature.args == signature:
            return compiled
        say_compiling()
        return None

    def save_overload(self, signature, compiled):
        try:
            super().save_overload(signature, compiled)
        except Exception as error:
            logger.warning("A compiled kernel is not kept: %s.", error)


@cache
def say_compiling() -> None:
    """Say on the standard error stream, once in a process, why the first call takes long."""
    print("ictd compiles its kernels, once for each number of states (3 to 20 s).", file=sys.stderr, flush=True)


def size(number: int) -> tuple[int, ...]:
    """Make a number, at most ``LONGEST``, that the compiler of a kernel knows: the length of a tuple."""
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
        # As text, so that line ends do not matter.
        content = "".join(path.read_text(encoding="utf-8") for path in kernel_files())
        made_for = f"{numba.__version__} {llvmlite.binding.get_host_cpu_name()}"
        digest = hashlib.sha256((made_for + content).encode()).hexdigest()[:32]
        caches = Path(os.environ.get("XDG_CACHE_HOME", ""))
        folder = (caches if caches.is_absolute() else Path.home() / ".cache") / "ictd"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder = folder / digest
        folder.mkdir(mode=0o700, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except (OSError, RuntimeError) as error:
        logger.warning(
            "Kernels are compiled in each process, which takes seconds: %s."
            " Set XDG_CACHE_HOME to a folder that can be written to.",
            error,
        )
        return None
    return folder
