# A study beyond the paper: what emerges. `snakemake anatomy` runs it.
ANATOMY = RESULTS / "anatomy"
STUDY = config["anatomy"]
READING = {"parameters": "theta", "layers": "looped", "clip": 0, "precision": "float64"}
READING |= {name: config["readings"][name] for name in ("attention_scale", "initial_gain")}
READING |= {"learning_rate": config["learning_rate"]}
READINGS = {
    one["name"]: READING | {key: one[key] for key in one if key != "name"} for one in STUDY["readings"]
}
MAIN = {"env": config["envs"][0], "states": config["states"][0], "depth": config["depths"][0]}
COURSES = [f"{algo}-{env}" for algo in config["algos"] for env in config["envs"]]
# What a run starts from and is trained with.
PRETRAINING_OPTIONS = [
    "discount",
    "batch_size",
    "rollout_steps",
    "learning_rate",
    "readings.initial_gain",
    "readings.attention_scale",
]


rule ablate:
    input:
        weights=RESULTS / f"weights/{CELL}.npz",
        kernels=kernels("sampling"),
    output:
        ANATOMY / f"ablations/{CELL}.npz",
    log:
        LOGS / f"ablate/{CELL}.log",
    benchmark:
        BENCHMARKS / f"ablate/{CELL}.tsv"
    conda:
        "../../envs/studies.yaml"
    threads: 1
    resources:
        mem_mb=2000,
        runtime=30,
    params:
        *code("ablate"),
        options=options(
            "discount",
            "readings.attention_scale",
            "readings.evaluation_env",
            "anatomy.tasks",
            "anatomy.tuning_tasks",
            "anatomy.context_lengths",
            "anatomy.step_sizes",
            env_options=UNSEEN_OPTIONS,
        ),
    shell:
        "python -m ictd.steps.ablate --states {wildcards.states} --depth {wildcards.depth} {params.options}"
        " --weights {input.weights} --output {output} > {log} 2>&1"


ABLATION_TABLES = "measures ablations yardsticks correlations".split()


rule ablation_tables:
    input:
        ablations=expand(ANATOMY / "ablations/{cell}.npz", cell=CELLS),
        weights=expand(RESULTS / "weights/{cell}.npz", cell=CELLS),
    output:
        expand(ANATOMY / "{table}.csv", table=ABLATION_TABLES),
    log:
        LOGS / "ablation_tables.log",
    benchmark:
        BENCHMARKS / "ablation_tables.tsv"
    conda:
        "../../envs/studies.yaml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=30,
    params:
        *code("ablation_tables"),
        options=options("discount"),
        folder=ANATOMY,
    shell:
        "python -m ictd.steps.ablation_tables --ablations {input.ablations} --weights {input.weights}"
        " {params.options} --output {params.folder} > {log} 2>&1"


rule course:
    input:
        [kernels("sampling"), kernels("fused")],
    output:
        ANATOMY / "runs/{algo}-{env}/{seed}.npz",
    log:
        LOGS / "course/{algo}-{env}/{seed}.log",
    benchmark:
        BENCHMARKS / "course/{algo}-{env}/{seed}.tsv"
    conda:
        "../../envs/studies.yaml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=120,
    params:
        *code("course"),
        options=lambda wildcards: options(
            *PRETRAINING_OPTIONS,
            states=MAIN["states"],
            depth=MAIN["depth"],
            tasks=STUDY["course"][f"{wildcards.algo}_tasks"],
            snapshots=STUDY["course"]["snapshots"],
            env_options=env_options(wildcards.env),
        ),
    shell:
        "python -m ictd.steps.course --algo {wildcards.algo} --env {wildcards.env} --seed {wildcards.seed}"
        " {params.options} --output {output} > {log} 2>&1"


