# The experiments of "Towards Provable Emergence of In-Context Reinforcement Learning"; see README.md.
import atexit
import sys
from importlib import import_module

from snakemake.settings.types import DeploymentMethod
from snakemake.utils import min_version

min_version("9.17")


report: "report/workflow.rst"


include: "workflow/rules/common.smk"


# `make apptainer` builds it.
if DeploymentMethod.APPTAINER in SDM:

    container: str(ROOT / "ictd.sif")


include: "workflow/rules/simulate.smk"
include: "workflow/rules/pretrain.smk"
include: "workflow/rules/evaluate.smk"
include: "workflow/rules/theory.smk"
include: "workflow/rules/figures.smk"
include: "workflow/rules/report.smk"


# Where nothing else is asked for, Snakemake starts at most 100 jobs a second, of which it reminds itself a second after
# each look for jobs to run: looks multiply, and at the end it waits for the last.  One machine needs no such limit.
onstart:
    limit = getattr(workflow.scheduler, "job_rate_limiter", None)
    if LOCAL and limit and (limit.max_jobs, limit.timespan) == (100, 1):
        workflow.scheduler.job_rate_limiter = None


# Said after Snakemake's own last words, which tell little.
onerror:
    atexit.register(print, failed_jobs(RESULTS / "logs", STARTED, RESULTS), file=sys.stderr)


rule all:
    default_target: True
    input:
        RESULTS / "manifest.json",
        RESULTS / "about.rst",
        RESULTS / "metrics/compute.csv",
        # What was removed of the rest, too.
        lambda wildcards: [path for path in (RESULTS / file for file in LISTED) if not path.exists()],
    localrule: True


# What is wrong with a study stops only what asks for it.
TAKEN = {*SCHEMA["properties"], *(rule.name for rule in workflow.modifier.rules), "tests"}
TAKEN |= {path.stem for path in SOURCE.glob("ictd/*")}
for rule in workflow.modifier.rules:
    files = [Path(file) for file in (*rule.output, *rule.log, rule.benchmark) if file]
    TAKEN |= {file.relative_to(RESULTS).parts[0].partition(".")[0] for file in files}
FAILED = {}
for study in study_names(ROOT / "studies"):
    with left_out_if_it_fails(workflow, study, FAILED):
        check_name(study, TAKEN)
        config[study] = study_settings(ROOT / "studies" / study, config.get(study, {}), SCHEMA["$defs"])
        if (ROOT / "studies" / study / "needs.py").exists():
            of_study = import_module(f"studies.{study}.needs").needs
            NEEDS[study] = checked_needs(of_study, config, SCHEMA["properties"], CORES, LIMIT)

        include: f"studies/{study}/rules.smk"

    if study in FAILED and study not in TAKEN:

        rule:
            name:
                study
            input:
                refusing(FAILED[study]),
            localrule: True

        rule:
            name:
                f"{study}_files"
            input:
                refusing(FAILED[study]),
            output:
                f"{RESULTS}/{study}/{{file}}",
            localrule: True


for made in workflow.modifier.rules:
    if "step" in made.params.keys():
        made.set_params(named_files=named_files(made))
    elif made.shellcmd == rules.step.rule.shellcmd:
        made.set_input(refusing(f"Rule {made.name} is for making others; see `snakemake --list`."))
    # `localrule` is not inherited.
    if made.resources.get("runtime") == GATHERING:
        workflow.localrules(made.name)
for needs in NEEDS.values():
    ask_for(needs.memory, workflow._rules)
if workflow.is_main_process:
    show_progress(logger, RESULTS / "logs")
    logger.info(
        f"Needed, about: {'; '.join(f'{name} {NEEDS[name]}' for name in NEEDS if name not in FAILED)}."
    )
