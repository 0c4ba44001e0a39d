# Numerical checks of the paper's theory.
VALUE_STATES = sorted({*config["theory"]["states"], *config["states"]})
# Tables that consist of parts from several jobs: those of theta^TD, and those of pretrained weights.
IN_PARTS = "statements neu".split()
OF_PRETRAINED = "pretrained repeated".split()
THEORY_TABLES = [*IN_PARTS, "family", "family_updates"]
# The theory is about two algorithms. Their weights are the only ones with J and J'.
THEORY_ALGOS = [algo for algo in ("mc", "td") if algo in config["algos"]]
THEORY_TABLES += OF_PRETRAINED if THEORY_ALGOS else []
# Settings in the order of their numbers: names would put 10 states before 3.
ORDERED_SETTINGS = list(dict.fromkeys(cell.setting for cell in sorted(CELLS)))


use rule step as theory_values with:
    input:
        options=step("ictd.steps.theory.values", config["theory"], states=VALUE_STATES),
    output:
        "<results>/theory/statements/{env}.csv",
    pathvars:
        job="theory_values/{env}",
    priority: 1


use rule step as theory_descent with:
    input:
        options=step("ictd.steps.theory.descent", config["theory"]),
    output:
        statements="<results>/theory/statements/{env}-{states}.csv",
        neu="<results>/theory/neu/{env}-{states}.csv",
    pathvars:
        job="theory_descent/{env}-{states}",
    priority: before_returns


use rule step as theory_family with:
    input:
        options=step("ictd.steps.theory.family", config["theory"], settings=SIMULATIONS),
    output:
        errors="<results>/theory/family.csv",
        updates="<results>/theory/family_updates.csv",
    pathvars:
        job="theory_family",
    priority: 1


# One job for each algorithm: starting Python takes about as long as a cell, but on many cores a single job would be the
# last to end.
use rule step as theory_pretrained with:
    input:
        weights=[f"<results>/weights/{{algo}}-{setting}.npz" for setting in ORDERED_SETTINGS],
        options=step("ictd.steps.theory.pretrained", config["theory"]),
    output:
        line="<results>/theory/pretrained/{algo}.csv",
        repeated="<results>/theory/repeated/{algo}.csv",
    pathvars:
        job="theory_pretrained/{algo}",
    priority: 1


use rule step as theory_tables with:
    input:
        parts=[
            *expand("<results>/theory/statements/{env}.csv", env=sorted(config["envs"])),
            *expand("<results>/theory/{table}/{setting}.csv", table=IN_PARTS, setting=SIMULATIONS),
        ],
        options=step("ictd.steps.concatenate"),
    output:
        tables=expand("<results>/theory/{table}.csv", table=IN_PARTS),
    pathvars:
        job="theory_tables",
    priority: 1
    localrule: True


# Apart from theory_tables, so that the figures of the theory do not wait for pretraining.
use rule theory_tables as pretrained_tables with:
    input:
        parts=expand("<results>/theory/{table}/{algo}.csv", table=OF_PRETRAINED, algo=THEORY_ALGOS),
        options=step("ictd.steps.concatenate"),
    output:
        tables=expand("<results>/theory/{table}.csv", table=OF_PRETRAINED),
    pathvars:
        job="pretrained_tables",
