# The experiments of "Towards Provable Emergence of In-Context Reinforcement Learning"; see README.md.
import atexit
import os
import sys

from snakemake.utils import min_version

min_version("9.17")


configfile: f"{workflow.current_basedir}/config.yaml"


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
include: "workflow/rules/anatomy.smk"
include: "workflow/rules/beyond.smk"
include: "workflow/rules/attention.smk"


# Said after Snakemake's own last words, which tell little.
onerror:
    atexit.register(print, failed_jobs(LOGS, STARTED, RESULTS), file=sys.stderr)


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


# On a cluster, what takes a second or two is not worth a job.
localrules:
    all,
    metrics,
    claims,
    manifest,
    summaries,
    compute,
    notebook,
    page,
    figure_1,
    figure_2,
    figure_3,
    figure_4,
    figure_5,
    figure_6,
    figure_7,
    figure_8,
    figure_9,
    figure_10,
    figure_learning,
    theory_tables,
    theory_figures,
    ablation_tables,
    join_courses,
    join_phases,
    emergence_claims,
    emergence_figures,
    emergence_pages,
    emergence_notebook,
    emergence_page,
    anatomy,
    beyond_tables,
    agent_claims,
    agent_figures,
    agent_pages,
    agents_notebook,
    agents_page,
    beyond,
