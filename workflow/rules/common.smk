# Configuration, paths, and the rule that all others start from.
import json
import os
import shlex
import shutil
import sys
import tempfile
import time
from collections import Counter
from functools import partial
from importlib.util import find_spec
from pathlib import Path

from snakemake.logging import logger
from snakemake.sourcecache import HostingProviderFile

HERE = workflow.current_basedir
if isinstance(HERE, HostingProviderFile):
    # A module that is named by its address: the repository's files, as they are at its version.
    repository = HERE.hosted_repo.repo
    ROOT = Path(".snakemake/ictd") / repository.commit(HERE.ref).hexsha
    if not ROOT.exists():
        ROOT.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=ROOT.parent) as folder:
            files, archive = Path(folder) / "files", Path(folder).resolve() / "files.tar"
            repository.git.archive(HERE.ref, output=archive)
            shutil.unpack_archive(archive, files)
            files.rename(ROOT)
else:
    # Relative, so that results can be carried to another place.
    ROOT = Path(os.path.relpath(Path(HERE).parents[1]))
SOURCE = (ROOT / "src").resolve()
sys.path.insert(0, str(SOURCE))
# Rules of studies import modules of theirs.
sys.path.append(str(ROOT.resolve()))
if missing := [name for name in ("jsonschema", "numpy", "yaml") if find_spec(name) is None]:
    sys.exit(
        f"This Snakemake runs without {' and '.join(missing)}; run that of the project's environment, which "
        "`make environment` makes: .venv/bin/snakemake."
    )

from ictd.pipeline.config import check_folder, checked_config, ending_in_a_sentence, with_defaults
from ictd.pipeline.failures import failed_jobs
from ictd.pipeline.grid import algos_together, cells, main_setting, seed_ranges
from ictd.pipeline.labels import SETTINGS as SETTINGS_OF_JOBS, TAKEN as TAKEN_BY_JOBS
from ictd.pipeline.needs import ADDRESSABLE, OWN_MEMORY, ask_for, checked_needs, paper_needs
from ictd.pipeline.progress import show_progress
from ictd.pipeline.rules import ENVIRONMENT, env_options, named_files, step_params
from ictd.pipeline.studies import check_name, left_out_if_it_fails, refusing, study_names, study_settings
from ictd.pipeline.yaml_files import load_yaml

SCHEMA_FILE = ROOT / "workflow/schemas/config.schema.yaml"
CORES = workflow.resource_settings.cores or workflow.resource_settings.nodes
# Jobs run on this machine unless their number is limited, in place of cores; of those that run elsewhere, each reads
# these rules anew.
LOCAL = workflow.is_main_process and workflow.resource_settings.nodes is None
LIMIT = OWN_MEMORY if LOCAL else ADDRESSABLE
with ending_in_a_sentence():
    SCHEMA = load_yaml(SCHEMA_FILE)
    # Snakemake takes the last of repeated keys, and ends in tracebacks where a value holds itself.
    for path in (ROOT / "config.yaml", *workflow.overwrite_configfiles):
        load_yaml(path)

    configfile: f"{(ROOT / 'config.yaml').resolve()}"

    STUDIES = [name for name in study_names(ROOT / "studies") if name not in SCHEMA["properties"]]
    # What a module's configuration does not give has the paper's value.
    config = with_defaults(config, load_yaml(ROOT / "config.yaml"))
    own = checked_config({key: config[key] for key in config if key not in STUDIES}, SCHEMA)
    check_folder(Path(own["results"]), ROOT)
    NEEDS = {"the paper": checked_needs(paper_needs, own, SCHEMA["properties"], CORES, LIMIT)}


config = {**config, **own}
# What the paper's results depend on; how the work is cut into jobs, and studies, are left out.
SETTINGS = {key: own[key] for key in own if key not in ("seeds_per_job", "results")}

STARTED = time.time()
RESULTS = Path(config["results"])
ENVS = (ROOT / "envs").resolve()
# The Python that runs Snakemake, unless --sdm puts an environment in front of it.
SDM = workflow.deployment_settings.deployment_method
PYTHON = "python" if SDM else sys.executable
# Minutes, by which rules that run where Snakemake does are known.
GATHERING = 10
SETTING = "{env}-{states}-{depth}"
CELL = f"{{algo}}-{SETTING}"
CELLS = cells(config)
GRID = sorted(map(str, CELLS))
GROUPS = seed_ranges(config, config["seeds"], len(CELLS), CORES, RESULTS.glob("runs/*/*.npz"))
GRID_SETTINGS = sorted({cell.setting for cell in CELLS})
# Whether a job pretrains by all algorithms, and one looks at all by the theory.
TOGETHER = LOCAL and algos_together(config, CORES)
of_algos = partial(expand, algo=sorted(config["algos"]), allow_missing=True)
# What such a job, and one of the theory at pretrained weights, is of, and the files of it.
OF_JOB, of_job = (SETTING, of_algos) if TOGETHER else (CELL, lambda file: [file])
SIMULATIONS = sorted({(cell.env, cell.states) for cell in CELLS})
UNSEEN_OPTIONS = env_options(config, config["readings"]["evaluation_env"])
step = partial(step_params, config, STUDIES)
# What jobs compare the labels of files with.
settings_of_jobs = lambda: f"{SETTINGS_OF_JOBS}={json.dumps({**config, 'studies': STUDIES})}"
own_options = lambda wildcards: env_options(config, wildcards.env)
# What everything waits for comes first, large tasks before small ones: a long job that comes last keeps cores idle.
awaited = lambda wildcards: int(wildcards.states)
# What Snakemake's report shows, in the order of its menus, which sort by the first label.
TITLES = load_yaml(ROOT / "report/titles.yaml")
labels = lambda kind, name: {"no": f"{[*TITLES[kind]].index(name) + 1:02}", kind: TITLES[kind][name]}
shown = lambda kind, name, ending, category: report(
    f"<results>/{kind}s/{name}.{ending}",
    # Beside the rules, wherever these are read from.
    caption=f"../../report/captions/{name}.rst",
    category=category,
    labels=labels(kind, name),
)
figure = lambda name: [shown("figure", name, "png", "2. Figures"), f"<results>/figures/{name}.svg"]
html = lambda name: shown("table", name, "html", "3. Tables")


pathvars:
    results=str(RESULTS),
    logs=str(RESULTS / "logs"),
    benchmarks=str(RESULTS / "benchmarks"),


wildcard_constraints:
    algo=r"[a-z]+",
    env=r"\w+",
    states=r"\d+",
    depth=r"\d+",
    seed=r"\d+",
    seeds=r"\d+-\d+",


# What every job shares. A rule that carries out a step is made from this one, with its own input, output and job.
rule step:
    log:
        "<logs>/<job>.log",
    benchmark:
        "<benchmarks>/<job>.tsv"
    pathvars:
        job="step",
    conda:
        f"{ENVS}/figures.yaml"
    threads: 1
    resources:
        mem_mb=2000,
        runtime=30,
    params:
        # Functions of input, as what these return is no reason to run a job again.
        python=lambda wildcards, input: shlex.join([f"PYTHONPATH={SOURCE}", settings_of_jobs(), PYTHON]),
    shell:
        f"{ENVIRONMENT} {TAKEN_BY_JOBS}={{params.taken:q}} {{params.python}} -m ictd.steps"
        " {params.step} {params.values} {params.files} > {log:q} 2>&1"


# Tables, figures and pages of what others computed, in a second or two; they are made where Snakemake runs.
use rule step as gather with:
    resources:
        mem_mb=1000,
        runtime=GATHERING,
