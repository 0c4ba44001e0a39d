# A study beyond the paper: prompts as an agent sees them. `snakemake beyond` runs it.
BEYOND = RESULTS / "beyond"
AGENTS = config["beyond"]
AGENT = "{teacher}-{env}-{states}-{depth}-{discount}"
ON_PLACE = "{on_env}-{on_discount}"
FIRST = (MAIN["env"], MAIN["states"], MAIN["depth"], config["discount"])
# The main setting, and those that change one of its values.
AGENT_SETTINGS = [FIRST]
AGENT_SETTINGS += [(*FIRST[:2], depth, FIRST[3]) for depth in AGENTS["depths"]]
AGENT_SETTINGS += [(FIRST[0], states, *FIRST[2:]) for states in AGENTS["states"]]
AGENT_SETTINGS += [(env, *FIRST[1:]) for env in config["envs"][1:]]
AGENT_SETTINGS += [(*FIRST[:3], discount) for discount in AGENTS["discounts"]]
SETTING_OPTIONS = dict(zip(("env", "states", "depth", "discount"), FIRST))
# A run is named after its teacher, an algorithm with sampled or with expected updates, and its setting.
RUN = "{}-{}-{}-{}-{}".format
AGENT_TASKS = {RUN(algo, *setting): AGENTS["tasks"] for algo in config["algos"] for setting in AGENT_SETTINGS}
AGENT_TASKS |= {RUN(algo, *FIRST): AGENTS["main_tasks"] for algo in config["algos"]}
AGENT_TASKS |= {RUN(f"expected_{algo}", *FIRST): AGENTS["tasks"] for algo in config["algos"]}
AGENT_GROUPS = seed_groups(
    AGENTS["seeds"], config["seeds_per_job"], [file.stem for file in BEYOND.glob("runs/*/*.npz")]
)
# Environments and discounts that every run with the main numbers of states and layers is evaluated on.
PLACES = [(env, discount) for env in config["envs"] for discount in (FIRST[3], *AGENTS["discounts"])]
VALUES = [
    f"{RUN(algo, *setting)}/{on_env}-{on_discount}"
    for algo in config["algos"]
    for setting in AGENT_SETTINGS
    for on_env, on_discount in PLACES
    if (on_env, on_discount) == (setting[0], setting[3]) or setting[1:3] == FIRST[1:3]
]
VALUES += [f"{RUN(f'expected_{algo}', *FIRST)}/{FIRST[0]}-{FIRST[3]}" for algo in config["algos"]]
VALUES = list(dict.fromkeys(VALUES))
YARDSTICK_SETTINGS = sorted(
    {(env, FIRST[1], discount) for env, discount in PLACES}
    | {(env, states, discount) for env, states, _, discount in AGENT_SETTINGS}
)


wildcard_constraints:
    teacher=r"\w+",
    discount=r"[\d.]+",
    on_env=r"\w+",
    on_discount=r"[\d.]+",


rule agent:
    input:
        [kernels("sampling"), kernels("contexts")],
    output:
        BEYOND / f"runs/{AGENT}/{{seeds}}.npz",
    log:
        LOGS / f"agent/{AGENT}/{{seeds}}.log",
    benchmark:
        BENCHMARKS / f"agent/{AGENT}/{{seeds}}.tsv"
    # Long runs first, roughly: one that comes last keeps the other cores waiting.
    priority: lambda wildcards: AGENT_TASKS[RUN(*wildcards[:5])] * int(wildcards.states)
    conda:
        "../../envs/studies.yaml"
    threads: 1
    resources:
        mem_mb=2000,
        runtime=480,
    params:
        *code("agent"),
        options=lambda wildcards: options(
            "batch_size",
            "rollout_steps",
            "learning_rate",
            "readings.initial_gain",
            "beyond.lengths",
            "beyond.clip",
            "beyond.snapshots",
            tasks=AGENT_TASKS[RUN(*wildcards[:5])],
            compared=AGENTS["tasks"],
            env_options=env_options(wildcards.env),
        ),
    shell:
        "python -m ictd.steps.agent --teacher {wildcards.teacher} --env {wildcards.env}"
        " --states {wildcards.states} --depth {wildcards.depth} --discount {wildcards.discount}"
        " --seeds {wildcards.seeds} {params.options} --output {output} > {log} 2>&1"


