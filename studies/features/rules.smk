# A study beyond the paper: what emerges with features in place of one-hot states. `snakemake features` runs it.
FEATURES_FOLDER = ROOT / "studies/features"
FEATURES_NOTEBOOK = notebook_params(
    "In-context TD: features", FEATURES_FOLDER / "notebook.ipynb", RESULTS / "features"
)


include: "predecessor.smk"


use rule notebook as features_notebook with:
    input:
        tables=FEATURES_PREDECESSOR_TABLES,
        figures=FEATURES_PREDECESSOR_FIGURES,
    output:
        executed="<results>/features/features.ipynb",
        page="<results>/features/features.html",
    pathvars:
        job="features_notebook",
    localrule: True
    params:
        **step("ictd.report.notebook", **FEATURES_NOTEBOOK),


rule features:
    input:
        "<results>/features/features.html",
