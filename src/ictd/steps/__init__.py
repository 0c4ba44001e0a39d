"""The work of each rule, as a command: ``python -m ictd.steps.NAME --option value ...``.

A step's ``main`` reads files, calls the library and writes files.  Its options are its parameters, and every one must
be given, so that a command line says all that its result depends on.
"""

import argparse
import inspect
import json
import sys


def run(main) -> None:
    """Call ``main`` with options from the command line, each of the type that its annotation names.

    A ``list[T]`` takes one or more values and a ``dict`` takes JSON.  A ValueError ends the process with its sentence.
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
    try:
        main(**vars(parser.parse_args()))
    except ValueError as error:
        sys.exit(f"error: {error}")
