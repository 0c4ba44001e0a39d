# A study beyond the paper: what emerges with features in place of one-hot states. `snakemake features` runs it.
include: "predecessor.smk"


rule features:
    input:
        FEATURES_PREDECESSOR_TABLES,
        FEATURES_PREDECESSOR_FIGURES,
