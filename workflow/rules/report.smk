# Claims, tables for readers, and the report.
rule claims:
    input:
        tables=[RESULTS / f"metrics/{name}.csv" for name in TABLES if name not in ("learning", "audit")],
        theory=of_theory(*THEORY_TABLES),
    output:
        RESULTS / "claims.json",
    log:
        LOGS / "claims.log",
    benchmark:
        BENCHMARKS / "claims.tsv"
    conda:
        "../../envs/figures.yaml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        *code("claims"),
        options=options(
            "discount",
            env=config["envs"][0],
            states=config["states"][0],
            depth=config["depths"][0],
        ),
    shell:
        "python -m ictd.steps.claims --tables {input.tables} --theory {input.theory} {params.options}"
        " --output {output} > {log} 2>&1"


STUDIES = ("anatomy", "beyond")
# What results depend on; how the work is cut into jobs is left out, and so are studies of their own.
SETTINGS = {key: value for key, value in config.items() if key not in ("seeds_per_job", "results", *STUDIES)}
MANIFESTED = [RESULTS / "claims.json", *expand(RESULTS / "metrics/{name}.csv", name=TABLES)]
MANIFESTED += of_theory(*THEORY_TABLES)
MANIFESTED += expand(RESULTS / "{kind}/{cell}.npz", kind=["weights", "evaluation"], cell=CELLS)
MANIFESTED += [
    RESULTS / f"baselines/{states}-{depth}.{ending}"
    for states, depth in YARDSTICKS
    for ending in ("json", "npz")
]


rule manifest:
    input:
        MANIFESTED,
    output:
        RESULTS / "manifest.json",
    log:
        LOGS / "manifest.log",
    benchmark:
        BENCHMARKS / "manifest.tsv"
    conda:
        "../../envs/evaluate.yaml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        *code("manifest"),
        options=options(settings=SETTINGS),
        folder=RESULTS,
    shell:
        "python -m ictd.steps.manifest --folder {params.folder} --files {input} {params.options}"
        " --output {output} > {log} 2>&1"


PAGES = "claims theory claims_all msve mean_weights agreement audit settings readings".split()


rule summaries:
    input:
        claims=RESULTS / "claims.json",
        schema=ancient(SCHEMA_FILE),
        tables=[
            RESULTS / f"metrics/{name}.csv"
            for name in ("msve", "baselines", "weights", "mean_weights", "agreement", "audit")
        ],
        statements=of_theory("statements"),
    output:
        [page(name) for name in PAGES],
    log:
        LOGS / "summaries.log",
    benchmark:
        BENCHMARKS / "summaries.tsv"
    conda:
        "../../envs/figures.yaml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        *code("summaries"),
        text_digest(SCHEMA_FILE),
        options=options(settings=SETTINGS),
        folder=RESULTS / "tables",
    shell:
        "python -m ictd.steps.summaries --claims {input.claims} --tables {input.tables}"
        " --statements {input.statements}"
        " --schema {input.schema} {params.options} --output {params.folder} > {log} 2>&1"


TIMED = [
    BENCHMARKS / f"{rule}/{env}-{states}/{seeds}.tsv"
    for rule in ("tasks", "unrolls")
    for env, states in SIMULATIONS
    for seeds in GROUPS
]
TIMED += expand(BENCHMARKS / "pretrain/{cell}/{seeds}.tsv", cell=CELLS, seeds=GROUPS)
TIMED += expand(BENCHMARKS / "evaluate/{cell}.tsv", cell=CELLS)
TIMED += [
    BENCHMARKS / f"{rule}/{states}-{depth}.tsv"
    for rule in ("tune", "baselines")
    for states, depth in YARDSTICKS
]
TIMED += expand(
    BENCHMARKS / "{rule}/{env}.tsv", rule=["theory_values", "theory_precision"], env=config["envs"]
)
TIMED += expand(BENCHMARKS / "theory_descent/{setting}.tsv", setting=CHECKED)
TIMED += expand(BENCHMARKS / "theory_pretrained/{cell}.tsv", cell=CELLS)
TIMED += [
    BENCHMARKS / f"{rule}.tsv" for rule in ("audit", "theory_agreement", "theory_tables", "metrics", "claims")
]


rule compute:
    input:
        TIMED,
    output:
        csv=RESULTS / "metrics/compute.csv",
        html=page("compute"),
    log:
        LOGS / "compute.log",
    benchmark:
        BENCHMARKS / "compute.tsv"
    conda:
        "../../envs/figures.yaml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        *code("compute"),
        folder=BENCHMARKS,
    shell:
        "python -m ictd.steps.compute --folder {params.folder} --benchmarks {input}"
        " --table {output.csv} --page {output.html} > {log} 2>&1"


NOTEBOOK = ROOT / "report/report.ipynb"
NOTEBOOK_CAPTIONS = [
    ROOT / f"report/captions/{name}.rst" for name in [*SHOWN, *THEORY_SHOWN, *PAGES, "compute"]
]


rule notebook:
    input:
        notebook=ancient(NOTEBOOK),
        claims=RESULTS / "claims.json",
        tables=expand(RESULTS / "tables/{name}.html", name=[*PAGES, "compute"]),
        figures=[*FIGURES, *THEORY_FIGURES],
        captions=ancient(NOTEBOOK_CAPTIONS),
    output:
        RESULTS / "report.ipynb",
    log:
        LOGS / "notebook.log",
    benchmark:
        BENCHMARKS / "notebook.tsv"
    conda:
        "../../envs/report.yaml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        *code("notebook"),
        *map(text_digest, [NOTEBOOK, *NOTEBOOK_CAPTIONS]),
        options=options(
            parameters={
                "results": str(RESULTS),
                "captions": str(ROOT / "report/captions"),
                "figures": " ".join(SHOWN),
                "theory": " ".join(THEORY_SHOWN),
            }
        ),
    shell:
        "python -m ictd.steps.notebook --notebook {input.notebook} {params.options} --output {output}"
        " > {log} 2>&1"


rule page:
    input:
        RESULTS / "report.ipynb",
    output:
        report(
            RESULTS / "report.html",
            caption=f"{CAPTIONS}/report.rst",
            category="Report",
            labels={"report": "all results"},
        ),
    log:
        LOGS / "page.log",
    benchmark:
        BENCHMARKS / "page.tsv"
    conda:
        "../../envs/report.yaml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        *code("page"),
        title="In-context TD: claims and results",
    shell:
        "python -m ictd.steps.page --title {params.title:q} --notebook {input} --output {output}"
        " > {log} 2>&1"