rule agent_values:
    input:
        runs=[BEYOND / f"runs/{AGENT}/{seeds}.npz" for seeds in AGENT_GROUPS],
        kernels=kernels("sampling"),
    output:
        BEYOND / f"values/{AGENT}/{ON_PLACE}.npz",
    log:
        LOGS / f"agent_values/{AGENT}/{ON_PLACE}.log",
    benchmark:
        BENCHMARKS / f"agent_values/{AGENT}/{ON_PLACE}.tsv"
    conda:
        "../../envs/studies.yaml"
    threads: 1
    resources:
        mem_mb=2000,
        runtime=60,
    params:
        *code("agent_values"),
        options=lambda wildcards: options(
            "beyond.test_tasks",
            "beyond.context_lengths",
            attention_scale="context_length",
            env_options=env_options(wildcards.on_env),
        ),
    shell:
        "python -m ictd.steps.agent_values --env {wildcards.on_env} --states {wildcards.states}"
        " --depth {wildcards.depth} --discount {wildcards.on_discount} {params.options}"
        " --runs {input.runs} --output {output} > {log} 2>&1"


# The paper's own pretrained weights on the same contexts.
use rule agent_values as paper_values with:
    input:
        runs=RESULTS / f"weights/{CELL}.npz",
        kernels=kernels("sampling"),
    output:
        BEYOND / f"paper/{CELL}/{ON_PLACE}.npz",
    log:
        LOGS / f"paper_values/{CELL}/{ON_PLACE}.log",
    benchmark:
        BENCHMARKS / f"paper_values/{CELL}/{ON_PLACE}.tsv"
    params:
        *code("agent_values"),
        options=lambda wildcards: options(
            "beyond.test_tasks",
            "beyond.context_lengths",
            "readings.attention_scale",
            env_options=env_options(wildcards.on_env),
        ),


rule yardsticks:
    input:
        kernels("sampling"),
    output:
        BEYOND / "yardsticks/{env}-{states}-{discount}.npz",
    log:
        LOGS / "yardsticks/{env}-{states}-{discount}.log",
    benchmark:
        BENCHMARKS / "yardsticks/{env}-{states}-{discount}.tsv"
    conda:
        "../../envs/studies.yaml"
    threads: 1
    resources:
        mem_mb=3000,
        runtime=60,
    params:
        *code("yardsticks"),
        options=lambda wildcards: options(
            "beyond.test_tasks",
            "beyond.tuning_tasks",
            "beyond.context_lengths",
            "beyond.step_sizes",
            "beyond.updates",
            "beyond.ridges",
            "beyond.bayes_samples",
            depth=FIRST[2],
            env_options=env_options(wildcards.env),
        ),
    shell:
        "python -m ictd.steps.yardsticks --env {wildcards.env} --states {wildcards.states}"
        " --discount {wildcards.discount} {params.options} --output {output} > {log} 2>&1"


PAPER_VALUES = [
    f"{algo}-{env}-{states}-{depth}/{env}-{discount}"
    for algo in config["algos"]
    for env, states, depth, discount in [FIRST]
]
BEYOND_TABLES = "values over_tasks yardsticks chosen shapes preconditioners attention".split()


rule beyond_tables:
    input:
        runs=[BEYOND / f"runs/{name}/{seeds}.npz" for name in AGENT_TASKS for seeds in AGENT_GROUPS],
        values=expand(BEYOND / "values/{name}.npz", name=VALUES),
        paper=expand(BEYOND / "paper/{name}.npz", name=PAPER_VALUES),
        yardsticks=[BEYOND / f"yardsticks/{'-'.join(map(str, one))}.npz" for one in YARDSTICK_SETTINGS],
        attention=[BEYOND / f"attention/{one['name']}.csv" for one in AGENTS["attentions"]],
    output:
        expand(BEYOND / "{table}.csv", table=BEYOND_TABLES),
    log:
        LOGS / "beyond_tables.log",
    benchmark:
        BENCHMARKS / "beyond_tables.tsv"
    conda:
        "../../envs/studies.yaml"
    threads: 1
    resources:
        mem_mb=2000,
        runtime=30,
    params:
        *code("beyond_tables"),
        options=options("readings.env_options"),
        folder=BEYOND,
    shell:
        "python -m ictd.steps.beyond_tables --runs {input.runs} --values {input.values} --paper {input.paper}"
        " --yardsticks {input.yardsticks} --attention {input.attention} {params.options} --output {params.folder} > {log} 2>&1"


