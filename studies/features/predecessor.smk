# The predecessor's setting, with all of P and Q, and what decides that pretraining finds TD there.
import studies.features.predecessor_grid as FEATURES_PREDECESSOR_GRID

with ending_in_a_sentence():
    FEATURES_PREDECESSOR_GRID.check(config)
FEATURES_PREDECESSOR = config["features"]["predecessor"]
FEATURES_PREDECESSOR_VARIANTS = FEATURES_PREDECESSOR_GRID.variants(config)
FEATURES_PREDECESSOR_WORK = FEATURES_PREDECESSOR_GRID.work(config)
FEATURES_PREDECESSOR_RUNS = expand(
    "<results>/features/predecessor/{variant}.npz", variant=FEATURES_PREDECESSOR_VARIANTS
)
FEATURES_PREDECESSOR_TABLES = expand(
    "<results>/features/predecessor_{name}.csv", name=["variants", "runs", "course", "matrices"]
)
FEATURES_PREDECESSOR_FIGURES = expand(
    "<results>/features/figures/predecessor_{name}.{ending}",
    name=["course", "matrices", "variants"],
    ending=["png", "svg"],
)


use rule step as features_predecessor_pretrain with:
    input:
        options=step(
            "studies.features.predecessor_pretrain",
            FEATURES_PREDECESSOR,
            variant=lambda wildcards: FEATURES_PREDECESSOR_VARIANTS[wildcards.variant],
        ),
    output:
        "<results>/features/predecessor/{variant}.npz",
    pathvars:
        job="features_predecessor_pretrain/{variant}",
    wildcard_constraints:
        variant=r"\w+",
    # Long runs first: a long run that starts last leaves the other cores idle.
    priority: lambda wildcards: FEATURES_PREDECESSOR_WORK[wildcards.variant]
    conda:
        f"{ENVS}/studies.yaml"


use rule step as features_predecessor_tables with:
    input:
        runs=FEATURES_PREDECESSOR_RUNS,
        options=step("studies.features.predecessor_tables"),
    output:
        FEATURES_PREDECESSOR_TABLES,
    pathvars:
        job="features_predecessor_tables",
    localrule: True
    conda:
        f"{ENVS}/studies.yaml"


use rule step as features_predecessor_figures with:
    input:
        tables=expand("<results>/features/predecessor_{name}.csv", name=["variants", "course", "matrices"]),
        options=step(
            "studies.features.predecessor_figures",
            first=next(iter(FEATURES_PREDECESSOR_VARIANTS)),
            public=ROOT / "studies/features/predecessor_public.csv",
        ),
    output:
        FEATURES_PREDECESSOR_FIGURES,
    pathvars:
        job="features_predecessor_figures",
    localrule: True
    conda:
        f"{ENVS}/studies.yaml"
