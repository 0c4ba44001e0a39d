# The paper's figures, a rule each, and the learning curves.
rule figure_1:
    input:
        evaluations=of_cells("evaluation", "main"),
        baselines=baselines_of("main"),
    output:
        png=png("figure_01", "01: MSVE"),
        svg=svg("figure_01"),
    log:
        LOGS / "figure_1.log",
    benchmark:
        BENCHMARKS / "figure_1.tsv"
    conda:
        "../../envs/figures.yaml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        *code("plot_curves"),
        vary="main",
    shell:
        "python -m ictd.steps.plot_curves --vary {params.vary} --evaluations {input.evaluations}"
        " --baselines {input.baselines} --output {output.png} > {log} 2>&1"


rule figure_2:
    input:
        of_cells("weights", "main"),
    output:
        png=png("figure_02", "02: mean P and Q"),
        svg=svg("figure_02"),
    log:
        LOGS / "figure_2.log",
    benchmark:
        BENCHMARKS / "figure_2.tsv"
    conda:
        "../../envs/figures.yaml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        *code("plot_weights"),
        vary="main",
    shell:
        "python -m ictd.steps.plot_weights --vary {params.vary} --weights {input}"
        " --output {output.png} > {log} 2>&1"


rule figure_3:
    output:
        png=png("figure_03", "03: Boyan's chain"),
        svg=svg("figure_03"),
    log:
        LOGS / "figure_3.log",
    benchmark:
        BENCHMARKS / "figure_3.tsv"
    conda:
        "../../envs/figures.yaml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        *code("plot_environment"),
        options=options(env="boyan", states=6, env_options=env_options("boyan"), layout="line"),
    shell:
        "python -m ictd.steps.plot_environment {params.options} --output {output.png} > {log} 2>&1"


use rule figure_2 as figure_4 with:
    input:
        of_cells("weights", "depths"),
    output:
        png=png("figure_04", "04: mean P and Q by depth"),
        svg=svg("figure_04"),
    log:
        LOGS / "figure_4.log",
    benchmark:
        BENCHMARKS / "figure_4.tsv"
    params:
        *code("plot_weights"),
        vary="depths",


use rule figure_1 as figure_5 with:
    input:
        evaluations=of_cells("evaluation", "depths"),
        baselines=baselines_of("depths"),
    output:
        png=png("figure_05", "05: MSVE by depth"),
        svg=svg("figure_05"),
    log:
        LOGS / "figure_5.log",
    benchmark:
        BENCHMARKS / "figure_5.tsv"
    params:
        *code("plot_curves"),
        vary="depths",


use rule figure_2 as figure_6 with:
    input:
        of_cells("weights", "states"),
    output:
        png=png("figure_06", "06: mean P and Q by number of states"),
        svg=svg("figure_06"),
    log:
        LOGS / "figure_6.log",
    benchmark:
        BENCHMARKS / "figure_6.tsv"
    params:
        *code("plot_weights"),
        vary="states",


use rule figure_1 as figure_7 with:
    input:
        evaluations=of_cells("evaluation", "states"),
        baselines=baselines_of("states"),
    output:
        png=png("figure_07", "07: MSVE by number of states"),
        svg=svg("figure_07"),
    log:
        LOGS / "figure_7.log",
    benchmark:
        BENCHMARKS / "figure_7.tsv"
    params:
        *code("plot_curves"),
        vary="states",


use rule figure_3 as figure_8 with:
    output:
        png=png("figure_08", "08: Loop"),
        svg=svg("figure_08"),
    log:
        LOGS / "figure_8.log",
    benchmark:
        BENCHMARKS / "figure_8.tsv"
    params:
        *code("plot_environment"),
        options=options(env="loop", states=6, env_options=env_options("loop"), layout="circle"),


use rule figure_2 as figure_9 with:
    input:
        of_cells("weights", "envs"),
    output:
        png=png("figure_09", "09: mean P and Q by environment"),
        svg=svg("figure_09"),
    log:
        LOGS / "figure_9.log",
    benchmark:
        BENCHMARKS / "figure_9.tsv"
    params:
        *code("plot_weights"),
        vary="envs",


use rule figure_1 as figure_10 with:
    input:
        evaluations=of_cells("evaluation", "envs"),
        baselines=baselines_of("envs"),
    output:
        png=png("figure_10", "10: MSVE by environment"),
        svg=svg("figure_10"),
    log:
        LOGS / "figure_10.log",
    benchmark:
        BENCHMARKS / "figure_10.tsv"
    params:
        *code("plot_curves"),
        vary="envs",


rule figure_learning:
    input:
        expand(RESULTS / "weights/{cell}.npz", cell=CELLS),
    output:
        png=png("learning", "learning curves"),
        svg=svg("learning"),
    log:
        LOGS / "figure_learning.log",
    benchmark:
        BENCHMARKS / "figure_learning.tsv"
    conda:
        "../../envs/figures.yaml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        *code("plot_learning"),
    shell:
        "python -m ictd.steps.plot_learning --weights {input} --output {output.png} > {log} 2>&1"


# Figures of a study that the configuration does not vary are left out.
SHOWN = ["figure_01", "figure_02", "figure_03"]
SHOWN += ["figure_04", "figure_05"] if cells(config, "depths") else []
SHOWN += ["figure_06", "figure_07"] if cells(config, "states") else []
SHOWN += ["figure_08"]
SHOWN += ["figure_09", "figure_10"] if cells(config, "envs") else []
SHOWN += ["learning"]
FIGURES = expand(RESULTS / "figures/{name}.png", name=SHOWN)
