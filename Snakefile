# The experiments of "Towards Provable Emergence of In-Context Reinforcement Learning"; see README.md.
import atexit
import os
import sys
from importlib import import_module

from snakemake.utils import min_version

min_version("9.17")


report: "report/workflow.rst"


# `make apptainer` builds it; only --sdm apptainer uses it.
container: os.path.relpath(f"{workflow.current_basedir}/ictd.sif")


include: "workflow/rules/common.smk"
include: "workflow/rules/simulate.smk"
include: "workflow/rules/pretrain.smk"
include: "workflow/rules/evaluate.smk"
include: "workflow/rules/theory.smk"
include: "workflow/rules/figures.smk"
include: "workflow/rules/report.smk"


# Said after Snakemake's own last words, which tell little.
onerror:
    atexit.register(print, failed_jobs(RESULTS / "logs", STARTED, RESULTS), file=sys.stderr)


rule all:
    default_target: True
    input:
        RESULTS / "report.html",
        RESULTS / "claims.json",
        RESULTS / "manifest.json",
        RESULTS / "metrics/compute.csv",
        expand(RESULTS / "metrics/{name}.csv", name=TABLES),
        expand(RESULTS / "theory/{name}.csv", name=THEORY_TABLES),
        FIGURES,
        THEORY_FIGURES,
    localrule: True


# What is wrong with a study stops only what asks for it.
TAKEN = {*SCHEMA["properties"], *(rule.name for rule in workflow.rules), "tests"}
TAKEN |= {path.stem for path in SOURCE.glob("ictd/*")}
for rule in workflow.rules:
    files = [Path(file) for file in (*rule.output, *rule.log, rule.benchmark) if file]
    TAKEN |= {file.relative_to(RESULTS).parts[0].partition(".")[0] for file in files}
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


# `localrule` is not inherited.
workflow.localrules(*(rule.name for rule in workflow.rules if rule.resources.get("runtime") == GATHERING))
for needs in NEEDS.values():
    ask_for(needs.memory, workflow._rules)
if workflow.is_main_process:
    logger.info(
        f"Needed, about: {'; '.join(f'{name} {NEEDS[name]}' for name in NEEDS if name not in FAILED)}."
    )
