# A study beyond the paper: prompts as an agent sees them. `snakemake agents` runs it.
import studies.agents.grid as AGENTS_GRID

with ending_in_a_sentence():
    AGENTS = AGENTS_GRID.Grid(config, RESULTS / "agents", CORES)
AGENTS_RUN = "{teacher}-{env}-{states}-{depth}-{discount}"
AGENTS_PLACE = "{on_env}-{on_discount}"
AGENTS_RUNS = f"<results>/agents/runs/{AGENTS_RUN}/{{seeds}}.npz"
AGENTS_TASKS = lambda wildcards: AGENTS.tasks["-".join(wildcards[:5])]
AGENTS_ON_OPTIONS = lambda wildcards: env_options(config, wildcards.on_env)
AGENTS_TABLE_NAMES = "values over_tasks baselines chosen shapes preconditioners attention".split()
AGENTS_TABLES = expand("<results>/agents/{name}.csv", name=AGENTS_TABLE_NAMES)
AGENTS_FIGURES = "beside_baselines ratios teachers transfer preconditioner attentions".split()
AGENTS_PAGES = "claims claims_all values ratios_by_setting shapes attention_runs".split()
AGENTS_FOLDER = ROOT / "studies/agents"
AGENTS_NOTEBOOK = dict(notebook=AGENTS_FOLDER / "notebook.ipynb", captions=AGENTS_FOLDER / "captions")
AGENTS_NOTEBOOK["parameters"] = {"results": str(RESULTS / "agents")}


use rule step as agents_step with:
    wildcard_constraints:
        teacher=r"\w+",
        discount=r"[\d.]+",
        on_env=r"\w+",
        on_discount=r"[\d.]+",
        attention=r"\w+",
        prompts="|".join(AGENTS_GRID.PROMPTS),
    conda:
        f"{ENVS}/studies.yaml"


use rule agents_step as agents_pretrain with:
    output:
        AGENTS_RUNS,
    pathvars:
        job=f"agents_pretrain/{AGENTS_RUN}/{{seeds}}",
    # Long runs first, roughly: one that comes last keeps the other cores waiting.
    priority: lambda wildcards: AGENTS_TASKS(wildcards) * int(wildcards.states)
    resources:
        mem_mb=memory,
        runtime=480,
    params:
        **step("studies.agents.pretrain", config["agents"], run_tasks=AGENTS_TASKS, env_options=own_options),


use rule agents_step as agents_evaluate with:
    input:
        runs=expand(AGENTS_RUNS, seeds=AGENTS.seeds, allow_missing=True),
    output:
        f"<results>/agents/values/{AGENTS_RUN}/{AGENTS_PLACE}.npz",
    pathvars:
        job=f"agents_evaluate/{AGENTS_RUN}/{AGENTS_PLACE}",
    params:
        **step(
            "studies.agents.evaluate",
            config["agents"],
            attention_scale="context_length",
            env_options=AGENTS_ON_OPTIONS,
        ),


# The paper's own pretrained weights on the same contexts.
use rule agents_step as agents_evaluate_paper with:
    input:
        runs=f"<results>/weights/{CELL}.npz",
    output:
        f"<results>/agents/paper/{CELL}/{AGENTS_PLACE}.npz",
    pathvars:
        job=f"agents_evaluate_paper/{CELL}/{AGENTS_PLACE}",
    params:
        **step("studies.agents.evaluate", config["agents"], env_options=AGENTS_ON_OPTIONS),


use rule agents_step as agents_baselines with:
    output:
        "<results>/agents/baselines/{env}-{states}-{discount}.npz",
    pathvars:
        job="agents_baselines/{env}-{states}-{discount}",
    params:
        **step("studies.agents.baselines", config["agents"], depth=AGENTS.main.depth, env_options=own_options),


# Attention that is not linear, in the main setting.
AGENTS_ATTENTION = main_setting(config) | {"env_options": env_options(config, AGENTS.main.env)}
AGENTS_ATTENTION["attention"] = lambda wildcards: AGENTS.attentions[wildcards.attention]


use rule agents_step as agents_pretrain_attention with:
    output:
        "<results>/agents/attention/{attention}/{prompts}-{algo}/{seeds}.npz",
    pathvars:
        job="agents_pretrain_attention/{attention}/{prompts}-{algo}/{seeds}",
    resources:
        mem_mb=memory,
        runtime=120,
    params:
        **step("studies.agents.pretrain_attention", config["agents"], **AGENTS_ATTENTION),


use rule agents_step as agents_evaluate_attention with:
    input:
        runs=expand("<results>/agents/attention/{{attention}}/{run}.npz", run=AGENTS.attention_runs),
    output:
        "<results>/agents/attention/{attention}.csv",
    pathvars:
        job="agents_evaluate_attention/{attention}",
    params:
        **step("studies.agents.evaluate_attention", config["agents"], **AGENTS_ATTENTION),


use rule step as agents_tables with:
    input:
        runs=expand("<results>/agents/runs/{run}/{seeds}.npz", run=AGENTS.tasks, seeds=AGENTS.seeds),
        values=expand("<results>/agents/values/{name}.npz", name=AGENTS.values),
        paper=expand("<results>/agents/paper/{name}.npz", name=AGENTS.paper),
        baselines=expand("<results>/agents/baselines/{name}.npz", name=AGENTS.baselines),
        attention=expand("<results>/agents/attention/{name}.csv", name=AGENTS.attentions),
    output:
        AGENTS_TABLES,
    pathvars:
        job="agents_tables",
    localrule: True
    params:
        **step("studies.agents.tables"),


use rule step as agents_claims with:
    input:
        tables=AGENTS_TABLES,
    output:
        "<results>/agents/claims.json",
    pathvars:
        job="agents_claims",
    localrule: True
    params:
        **step(
            "studies.agents.claims",
            config["agents"],
            statements=AGENTS_FOLDER / "claims.toml",
            setting=AGENTS.main._asdict(),
        ),


use rule step as agents_figures with:
    input:
        tables=AGENTS_TABLES,
    output:
        expand("<results>/agents/figures/{name}.{ending}", name=AGENTS_FIGURES, ending=["png", "svg"]),
    pathvars:
        job="agents_figures",
    localrule: True
    params:
        **step("studies.agents.figures", config["agents"], setting=AGENTS.main._asdict()),


use rule step as agents_pages with:
    input:
        claims="<results>/agents/claims.json",
        tables=AGENTS_TABLES,
    output:
        expand("<results>/agents/tables/{name}.html", name=AGENTS_PAGES),
    pathvars:
        job="agents_pages",
    localrule: True
    params:
        **step("studies.agents.pages", config["agents"], setting=AGENTS.main._asdict()),


use rule notebook as agents_notebook with:
    input:
        shown=[rules.agents_pages.output, rules.agents_figures.output],
        claims="<results>/agents/claims.json",
    output:
        executed="<results>/agents/agents.ipynb",
        page="<results>/agents/agents.html",
    pathvars:
        job="agents_notebook",
    localrule: True
    params:
        **step(
            "ictd.report.notebook", title="In-context TD: prompts as an agent sees them", **AGENTS_NOTEBOOK
        ),


rule agents:
    input:
        "<results>/agents/agents.html",
