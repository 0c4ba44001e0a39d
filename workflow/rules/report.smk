# Claims, tables for readers, and the report.
# What the manifest lists, by place in the folder of results.
MANIFESTED = ["claims.json", "audit.json", "theory/claims.json", *expand("metrics/{name}.csv", name=TABLES)]
MANIFESTED += expand("theory/{table}.csv", table=THEORY_TABLES)
MANIFESTED += expand("{kind}/{cell}.npz", kind=["weights", "evaluation"], cell=GRID)
MANIFESTED += expand("baselines/{setting}.{ending}", setting=BASELINES, ending=["json", "npz"])
STATEMENTS = ROOT / "report/claims.toml"
CLAIMED = "msve baselines weights mean_weights agreement learning truncation".split()
READ = "msve baselines weights mean_weights agreement audit".split()
PAGES = "summary claims claims_ours claims_all msve mean_weights pattern thresholds agreement audit settings readings".split()
PAGE_FILES = expand("tables/{name}.html", name=[*PAGES, "slider", "theory", "compute"])
DRAWN = expand("figures/{name}.{ending}", name=[*SHOWN, *THEORY_SHOWN, "workflow"], ending=["png", "svg"])
LISTED = [*MANIFESTED, *DRAWN, *PAGE_FILES, "report.ipynb", "report.html"]
DOCUMENTS = [str(ROOT / f"docs/{name}.md") for name in ("theory", "readings", "reliability")]
PARAMETERS = {"results": str(RESULTS), "documents": DOCUMENTS}
PARAMETERS |= {"figures": " ".join(SHOWN), "theory": " ".join(THEORY_SHOWN)}
NOTEBOOK = dict(
    title="In-context TD: claims and results",
    notebook=ROOT / "report/report.ipynb",
    captions=ROOT / "report/captions",
    parameters=PARAMETERS,
)
AS_REPORT = dict(category="1. Report", labels={"report": "all claims, figures and tables"})
# Jobs whose time counts as computing: those that take some seeds, and the others.
OF_SEEDS = expand("{rule}/{setting}", rule=["tasks", "unrolls"], setting=CHECKED)
# As they are cut here, or were before.
EITHER = [*GRID, *GRID_SETTINGS]
OF_SEEDS += expand("pretrain/{models}", models=EITHER)
OTHERS = expand("{rule}/{env}", rule=["theory_values", "theory_precision"], env=sorted(config["envs"]))
OTHERS += expand("{rule}/{setting}", rule=["theory_descent", "theory_family"], setting=CHECKED)
OTHERS += expand("evaluate/{setting}", setting=GRID_SETTINGS)
OTHERS += expand("theory_pretrained/{models}", models=EITHER)
OTHERS += (
    "baselines audit theory_agreement theory_tables pretrained_tables metrics theory_claims claims".split()
)
TIMED = [*expand("{job}/{seeds}", job=OF_SEEDS, seeds=GROUPS), *OTHERS]
# How many jobs each rule has, if those that take seeds take one, and those of models one algorithm.
SINGLE = "msve_curves weight_maps environment_diagrams learning_curves theory_figures pretrained_figure "
SINGLE += "workflow_figure summaries slider compute notebook manifest about all"
COUNTS = Counter(Path(job).parts[0] for job in [*OF_SEEDS, *OTHERS, *SINGLE.split()])
COUNTS |= {rule: COUNTS[rule] * config["seeds"] for rule in ("tasks", "unrolls")}
COUNTS["pretrain"], COUNTS["theory_pretrained"] = len(GRID) * config["seeds"], len(GRID)


use rule gather as claims with:
    input:
        tables=expand("<results>/metrics/{name}.csv", name=CLAIMED),
        theory="<results>/theory/claims.json",
    output:
        "<results>/claims.json",
    pathvars:
        job="claims",
    priority: 1
    params:
        **step("report.paper_claims", statements=STATEMENTS, cells=GRID, pretraining_tasks=config["tasks"]),


use rule gather as manifest with:
    input:
        # All else that it lists is before these.
        expand("<results>/report.{ending}", ending=["html", "ipynb"]),
        expand("<results>/baselines/{setting}.json", setting=BASELINES),
    output:
        "<results>/manifest.json",
    pathvars:
        job="manifest",
    conda:
        f"{ENVS}/pretrain.yaml"
    params:
        **step(
            "manifest",
            folder=RESULTS,
            files=MANIFESTED,
            pages=[file for file in LISTED if file not in MANIFESTED],
            settings=SETTINGS,
        ),


# What Snakemake's report says first.
use rule gather as about with:
    input:
        manifest="<results>/manifest.json",
        claims="<results>/claims.json",
    output:
        "<results>/about.rst",
    pathvars:
        job="about",
    params:
        **step("report.about", schema=SCHEMA_FILE, deployment=" and ".join(sorted(map(str, SDM)))),


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


use rule gather as slider with:
    input:
        weights=expand("<results>/weights/{cell}.npz", cell=CELLS),
    output:
        "<results>/tables/slider.html",
    pathvars:
        job="slider",
    params:
        **step("report.slider"),


use rule gather as compute with:
    input:
        # Every job whose time it shows is before these.
        "<results>/claims.json",
    output:
        table="<results>/metrics/compute.csv",
        page=html("compute"),
    pathvars:
        job="compute",
    params:
        **step("report.compute", folder=RESULTS / "benchmarks", jobs=TIMED),


use rule gather as workflow_figure with:
    output:
        figure("workflow"),
    pathvars:
        job="workflow_figure",
    params:
        **step("report.figures.workflow", jobs={**COUNTS}),


use rule gather as notebook with:
    input:
        expand("<results>/{file}", file=[*PAGE_FILES, *DRAWN]),
        claims="<results>/claims.json",
        documents=DOCUMENTS,
    output:
        executed="<results>/report.ipynb",
        page=report("<results>/report.html", caption="../../report/captions/report.rst", **AS_REPORT),
    pathvars:
        job="notebook",
    conda:
        f"{ENVS}/report.yaml"
    params:
        **step("report.notebook", **NOTEBOOK),
