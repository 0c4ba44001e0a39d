# Part of the study in beyond.smk: attention that is not linear, in its main setting.
ATTENTIONS = {
    one["name"]: {key: value for key, value in one.items() if key != "name"} for one in AGENTS["attentions"]
}
ATTENTION_RUN = "attention/{attention}/{prompts}-{algo}/{seeds}"
ATTENTION_GROUPS = seed_groups(
    AGENTS["seeds"], config["seeds_per_job"], [file.stem for file in BEYOND.glob("attention/*/*/*.npz")]
)


wildcard_constraints:
    attention=r"\w+",
    prompts=r"contexts|enumerated",


rule attention:
    input:
        [kernels("sampling"), kernels("attention")],
    output:
        BEYOND / f"{ATTENTION_RUN}.npz",
    log:
        LOGS / f"{ATTENTION_RUN}.log",
    benchmark:
        BENCHMARKS / f"{ATTENTION_RUN}.tsv"
    conda:
        "../../envs/studies.yaml"
    threads: 1
    resources:
        mem_mb=2000,
        runtime=120,
    params:
        *code("attention"),
        options=lambda wildcards: options(
            "batch_size",
            "rollout_steps",
            "learning_rate",
            "readings.initial_gain",
            "beyond.lengths",
            "beyond.clip",
            **SETTING_OPTIONS,
            tasks=AGENTS["attention_tasks"],
            attention=ATTENTIONS[wildcards.attention],
            env_options=env_options(FIRST[0]),
        ),
    shell:
        "python -m ictd.steps.attention --prompts {wildcards.prompts} --algo {wildcards.algo}"
        " --seeds {wildcards.seeds} {params.options} --output {output} > {log} 2>&1"


rule attention_values:
    input:
        runs=expand(
            BEYOND / "attention/{{attention}}/{prompts}-{algo}/{seeds}.npz",
            prompts=["contexts", "enumerated"],
            algo=config["algos"],
            seeds=ATTENTION_GROUPS,
        ),
        kernels=kernels("sampling"),
    output:
        BEYOND / "attention/{attention}.csv",
    log:
        LOGS / "attention_values/{attention}.log",
    benchmark:
        BENCHMARKS / "attention_values/{attention}.tsv"
    conda:
        "../../envs/studies.yaml"
    threads: 1
    resources:
        mem_mb=2000,
        runtime=60,
    params:
        *code("attention_values"),
        options=lambda wildcards: options(
            "beyond.test_tasks",
            "beyond.context_lengths",
            **SETTING_OPTIONS,
            attention=ATTENTIONS[wildcards.attention],
            env_options=env_options(FIRST[0]),
        ),
    shell:
        "python -m ictd.steps.attention_values {params.options} --runs {input.runs} --output {output} > {log} 2>&1"
