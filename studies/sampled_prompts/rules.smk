# What a prompt's format, a prior and training on trajectories are worth. `snakemake sampled_prompts` runs the study.
from studies.sampled_prompts import grid as SAMPLED_GRID

SAMPLED = config["sampled_prompts"]
with ending_in_a_sentence():
    SAMPLED_GRID.check(config, SAMPLED)
SAMPLED_SETTINGS = SAMPLED_GRID.training_settings(config, SAMPLED)
SAMPLED_PLACES = SAMPLED_GRID.places(config, SAMPLED)
SAMPLED_SEEDS = seed_ranges(
    config["seeds_per_job"],
    config["seeds"],
    len(SAMPLED_SETTINGS),
    CORES,
    RESULTS.glob("sampled_prompts/runs/*/*.npz"),
)


use rule step as sampled_prompts_pretrain with:
    input:
        options=step(
            "studies.sampled_prompts.pretrain",
            training=lambda wildcards: SAMPLED_SETTINGS[wildcards.setting],
            env=lambda wildcards: SAMPLED_SETTINGS[wildcards.setting]["env"],
        ),
    output:
        "<results>/sampled_prompts/runs/{setting}/{seeds}.npz",
    pathvars:
        job="sampled_prompts_pretrain/{setting}/{seeds}",
    wildcard_constraints:
        setting=r"\w+",
    # Long runs first: a long run that starts last leaves the other cores idle.
    priority: lambda wildcards: SAMPLED_SETTINGS[wildcards.setting]["tasks"]
    conda:
        f"{ENVS}/studies.yaml"
    resources:
        mem_mb=memory,
        runtime=480,


use rule step as sampled_prompts_evaluate with:
    input:
        runs=lambda wildcards: expand(
            f"{RESULTS}/sampled_prompts/runs/{{setting}}/{{seeds}}.npz",
            setting=SAMPLED_GRID.settings_at(SAMPLED_SETTINGS, wildcards),
            seeds=SAMPLED_SEEDS,
        ),
        # The paper's weights with this number of states.
        cells=lambda wildcards: [
            f"{RESULTS}/weights/{cell}.npz"
            for cell in CELLS
            if wildcards.env == EVALUATED_ON and cell.states == int(wildcards.states)
        ],
        # The unseen tasks are those of the claims of the paper's part.
        options=step(
            "studies.sampled_prompts.evaluate",
            SAMPLED,
            claim_tasks=config["evaluation"]["claim_tasks"],
            context_lengths=SAMPLED_GRID.lengths_of(config, SAMPLED),
            longest=max(config["evaluation"]["context_lengths"]),
            settings=lambda wildcards: SAMPLED_GRID.settings_at(SAMPLED_SETTINGS, wildcards),
        ),
    output:
        "<results>/sampled_prompts/{env}-{states}/errors.csv",
        "<results>/sampled_prompts/{env}-{states}/fits.csv",
    pathvars:
        job="sampled_prompts_evaluate/{env}-{states}",
    priority: more_states_first
    conda:
        f"{ENVS}/studies.yaml"
    resources:
        mem_mb=memory,
        runtime=120,


use rule step as sampled_prompts_results with:
    input:
        files=[
            f"<results>/sampled_prompts/{place}/{table}.csv"
            for place in SAMPLED_PLACES
            for table in ("errors", "fits")
        ],
        options=study_step("sampled_prompts"),
    output:
        **study_output("sampled_prompts"),
    pathvars:
        job="sampled_prompts_results",
    localrule: True
    conda:
        f"{ENVS}/report.yaml"


rule sampled_prompts:
    input:
        "<results>/sampled_prompts/sampled_prompts.html",
