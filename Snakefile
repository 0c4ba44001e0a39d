# The experiments of "Towards Provable Emergence of In-Context Reinforcement Learning"; see README.md.
from snakemake.utils import min_version

min_version("9.0")


configfile: f"{workflow.basedir}/config.yaml"


report: "report/workflow.rst"


include: "workflow/rules/common.smk"
include: "workflow/rules/simulate.smk"
include: "workflow/rules/pretrain.smk"
include: "workflow/rules/evaluate.smk"
include: "workflow/rules/figures.smk"
include: "workflow/rules/report.smk"


rule all:
    default_target: True
    input:
        RESULTS / "report.html",
        RESULTS / "claims.json",
        RESULTS / "metrics/compute.csv",
        expand(RESULTS / "metrics/{name}.csv", name=TABLES),
        FIGURES,
