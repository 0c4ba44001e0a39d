# Task sets and the statistics of their unrolled batches.
SIMULATED = "{env}-{states}/{seeds}"


rule tasks:
    output:
        RESULTS / f"tasks/{SIMULATED}.npz",
    params:
        options=lambda wildcards: settings("tasks", "discount")
        + " "
        + options(env_options=env_options(wildcards.env)),
    log:
        LOGS / f"tasks/{SIMULATED}.log",
    benchmark:
        BENCHMARKS / f"tasks/{SIMULATED}.tsv"
    conda:
        "../../envs/simulate.yaml"
    threads: 1
    resources:
        mem_mb=2000,
        runtime=10,
    shell:
        "python -m ictd.steps.tasks --env {wildcards.env} --states {wildcards.states}"
        " --seeds {wildcards.seeds} {params.options} --output {output} > {log} 2>&1"


rule unrolls:
    input:
        RESULTS / f"tasks/{SIMULATED}.npz",
    output:
        RESULTS / f"unrolls/{SIMULATED}.npz",
    params:
        options=settings("batch_size", "discount", "rollout_steps"),
    log:
        LOGS / f"unrolls/{SIMULATED}.log",
    benchmark:
        BENCHMARKS / f"unrolls/{SIMULATED}.tsv"
    conda:
        "../../envs/simulate.yaml"
    threads: 1
    resources:
        mem_mb=2000,
        runtime=30,
    shell:
        "python -m ictd.steps.unrolls --env {wildcards.env} --states {wildcards.states}"
        " {params.options} --tasks {input} --output {output} > {log} 2>&1"