rule trace:
    input:
        runs=[ANATOMY / f"runs/{{algo}}-{{env}}/{seed}.npz" for seed in range(STUDY["course"]["seeds"])],
        kernels=kernels("sampling"),
    output:
        ANATOMY / "course/{algo}-{env}.csv",
    log:
        LOGS / "trace/{algo}-{env}.log",
    benchmark:
        BENCHMARKS / "trace/{algo}-{env}.tsv"
    conda:
        "../../envs/studies.yaml"
    threads: 1
    resources:
        mem_mb=2000,
        runtime=60,
    params:
        *code("trace"),
        options=options(
            "discount",
            "readings.attention_scale",
            "readings.evaluation_env",
            "anatomy.tasks",
            "anatomy.context_lengths",
            states=MAIN["states"],
            depth=MAIN["depth"],
            env_options=UNSEEN_OPTIONS,
        ),
    shell:
        "python -m ictd.steps.trace --algo {wildcards.algo} --env {wildcards.env} {params.options}"
        " --runs {input.runs} --output {output} > {log} 2>&1"


rule phase:
    input:
        [kernels("sampling"), kernels("fused")],
    output:
        ANATOMY / "phase/{states}/{seed}.csv",
    log:
        LOGS / "phase/{states}/{seed}.log",
    benchmark:
        BENCHMARKS / "phase/{states}/{seed}.tsv"
    conda:
        "../../envs/studies.yaml"
    threads: 1
    resources:
        mem_mb=2000,
        runtime=240,
    params:
        *code("phase"),
        options=options(
            *PRETRAINING_OPTIONS,
            "algos",
            "anatomy.step_sizes",
            env=MAIN["env"],
            depths=STUDY["phase"]["depths"],
            tasks=STUDY["phase"]["tasks"],
            test_tasks=STUDY["tasks"],
            tuning_tasks=STUDY["phase"]["tuning_tasks"],
            env_options=env_options(MAIN["env"]),
        ),
    shell:
        "python -m ictd.steps.phase --states {wildcards.states} --seed {wildcards.seed} {params.options}"
        " --output {output} > {log} 2>&1"


rule reading:
    input:
        tasks=[RESULTS / f"tasks/{MAIN['env']}-{MAIN['states']}/{seeds}.npz" for seeds in GROUPS],
        unrolls=[RESULTS / f"unrolls/{MAIN['env']}-{MAIN['states']}/{seeds}.npz" for seeds in GROUPS],
        kernels=[kernels("sampling"), kernels("fused")],
    output:
        ANATOMY / "readings/{reading}.npz",
    log:
        LOGS / "reading/{reading}.log",
    benchmark:
        BENCHMARKS / "reading/{reading}.tsv"
    conda:
        "../../envs/studies.yaml"
    threads: 1
    resources:
        mem_mb=4000,
        runtime=240,
    params:
        *code("reading"),
        options=lambda wildcards: options(
            "algos",
            "discount",
            "readings.evaluation_env",
            "evaluation.context_lengths",
            **MAIN,
            reading=READINGS[wildcards.reading],
            test_tasks=config["evaluation"]["tasks"],
            env_options=UNSEEN_OPTIONS,
        ),
    shell:
        "python -m ictd.steps.reading {params.options} --tasks {input.tasks} --unrolls {input.unrolls}"
        " --output {output} > {log} 2>&1"


rule reading_tables:
    input:
        runs=[ANATOMY / f"readings/{reading}.npz" for reading in READINGS],
        baselines=RESULTS / "metrics/baselines.csv",
    output:
        [ANATOMY / "readings.csv", ANATOMY / "reading_runs.csv"],
    log:
        LOGS / "reading_tables.log",
    benchmark:
        BENCHMARKS / "reading_tables.tsv"
    conda:
        "../../envs/studies.yaml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        *code("reading_tables"),
        options=options("discount", **MAIN),
        folder=ANATOMY,
    shell:
        "python -m ictd.steps.reading_tables --runs {input.runs} --baselines {input.baselines}"
        " {params.options} --output {params.folder} > {log} 2>&1"


rule join_courses:
    input:
        expand(ANATOMY / "course/{course}.csv", course=COURSES),
    output:
        ANATOMY / "course.csv",
    log:
        LOGS / "join_courses.log",
    benchmark:
        BENCHMARKS / "join_courses.tsv"
    conda:
        "../../envs/studies.yaml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        *code("join_tables"),
    shell:
        "python -m ictd.steps.join_tables --tables {input} --output {output} > {log} 2>&1"


