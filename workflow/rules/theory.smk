# Numerical checks of the paper's theory.  They come before the other figures, as the theory's take longest.
VALUE_STATES = sorted({*config["theory"]["states"], *config["states"]})
CHECKED = [f"{env}-{states}" for env, states in SIMULATIONS]
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
        **step("ictd.theory.values", config["theory"], states=VALUE_STATES, env_options=own_options),


use rule step as theory_descent with:
    output:
        "<results>/theory/descent/{env}-{states}.npz",
    pathvars:
        job="theory_descent/{env}-{states}",
    priority: more_states_first
    params:
        **step("ictd.theory.descent", config["theory"], env_options=own_options),


use rule step as theory_family with:
    output:
        "<results>/theory/family/{env}-{states}.npz",
    pathvars:
        job="theory_family/{env}-{states}",
    priority: 1
    params:
        **step("ictd.theory.family", config["theory"], env_options=own_options),


use rule step as theory_pretrained with:
    input:
        weights=f"<results>/weights/{CELL}.npz",
    output:
        f"<results>/theory/pretrained/{CELL}.npz",
    pathvars:
        job=f"theory_pretrained/{CELL}",
    priority: 1
    params:
        **step("ictd.theory.pretrained", config["theory"], env_options=own_options),


use rule step as theory_agreement with:
    output:
        "<results>/theory/agreement.json",
    pathvars:
        job="theory_agreement",
    priority: 1
    conda:
        f"{ENVS}/pretrain.yaml"
    params:
        **step("ictd.theory.agreement", settings=GRID_SETTINGS),


use rule step as theory_precision with:
    output:
        "<results>/theory/precision/{env}.json",
    pathvars:
        job="theory_precision/{env}",
    priority: 1
    params:
        **step(
            "ictd.theory.precision",
            config["theory"],
            states=VALUE_STATES,
            update_states=lambda wildcards: [states for env, states in SIMULATIONS if env == wildcards.env],
            env_options=own_options,
        ),


use rule step as theory_tables with:
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
    localrule: True
    params:
        **step("ictd.theory.tables"),


use rule step as pretrained_tables with:
    input:
        pretrained=expand("<results>/theory/pretrained/{cell}.npz", cell=sorted(CELLS)),
    output:
        expand("<results>/theory/{table}.csv", table=OF_PRETRAINED),
    pathvars:
        job="pretrained_tables",
    priority: 1
    localrule: True
    params:
        **step("ictd.theory.pretrained_tables"),


use rule step as theory_claims with:
    input:
        tables=expand("<results>/theory/{table}.csv", table=THEORY_TABLES),
    output:
        claims="<results>/theory/claims.json",
        page=html("theory"),
    pathvars:
        job="theory_claims",
    priority: 1
    localrule: True
    params:
        **step("ictd.theory.claims", statements=ROOT / "report/theory_claims.toml"),


use rule step as theory_figures with:
    input:
        tables=expand(
            "<results>/theory/{table}.csv", table=[name for name in OF_THEORY if name != "agreement"]
        ),
    output:
        [figure(name) for name in THEORY_FIGURES],
    pathvars:
        job="theory_figures",
    priority: 1
    localrule: True
    params:
        **step("ictd.theory.figures", main_setting(config)),


use rule step as pretrained_figure with:
    input:
        tables=expand("<results>/theory/{table}.csv", table=OF_PRETRAINED),
    output:
        figure("pretrained"),
    pathvars:
        job="pretrained_figure",
    localrule: True
    params:
        **step("ictd.theory.pretrained_figure"),
