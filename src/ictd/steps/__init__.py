"""The work of each rule, as a command: ``python -m ictd.steps.NAME --option value ...``.

A step's ``main`` reads files, calls the library and writes files.  Its options are its parameters, and every one must
be given, so that a command line says all that its result depends on.
"""

import argparse
import errno
import inspect
import json
import logging
import platform
import shlex
import sys
import time
from importlib import metadata

PACKAGES = ("matplotlib", "numba", "numpy", "pandas", "papermill", "torch")
UNWRITABLE = (errno.EACCES, errno.EDQUOT, errno.EFBIG, errno.ENOSPC, errno.EPERM, errno.EROFS)
logger = logging.getLogger(__name__)


def run(main) -> None:
    """Call ``main`` with options from the command line, each of the type that its annotation names.

    A ``list[T]`` takes one or more values and a ``dict`` takes JSON.  The log, on standard error, has the command with
    all its options, versions and time.  A ValueError ends the process with its sentence, and so does a file that
    cannot be written.
    """
    parser = argparse.ArgumentParser(description=inspect.getmodule(main).__doc__)
    for name, parameter in inspect.signature(main).parameters.items():
        kind = parameter.annotation
        listed = getattr(kind, "__origin__", None) is list
        parser.add_argument(
            f"--{name.replace('_', '-')}",
            required=True,
            nargs="+" if listed else None,
            type=kind.__args__[0] if listed else json.loads if kind is dict else kind,
        )
    options = vars(parser.parse_args())
    logging.basicConfig(format="%(asctime)s %(message)s", datefmt="%Y-%m-%d %H:%M:%S")
    logging.getLogger("ictd").setLevel(logging.INFO)
    versions = [f"Python {platform.python_version()}", *filter(None, map(_installed, PACKAGES))]
    step = f"ictd.steps.{sys.argv[0].rpartition('/')[2].removesuffix('.py')}"
    logger.info("python -m %s %s", step, shlex.join(sys.argv[1:]))
    logger.info("%s", ", ".join(versions))
    started = time.perf_counter()
    try:
        main(**options)
    except ValueError as error:
        sys.exit(f"error: {error}")
    except FileNotFoundError as error:
        sys.exit(f"error: {error.filename} is missing; run snakemake to make it.")
    except OSError as error:
        place = f"{error.filename}: " if error.filename else ""
        advice = "; make room or give write access, then run snakemake again" if error.errno in UNWRITABLE else ""
        sys.exit(f"error: {place}{error.strerror}{advice}.")
    logger.info("done in %.1f s", time.perf_counter() - started)


def _installed(package: str) -> str | None:
    """Name and version of a package, if it is there."""
    try:
        return f"{package} {metadata.version(package)}"
    except metadata.PackageNotFoundError:
        return None
