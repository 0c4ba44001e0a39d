# Evaluation on unseen tasks, the yardsticks beside it, and the result tables.
ON_UNSEEN_TASKS = " ".join(
    [
        settings("discount"),
        settings("attention_scale", "evaluation_env", section=READINGS),
        options(env_options=env_options(READINGS["evaluation_env"])),
        settings("context_lengths", section=EVALUATION),
    ]
)


rule evaluate:
    input:
        expand(RESULTS / f"runs/{CELL}/{{seeds}}.npz", seeds=GROUPS, allow_missing=True),
    output:
        weights=RESULTS / f"weights/{CELL}.npz",
        msve=RESULTS / f"evaluation/{CELL}.npz",
    params:
        options=ON_UNSEEN_TASKS + " " + settings("tasks", section=EVALUATION),
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
    shell:
        "python -m ictd.steps.evaluate --states {wildcards.states} --depth {wildcards.depth}"
        " {params.options} --runs {input} --weights {output.weights} --output {output.msve}"
        " > {log} 2>&1"


rule tune:
    output:
        RESULTS / "baselines/{states}-{depth}.json",
    params:
        options=ON_UNSEEN_TASKS
        + " "
        + settings("tuning_tasks", "step_sizes", section=EVALUATION),
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
    shell:
        "python -m ictd.steps.tune --states {wildcards.states} --depth {wildcards.depth}"
        " {params.options} --output {output} > {log} 2>&1"


rule baselines:
    input:
        RESULTS / "baselines/{states}-{depth}.json",
    output:
        RESULTS / "baselines/{states}-{depth}.npz",
    params:
        options=ON_UNSEEN_TASKS
        + " "
        + settings("tasks", "lstd_ridge", section=EVALUATION)
        + " "
        + settings("seeds"),
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
    shell:
        "python -m ictd.steps.baselines --states {wildcards.states} --depth {wildcards.depth}"
        " {params.options} --tuned {input} --output {output} > {log} 2>&1"


TABLES = "msve baselines weights mean_weights agreement learning truncation".split()


rule metrics:
    input:
        weights=expand(RESULTS / "weights/{cell}.npz", cell=CELLS),
        evaluations=expand(RESULTS / "evaluation/{cell}.npz", cell=CELLS),
        baselines=[
            RESULTS / f"baselines/{states}-{depth}.npz"
            for states, depth in sorted({(cell.states, cell.depth) for cell in CELLS})
        ],
    output:
        expand(RESULTS / "metrics/{table}.csv", table=TABLES),
    params:
        options=settings("discount", "rollout_steps")
        + " "
        + settings("env_options", section=READINGS),
        folder=RESULTS / "metrics",
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
    shell:
        "python -m ictd.steps.metrics --weights {input.weights} --evaluations {input.evaluations}"
        " --baselines {input.baselines} {params.options} --output {params.folder} > {log} 2>&1"
