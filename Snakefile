# The experiments of "Towards Provable Emergence of In-Context Reinforcement Learning"; see README.md.
from snakemake.utils import min_version

min_version("9.17")


# The first page of Snakemake's report.
report: "report/workflow.rst"


# The checked configuration, names and functions for all rules, and `<results>` in their paths.
include: "workflow/rules/common.smk"


# The image for `--sdm apptainer`; `make apptainer` builds it.  Snakemake refuses images whose path has a space.
if " " not in str(ROOT):

    container: str(ROOT / "ictd.sif")


# The rule that all others use, and then the rules of the paper's part in the order in which data flow.
include: "workflow/rules/step.smk"
include: "workflow/rules/simulate.smk"
include: "workflow/rules/pretrain.smk"
include: "workflow/rules/evaluate.smk"
include: "workflow/rules/theory.smk"
include: "workflow/rules/part.smk"
include: "workflow/rules/report.smk"


# The first rule of this file, not counting included files, is the default target.
rule all:
    input:
        # The manifest needs all other files, but Snakemake makes one that was removed again only if it is named here.
        expand("<results>/{file}", file=["manifest.json", *MANIFEST_FILES]),
    localrule: True


# Beyond the paper; the target of a study is its name.
for study in STUDIES:

    include: f"studies/{study}/rules.smk"
