# Evaluation on unseen tasks, the yardsticks beside it, and the result tables.
ON_UNSEEN_TASKS = [
    "discount",
    "readings.attention_scale",
    "readings.evaluation_env",
    "evaluation.context_lengths",
]
UNSEEN_OPTIONS = env_options(config["readings"]["evaluation_env"])


rule evaluate:
    input:
        runs=expand(RESULTS / f"runs/{CELL}/{{seeds}}.npz", seeds=GROUPS, allow_missing=True),
        kernels=kernels("sampling"),
    output:
        weights=RESULTS / f"weights/{CELL}.npz",
        msve=RESULTS / f"evaluation/{CELL}.npz",
    log:
        LOGS / f"evaluate/{CELL}.log",
    benchmark:
        BENCHMARKS / f"evaluate/{CELL}.tsv"
    conda:
        "../../envs/evaluate.yaml"
    threads: 1
    resources:
        mem_mb=2000,
        runtime=30,
    params:
        *code("evaluate"),
        options=options(*ON_UNSEEN_TASKS, "evaluation.tasks", env_options=UNSEEN_OPTIONS),
    shell:
        "python -m ictd.steps.evaluate --states {wildcards.states} --depth {wildcards.depth}"
        " {params.options} --runs {input.runs} --weights {output.weights} --output {output.msve}"
        " > {log} 2>&1"


rule tune:
    input:
        kernels=kernels("sampling"),
    output:
        RESULTS / "baselines/{states}-{depth}.json",
    log:
        LOGS / "tune/{states}-{depth}.log",
    benchmark:
        BENCHMARKS / "tune/{states}-{depth}.tsv"
    conda:
        "../../envs/evaluate.yaml"
    threads: 1
    resources:
        mem_mb=2000,
        runtime=30,
    params:
        *code("tune"),
        options=options(
            *ON_UNSEEN_TASKS,
            "evaluation.tuning_tasks",
            "evaluation.step_sizes",
            env_options=UNSEEN_OPTIONS,
        ),
    shell:
        "python -m ictd.steps.tune --states {wildcards.states} --depth {wildcards.depth}"
        " {params.options} --output {output} > {log} 2>&1"


rule baselines:
    input:
        tuned=RESULTS / "baselines/{states}-{depth}.json",
        kernels=kernels("sampling"),
    output:
        RESULTS / "baselines/{states}-{depth}.npz",
    log:
        LOGS / "baselines/{states}-{depth}.log",
    benchmark:
        BENCHMARKS / "baselines/{states}-{depth}.tsv"
    conda:
        "../../envs/evaluate.yaml"
    threads: 1
    resources:
        mem_mb=2000,
        runtime=30,
    params:
        *code("baselines"),
        options=options(
            *ON_UNSEEN_TASKS,
            "evaluation.tasks",
            "evaluation.lstd_ridge",
            "seeds",
            env_options=UNSEEN_OPTIONS,
        ),
    shell:
        "python -m ictd.steps.baselines --states {wildcards.states} --depth {wildcards.depth}"
        " {params.options} --tuned {input.tuned} --output {output} > {log} 2>&1"


TABLES = "msve baselines weights mean_weights agreement learning truncation audit".split()


rule metrics:
    input:
        weights=expand(RESULTS / "weights/{cell}.npz", cell=sorted(CELLS)),
        evaluations=expand(RESULTS / "evaluation/{cell}.npz", cell=sorted(CELLS)),
        baselines=[RESULTS / f"baselines/{states}-{depth}.npz" for states, depth in YARDSTICKS],
        audit=RESULTS / "audit.json",
    output:
        expand(RESULTS / "metrics/{table}.csv", table=TABLES),
    log:
        LOGS / "metrics.log",
    benchmark:
        BENCHMARKS / "metrics.tsv"
    conda:
        "../../envs/figures.yaml"
    threads: 1
    resources:
        mem_mb=2000,
        runtime=10,
    params:
        *code("metrics"),
        options=options("discount", "rollout_steps", "readings.env_options"),
        folder=RESULTS / "metrics",
    shell:
        "python -m ictd.steps.metrics --weights {input.weights} --evaluations {input.evaluations}"
        " --baselines {input.baselines} --audit {input.audit} {params.options} --output {params.folder} > {log} 2>&1"
