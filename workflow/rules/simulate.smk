# Task sets and the statistics of their unrolled batches.
SIMULATED = "{env}-{states}/{seeds}"


# Without the digests of its step: what it compiles is no result.
rule kernels:
    output:
        touch(RESULTS / "kernels/{module}-{digest}"),
    log:
        LOGS / "kernels/{module}-{digest}.log",
    benchmark:
        BENCHMARKS / "kernels/{module}-{digest}.tsv"
    conda:
        "../../envs/simulate.yaml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=10,
    shell:
        "python -m ictd.steps.kernels --module {wildcards.module} > {log} 2>&1"


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
        *code("tasks"),
        options=lambda wildcards: options("tasks", "discount", env_options=env_options(wildcards.env)),
    shell:
        "python -m ictd.steps.tasks --env {wildcards.env} --states {wildcards.states}"
        " --seeds {wildcards.seeds} {params.options} --output {output} > {log} 2>&1"


rule unrolls:
    input:
        tasks=RESULTS / f"tasks/{SIMULATED}.npz",
        kernels=kernels("sampling"),
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
        *code("unrolls"),
        options=options("batch_size", "discount", "rollout_steps"),
    shell:
        "python -m ictd.steps.unrolls --env {wildcards.env} --states {wildcards.states}"
        " {params.options} --tasks {input.tasks} --output {output} > {log} 2>&1"
