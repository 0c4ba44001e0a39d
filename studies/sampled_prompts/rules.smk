# A study beyond the paper: pretraining on sampled prompts. `snakemake sampled_prompts` runs it.
import studies.sampled_prompts.grid as SAMPLED_GRID

with ending_in_a_sentence():
    SAMPLED = SAMPLED_GRID.Grid(config, RESULTS / "sampled_prompts", CORES)
SAMPLED_RUN = "{target}-{env}-{states}-{depth}-{discount}"
SAMPLED_RUNS = f"<results>/sampled_prompts/runs/{SAMPLED_RUN}/{{seeds}}.npz"
SAMPLED_TABLE_NAMES = "values over_tasks baselines tuned weights preconditioners attention".split()
SAMPLED_TABLES = expand("<results>/sampled_prompts/{name}.csv", name=SAMPLED_TABLE_NAMES)
SAMPLED_SHOWN = [*SAMPLED_TABLES, "<results>/sampled_prompts/formats.csv"]
SAMPLED_FIGURES = "formats msve_by_length ratios targets transfer preconditioner attentions".split()
SAMPLED_PAGES = (
    "formats_table cells claims claims_all values ratios_by_setting weights attention_runs".split()
)
SAMPLED_FOLDER = ROOT / "studies/sampled_prompts"
SAMPLED_NOTEBOOK = notebook_params(SAMPLED_FOLDER / "notebook.ipynb", RESULTS / "sampled_prompts")


use rule step as sampled_prompts_step with:
    wildcard_constraints:
        target=r"\w+",
        discount=r"[\d.]+",
        attention=r"\w+",
    conda:
        f"{ENVS}/studies.yaml"


# Runs that share tasks, contexts and batches are trained in one job: all runs with the main environment, number of states
# and discount, and the algorithms of each other setting.
SAMPLED_MAIN_RUNS = [f"<results>/sampled_prompts/runs/{run}/{{seeds}}.npz" for run in SAMPLED.main_runs]
SAMPLED_OTHER_RUNS = expand(
    SAMPLED_RUNS, target=config["algos"], depth=SAMPLED.main.depth, allow_missing=True
)


ruleorder: sampled_prompts_pretrain_main > sampled_prompts_pretrain


use rule sampled_prompts_step as sampled_prompts_pretrain_main with:
    input:
        options=step(
            "studies.sampled_prompts.pretrain",
            SAMPLED.main._asdict(),
            config["sampled_prompts"],
            targets=[run.target for run in SAMPLED.main_runs],
            depths=[run.depth for run in SAMPLED.main_runs],
            run_tasks=[SAMPLED.tasks[run] for run in SAMPLED.main_runs],
        ),
    output:
        outputs=SAMPLED_MAIN_RUNS,
    pathvars:
        job="sampled_prompts_pretrain_main/{seeds}",
    # Long runs first: a long run that starts last leaves the other cores idle.
    priority: 1000
    resources:
        mem_mb=memory,
        runtime=480,


use rule sampled_prompts_step as sampled_prompts_pretrain with:
    input:
        options=step(
            "studies.sampled_prompts.pretrain",
            config["sampled_prompts"],
            targets=config["algos"],
            depths=[SAMPLED.main.depth] * len(config["algos"]),
            run_tasks=[config["sampled_prompts"]["tasks"]] * len(config["algos"]),
        ),
    output:
        outputs=SAMPLED_OTHER_RUNS,
    pathvars:
        job="sampled_prompts_pretrain/{env}-{states}-{discount}/{seeds}",
    priority: more_states_first
    resources:
        mem_mb=memory,
        runtime=480,


# One job evaluates all runs, because each evaluation takes less time than the start of a process.
use rule sampled_prompts_step as sampled_prompts_evaluate with:
    input:
        runs=expand(
            "<results>/sampled_prompts/runs/{run}/{seeds}.npz", run=SAMPLED.evaluated, seeds=SAMPLED.seeds
        ),
        options=step(
            "studies.sampled_prompts.evaluate",
            config["sampled_prompts"],
            scaled_attention=True,
            shown_by_tasks=SAMPLED.shown_by_tasks,
        ),
    output:
        outputs=expand("<results>/sampled_prompts/values/{name}.npz", name=SAMPLED.values),
    pathvars:
        job="sampled_prompts_evaluate",


# The paper's own pretrained weights on the same contexts.
use rule sampled_prompts_step as sampled_prompts_evaluate_paper with:
    input:
        runs=expand("<results>/weights/{cell}.npz", cell=SAMPLED.paper_cells),
        options=step(
            "studies.sampled_prompts.evaluate",
            config["sampled_prompts"],
            shown_by_tasks=SAMPLED.shown_by_tasks,
        ),
    output:
        outputs=expand("<results>/sampled_prompts/paper/{name}.npz", name=SAMPLED.paper),
    pathvars:
        job="sampled_prompts_evaluate_paper",


use rule sampled_prompts_step as sampled_prompts_baselines with:
    input:
        options=step(
            "studies.sampled_prompts.baselines",
            config["sampled_prompts"],
            depth=SAMPLED.main.depth,
        ),
    output:
        "<results>/sampled_prompts/baselines/{env}-{states}-{discount}.npz",
    pathvars:
        job="sampled_prompts_baselines/{env}-{states}-{discount}",


