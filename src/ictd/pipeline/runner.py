"""Carry out a step from the command line: ``python -m ictd.pipeline.runner MODULE --option value ...``.

The options are the parameters of the module's ``main``, and every one must be given, so that a command line says all
that its result depends on.  ``python -m ictd.pipeline.runner MODULE --help`` lists them.
"""

import argparse
import errno
import gc
import json
import logging
import os
import platform
import shlex
import sys
import time
from collections.abc import Callable
from importlib import import_module, metadata
from inspect import signature
from pathlib import Path
from typing import get_args, get_origin

from ictd.pipeline.provenance import PACKAGES, PROJECT
from ictd.pipeline.record import RECORD_VARIABLE, check_code

LOGGED_VERSIONS = ("matplotlib", "numba", "numpy", "pandas", "papermill", "torch")
UNWRITABLE = (errno.EACCES, errno.EDQUOT, errno.EFBIG, errno.ENOSPC, errno.EPERM, errno.EROFS)
logger = logging.getLogger("ictd.pipeline.runner")


def main() -> None:
    """Carry out the step that the command line names.

    The log, on standard error, has the command, versions and time.  What goes wrong for a reason that a person can
    mend ends the process with one sentence, the last line of the log.
    """
    # Imports and compiling make many objects and few cycles: to look for these less often saves 3% of a run.
    gc.set_threshold(50_000)
    if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__.strip())
    module, *words = sys.argv[1:]
    # Behind all else, as the project's folder may have names of other packages.
    sys.path.append(str(PROJECT))
    logging.basicConfig(format="%(asctime)s %(message)s", datefmt="%Y-%m-%d %H:%M:%S")
    for package in PACKAGES:
        logging.getLogger(package).setLevel(logging.INFO)
    try:
        step = getattr(import_module(module), "main", None)
        if step is None:
            raise ValueError(f"{module} has no function main, so it is no step.")
        options = vars(parser(module, step).parse_args(words))
        if RECORD_VARIABLE in os.environ:
            check_code(Path(os.environ[RECORD_VARIABLE]), module)
        logger.info("python -m ictd.pipeline.runner %s", shlex.join([module, *words]))
        logger.info("Python %s, %s", platform.python_version(), ", ".join(installed(LOGGED_VERSIONS)))
        started = time.perf_counter()
        step(**options)
    except ValueError as error:
        sys.exit(f"error: {error}")
    except ImportError as error:
        sys.exit(f"error: {error}.")
    except MemoryError:
        sys.exit("error: this needs more memory than there is; give fewer tasks, seeds, states, layers or steps.")
    except OSError as error:
        place = f"{error.filename}: " if error.filename else ""
        advice = "; make room or give write access, then run snakemake again" if error.errno in UNWRITABLE else ""
        sys.exit(f"error: {place}{error.strerror or error}{advice}.")
    logger.info("done in %.1f s", time.perf_counter() - started)


def parser(module: str, step: Callable) -> argparse.ArgumentParser:
    """Parser of a step's options, each of the type that the annotation of its parameter names.

    A ``list[T]`` takes one or more values, a ``dict`` takes JSON, and a ``bool`` takes true or false.
    """
    made = argparse.ArgumentParser(
        prog=f"python -m ictd.pipeline.runner {module}", description=step.__doc__, allow_abbrev=False
    )
    for parameter in signature(step).parameters.values():
        kind = parameter.annotation
        listed = get_origin(kind) is list
        item = get_args(kind)[0] if listed else kind
        made.add_argument(
            f"--{parameter.name.replace('_', '-')}",
            required=True,
            nargs="+" if listed else None,
            type=json.loads if item in (dict, bool) else item,
            metavar={dict: "json", bool: "true|false"}.get(item, item.__name__.lower()),
        )
    return made


def installed(packages: tuple[str, ...]) -> list[str]:
    """Names and versions of those packages that are installed."""
    found = []
    for package in packages:
        try:
            found.append(f"{package} {metadata.version(package)}")
        except metadata.PackageNotFoundError:
            continue
    return found


if __name__ == "__main__":
    main()
