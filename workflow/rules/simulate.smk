# Task sets and the statistics of their unrolled batches.
SIMULATED = "{env}-{states}/{seeds}"


rule kernels:
    output:
        touch(KERNELS),
    log:
        LOGS / "kernels.log",
    benchmark:
        BENCHMARKS / "kernels.tsv"
    conda:
        "../../envs/simulate.yaml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        options=options("batch_size"),
    shell:
        "python -m ictd.steps.kernels {params.options} > {log} 2>&1"


rule tasks:
    output:
        RESULTS / f"tasks/{SIMULATED}.npz",
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
    params:
        options=lambda wildcards: options("tasks", "discount", env_options=env_options(wildcards.env)),
    shell:
        "python -m ictd.steps.tasks --env {wildcards.env} --states {wildcards.states}"
        " --seeds {wildcards.seeds} {params.options} --output {output} > {log} 2>&1"


rule unrolls:
    input:
        tasks=RESULTS / f"tasks/{SIMULATED}.npz",
        kernels=ancient(KERNELS),
    output:
        RESULTS / f"unrolls/{SIMULATED}.npz",
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
    params:
        options=options("batch_size", "discount", "rollout_steps"),
    shell:
        "python -m ictd.steps.unrolls --env {wildcards.env} --states {wildcards.states}"
        " {params.options} --tasks {input.tasks} --output {output} > {log} 2>&1"
