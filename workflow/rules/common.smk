# Configuration, paths and helpers that all rules share.
import json
import os
import shlex
import sys
import time
from pathlib import Path

import yaml

# Relative, so that results can be carried to another place.
ROOT = Path(os.path.relpath(Path(workflow.current_basedir).parents[1]))
SOURCE = (ROOT / "src").resolve()
sys.path.insert(0, str(SOURCE))

from ictd.config import check_config, numbers_from_text
from ictd.failures import check_writable, failed_jobs
from ictd.grid import cells, seed_groups
from ictd.provenance import code_digests, digest, text_digest

# Rules call the Python that runs Snakemake, unless --sdm puts an environment in front of it.
os.environ.update(PATH=os.pathsep.join([str(Path(sys.executable).parent), *os.get_exec_path()]))
# Modules in .venv are compiled when they are first imported; jobs that may not write bytecode would all do it anew.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

SCHEMA_FILE = ROOT / "workflow/schemas/config.schema.yaml"
config = numbers_from_text(config)
try:
    check_config(config, yaml.safe_load(SCHEMA_FILE.read_text()))
    check_writable(Path(config["results"]))
except ValueError as error:
    sys.exit(f"{error}")

STARTED = time.time()
RESULTS = Path(config["results"])
# numba's thread limit is that of the rule, and its compiled kernels go where a job can surely write.
variables = {"PYTHONPATH": SOURCE, "NUMBA_CACHE_DIR": (RESULTS / "kernels").resolve()}
# glibc would return arrays of megabytes to the system at once, and numpy spend a third of its time on fetching them.
variables |= {"MALLOC_TRIM_THRESHOLD_": 2**28, "MALLOC_MMAP_THRESHOLD_": 2**25}
exports = " ".join(f"{name}={shlex.quote(str(path))}" for name, path in variables.items())
exports = exports.replace("{", "{{").replace("}", "}}")
shell.prefix(f"set -euo pipefail; export {exports} NUMBA_NUM_THREADS=${{{{OMP_NUM_THREADS:-1}}}}; ")
LOGS, BENCHMARKS = RESULTS / "logs", RESULTS / "benchmarks"
CAPTIONS = "../../report/captions"
CELL = "{algo}-{env}-{states}-{depth}"
CELLS = cells(config)
GROUPS = seed_groups(
    config["seeds"], config["seeds_per_job"], [file.stem for file in RESULTS.glob("runs/*/*.npz")]
)
SIMULATIONS = sorted({(cell.env, cell.states) for cell in CELLS})
YARDSTICKS = sorted({(cell.states, cell.depth) for cell in CELLS})


wildcard_constraints:
    algo=r"[a-z]+",
    env=r"\w+",
    states=r"\d+",
    depth=r"\d+",
    seed=r"\d+",
    reading=r"\w+",
    seeds=r"\d+-\d+",


def options(*keys, **values):
    """Options of a step: those that the configuration has under ``keys`` (with dots where nested), and ``values``.

    One string, so that Snakemake sees any change of a value.
    """
    words = []
    for key in keys:
        value = config
        for part in key.split("."):
            value = value[part]
        values[part] = value
    for name, value in values.items():
        words.append(f"--{name.replace('_', '-')}")
        if isinstance(value, list):
            words += map(str, value)
        else:
            words.append(json.dumps(value, sort_keys=True) if isinstance(value, dict) else str(value))
    return shlex.join(words)


def code(step):
    """Digests of what a step imports, for its rule's params: an edit reruns the rules that it touches."""
    return code_digests(f"ictd.steps.{step}", SOURCE)


def kernels(module):
    """Marker of a module's compiled kernels, named after its code: it changes only with what its users import anyway."""
    return RESULTS / f"kernels/{module}-{digest(*code_digests(f'ictd.{module}', SOURCE))}"


def env_options(env):
    """Options of an environment, from the readings."""
    return config["readings"]["env_options"].get(env, {})


def of_cells(folder, vary):
    """Files of the cells that a figure shows."""
    return [RESULTS / folder / f"{cell}.npz" for cell in cells(config, vary)]


def baselines_of(vary):
    """Baselines' files for the cells that a figure shows."""
    settings = dict.fromkeys((cell.states, cell.depth) for cell in cells(config, vary))
    return [RESULTS / f"baselines/{states}-{depth}.npz" for states, depth in settings]


def of_theory(*tables):
    """The theory's tables of these names."""
    return [RESULTS / f"theory/{table}.csv" for table in tables]


def png(name, label):
    """Figure that Snakemake's report shows, with the caption of its name."""
    path = RESULTS / f"figures/{name}.png"
    return report(path, caption=f"{CAPTIONS}/{name}.rst", category="Figures", labels={"figure": label})


def svg(name):
    """The same figure as vector graphics."""
    return RESULTS / f"figures/{name}.svg"


def page(name):
    """HTML table that Snakemake's report shows, with the caption of its name."""
    path = RESULTS / f"tables/{name}.html"
    label = name.replace("_", " ")
    return report(path, caption=f"{CAPTIONS}/{name}.rst", category="Tables", labels={"table": label})
