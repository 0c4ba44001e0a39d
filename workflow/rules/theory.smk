# Numerical checks of the paper's theory.  They come before the other figures, as the theory's take longest.
VALUE_STATES = sorted({*config["theory"]["states"], *config["states"]})
CHECKED = [f"{env}-{states}" for env, states in SIMULATIONS]
THEORY_STATEMENTS = ROOT / "report/theory_claims.toml"
# Tables that wait for no training, and those of pretrained weights.
OF_THEORY = "statements neu agreement precision family family_updates".split()
OF_PRETRAINED = "pretrained repeated".split()
THEORY_TABLES = [*OF_THEORY, *OF_PRETRAINED]
THEORY_FIGURES = "theorem_1 lemmas theorem_2 corollary_1 family".split()
THEORY_SHOWN = [*THEORY_FIGURES, "pretrained"]


use rule step as theory_values with:
    output:
        "<results>/theory/values/{env}.npz",
    pathvars:
        job="theory_values/{env}",
    priority: 1
    params:
        **step("theory.values", states=VALUE_STATES, env_options=own_options),


use rule step as theory_descent with:
    output:
        "<results>/theory/descent/{env}-{states}.npz",
    pathvars:
        job="theory_descent/{env}-{states}",
    # Long, and first: where cores are few, one core compiles meanwhile what others would compile beside it.
    priority: lambda wildcards: awaited(wildcards) + 1
    params:
        **step("theory.descent", env_options=own_options),


use rule step as theory_family with:
    output:
        "<results>/theory/family/{env}-{states}.npz",
    pathvars:
        job="theory_family/{env}-{states}",
    priority: 1
    params:
        **step("theory.family", env_options=own_options),


use rule step as theory_pretrained with:
    input:
        # By all algorithms however jobs are cut: a job is done again where the names of its inputs change.
        weights=of_algos(f"<results>/weights/{CELL}.npz"),
    output:
        # Without a name, as those of pretraining.
        of_job(f"<results>/theory/pretrained/{CELL}.npz"),
    pathvars:
        job=f"theory_pretrained/{OF_JOB}",
    priority: 1
    params:
        **step("theory.pretrained", env_options=own_options),


use rule step as theory_agreement with:
    output:
        "<results>/theory/agreement.json",
    pathvars:
        job="theory_agreement",
    priority: 1
    conda:
        f"{ENVS}/pretrain.yaml"
    params:
        **step("theory.agreement", settings=GRID_SETTINGS),


use rule step as theory_precision with:
    output:
        "<results>/theory/precision/{env}.json",
    pathvars:
        job="theory_precision/{env}",
    priority: 1
    params:
        **step(
            "theory.precision",
            states=VALUE_STATES,
            update_states=lambda wildcards: [states for env, states in SIMULATIONS if env == wildcards.env],
            env_options=own_options,
        ),


use rule gather as theory_tables with:
    input:
        values=expand("<results>/theory/values/{env}.npz", env=sorted(config["envs"])),
        descents=expand("<results>/theory/descent/{setting}.npz", setting=CHECKED),
        agreement="<results>/theory/agreement.json",
        families=expand("<results>/theory/family/{setting}.npz", setting=CHECKED),
        precision=expand("<results>/theory/precision/{env}.json", env=sorted(config["envs"])),
    output:
        expand("<results>/theory/{table}.csv", table=OF_THEORY),
    pathvars:
        job="theory_tables",
    priority: 1
    params:
        **step("theory.tables"),


use rule gather as pretrained_tables with:
    input:
        pretrained=expand("<results>/theory/pretrained/{cell}.npz", cell=sorted(CELLS)),
    output:
        expand("<results>/theory/{table}.csv", table=OF_PRETRAINED),
    pathvars:
        job="pretrained_tables",
    priority: 1
    params:
        **step("theory.pretrained_tables"),


use rule gather as theory_claims with:
    input:
        tables=expand("<results>/theory/{table}.csv", table=THEORY_TABLES),
    output:
        claims="<results>/theory/claims.json",
        page=html("theory"),
    pathvars:
        job="theory_claims",
    priority: 1
    params:
        **step("theory.claims", statements=THEORY_STATEMENTS, cells=GRID, states=VALUE_STATES),


use rule gather as theory_figures with:
    input:
        tables=expand(
            "<results>/theory/{table}.csv", table=[name for name in OF_THEORY if name != "agreement"]
        ),
    output:
        [figure(name) for name in THEORY_FIGURES],
    pathvars:
        job="theory_figures",
    priority: 1
    params:
        **step("theory.figures", states=config["states"][0]),


use rule gather as pretrained_figure with:
    input:
        tables=expand("<results>/theory/{table}.csv", table=OF_PRETRAINED),
    output:
        figure("pretrained"),
    pathvars:
        job="pretrained_figure",
    params:
        **step("theory.pretrained_figure"),
