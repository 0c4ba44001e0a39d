# A study beyond the paper: what emerges with features in place of one-hot states. `snakemake features` runs it.
import studies.features.grid as FEATURES_GRID

with ending_in_a_sentence():
    FEATURES_SETTINGS = FEATURES_GRID.settings(config["features"])
FEATURES = config["features"]
FEATURES_COMPARED = FEATURES_GRID.compared(FEATURES)
FEATURES_FIGURES = "coefficients settings mean_part errors reversibility".split()
FEATURES_FOLDER = ROOT / "studies/features"
FEATURES_PARTS = {
    "coefficients": list(FEATURES_SETTINGS),
    "deflation": list(FEATURES_SETTINGS),
    "best": FEATURES_GRID.fitted(FEATURES),
    "errors": FEATURES_COMPARED,
    "mean_part": FEATURES["mean_part"]["settings"],
    "reversibility": FEATURES["reversibility"]["chains"],
}
FEATURES_TABLES = expand("<results>/features/{table}.csv", table=FEATURES_PARTS)
FEATURES_NOTEBOOK = notebook_params(FEATURES_FOLDER / "notebook.ipynb", RESULTS / "features")


use rule step as features_step with:
    wildcard_constraints:
        setting=r"[a-z][a-z0-9_.]*",
    conda:
        f"{ENVS}/studies.yaml"
    resources:
        mem_mb=memory,


use rule features_step as features_pretrain with:
    input:
        options=step(
            "studies.features.pretrain", setting=lambda wildcards: FEATURES_SETTINGS[wildcards.setting]
        ),
    output:
        "<results>/features/weights/{setting}.npz",
    pathvars:
        job="features_pretrain/{setting}",
    # Long runs first: a long run that starts last leaves the other cores idle.
    priority: lambda wildcards: FEATURES_SETTINGS[wildcards.setting]["updates"]


use rule features_step as features_coefficients with:
    input:
        weights="<results>/features/weights/{setting}.npz",
        options=step(
            "studies.features.coefficients",
            name=lambda wildcards: wildcards.setting,
            setting=lambda wildcards: FEATURES_SETTINGS[wildcards.setting],
            tasks=FEATURES["tuning_tasks"],
        ),
    output:
        coefficients="<results>/features/coefficients/{setting}.csv",
        deflation="<results>/features/deflation/{setting}.csv",
    pathvars:
        job="features_coefficients/{setting}",


use rule features_step as features_best with:
    input:
        options=step(
            "studies.features.best",
            name=lambda wildcards: wildcards.setting,
            setting=lambda wildcards: FEATURES_SETTINGS[wildcards.setting],
            tasks=FEATURES["tuning_tasks"],
        ),
    output:
        "<results>/features/best/{setting}.csv",
    pathvars:
        job="features_best/{setting}",


use rule features_step as features_compare with:
    input:
        weights="<results>/features/weights/{setting}.npz",
        best="<results>/features/best/{setting}.csv",
        options=step(
            "studies.features.compare",
            name=lambda wildcards: wildcards.setting,
            setting=lambda wildcards: FEATURES_SETTINGS[wildcards.setting],
            tasks=FEATURES["tuning_tasks"],
            test_tasks=FEATURES["test_tasks"],
        ),
    output:
        "<results>/features/errors/{setting}.csv",
    pathvars:
        job="features_compare/{setting}",


use rule features_step as features_mean_part with:
    input:
        weights="<results>/features/weights/{setting}.npz",
        options=step(
            "studies.features.mean_part",
            FEATURES["mean_part"],
            name=lambda wildcards: wildcards.setting,
            setting=lambda wildcards: FEATURES_SETTINGS[wildcards.setting],
        ),
    output:
        "<results>/features/mean_part/{setting}.csv",
    pathvars:
        job="features_mean_part/{setting}",


use rule features_step as features_reversibility with:
    input:
        options=step("studies.features.reversibility", FEATURES["reversibility"], setting=FEATURES["main"]),
    output:
        "<results>/features/reversibility/{chain}.csv",
    pathvars:
        job="features_reversibility/{chain}",


use rule step as features_join_tables with:
    input:
        parts=lambda wildcards: expand(
            "<results>/features/{table}/{setting}.csv",
            table=wildcards.table,
            setting=FEATURES_PARTS[wildcards.table],
        ),
        options=step("ictd.steps.concatenate"),
    output:
        tables="<results>/features/{table,coefficients|deflation|best|errors|mean_part|reversibility}.csv",
    pathvars:
        job="features_join_tables/{table}",
    localrule: True


use rule step as features_claims with:
    input:
        tables=FEATURES_TABLES,
        options=step(
            "studies.features.claims", statements=FEATURES_FOLDER / "claims.toml", settings=FEATURES_SETTINGS
        ),
    output:
        claims="<results>/features/claims.json",
        pages=expand("<results>/features/tables/{name}.html", name=["claims", "claims_all"]),
    pathvars:
        job="features_claims",
    localrule: True


use rule step as features_figures with:
    input:
        tables=FEATURES_TABLES,
        options=step("studies.features.figures", settings=FEATURES_SETTINGS),
    output:
        expand("<results>/features/figures/{name}.{ending}", name=FEATURES_FIGURES, ending=["png", "svg"]),
    pathvars:
        job="features_figures",
    localrule: True


use rule notebook as features_notebook with:
    input:
        shown=[rules.features_claims.output, rules.features_figures.output],
        tables=FEATURES_TABLES,
        options=step("ictd.report.notebook", **FEATURES_NOTEBOOK),
    output:
        executed="<results>/features/features.ipynb",
        page="<results>/features/features.html",
    pathvars:
        job="features_notebook",
    localrule: True


rule features:
    input:
        "<results>/features/features.html",
