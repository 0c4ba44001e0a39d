# A study beyond the paper: which weights emerge, and why.  `snakemake emergence` runs it.
EMERGENCE = config["emergence"]
EMERGENCE_MINIMISERS = {
    f"{setting['states']}-{setting['depth']}": setting for setting in EMERGENCE["minimisers"]["settings"]
}


use rule step as emergence_step with:
    conda:
        f"{ENVS}/studies.yaml"


# Shares of a few numbers in the weights of the paper's cells.
use rule emergence_step as emergence_shares with:
    input:
        weights=f"<results>/weights/{CELL}.npz",
        options=step("studies.emergence.shares", EMERGENCE),
    output:
        f"<results>/emergence/shares/{CELL}.csv",
    pathvars:
        job=f"emergence_shares/{CELL}",


# The best numbers, and minimisers.
use rule emergence_step as emergence_best_numbers with:
    input:
        options=step(
            "studies.emergence.best_numbers",
            EMERGENCE["best_numbers"],
            env=MAIN["env"],
            discounts=lambda wildcards: (
                EMERGENCE["best_numbers"]["discounts"]
                if int(wildcards.states) == MAIN["states"]
                else [config["discount"]]
            ),
        ),
    output:
        "<results>/emergence/best_numbers/{states}.csv",
    pathvars:
        job="emergence_best_numbers/{states}",


use rule emergence_step as emergence_minimisers with:
    input:
        options=step(
            "studies.emergence.minimisers",
            EMERGENCE["minimisers"],
            env=MAIN["env"],
            starts=lambda wildcards: EMERGENCE_MINIMISERS[f"{wildcards.states}-{wildcards.depth}"]["starts"],
        ),
    output:
        "<results>/emergence/minimisers/{states}-{depth}.csv",
    pathvars:
        job="emergence_minimisers/{states}-{depth}",


# Another slow mode.
use rule emergence_step as emergence_slow_mode with:
    input:
        options=step("studies.emergence.slow_mode", EMERGENCE["slow_mode"], MAIN),
    output:
        "<results>/emergence/slow_mode/{design}.csv",
    pathvars:
        job="emergence_slow_mode/{design}",


use rule step as emergence_results with:
    input:
        files=[
            *expand("<results>/emergence/shares/{cell}.csv", cell=CELLS),
            *expand(
                "<results>/emergence/best_numbers/{states}.csv", states=EMERGENCE["best_numbers"]["states"]
            ),
            *expand("<results>/emergence/minimisers/{setting}.csv", setting=EMERGENCE_MINIMISERS),
            *expand("<results>/emergence/slow_mode/{design}.csv", design=["falling", "rising"]),
        ],
        options=study_step("emergence"),
    output:
        **study_output("emergence"),
    pathvars:
        job="emergence_results",
    conda:
        f"{ENVS}/studies.yaml"


rule emergence:
    input:
        "<results>/emergence/emergence.html",
