# A study beyond the paper: which weights emerge, and why.  `snakemake emergence` runs it.
EMERGENCE = config["emergence"]
EMERGENCE_MINIMISERS = {
    f"{setting['states']}-{setting['depth']}": setting for setting in EMERGENCE["minimisers"]["settings"]
}


use rule step as emergence_step with:
    conda:
        f"{ENVS}/studies.yaml"


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


# Symmetry: relabelled tasks, the identities, the equation of the mean, the space of the weights, and questions.
SYMMETRY = EMERGENCE["symmetry"]
SYMMETRY_KINDS = [f"{kind}{MAIN['env']}" for kind in ("", "relabelled_")]
with ending_in_a_sentence():
    SYMMETRY_EQUATIONS = variants(SYMMETRY["equation"], SYMMETRY["equations"])
    SYMMETRY_SPACES = variants(SYMMETRY["space"], SYMMETRY["spaces"])
SYMMETRY_OTHERS = [
    f"{algo}-{env}-{MAIN['states']}-{MAIN['depth']}"
    for env in SYMMETRY["other_chains"]
    for algo in config["algos"]
]
SYMMETRY_FILES = [
    *expand("<results>/emergence/relabelled/{cell}.npz", cell=[*CELLS, *SYMMETRY_OTHERS]),
    *expand("<results>/emergence/equation/{name}.npz", name=SYMMETRY_EQUATIONS),
    *expand("<results>/emergence/space/{name}.csv", name=SYMMETRY_SPACES),
    *expand("<results>/emergence/{table}/{env}.csv", table=["diversity", "ranges"], env=SYMMETRY_KINDS),
    "<results>/emergence/equivariance.csv",
    "<results>/emergence/drift.csv",
]


use rule emergence_step as emergence_relabelled with:
    input:
        # The paper's runs of a cell of its grid; others are pretrained on ordinary tasks as well.
        weights=lambda wildcards: [
            f"{RESULTS}/weights/{cell}.npz"
            for cell in CELLS
            if str(cell) == "{algo}-{env}-{states}-{depth}".format(**wildcards)
        ],
        options=step("studies.emergence.relabelled", SYMMETRY, updates=config["tasks"]),
    output:
        f"<results>/emergence/relabelled/{CELL}.npz",
    pathvars:
        job=f"emergence_relabelled/{CELL}",
    priority: more_states_first


use rule emergence_step as emergence_identities with:
    input:
        options=step("studies.emergence.identities", SYMMETRY["checks"]),
    output:
        equivariance="<results>/emergence/equivariance.csv",
        drift="<results>/emergence/drift.csv",
    pathvars:
        job="emergence_identities",


use rule emergence_step as emergence_mean_field with:
    input:
        options=step(
            "studies.emergence.mean_field", setting=lambda wildcards: SYMMETRY_EQUATIONS[wildcards.name]
        ),
    output:
        "<results>/emergence/equation/{name}.npz",
    pathvars:
        job="emergence_mean_field/{name}",
    priority: 1


use rule emergence_step as emergence_questions with:
    input:
        options=step(
            "studies.emergence.questions",
            SYMMETRY["questions"],
            SYMMETRY,
            states=MAIN["states"],
            updates=config["tasks"],
        ),
    output:
        diversity="<results>/emergence/diversity/{env}.csv",
        ranges="<results>/emergence/ranges/{env}.csv",
    pathvars:
        job="emergence_questions/{env}",


use rule emergence_step as emergence_space with:
    input:
        options=step(
            "studies.emergence.space",
            SYMMETRY,
            setting=lambda wildcards: SYMMETRY_SPACES[wildcards.name],
            updates=config["tasks"],
        ),
    output:
        "<results>/emergence/space/{name}.csv",
    pathvars:
        job="emergence_space/{name}",
    priority: 1


use rule step as emergence_results with:
    input:
        files=[
            *expand(
                "<results>/emergence/best_numbers/{states}.csv", states=EMERGENCE["best_numbers"]["states"]
            ),
            *expand("<results>/emergence/minimisers/{setting}.csv", setting=EMERGENCE_MINIMISERS),
            *SYMMETRY_FILES,
        ],
        options=study_step("emergence"),
    output:
        **study_output("emergence"),
    pathvars:
        job="emergence_results",
    conda:
        f"{ENVS}/report.yaml"


rule emergence:
    input:
        "<results>/emergence/emergence.html",
