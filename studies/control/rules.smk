# A study beyond the paper: the Transformer as critic in policy iteration. `snakemake control` runs it.
CONTROL = config["control"]
with ending_in_a_sentence():
    CONTROL_PLACES = variants({}, CONTROL["places"])
    CONTROL_VARIANTS = variants(CONTROL["main"], CONTROL["variants"])
    for CONTROL_NAME, CONTROL_VARIANT in CONTROL_VARIANTS.items():
        if CONTROL_VARIANT["place"] not in CONTROL_PLACES:
            raise ValueError(
                f"Config: the place of {CONTROL_NAME!r} in control.variants is not in control.places."
            )


use rule step as control_pretrain with:
    input:
        options=step(
            "studies.control.pretrain",
            CONTROL,
            variant=lambda wildcards: CONTROL_VARIANTS[wildcards.variant],
            place=lambda wildcards: CONTROL_PLACES[CONTROL_VARIANTS[wildcards.variant]["place"]],
        ),
    output:
        "<results>/control/runs/{variant}.npz",
    pathvars:
        job="control_pretrain/{variant}",
    # Long runs first: a long run that starts last leaves the other cores idle.
    priority: lambda wildcards: CONTROL_VARIANTS[wildcards.variant]["tasks"]
    conda:
        f"{ENVS}/studies.yaml"


use rule step as control_evaluate with:
    input:
        runs=lambda wildcards: [
            f"<results>/control/runs/{name}.npz"
            for name, variant in CONTROL_VARIANTS.items()
            if variant["place"] == wildcards.place
        ],
        options=step(
            "studies.control.evaluate",
            CONTROL["evaluation"],
            place=lambda wildcards: CONTROL_PLACES[wildcards.place],
        ),
    output:
        "<results>/control/places/{place}.npz",
    pathvars:
        job="control_evaluate/{place}",
    conda:
        f"{ENVS}/studies.yaml"


use rule step as control_results with:
    input:
        files=expand("<results>/control/places/{place}.npz", place=CONTROL_PLACES),
        options=study_step("control"),
    output:
        **study_output("control"),
    pathvars:
        job="control_results",
    localrule: True
    conda:
        f"{ENVS}/report.yaml"


rule control:
    input:
        "<results>/control/control.html",
