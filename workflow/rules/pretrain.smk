# Multi-task TD and multi-task MC: the runs of one cell for a range of seeds.
rule pretrain:
    input:
        tasks=RESULTS / "tasks/{env}-{states}/{seeds}.npz",
        unrolls=RESULTS / "unrolls/{env}-{states}/{seeds}.npz",
        kernels=kernels("fused"),
    output:
        RESULTS / f"runs/{CELL}/{{seeds}}.npz",
    log:
        LOGS / f"pretrain/{CELL}/{{seeds}}.log",
    benchmark:
        BENCHMARKS / f"pretrain/{CELL}/{{seeds}}.tsv"
    conda:
        "../../envs/pretrain.yaml"
    threads: 1
    resources:
        mem_mb=2000,
        runtime=240,
    params:
        *code("pretrain"),
        options=options(
            "discount",
            "learning_rate",
            "engine",
            "snapshots",
            "readings.initial_gain",
            "readings.attention_scale",
        ),
    shell:
        "python -m ictd.steps.pretrain --algo {wildcards.algo} --env {wildcards.env}"
        " --states {wildcards.states} --depth {wildcards.depth} {params.options}"
        " --tasks {input.tasks} --unrolls {input.unrolls} --output {output} > {log} 2>&1"
