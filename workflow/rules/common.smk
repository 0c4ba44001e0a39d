# Configuration, paths and helpers that all rules share.
import json
import os
import shlex
import sys
from pathlib import Path

import yaml
from snakemake.exceptions import WorkflowError

# Relative, so that results can be carried to another place.
ROOT = Path(os.path.relpath(Path(workflow.current_basedir).parents[1]))
SOURCE = (ROOT / "src").resolve()
sys.path.insert(0, str(SOURCE))

from ictd.config import check_config
from ictd.grid import Cell, cells, seed_groups

# Rules call the Python that runs Snakemake, unless --sdm puts an environment in front of it.
os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
shell.prefix(f"set -euo pipefail; export PYTHONPATH={shlex.quote(str(SOURCE))}; ")

SCHEMA_FILE = ROOT / "workflow/schemas/config.schema.yaml"
try:
    check_config(config, yaml.safe_load(SCHEMA_FILE.read_text()))
except ValueError as error:
    raise WorkflowError(str(error)) from None

RESULTS = Path(config["results"])
LOGS, BENCHMARKS = RESULTS / "logs", RESULTS / "benchmarks"
EVALUATION, READINGS = config["evaluation"], config["readings"]
CELLS = cells(config)
GROUPS = seed_groups(config)
CELL = "{algo}-{env}-{states}-{depth}"


wildcard_constraints:
    algo=r"[a-z]+",
    env=r"\w+",
    states=r"\d+",
    depth=r"\d+",
    seeds=r"\d+-\d+",


def options(**values):
    """Command-line options of a step; one string, so that Snakemake sees any change of a value."""
    words = []
    for name, value in values.items():
        words.append(f"--{name.replace('_', '-')}")
        if isinstance(value, list):
            words += [str(item) for item in value]
        else:
            words.append(
                json.dumps(value, sort_keys=True)
                if isinstance(value, dict)
                else str(value)
            )
    return shlex.join(words)


def env_options(env):
    """Options of an environment, from the readings."""
    return READINGS["env_options"].get(env, {})


def settings(*names, section=config):
    """Options of a step that stand in the configuration under the same names."""
    return options(**{name: section[name] for name in names})
