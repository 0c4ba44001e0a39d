# A study beyond the paper: control in context. `snakemake control` runs it.
import studies.control.grid as CONTROL_GRID

with ending_in_a_sentence():
    CONTROL_GRID.check(config)
CONTROL = config["control"]
CONTROL_VARIANTS = CONTROL_GRID.variants(config)
CONTROL_PLACES = CONTROL_GRID.places(config)
CONTROL_HOME = next(iter(CONTROL_PLACES))
CONTROL_MEASURED = expand("<results>/control/offline/{place}.npz", place=CONTROL_PLACES)
CONTROL_ONLINE = "<results>/control/online.npz"
CONTROL_FIGURES = "offline limits variants regret run".split()
CONTROL_PAGES = "claims.html claims_all.html measures.csv regrets.csv".split()
CONTROL_FOLDER = ROOT / "studies/control"
CONTROL_NOTEBOOK = notebook_params(CONTROL_FOLDER / "notebook.ipynb", RESULTS / "control")


use rule step as control_step with:
    wildcard_constraints:
        variant=r"\w+",
        place=r"\w+",
    conda:
        f"{ENVS}/studies.yaml"
    resources:
        mem_mb=memory,
        runtime=120,


use rule control_step as control_pretrain with:
    input:
        options=step(
            "studies.control.pretrain",
            CONTROL,
            variant=lambda wildcards: CONTROL_VARIANTS[wildcards.variant],
            snapshots=CONTROL_GRID.snapshots(config),
        ),
    output:
        "<results>/control/runs/{variant}.npz",
    pathvars:
        job="control_pretrain/{variant}",
    # Long runs first: a long run that starts last leaves the other cores idle.
    priority: lambda wildcards: CONTROL_VARIANTS[wildcards.variant]["tasks"]


use rule control_step as control_offline with:
    input:
        runs=lambda wildcards: expand(
            "<results>/control/runs/{variant}.npz", variant=CONTROL_GRID.tried(config, wildcards.place)
        ),
        options=step(
            "studies.control.offline",
            CONTROL,
            place=lambda wildcards: CONTROL_PLACES[wildcards.place],
            depth=CONTROL["main"]["depth"],
            variants=CONTROL_VARIANTS,
            first=next(iter(CONTROL_VARIANTS)),
        ),
    output:
        "<results>/control/offline/{place}.npz",
    pathvars:
        job="control_offline/{place}",


use rule control_step as control_online with:
    input:
        runs=expand("<results>/control/runs/{variant}.npz", variant=CONTROL["online"]["variants"]),
        options=step(
            "studies.control.online",
            CONTROL,
            place=CONTROL_PLACES[CONTROL_HOME],
            depth=CONTROL["main"]["depth"],
            variants=CONTROL_VARIANTS,
            online=CONTROL["online"],
        ),
    output:
        CONTROL_ONLINE,
    pathvars:
        job="control_online",


use rule control_step as control_claims with:
    input:
        offline=CONTROL_MEASURED,
        online=CONTROL_ONLINE,
        options=step(
            "studies.control.claims",
            statements=CONTROL_FOLDER / "claims.toml",
            variants=CONTROL_VARIANTS,
            places=CONTROL_PLACES,
        ),
    output:
        "<results>/control/claims.json",
    pathvars:
        job="control_claims",


use rule step as control_figures with:
    input:
        offline=CONTROL_MEASURED[:1],
        online=CONTROL_ONLINE,
        options=step("studies.control.figures", variants=CONTROL_VARIANTS),
    output:
        expand("<results>/control/figures/{name}.{ending}", name=CONTROL_FIGURES, ending=["png", "svg"]),
    pathvars:
        job="control_figures",
    localrule: True


use rule step as control_pages with:
    input:
        claims="<results>/control/claims.json",
        offline=CONTROL_MEASURED,
        online=CONTROL_ONLINE,
        options=step("studies.control.pages"),
    output:
        expand("<results>/control/tables/{name}", name=CONTROL_PAGES),
    pathvars:
        job="control_pages",
    localrule: True


use rule notebook as control_notebook with:
    input:
        shown=[rules.control_pages.output, rules.control_figures.output],
        claims="<results>/control/claims.json",
        offline=CONTROL_MEASURED[:1],
        options=step("ictd.report.notebook", **CONTROL_NOTEBOOK),
    output:
        executed="<results>/control/control.ipynb",
        page="<results>/control/control.html",
    pathvars:
        job="control_notebook",
    localrule: True


rule control:
    input:
        "<results>/control/control.html",
