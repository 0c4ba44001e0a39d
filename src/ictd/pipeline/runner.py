"""Carrying out a step from the command line: ``python -m ictd.steps NAME --option value ...``.

A step's options are the parameters of its ``main``, and every one must be given, so that a command line says all that
its result depends on.
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
from contextlib import ExitStack
from importlib import import_module, metadata
from inspect import signature
from tempfile import TemporaryDirectory

from ictd.pipeline import storage
from ictd.pipeline.labels import Work
from ictd.pipeline.steps import ROOTS, find_step

PACKAGES = ("matplotlib", "numba", "numpy", "pandas", "papermill", "torch")
UNWRITABLE = (errno.EACCES, errno.EDQUOT, errno.EFBIG, errno.ENOSPC, errno.EPERM, errno.EROFS)
# A file that numba reads in the folder that it runs in, whatever the environment.
NUMBA_SETTINGS = ".numba_config.yaml"
# New objects after which Python looks for cycles; by itself it does after 700.
COLLECTED = 50_000
# By name, as it is no part of what results depend on.
HELP = "ictd.pipeline.help"
logger = logging.getLogger(__name__)


def command() -> None:
    """Carry out the step that the command line names; without one, list all."""
    # Imports and compiling make many objects and few cycles; looking for these less saves a thirtieth of a run.
    gc.set_threshold(COLLECTED)
    name, *options = sys.argv[1:] or ["--help"]
    if name in ("-h", "--help"):
        print(import_module(HELP).listing())
        return
    with ExitStack() as stack:
        try:
            step = find_step(name)
            step.parameters()
            asked = {"-h", "--help"}.intersection(options)
            sentences = import_module(HELP).sentences(step) if asked else {}
            sys.path.append(str(ROOTS["studies"]))
            # Settings and programs of the user's own lie in the home folder; caches stay where they are.
            home = stack.enter_context(TemporaryDirectory(prefix="ictd-", ignore_cleanup_errors=True))
            caches = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
            caches = caches if os.path.isabs(caches) else f"{home}/cache"
            if os.path.exists(NUMBA_SETTINGS):
                raise ValueError(f"{NUMBA_SETTINGS} in this folder changes what is compiled; remove it or go elsewhere")
            os.environ.update(HOME=home, XDG_CACHE_HOME=caches, MPLCONFIGDIR=f"{caches}/matplotlib")
            main = import_module(step.module).main
        except SyntaxError as error:
            sys.exit(f"error: {error.filename}, line {error.lineno}: {error.msg}.")
        except (ValueError, ImportError, OSError) as error:
            sys.exit(f"error: {str(error).rstrip('.')}.")
        run(main, name, options, sentences)


def run(main: Callable, name: str, options: list[str], sentences: dict[str, str]) -> None:
    """Call ``main`` with options from the command line, each of the type that its annotation names.

    A ``list[T]`` takes one or more values and a ``dict`` takes JSON.  The log, on standard error, has the command with
    all its options, versions and time.  A ValueError ends the process with its sentence, and so does a file that cannot
    be written.

    ``main`` is the function and ``name`` the name of the step; ``options`` are the command line's words after it.
    ``sentences`` are what help says of the parameters, and of the step under the empty name.
    """
    parser = argparse.ArgumentParser(
        prog=f"python -m ictd.steps {name}", description=sentences.get(""), allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    for parameter in signature(main).parameters.values():
        kind = parameter.annotation
        listed = getattr(kind, "__origin__", None) is list
        parser.add_argument(
            f"--{parameter.name.replace('_', '-')}",
            required=True,
            nargs="+" if listed else None,
            type=kind.__args__[0] if listed else mapping if kind is dict else kind,
            metavar=(kind.__args__[0] if listed else kind).__name__.replace("dict", "json"),
            help=sentences.get(parameter.name),
        )
    values = vars(parser.parse_args(options))
    files = {one for one, parameter in signature(main).parameters.items() if "Path" in str(parameter.annotation)}
    storage.work = Work.of_job(name, {one: value for one, value in values.items() if one not in files})
    logging.basicConfig(format="%(asctime)s %(message)s", datefmt="%Y-%m-%d %H:%M:%S")
    for top in ROOTS:
        logging.getLogger(top).setLevel(logging.INFO)
    versions = [f"Python {platform.python_version()}", *filter(None, map(_installed, PACKAGES))]
    logger.info("python -m ictd.steps %s", shlex.join([name, *options]))
    logger.info("%s", ", ".join(versions))
    started = time.perf_counter()
    try:
        main(**values)
    except ValueError as error:
        sys.exit(f"error: {error}")
    except ImportError as error:
        sys.exit(f"error: {error}.")
    except (MemoryError, OverflowError):
        sys.exit("error: this needs more memory than there is; give fewer tasks, seeds, states, layers or steps.")
    except FileNotFoundError as error:
        sys.exit(f"error: {error.filename} is missing; run snakemake to make it.")
    except OSError as error:
        place = f"{error.filename}: " if error.filename else ""
        advice = "; make room or give write access, then run snakemake again" if error.errno in UNWRITABLE else ""
        sys.exit(f"error: {place}{error.strerror}{advice}.")
    logger.info("done in %.1f s", time.perf_counter() - started)


def mapping(text: str) -> dict:
    """An option that is given as JSON."""
    found = json.loads(text)
    if not isinstance(found, dict):
        raise ValueError(text)
    return found


def _installed(package: str) -> str | None:
    """Name and version of a package, if it is there."""
    try:
        return f"{package} {metadata.version(package)}"
    except metadata.PackageNotFoundError:
        return None
