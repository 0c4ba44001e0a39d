"""Many dry runs of the workflow: two at a time, in processes forked from this one, which has imported Snakemake.

Reads pairs of a folder and Snakemake's arguments from standard input as JSON, and writes pairs of what each returned
and said.  Modules of the project are imported by each run for itself.
"""

import contextlib
import io
import json
import multiprocessing
import os
import sys

# What Snakemake and the rules files import later.
import jsonschema  # noqa: F401
import pandas  # noqa: F401
import smart_open  # noqa: F401
import snakemake.cli
import snakemake.report.html_reporter


def plan(folder: str, arguments: list[str]) -> tuple[int, str]:
    """One dry run."""
    os.chdir(folder)
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        try:
            snakemake.cli.main(arguments)
        except SystemExit as ended:
            return ended.code, said.getvalue()


if __name__ == "__main__":
    with multiprocessing.get_context("fork").Pool(2, maxtasksperchild=1) as pool:
        found = pool.starmap(plan, json.load(sys.stdin), chunksize=1)
    # Not before the pool has ended: a process that it forks meanwhile would have a part of what is written, and write
    # that as well.
    json.dump(found, sys.stdout)
