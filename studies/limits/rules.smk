# A study beyond the paper: the limits of pretraining. `snakemake limits` runs it.
import studies.limits.grid as LIMITS_GRID

LIMITS = config["limits"]
LIMITS_FORMS = ["baselines", *LIMITS_GRID.forms(LIMITS["forms"]["added"])]
LIMITS_PARTS = [
    *expand(
        "<results>/limits/descend/{env}-{states}-{depth}/{name}.csv",
        env=config["envs"],
        states=LIMITS["descend"]["states"],
        depth=LIMITS["descend"]["depths"],
        name=["rows", "spectrum"],
    ),
    *expand("<results>/limits/unique/{depth}.csv", depth=LIMITS["unique"]["depths"]),
    *expand("<results>/limits/course/{seed}.csv", seed=range(LIMITS["course"]["seeds"])),
    *expand("<results>/limits/fits/{kind}.csv", kind=LIMITS_GRID.KINDS),
    *expand("<results>/limits/forms/{form}.csv", form=LIMITS_FORMS),
]
LIMITS_TABLES = expand(
    "<results>/limits/{name}.csv", name=["descents", "spectra", "unique", "course", "forms", "fits"]
)
LIMITS_FIGURES = "minimisers course forms".split()
LIMITS_FOLDER = ROOT / "studies/limits"
LIMITS_NOTEBOOK = notebook_params(LIMITS_FOLDER / "notebook.ipynb", RESULTS / "limits")


use rule step as limits_step with:
    conda:
        f"{ENVS}/studies.yaml"


use rule limits_step as limits_descend with:
    input:
        weights=expand("<results>/weights/{cell}.npz", cell=CELLS),
        options=step("studies.limits.descend", LIMITS["descend"]),
    output:
        expand(
            "<results>/limits/descend/{{env}}-{{states}}-{{depth}}/{file}",
            file=["rows.csv", "spectrum.csv", "ends.npz"],
        ),
    pathvars:
        job="limits_descend/{env}-{states}-{depth}",
    resources:
        mem_mb=memory,
        runtime=120,


use rule limits_step as limits_unique with:
    input:
        options=step("studies.limits.unique", LIMITS["unique"], env=MAIN["env"]),
    output:
        table="<results>/limits/unique/{depth}.csv",
        ends="<results>/limits/unique/{depth}.npz",
    pathvars:
        job="limits_unique/{depth}",
    priority: 1
    resources:
        mem_mb=memory,
        runtime=120,


use rule limits_step as limits_course with:
    input:
        options=step("studies.limits.course", LIMITS["course"], MAIN),
    output:
        "<results>/limits/course/{seed}.csv",
    pathvars:
        job="limits_course/{seed}",
    resources:
        mem_mb=memory,
        runtime=120,


use rule limits_step as limits_forms with:
    input:
        options=step("studies.limits.forms", LIMITS["forms"], MAIN),
    output:
        "<results>/limits/forms/{form}.csv",
    pathvars:
        job="limits_forms/{form}",
    resources:
        mem_mb=memory,
        runtime=120,


use rule limits_step as limits_shrinkage with:
    input:
        baselines="<results>/limits/forms/baselines.csv",
        options=step(
            "studies.limits.shrinkage",
            LIMITS["shrinkage"],
            MAIN,
            **{name: LIMITS["forms"][name] for name in ("lengths", "added")},
        ),
    output:
        "<results>/limits/fits/{kind}.csv",
    pathvars:
        job="limits_shrinkage/{kind}",
    resources:
        mem_mb=memory,
        runtime=120,


use rule step as limits_claims with:
    input:
        parts=LIMITS_PARTS,
        options=step("studies.limits.claims", statements=LIMITS_FOLDER / "claims.toml", tasks=config["tasks"]),
    output:
        LIMITS_TABLES,
        "<results>/limits/claims.json",
        expand("<results>/limits/tables/{name}.html", name=["claims", "claims_all"]),
    pathvars:
        job="limits_claims",
    localrule: True


use rule step as limits_figures with:
    input:
        tables=LIMITS_TABLES,
        options=step("studies.limits.figures", MAIN),
    output:
        expand("<results>/limits/figures/{name}.{ending}", name=LIMITS_FIGURES, ending=["png", "svg"]),
    pathvars:
        job="limits_figures",
    localrule: True


use rule notebook as limits_notebook with:
    input:
        shown=[rules.limits_claims.output, rules.limits_figures.output],
        tables=LIMITS_TABLES,
        options=step("ictd.report.notebook", **LIMITS_NOTEBOOK),
    output:
        executed="<results>/limits/limits.ipynb",
        page="<results>/limits/limits.html",
    pathvars:
        job="limits_notebook",
    localrule: True


rule limits:
    input:
        "<results>/limits/limits.html",
