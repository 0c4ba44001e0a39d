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
            "theory.tasks",
            "discount",
            "readings.attention_scale",
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
        values=expand(RESULTS / "theory/values/{env}.npz", env=config["envs"]),
        descents=expand(RESULTS / "theory/descent/{setting}.npz", setting=CHECKED),
        pretrained=expand(RESULTS / "theory/pretrained/{cell}.npz", cell=CELLS),
        agreement=RESULTS / "theory/agreement.json",
        precision=expand(RESULTS / "theory/precision/{env}.json", env=config["envs"]),
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


rule figure_theorem_1:
    input:
        of_theory("statements", "precision"),
    output:
        png=png("theorem_1", "Theorem 1"),
        svg=svg("theorem_1"),
    log:
        LOGS / "figure_theorem_1.log",
    benchmark:
        BENCHMARKS / "figure_theorem_1.tsv"
    conda:
        "../../envs/figures.yaml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        *code("plot_theory"),
        options=options(kind="theorem_1", env=config["envs"][0], states=config["states"][0]),
    shell:
        "python -m ictd.steps.plot_theory {params.options} --tables {input} --output {output.png} > {log} 2>&1"


use rule figure_theorem_1 as figure_lemmas with:
    input:
        of_theory("statements"),
    output:
        png=png("lemmas", "Lemmas 1 to 4"),
        svg=svg("lemmas"),
    log:
        LOGS / "figure_lemmas.log",
    benchmark:
        BENCHMARKS / "figure_lemmas.tsv"
    params:
        *code("plot_theory"),
        options=options(kind="lemmas", env=config["envs"][0], states=config["states"][0]),


use rule figure_theorem_1 as figure_theorem_2 with:
    input:
        of_theory("statements", "neu"),
    output:
        png=png("theorem_2", "Theorem 2"),
        svg=svg("theorem_2"),
    log:
        LOGS / "figure_theorem_2.log",
    benchmark:
        BENCHMARKS / "figure_theorem_2.tsv"
    params:
        *code("plot_theory"),
        options=options(kind="theorem_2", env=config["envs"][0], states=config["states"][0]),


use rule figure_theorem_1 as figure_corollary_1 with:
    input:
        of_theory("statements", "neu"),
    output:
        png=png("corollary_1", "Corollary 1"),
        svg=svg("corollary_1"),
    log:
        LOGS / "figure_corollary_1.log",
    benchmark:
        BENCHMARKS / "figure_corollary_1.tsv"
    params:
        *code("plot_theory"),
        options=options(kind="corollary_1", env=config["envs"][0], states=config["states"][0]),


use rule figure_theorem_1 as figure_pretrained with:
    input:
        of_theory("pretrained", "repeated"),
    output:
        png=png("pretrained", "J at pretrained weights"),
        svg=svg("pretrained"),
    log:
        LOGS / "figure_pretrained.log",
    benchmark:
        BENCHMARKS / "figure_pretrained.tsv"
    params:
        *code("plot_theory"),
        options=options(kind="pretrained", env=config["envs"][0], states=config["states"][0]),


THEORY_SHOWN = "theorem_1 lemmas theorem_2 corollary_1 pretrained".split()
THEORY_FIGURES = expand(RESULTS / "figures/{name}.png", name=THEORY_SHOWN)
