"""Compiled kernels, and the cache that keeps them between processes.

A kernel is compiled for each number of states anew, as ``size`` makes that a part of its arguments' types: loops of a
length that the compiler knows take half the time.

Machine code in the cache belongs to a kernel together with all kernels that it calls and all constants that they name,
so that an edit of any of them compiles it anew; numba's own cache looks at the kernel's own file only.  As the cache
holds pickles and machine code, it is in a folder that nobody but its owner can write, and a file there that is not what
was written counts as absent.
"""

import hashlib
import logging
import os
import pickle
import platform
import stat
from functools import cache, partial
from pathlib import Path
from types import FunctionType, ModuleType

import numba
import numpy as np
from numba.core import serialize
from numba.core.caching import NullCache
from numba.core.compiler import CompileResult
from numba.core.runtime import rtsys

logger = logging.getLogger(__name__)
# Division by zero gives what NumPy's does, and is not looked for.
OPTIONS = {"error_model": "numpy"}
DIGEST = hashlib.sha256().digest_size


def kernel(function: FunctionType | None = None, *, noalias: bool = False):
    """Decorator: a function that numba compiles when it is first called, and that later processes find compiled.

    ``noalias`` says that no array that it is given overlaps one that it writes to.  This lets the compiler compute
    several entries at once, which suits sums along rows, and slows look-ups down.
    """
    if function is None:
        return partial(kernel, noalias=noalias)
    made = numba.njit(**OPTIONS)(function)
    if made is not function:  # As it is when numba's compiler is switched off.
        made._cache = KernelCache(function, noalias)
        made._compiler._customize_flags = made._cache.flags
    return made


def size(number: int) -> tuple[int, ...]:
    """A number that a kernel knows when it is compiled: the length of a tuple."""
    return (0,) * number


class KernelCache(NullCache):
    """A kernel's part of the cache: what numba asks before it compiles, and tells what it has compiled."""

    def __init__(self, function: FunctionType, noalias: bool):
        self.function, self.noalias = function, noalias

    def flags(self, flags):
        """What numba's compiler is told besides its options."""
        flags.noalias = self.noalias
        return flags

    def load_overload(self, sig, target_context):
        """The kernel compiled for types ``sig``; None if the cache has none that is whole."""
        # What our machine code calls; one that hashed strings would need more.  Compiling sets up the rest by itself.
        rtsys.initialize(target_context)
        path = self._path(sig, target_context.codegen())
        try:
            content = path.read_bytes() if path else b""
        except OSError:
            return None
        digest, payload = content[:DIGEST], content[DIGEST:]
        if digest != hashlib.sha256(payload).digest():
            return None
        return CompileResult._rebuild(target_context, *pickle.loads(payload))

    def save_overload(self, sig, data):
        """Keep the kernel compiled for types ``sig``; a cache that cannot be written stays as it is."""
        path = self._path(sig, data.codegen)
        if path is None or data.library.has_dynamic_globals:
            return
        payload = serialize.dumps(data._reduce())
        temporary = path.with_suffix(f".{os.getpid()}")
        try:
            temporary.write_bytes(hashlib.sha256(payload).digest() + payload)
            os.replace(temporary, path)
        except OSError as error:
            logger.warning("The compiled %s is not kept: %s.", self.function.__name__, error)
            temporary.unlink(missing_ok=True)

    def _path(self, sig, codegen) -> Path | None:
        folder = cache_folder()
        versions = numba.__version__, np.__version__, platform.python_version(), OPTIONS, self.noalias
        known = [*map(str, (*versions, sig, codegen.magic_tuple())), *code_of(self.function)]
        digest = hashlib.sha256("\n".join(known).encode()).hexdigest()
        return folder and folder / f"{self.function.__name__}-{digest[:32]}"


def code_of(function: FunctionType) -> list[str]:
    """What a kernel is compiled from: bytecode, constants and closures, of itself and of all kernels that it calls.

    TypeError for a name that stands for something whose changes would not be seen.
    """
    found, waiting = {}, [function]
    while waiting:
        one = waiting.pop()
        if one in found:
            continue
        code, cells = one.__code__, [cell.cell_contents for cell in one.__closure__ or ()]
        values = {name: one.__globals__[name] for name in code.co_names if name in one.__globals__}
        values |= dict(zip(code.co_freevars, cells, strict=True))
        values["its defaults"] = one.__defaults__
        constants = [constant for constant in code.co_consts if constant != one.__doc__]
        texts = [_written(one), code.co_code.hex(), repr(code.co_names), *map(_written, constants)]
        found[one] = "\n".join([*texts, *(f"{name} = {_written(value)}" for name, value in values.items())])
        listed = (value if isinstance(value, tuple) else (value,) for value in values.values())
        waiting += [part.py_func for parts in listed for part in parts if hasattr(part, "py_func")]
    return sorted(found.values())


def _written(value) -> str:
    """A constant as a text that differs when it does; kernels, and what is numpy's or Python's own, by their names."""
    if value is None or isinstance(value, bool | int | float | str | np.generic):
        return repr(value)
    if isinstance(value, tuple):
        return f"({', '.join(map(_written, value))})"
    if isinstance(value, FunctionType) or hasattr(value, "py_func"):
        noalias = getattr(getattr(value, "_cache", None), "noalias", False)
        return f"{value.__module__}.{value.__qualname__}{', noalias' * noalias}"
    home = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", "")
    if home.partition(".")[0] in ("numpy", "math", "builtins") and hasattr(value, "__name__"):
        return f"{home}.{value.__name__}"
    raise TypeError(f"a kernel names {value!r}; it may name kernels, numbers, and what is numpy's or math's.")


@cache
def cache_folder() -> Path | None:
    """Folder of compiled kernels; None, with a word in the log, if there can be none that its owner alone can write."""
    try:
        named = Path(os.environ.get("XDG_CACHE_HOME", ""))
        folder = (named if named.is_absolute() else Path.home() / ".cache") / "ictd"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = folder.lstat()
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o022:
            raise PermissionError(f"others can write to {folder}")
    except (OSError, RuntimeError) as error:
        logger.warning("Compiled kernels are not kept, which costs seconds a job: %s.", error)
        return None
    return folder
