# Claims, tables for readers, and the report.
MANIFESTED = ["<results>/claims.json", *expand("<results>/metrics/{name}.csv", name=TABLES)]
MANIFESTED += expand("<results>/theory/{table}.csv", table=THEORY_TABLES)
MANIFESTED += expand("<results>/{kind}/{cell}.npz", kind=["weights", "evaluation"], cell=CELLS)
MANIFESTED += expand("<results>/baselines/{setting}.{ending}", setting=BASELINES, ending=["json", "npz"])
STATEMENTS = ROOT / "report/claims.toml"
CLAIMED = "msve baselines weights mean_weights agreement learning truncation".split()
READ = "msve baselines weights mean_weights agreement audit".split()
PAGES = "summary claims claims_ours claims_all msve mean_weights pattern thresholds agreement audit settings readings".split()
PAGE_FILES = expand("<results>/tables/{name}.html", name=[*PAGES, "snapshots", "theory", "compute"])
DRAWN = expand("<results>/figures/{name}.{ending}", name=[*SHOWN, *THEORY_SHOWN], ending=["png", "svg"])
DOCUMENTS = [str(ROOT / f"docs/{name}.md") for name in ("theory", "readings", "reliability")]
PARAMETERS = {
    "results": str(RESULTS),
    "documents": " ".join(DOCUMENTS),
    "figures": " ".join(SHOWN),
    "theory": " ".join(THEORY_SHOWN),
}
# Jobs whose time counts as computing.
TIMED = expand("{rule}/{setting}/{seeds}", rule=["tasks", "unrolls"], setting=CHECKED, seeds=GROUPS)
TIMED += expand("pretrain/{cell}/{seeds}", cell=CELLS, seeds=GROUPS)
TIMED += expand("baselines/{setting}", setting=BASELINES)
TIMED += expand("{rule}/{env}", rule=["theory_values", "theory_precision"], env=config["envs"])
TIMED += expand("{rule}/{setting}", rule=["theory_descent", "theory_family"], setting=CHECKED)
TIMED += expand("{rule}/{cell}", rule=["evaluate", "theory_pretrained"], cell=CELLS)
TIMED += ["audit", "theory_agreement", "theory_tables", "metrics", "theory_claims", "claims"]


use rule gather as claims with:
    input:
        tables=expand("<results>/metrics/{name}.csv", name=CLAIMED),
        theory="<results>/theory/claims.json",
    output:
        "<results>/claims.json",
    pathvars:
        job="claims",
    params:
        **step("report.paper_claims", statements=STATEMENTS, cells=GRID, pretraining_tasks=config["tasks"]),


use rule gather as manifest with:
    input:
        files=MANIFESTED,
        pages=[*DRAWN, *PAGE_FILES, "<results>/report.ipynb", "<results>/report.html"],
    output:
        "<results>/manifest.json",
    pathvars:
        job="manifest",
    conda:
        f"{ENVS}/pretrain.yaml"
    params:
        **step("manifest", settings=SETTINGS, folder=RESULTS),


use rule gather as summaries with:
    input:
        claims="<results>/claims.json",
        theory="<results>/theory/claims.json",
        tables=expand("<results>/metrics/{name}.csv", name=READ),
    output:
        [html(name) for name in PAGES],
    pathvars:
        job="summaries",
    params:
        **step("report.summaries", settings=SETTINGS, schema=SCHEMA_FILE),


use rule gather as snapshots with:
    input:
        weights=expand("<results>/weights/{cell}.npz", cell=CELLS),
    output:
        "<results>/tables/snapshots.html",
    pathvars:
        job="snapshots",
    params:
        **step("report.snapshots"),


use rule gather as compute with:
    input:
        benchmarks=expand("<benchmarks>/{job}.tsv", job=TIMED),
    output:
        table="<results>/metrics/compute.csv",
        page=html("compute"),
    pathvars:
        job="compute",
    params:
        **step("report.compute", folder=RESULTS / "benchmarks"),


use rule gather as notebook with:
    input:
        pages=PAGE_FILES,
        figures=[*FIGURES, *THEORY_FIGURES],
        claims="<results>/claims.json",
        documents=DOCUMENTS,
    output:
        "<results>/report.ipynb",
    pathvars:
        job="notebook",
    conda:
        f"{ENVS}/report.yaml"
    params:
        **step(
            "report.notebook",
            notebook=ROOT / "report/report.ipynb",
            captions=ROOT / "report/captions",
            parameters=PARAMETERS,
        ),


use rule gather as page with:
    input:
        notebook="<results>/report.ipynb",
    output:
        report(
            "<results>/report.html",
            caption=f"{CAPTIONS}/report.rst",
            category="Report",
            labels={"report": "all results"},
        ),
    pathvars:
        job="page",
    conda:
        f"{ENVS}/report.yaml"
    params:
        **step("page", title="In-context TD: claims and results"),