use rule join_courses as join_phases with:
    input:
        expand(
            ANATOMY / "phase/{states}/{seed}.csv",
            states=STUDY["phase"]["states"],
            seed=range(STUDY["phase"]["seeds"]),
        ),
    output:
        ANATOMY / "phase.csv",
    log:
        LOGS / "join_phases.log",
    benchmark:
        BENCHMARKS / "join_phases.tsv"


ANATOMY_TABLES = [ANATOMY / f"{name}.csv" for name in (*ABLATION_TABLES, "course", "phase", "readings")]


rule emergence_claims:
    input:
        ANATOMY_TABLES,
    output:
        ANATOMY / "claims.json",
    log:
        LOGS / "emergence_claims.log",
    benchmark:
        BENCHMARKS / "emergence_claims.tsv"
    conda:
        "../../envs/studies.yaml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        *code("emergence_claims"),
    shell:
        "python -m ictd.steps.emergence_claims --tables {input} --output {output} > {log} 2>&1"


ANATOMY_SHOWN = "decompositions ablations course phase".split()


rule emergence_figures:
    input:
        tables=ANATOMY_TABLES,
        shown=ANATOMY / f"runs/{COURSES[0]}/0.npz",
    output:
        expand(ANATOMY / "figures/{name}.{ending}", name=ANATOMY_SHOWN, ending=["png", "svg"]),
        ANATOMY / "figures/emergence_animation.gif",
    log:
        LOGS / "emergence_figures.log",
    benchmark:
        BENCHMARKS / "emergence_figures.tsv"
    conda:
        "../../envs/studies.yaml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        *code("plot_emergence"),
        options=options(**MAIN),
        folder=ANATOMY / "figures",
    shell:
        "python -m ictd.steps.plot_emergence --tables {input.tables} --run-shown {input.shown}"
        " {params.options} --output {params.folder} > {log} 2>&1"


ANATOMY_PAGES = "emergence measures correlations other_readings reading_runs".split()


rule emergence_pages:
    input:
        claims=ANATOMY / "claims.json",
        measures=ANATOMY / "measures.csv",
        correlations=ANATOMY / "correlations.csv",
        readings=ANATOMY / "readings.csv",
        reading_runs=ANATOMY / "reading_runs.csv",
    output:
        expand(ANATOMY / "tables/{name}.html", name=ANATOMY_PAGES),
    log:
        LOGS / "emergence_pages.log",
    benchmark:
        BENCHMARKS / "emergence_pages.tsv"
    conda:
        "../../envs/figures.yaml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        *code("emergence_pages"),
        folder=ANATOMY / "tables",
    shell:
        "python -m ictd.steps.emergence_pages --claims {input.claims} --measures {input.measures}"
        " --correlations {input.correlations} --readings {input.readings}"
        " --reading-runs {input.reading_runs} --output {params.folder} > {log} 2>&1"


STUDY_NOTEBOOK = ROOT / "report/emergence.ipynb"
STUDY_CAPTIONS = [
    ROOT / f"report/captions/{name}.rst" for name in (*ANATOMY_SHOWN, "emergence_animation", *ANATOMY_PAGES)
]


rule emergence_notebook:
    input:
        rules.emergence_pages.output,
        rules.emergence_figures.output,
        ancient(STUDY_CAPTIONS),
        notebook=ancient(STUDY_NOTEBOOK),
    output:
        ANATOMY / "emergence.ipynb",
    log:
        LOGS / "emergence_notebook.log",
    benchmark:
        BENCHMARKS / "emergence_notebook.tsv"
    conda:
        "../../envs/report.yaml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        *code("notebook"),
        *map(text_digest, [STUDY_NOTEBOOK, *STUDY_CAPTIONS]),
        options=options(parameters={"results": str(ANATOMY), "captions": str(ROOT / "report/captions")}),
    shell:
        "python -m ictd.steps.notebook --notebook {input.notebook} {params.options} --output {output}"
        " > {log} 2>&1"


use rule page as emergence_page with:
    input:
        ANATOMY / "emergence.ipynb",
    output:
        ANATOMY / "emergence.html",
    log:
        LOGS / "emergence_page.log",
    benchmark:
        BENCHMARKS / "emergence_page.tsv"
    params:
        *code("page"),
        title="In-context TD: what emerges",


rule anatomy:
    input:
        ANATOMY / "emergence.html",