# Other kinds of attention, in the main setting.
SAMPLED_ATTENTION_RUNS = expand(
    "<results>/sampled_prompts/attention/{attention}/{run}/{{seeds}}.npz",
    attention=sorted(SAMPLED.attentions),
    run=SAMPLED.attention_runs,
)


use rule sampled_prompts_step as sampled_prompts_pretrain_attention with:
    input:
        options=step(
            "studies.sampled_prompts.pretrain_attention",
            config["sampled_prompts"],
            attentions=SAMPLED.attentions,
            **MAIN,
        ),
    output:
        outputs=SAMPLED_ATTENTION_RUNS,
    pathvars:
        job="sampled_prompts_pretrain_attention/{seeds}",
    priority: 100
    resources:
        mem_mb=memory,
        runtime=240,


use rule sampled_prompts_step as sampled_prompts_evaluate_attention with:
    input:
        runs=expand(
            "<results>/sampled_prompts/attention/{attention}/{run}/{seeds}.npz",
            run=SAMPLED.attention_runs,
            seeds=SAMPLED.attention_seeds,
            allow_missing=True,
        ),
        options=step(
            "studies.sampled_prompts.evaluate_attention",
            config["sampled_prompts"],
            attention=lambda wildcards: SAMPLED.attentions[wildcards.attention],
            **MAIN,
        ),
    output:
        "<results>/sampled_prompts/attention/{attention}.csv",
    pathvars:
        job="sampled_prompts_evaluate_attention/{attention}",


# Three formats of sampled contexts, for weights pretrained on each format and for the weights of the paper's cells.
use rule sampled_prompts_step as sampled_prompts_formats with:
    input:
        runs=expand(
            "<results>/sampled_prompts/runs/{run}/{seeds}.npz", run=SAMPLED.formats, seeds=SAMPLED.seeds
        ),
        cells=expand("<results>/weights/{cell}.npz", cell=SAMPLED.cells),
        baselines=expand("<results>/sampled_prompts/baselines/{name}.npz", name=SAMPLED.format_baselines),
        options=step("studies.sampled_prompts.formats", config["sampled_prompts"]),
    output:
        "<results>/sampled_prompts/formats.csv",
    pathvars:
        job="sampled_prompts_formats",


use rule step as sampled_prompts_tables with:
    input:
        runs=expand(
            "<results>/sampled_prompts/runs/{run}/{seeds}.npz", run=SAMPLED.tasks, seeds=SAMPLED.seeds
        ),
        values=expand("<results>/sampled_prompts/values/{name}.npz", name=SAMPLED.values),
        paper=expand("<results>/sampled_prompts/paper/{name}.npz", name=SAMPLED.paper),
        baselines=expand("<results>/sampled_prompts/baselines/{name}.npz", name=SAMPLED.baselines),
        attention=expand("<results>/sampled_prompts/attention/{name}.csv", name=SAMPLED.attentions),
        options=step("studies.sampled_prompts.tables"),
    output:
        SAMPLED_TABLES,
    pathvars:
        job="sampled_prompts_tables",
    localrule: True


use rule step as sampled_prompts_claims with:
    input:
        tables=SAMPLED_SHOWN,
        options=step(
            "studies.sampled_prompts.claims",
            config["sampled_prompts"],
            statements=SAMPLED_FOLDER / "claims.toml",
            setting=SAMPLED.main._asdict(),
        ),
    output:
        "<results>/sampled_prompts/claims.json",
    pathvars:
        job="sampled_prompts_claims",
    localrule: True


use rule step as sampled_prompts_figures with:
    input:
        tables=SAMPLED_SHOWN,
        options=step(
            "studies.sampled_prompts.figures", config["sampled_prompts"], setting=SAMPLED.main._asdict()
        ),
    output:
        expand(
            "<results>/sampled_prompts/figures/{name}.{ending}", name=SAMPLED_FIGURES, ending=["png", "svg"]
        ),
    pathvars:
        job="sampled_prompts_figures",
    localrule: True


use rule step as sampled_prompts_pages with:
    input:
        claims="<results>/sampled_prompts/claims.json",
        tables=SAMPLED_SHOWN,
        options=step(
            "studies.sampled_prompts.pages", config["sampled_prompts"], setting=SAMPLED.main._asdict()
        ),
    output:
        expand("<results>/sampled_prompts/tables/{name}.html", name=SAMPLED_PAGES),
    pathvars:
        job="sampled_prompts_pages",
    localrule: True


use rule notebook as sampled_prompts_notebook with:
    input:
        shown=[rules.sampled_prompts_pages.output, rules.sampled_prompts_figures.output],
        claims="<results>/sampled_prompts/claims.json",
        options=step("ictd.report.notebook", **SAMPLED_NOTEBOOK),
    output:
        executed="<results>/sampled_prompts/sampled_prompts.ipynb",
        page="<results>/sampled_prompts/sampled_prompts.html",
    pathvars:
        job="sampled_prompts_notebook",
    localrule: True


rule sampled_prompts:
    input:
        "<results>/sampled_prompts/sampled_prompts.html",
