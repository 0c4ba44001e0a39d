# A study beyond the paper: what emerges with fewer features than states. `snakemake features` runs it.
from studies.features.setting import checked_settings

FEATURES = config["features"]
with ending_in_a_sentence():
    FEATURES_SETTINGS = checked_settings(FEATURES)


use rule step as features_step with:
    wildcard_constraints:
        setting=r"[a-z][a-z0-9_.]*",
    conda:
        f"{ENVS}/studies.yaml"
    resources:
        mem_mb=memory,


use rule features_step as features_pretrain with:
    input:
        options=step(
            "studies.features.pretrain", setting=lambda wildcards: FEATURES_SETTINGS[wildcards.setting]
        ),
    output:
        "<results>/features/weights/{setting}.npz",
    pathvars:
        job="features_pretrain/{setting}",
    # Long runs first: a long run that starts last leaves the other cores idle.
    priority: lambda wildcards: FEATURES_SETTINGS[wildcards.setting]["updates"]


use rule features_step as features_compare with:
    input:
        weights="<results>/features/weights/{setting}.npz",
        options=step(
            "studies.features.compare",
            FEATURES,
            name=lambda wildcards: wildcards.setting,
            setting=lambda wildcards: FEATURES_SETTINGS[wildcards.setting],
        ),
    output:
        "<results>/features/errors/{setting}.csv",
    pathvars:
        job="features_compare/{setting}",


use rule features_step as features_mean_part with:
    input:
        weights="<results>/features/weights/{setting}.npz",
        options=step(
            "studies.features.mean_part",
            FEATURES["mean_part"],
            name=lambda wildcards: wildcards.setting,
            setting=lambda wildcards: FEATURES_SETTINGS[wildcards.setting],
        ),
    output:
        "<results>/features/mean_part/{setting}.csv",
    pathvars:
        job="features_mean_part/{setting}",


use rule step as features_results with:
    input:
        weights=expand("<results>/features/weights/{setting}.npz", setting=FEATURES_SETTINGS),
        files=[
            *expand("<results>/features/errors/{setting}.csv", setting=FEATURES_SETTINGS),
            *expand("<results>/features/mean_part/{setting}.csv", setting=FEATURES["mean_part"]["settings"]),
        ],
        options=study_step("features"),
    output:
        **study_output("features"),
    pathvars:
        job="features_results",
    conda:
        f"{ENVS}/report.yaml"


rule features:
    input:
        "<results>/features/features.html",
