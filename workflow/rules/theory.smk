# Numerical checks of the paper's theory.
VALUE_STATES = sorted({*config["theory"]["states"], *config["states"]})
CHECKED = [f"{env}-{states}" for env, states in SIMULATIONS]
DEEP = sorted({f"{cell.env}-{cell.states}-{cell.depth}" for cell in CELLS})


rule theory_values:
    output:
        RESULTS / "theory/values/{env}.npz",
    log:
        LOGS / "theory_values/{env}.log",
    benchmark:
        BENCHMARKS / "theory_values/{env}.tsv"
    conda:
        "../../envs/figures.yaml"
    threads: 1
    resources:
        mem_mb=2000,
        runtime=10,
    params:
        *code("theory_values"),
        options=lambda wildcards: options(
            "theory.tasks",
            "theory.depth",
            "discount",
            states=VALUE_STATES,
            env_options=env_options(wildcards.env),
        ),
    shell:
        "python -m ictd.steps.theory_values --env {wildcards.env} {params.options} --output {output} > {log} 2>&1"


rule theory_descent:
    output:
        RESULTS / "theory/descent/{env}-{states}.npz",
    log:
        LOGS / "theory_descent/{env}-{states}.log",
    benchmark:
        BENCHMARKS / "theory_descent/{env}-{states}.tsv"
    conda:
        "../../envs/figures.yaml"
    threads: 1
    resources:
        mem_mb=2000,
        runtime=30,
    params:
        *code("theory_descent"),
        options=lambda wildcards: options(
            "theory.tasks",
            "discount",
            depth=config["theory"]["update_depth"],
            env_options=env_options(wildcards.env),
        ),
    shell:
        "python -m ictd.steps.theory_descent --env {wildcards.env} --states {wildcards.states}"
        " {params.options} --output {output} > {log} 2>&1"


rule theory_pretrained:
    input:
        RESULTS / f"weights/{CELL}.npz",
    output:
        RESULTS / f"theory/pretrained/{CELL}.npz",
    log:
        LOGS / f"theory_pretrained/{CELL}.log",
    benchmark:
        BENCHMARKS / f"theory_pretrained/{CELL}.tsv"
    conda:
        "../../envs/figures.yaml"
    threads: 1
    resources:
        mem_mb=2000,
        runtime=30,
    params:
        *code("theory_pretrained"),
        options=lambda wildcards: options(
            "discount",
            "readings.attention_scale",
            tasks=config["theory"]["pretrained_tasks"],
            greatest_depth=config["theory"]["update_depth"],
            env_options=env_options(wildcards.env),
        ),
    shell:
        "python -m ictd.steps.theory_pretrained --algo {wildcards.algo} --env {wildcards.env}"
        " --states {wildcards.states} --depth {wildcards.depth} {params.options} --weights {input}"
        " --output {output} > {log} 2>&1"


rule theory_agreement:
    input:
        kernels=kernels("fused"),
    output:
        RESULTS / "theory/agreement.json",
    log:
        LOGS / "theory_agreement.log",
    benchmark:
        BENCHMARKS / "theory_agreement.tsv"
    conda:
        "../../envs/pretrain.yaml"
    threads: 1
    resources:
        mem_mb=2000,
        runtime=10,
    params:
        *code("theory_agreement"),
        options=options("discount", "readings.env_options", settings=DEEP),
    shell:
        "python -m ictd.steps.theory_agreement {params.options} --output {output} > {log} 2>&1"


rule theory_precision:
    output:
        RESULTS / "theory/precision/{env}.json",
    log:
        LOGS / "theory_precision/{env}.log",
    benchmark:
        BENCHMARKS / "theory_precision/{env}.tsv"
    conda:
        "../../envs/figures.yaml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=30,
    params:
        *code("theory_precision"),
        options=lambda wildcards: options(
            "theory.depth",
            "theory.update_depth",
            "discount",
            states=VALUE_STATES,
            update_states=[states for env, states in SIMULATIONS if env == wildcards.env],
            env_options=env_options(wildcards.env),
        ),
    shell:
        "python -m ictd.steps.theory_precision --env {wildcards.env} {params.options} --output {output} > {log} 2>&1"


THEORY_TABLES = "statements neu pretrained repeated agreement precision".split()


rule theory_tables:
    input:
        values=expand(RESULTS / "theory/values/{env}.npz", env=sorted(config["envs"])),
        descents=expand(RESULTS / "theory/descent/{setting}.npz", setting=CHECKED),
        pretrained=expand(RESULTS / "theory/pretrained/{cell}.npz", cell=sorted(CELLS)),
        agreement=RESULTS / "theory/agreement.json",
        precision=expand(RESULTS / "theory/precision/{env}.json", env=sorted(config["envs"])),
    output:
        expand(RESULTS / "theory/{table}.csv", table=THEORY_TABLES),
    log:
        LOGS / "theory_tables.log",
    benchmark:
        BENCHMARKS / "theory_tables.tsv"
    conda:
        "../../envs/figures.yaml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        *code("theory_tables"),
        folder=RESULTS / "theory",
    shell:
        "python -m ictd.steps.theory_tables --values {input.values} --descents {input.descents}"
        " --pretrained {input.pretrained} --agreement {input.agreement} --precision {input.precision}"
        " --output {params.folder} > {log} 2>&1"


THEORY_SHOWN = {
    "theorem_1": "Theorem 1",
    "lemmas": "Lemmas 1 to 4",
    "theorem_2": "Theorem 2",
    "corollary_1": "Corollary 1",
    "pretrained": "J at pretrained weights",
}
THEORY_FIGURES = [RESULTS / f"figures/{name}.png" for name in THEORY_SHOWN]


rule theory_figures:
    input:
        of_theory("statements", "neu", "pretrained", "repeated", "precision"),
    output:
        [png(name, label) for name, label in THEORY_SHOWN.items()],
        [svg(name) for name in THEORY_SHOWN],
    log:
        LOGS / "theory_figures.log",
    benchmark:
        BENCHMARKS / "theory_figures.tsv"
    conda:
        "../../envs/figures.yaml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        *code("plot_theory"),
        options=options("discount", env=config["envs"][0], states=config["states"][0]),
        folder=RESULTS / "figures",
    shell:
        "python -m ictd.steps.plot_theory {params.options} --tables {input} --output {params.folder} > {log} 2>&1"
