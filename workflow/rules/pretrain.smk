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
            "on_divergence",
            "snapshots",
            "readings.initial_gain",
            "readings.attention_scale",
            diverged=RESULTS / "diverged",
        ),
    shell:
        "python -m ictd.steps.pretrain --algo {wildcards.algo} --env {wildcards.env}"
        " --states {wildcards.states} --depth {wildcards.depth} {params.options}"
        " --tasks {input.tasks} --unrolls {input.unrolls} --output {output} > {log} 2>&1"


# The first tasks of each cell again, by the engine that the run did not use; in one job, as torch's import takes longer
# than the training of a cell.
rule audit:
    input:
        tasks=[RESULTS / f"tasks/{cell.env}-{cell.states}/{GROUPS[0]}.npz" for cell in sorted(CELLS)],
        unrolls=[RESULTS / f"unrolls/{cell.env}-{cell.states}/{GROUPS[0]}.npz" for cell in sorted(CELLS)],
        trained=[RESULTS / f"runs/{cell}/{GROUPS[0]}.npz" for cell in sorted(CELLS)],
        kernels=kernels("fused"),
    output:
        RESULTS / "audit.json",
    log:
        LOGS / "audit.log",
    benchmark:
        BENCHMARKS / "audit.tsv"
    conda:
        "../../envs/pretrain.yaml"
    threads: 1
    resources:
        mem_mb=2000,
        runtime=240,
    params:
        *code("audit"),
        options=options(
            "discount",
            "learning_rate",
            "engine",
            "readings.initial_gain",
            "readings.attention_scale",
            audit_tasks=config["audit"]["tasks"],
            tolerance=config["audit"]["tolerance"],
        ),
    shell:
        "python -m ictd.steps.audit {params.options} --tasks {input.tasks} --unrolls {input.unrolls}"
        " --trained {input.trained} --output {output} > {log} 2>&1"
