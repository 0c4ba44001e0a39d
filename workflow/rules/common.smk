# Configuration, paths, and functions of the rules.
import os
import shutil
import sys
from pathlib import Path

from snakemake.exceptions import WorkflowError

HERE = workflow.current_basedir
LOCAL = isinstance(HERE, os.PathLike)
if LOCAL:
    # A relative path, so that results can be moved to another folder.
    ROOT = Path(os.path.relpath(Path(HERE).parents[1]))
else:
    # A module from a hosted repository, as written by snakedeploy: get the files of the repository at this version.
    repository = HERE.hosted_repo.repo
    ROOT = Path(".snakemake/ictd", repository.commit(HERE.ref).hexsha)
    if not ROOT.exists():
        ROOT.parent.mkdir(parents=True, exist_ok=True)
        repository.git.archive(HERE.ref, output=os.path.abspath(f"{ROOT}.tar"))
        shutil.unpack_archive(f"{ROOT}.tar", f"{ROOT}.part")
        os.remove(f"{ROOT}.tar")
        os.rename(f"{ROOT}.part", ROOT)
SOURCE = os.path.abspath(ROOT / "src")
sys.path.insert(0, SOURCE)
# Rules of studies import the studies' modules.
sys.path.append(os.path.abspath(ROOT))

try:
    import ictd.pipeline.rules
except (ImportError, SyntaxError) as error:
    others = os.environ.get("PYTHONPATH")
    sys.exit(
        f"{error}" if not others else f"The packages cannot be imported with PYTHONPATH={others}; unset it."
    )

from ictd.algorithms import ALGORITHMS
from ictd.pipeline.config import (
    differences,
    ending_in_a_sentence,
    load_config,
    load_yaml,
    study_names,
)
from ictd.pipeline.grid import cells, evaluation_envs, main_setting, seed_ranges, variants
from ictd.pipeline.rules import Steps, use_own_python

use_own_python()
# An error in the configuration ends Snakemake with a sentence, without a traceback.
with ending_in_a_sentence():
    # Snakemake has loaded these files, without a word on a key that is there twice.
    for file in workflow.configfiles:
        load_yaml(Path(file))
    config = load_config(config, ROOT)
    # The project's settings without --config and --configfile; pages say where those of a run differ.
    OWN_SETTINGS = load_config({"results": config["results"]}, ROOT)
STUDIES = study_names(ROOT)
# The settings on which results depend. Results on the paper do not depend on the settings of studies.
SETTINGS = {key: config[key] for key in config if key not in ("extensions", "seeds_per_job", "results")}
PAPER_SETTINGS = {key: SETTINGS[key] for key in SETTINGS if key not in STUDIES}
RESULTS = Path(config["results"])
# The folder with a conda environment for each kind of rule.
ENVS = (ROOT / "envs").resolve()
# The name of a cell's files with wildcards, and all cells of the grid.
CELL = "{algo}-{env}-{states}-{depth}"
CELLS = cells(config)
MAIN = main_setting(config)
# Cells without their algorithm, and what tasks are sampled for.
GRID_SETTINGS = sorted({cell.setting for cell in CELLS})
SIMULATIONS = [f"{env}-{states}" for env, states in sorted({(cell.env, cell.states) for cell in CELLS})]
try:
    CORES = workflow.cores
except WorkflowError:  # Remote executors have no number of cores.
    CORES = 1
# Keep the seed ranges of finished files, so that a job on another machine computes the same ranges.
FINISHED = [*RESULTS.glob("tasks/*/*.npz"), *RESULTS.glob("runs/*/*.npz")]
SEED_RANGES = seed_ranges(config["seeds_per_job"], config["seeds"], len(GRID_SETTINGS), CORES, FINISHED)
# A step is a Python module that a job runs, such as ictd.steps.pretrain.
STEPS = Steps(config, SOURCE, workflow)
with ending_in_a_sentence():
    # Snakemake compares the times of files.
    STEPS.check_times()


def step(*arguments, **given):
    """The input `options` of a rule that runs a step (ictd.pipeline.rules.Steps); errors end in a sentence."""
    with ending_in_a_sentence():
        options = STEPS(*arguments, **given)

    def options_file(wildcards):
        with ending_in_a_sentence():
            return options(wildcards)

    return options_file


def more_states_first(wildcards):
    """Priority: jobs with more states take longer, and start first so that no core waits for them at the end."""
    return int(wildcards.states)


def before_returns(wildcards):
    """Priority of jobs that run while the first job of returns compiles the kernels for the other jobs of returns."""
    return int(wildcards.states) + 1


def returns_of(wildcards):
    """The file of returns for a job of an algorithm that reads them, such as MC."""
    file = RESULTS / f"returns/{wildcards.env}-{wildcards.states}/{wildcards.seeds}.npz"
    return [str(file)] if ALGORITHMS[wildcards.algo].returns else []


def memory(wildcards, attempt):
    """Memory of a job in MB; the profile for a cluster repeats a job that needed more, with more memory."""
    return 2000 * attempt


# Snakemake puts these in place of names in angle brackets in the paths of rules; each rule gives its own `<job>`.
pathvars:
    results=str(RESULTS),
    logs=str(RESULTS / "logs"),
    benchmarks=str(RESULTS / "benchmarks"),


wildcard_constraints:
    algo=r"[a-z]\w*",
    env=r"\w+",
    evaluation_env=r"\w+",
    states=r"\d+",
    depth=r"\d+",
    seed=r"\d+",
    seeds=r"\d+-\d+",
