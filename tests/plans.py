"""Many dry runs of the workflow, two at a time, in forks of this process, which has imported Snakemake.

Standard input has pairs of a folder and Snakemake's arguments as JSON; standard output gets pairs of exit code and
messages.  Each run imports the modules of the project itself.
"""

import contextlib
import io
import json
import multiprocessing
import os
import sys

# Modules that Snakemake and the rules files would import later.
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
    # Write only after the pool has ended: a forked process would inherit buffered output and write it again.
    json.dump(found, sys.stdout)
