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

from ictd import __version__
from ictd.pipeline.provenance import (
    JOB_VARIABLE,
    PACKAGES,
    PROJECT,
    edited,
    listed,
    options_digest,
    source_digest,
)

LIBRARIES = ("matplotlib", "numba", "numpy", "pandas", "papermill", "torch")
UNWRITABLE = (errno.EACCES, errno.EDQUOT, errno.EFBIG, errno.ENOSPC, errno.EPERM, errno.EROFS)
logger = logging.getLogger("ictd.pipeline.runner")


def main() -> None:
    """Run the step that the command line names.

    The log, on standard error, contains the command and the versions.  Its last line is the ``record`` of the job, or,
    if the user can fix an error, a sentence.
    """
    if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__.strip())
    module, *words = sys.argv[1:]
    # Last in the search path, because names in the project's folder may be those of other packages.
    sys.path.append(str(PROJECT))
    logging.basicConfig(format="%(asctime)s %(message)s", datefmt="%Y-%m-%d %H:%M:%S")
    for package in PACKAGES:
        logging.getLogger(package).setLevel(logging.INFO)
    try:
        # This imports NumPy.  An interruption during the import ends in a sentence, too.
        from ictd.pipeline.extensions import load_from_variable

        load_from_variable()
        job = json.loads(os.environ.get(JOB_VARIABLE, "null"))
        step = getattr(import_module(module), "main", None)
        if step is None:
            raise ValueError(f"{module} has no function main, so it is no step.")
        options = vars(parser(module, step).parse_args(words))
        if job:
            check_unchanged(job)
        versions = installed_versions()
        logger.info("python -m ictd.pipeline.runner %s", shlex.join([module, *words]))
        logger.info("%s", ", ".join(f"{name} {version}" for name, version in versions.items()))
        # Imported modules stay to the end, so garbage collection, at the end too, need not look at them again.  This
        # saves 0.1 s in each job, 6% of a run.
        gc.freeze()
        started = time.perf_counter()
        step(**options)
        seconds = round(time.perf_counter() - started, 2)
        if job:
            sys.stdout.flush()
            print(json.dumps(record(job, options, versions, seconds)), file=sys.stderr)
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


def check_unchanged(job: dict) -> None:
    """Raise a ValueError if what the step depends on has changed since the run was planned; comments do not count."""
    from ictd.pipeline.extensions import extension_digest
    from ictd.storage import load_json

    content = load_json(Path(job["options"]))
    changed = [job["options"]] if options_digest(content) != job["digest"] else []
    if source_digest(content["code"], content["texts"]) != job["sources"]:
        changed += edited(content)
    changed += [name for name, digest in content["extensions"].items() if extension_digest(name) != digest]
    if changed:
        raise ValueError(f"{changed[0]} changed during this run; run snakemake again: finished jobs are kept.")


def record(job: dict, options: dict, versions: dict[str, str], seconds: float) -> dict:
    """Make the record of a finished job: how its outputs were made, and their SHA-256.

    Files in the folder of results are named relative to it, so that it can be moved.

    Parameters
    ----------
    job : dict, the value of ``JOB_VARIABLE``
    options : dict of the step's options
    versions : dict, of Python, ``ictd`` and the libraries
    seconds : float, time that the step took
    """

    from ictd.storage import file_digest

    def name_of(path: str | Path) -> str:
        relative = os.path.relpath(path, job["results"])
        return str(path) if relative.startswith("..") else relative

    outputs = {}
    for output in map(Path, job["outputs"]):
        for path in sorted(output.iterdir()) if output.is_dir() else [output]:
            outputs[name_of(path)] = file_digest(path)
    paths = [value for values in options.values() for value in listed(values) if isinstance(value, Path)]
    inputs = [name_of(path) for path in paths if path.is_file() and name_of(path) not in outputs]
    made = {"options": {name_of(job["options"]): job["digest"]}, "versions": versions}
    return made | {"seconds": seconds, "inputs": inputs, "outputs": outputs}


def parser(module: str, step: Callable) -> argparse.ArgumentParser:
    """Make the parser of a step's options; each option has the type of its parameter.

    A ``list[T]`` takes any number of values, a ``dict`` takes JSON, and a ``bool`` takes true or false.
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
            nargs="*" if listed else None,
            type=json.loads if item in (dict, bool) else item,
            metavar={dict: "json", bool: "true|false"}.get(item, item.__name__.lower()),
        )
    return step_parser


def installed_versions() -> dict[str, str]:
    """Versions of Python, of ``ictd``, and of the libraries that are installed."""
    versions = {"python": platform.python_version(), "ictd": __version__}
    for library in LIBRARIES:
        try:
            versions[library] = metadata.version(library)
        except metadata.PackageNotFoundError:
            continue
    return versions


if __name__ == "__main__":
    main()
