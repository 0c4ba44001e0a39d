"""Run a step from the command line: ``python -m ictd.pipeline.runner MODULE --option value ...``.

The options are the parameters of the module's ``main``.  Every option must be given, so that a command states
everything that its result depends on.  ``python -m ictd.pipeline.runner MODULE --help`` lists the options.
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

LOGGED_VERSIONS = ("matplotlib", "numba", "numpy", "pandas", "papermill", "torch")
UNWRITABLE = (errno.EACCES, errno.EDQUOT, errno.EFBIG, errno.ENOSPC, errno.EPERM, errno.EROFS)
logger = logging.getLogger("ictd.pipeline.runner")


def main() -> None:
    """Run the step that the command line names.

    The log, on standard error, contains the command, the versions and the time.  If the user can fix an error, the
    process ends with one sentence, which is the last line of the log.
    """
    # Imports and compiling make many objects but few cycles.  Less frequent garbage collection saves 3% of a run.
    gc.set_threshold(50_000)
    if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__.strip())
    module, *words = sys.argv[1:]
    # Last in the search path, because names in the project's folder may be those of other packages.
    sys.path.append(str(PROJECT))
    logging.basicConfig(format="%(asctime)s %(message)s", datefmt="%Y-%m-%d %H:%M:%S")
    for package in PACKAGES:
        logging.getLogger(package).setLevel(logging.INFO)
    try:
        # These import NumPy.  An interruption during the import ends in a sentence, too.
        from ictd.pipeline.environments import load_from_variable
        from ictd.pipeline.record import RECORD_VARIABLE, check_code

        load_from_variable()
        step = getattr(import_module(module), "main", None)
        if step is None:
            raise ValueError(f"{module} has no function main, so it is no step.")
        options = vars(parser(module, step).parse_args(words))
        if RECORD_VARIABLE in os.environ:
            check_code(Path(os.environ[RECORD_VARIABLE]), module)
        logger.info("python -m ictd.pipeline.runner %s", shlex.join([module, *words]))
        logger.info("Python %s, %s", platform.python_version(), ", ".join(installed(LOGGED_VERSIONS)))
        # Imported modules stay to the end, so garbage collection need not look at them again.
        gc.freeze()
        started = time.perf_counter()
        step(**options)
    except ValueError as error:
        sys.exit(f"error: {error}")
    except ImportError as error:
        sys.exit(f"error: {error}.")
    except KeyboardInterrupt:
        sys.exit("error: interrupted; run snakemake again: finished jobs are kept.")
    except MemoryError:
        sys.exit("error: this needs more memory than there is; give fewer tasks, seeds, states, layers or steps.")
    except OSError as error:
        place = f"{error.filename}: " if error.filename else ""
        advice = "; make room or give write access, then run snakemake again" if error.errno in UNWRITABLE else ""
        sys.exit(f"error: {place}{error.strerror or error}{advice}.")
    logger.info("done in %.1f s", time.perf_counter() - started)


def parser(module: str, step: Callable) -> argparse.ArgumentParser:
    """Make the parser of a step's options; each option has the type of its parameter.

    A ``list[T]`` takes one or more values, a ``dict`` takes JSON, and a ``bool`` takes true or false.
    """
    step_parser = argparse.ArgumentParser(
        prog=f"python -m ictd.pipeline.runner {module}", description=step.__doc__, allow_abbrev=False
    )
    for parameter in signature(step).parameters.values():
        kind = parameter.annotation
        listed = get_origin(kind) is list
        item = get_args(kind)[0] if listed else kind
        step_parser.add_argument(
            f"--{parameter.name.replace('_', '-')}",
            required=True,
            nargs="+" if listed else None,
            type=json.loads if item in (dict, bool) else item,
            metavar={dict: "json", bool: "true|false"}.get(item, item.__name__.lower()),
        )
    return step_parser


def installed(packages: tuple[str, ...]) -> list[str]:
    """List the names and versions of the packages that are installed."""
    versions = []
    for package in packages:
        try:
            versions.append(f"{package} {metadata.version(package)}")
        except metadata.PackageNotFoundError:
            continue
    return versions


if __name__ == "__main__":
    main()