rule agent_claims:
    input:
        expand(BEYOND / "{table}.csv", table=BEYOND_TABLES),
    output:
        BEYOND / "claims.json",
    log:
        LOGS / "agent_claims.log",
    benchmark:
        BENCHMARKS / "agent_claims.tsv"
    conda:
        "../../envs/studies.yaml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        *code("agent_claims"),
        options=options("beyond.tasks", "beyond.lengths", **SETTING_OPTIONS),
    shell:
        "python -m ictd.steps.agent_claims --tables {input} {params.options} --output {output} > {log} 2>&1"


AGENTS_SHOWN = "beside_yardsticks gaps teachers transfer preconditioner attentions".split()


rule agent_figures:
    input:
        expand(BEYOND / "{table}.csv", table=BEYOND_TABLES),
    output:
        expand(BEYOND / "figures/{name}.{ending}", name=AGENTS_SHOWN, ending=["png", "svg"]),
    log:
        LOGS / "agent_figures.log",
    benchmark:
        BENCHMARKS / "agent_figures.tsv"
    conda:
        "../../envs/studies.yaml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        *code("plot_agents"),
        options=options("beyond.tasks", "beyond.lengths", **SETTING_OPTIONS),
        folder=BEYOND / "figures",
    shell:
        "python -m ictd.steps.plot_agents --tables {input} {params.options} --output {params.folder} > {log} 2>&1"


AGENT_PAGES = "agent_claims agent_values agent_gaps agent_shapes agent_attentions".split()


rule agent_pages:
    input:
        claims=BEYOND / "claims.json",
        tables=expand(BEYOND / "{table}.csv", table=BEYOND_TABLES),
    output:
        expand(BEYOND / "tables/{name}.html", name=AGENT_PAGES),
    log:
        LOGS / "agent_pages.log",
    benchmark:
        BENCHMARKS / "agent_pages.tsv"
    conda:
        "../../envs/studies.yaml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        *code("agent_pages"),
        options=options("beyond.tasks", "beyond.lengths", **SETTING_OPTIONS),
        folder=BEYOND / "tables",
    shell:
        "python -m ictd.steps.agent_pages --claims {input.claims} --tables {input.tables}"
        " {params.options} --output {params.folder} > {log} 2>&1"


AGENTS_NOTEBOOK = ROOT / "report/agents.ipynb"
AGENTS_CAPTIONS = [ROOT / f"report/captions/{name}.rst" for name in (*AGENTS_SHOWN, *AGENT_PAGES)]


rule agents_notebook:
    input:
        rules.agent_pages.output,
        rules.agent_figures.output,
        ancient(AGENTS_CAPTIONS),
        notebook=ancient(AGENTS_NOTEBOOK),
    output:
        BEYOND / "agents.ipynb",
    log:
        LOGS / "agents_notebook.log",
    benchmark:
        BENCHMARKS / "agents_notebook.tsv"
    conda:
        "../../envs/report.yaml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        *code("notebook"),
        *map(text_digest, [AGENTS_NOTEBOOK, *AGENTS_CAPTIONS]),
        options=options(parameters={"results": str(BEYOND), "captions": str(ROOT / "report/captions")}),
    shell:
        "python -m ictd.steps.notebook --notebook {input.notebook} {params.options} --output {output}"
        " > {log} 2>&1"


use rule page as agents_page with:
    input:
        BEYOND / "agents.ipynb",
    output:
        BEYOND / "agents.html",
    log:
        LOGS / "agents_page.log",
    benchmark:
        BENCHMARKS / "agents_page.tsv"
    params:
        *code("page"),
        title="In-context TD: prompts as an agent sees them",


rule beyond:
    input:
        BEYOND / "agents.html",
