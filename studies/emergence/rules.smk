# A study beyond the paper: a few numbers instead of all weights, long runs, a plane, and other readings.
import studies.emergence.grid as EMERGENCE_GRID

EMERGENCE = config["emergence"]
EMERGENCE_EVALUATION = {
    "test_tasks": config["evaluation"]["tasks"],
    "context_lengths": config["evaluation"]["context_lengths"],
}
EMERGENCE_PHASE_SEEDS = seed_ranges(
    config["seeds_per_job"], EMERGENCE["phase"]["seeds"], 1, CORES, RESULTS.glob("emergence/phase/*.csv")
)
EMERGENCE_COURSES = EMERGENCE_GRID.courses(config)
EMERGENCE_COURSE_SEEDS = seed_ranges(
    config["seeds_per_job"],
    EMERGENCE["course"]["seeds"],
    len(EMERGENCE_COURSES),
    CORES,
    RESULTS.glob("emergence/runs/*/*.npz"),
)
EMERGENCE_JOINED = EMERGENCE_GRID.joined_tables(config, EMERGENCE_PHASE_SEEDS)
EMERGENCE_READINGS = EMERGENCE_GRID.readings(config)
EMERGENCE_TABLES = expand("<results>/emergence/{name}.csv", name=[*EMERGENCE_JOINED, "readings"])
EMERGENCE_FIGURES = "shares best_numbers course phase".split()
EMERGENCE_PAGES = "claims claims_all numbers rank_one parts exchanged trained slow_mode dynamics other_readings reading_runs".split()
EMERGENCE_FOLDER = ROOT / "studies/emergence"
EMERGENCE_NOTEBOOK = notebook_params(EMERGENCE_FOLDER / "notebook.ipynb", RESULTS / "emergence")


use rule step as emergence_step with:
    conda:
        f"{ENVS}/studies.yaml"


use rule emergence_step as emergence_shares with:
    input:
        weights=f"<results>/weights/{CELL}.npz",
        options=step("studies.emergence.shares", EMERGENCE),
    output:
        measures=f"<results>/emergence/measures/{CELL}.csv",
        exchanged=f"<results>/emergence/exchanged/{CELL}.csv",
    pathvars:
        job=f"emergence_shares/{CELL}",


use rule emergence_step as emergence_tuned_numbers with:
    input:
        options=step(
            "studies.emergence.tuned_numbers",
            EMERGENCE["best_numbers"],
            context_lengths=EMERGENCE["context_lengths"],
        ),
    output:
        "<results>/emergence/tuned/{states}-{depth}.npz",
    pathvars:
        job="emergence_tuned_numbers/{states}-{depth}",


use rule emergence_step as emergence_train_numbers with:
    input:
        tasks=expand("<results>/tasks/{{env}}-{{states}}/{seeds}.npz", seeds=GROUPS),
        returns=expand("<results>/returns/{{env}}-{{states}}/{seeds}.npz", seeds=GROUPS),
        weights=f"<results>/weights/{CELL}.npz",
        tuned="<results>/emergence/tuned/{states}-{depth}.npz",
        options=step(
            "studies.emergence.train_numbers",
            config["evaluation"],
            test_tasks=EMERGENCE["tasks"],
            context_lengths=EMERGENCE["context_lengths"],
        ),
    output:
        f"<results>/emergence/trained/{CELL}.csv",
    pathvars:
        job=f"emergence_train_numbers/{CELL}",
    resources:
        mem_mb=memory,


use rule emergence_step as emergence_best_numbers with:
    input:
        options=step(
            "studies.emergence.best_numbers",
            EMERGENCE["best_numbers"],
            discounts=lambda wildcards: EMERGENCE_GRID.discounts(config, int(wildcards.states)),
        ),
    output:
        "<results>/emergence/best_numbers/{env}-{states}.csv",
    pathvars:
        job="emergence_best_numbers/{env}-{states}",
    resources:
        mem_mb=memory,


use rule emergence_step as emergence_slow_mode with:
    input:
        options=step("studies.emergence.slow_mode", EMERGENCE["slow_mode"], MAIN),
    output:
        trained="<results>/emergence/slow_mode/{design}.csv",
        best="<results>/emergence/best_directions/{design}.csv",
    pathvars:
        job="emergence_slow_mode/{design}",


use rule emergence_step as emergence_dynamics with:
    input:
        options=step(
            "studies.emergence.dynamics",
            EMERGENCE["dynamics"],
            EMERGENCE["course"],
            MAIN,
            tasks=lambda wildcards: EMERGENCE["course"][f"{wildcards.algo}_tasks"],
        ),
    output:
        "<results>/emergence/dynamics/{algo}.csv",
    pathvars:
        job="emergence_dynamics/{algo}",


use rule emergence_step as emergence_course with:
    input:
        options=step(
            "studies.emergence.course",
            EMERGENCE["course"],
            MAIN,
            tasks=lambda wildcards: EMERGENCE["course"][f"{wildcards.algo}_tasks"],
        ),
    output:
        "<results>/emergence/runs/{algo}-{env}/{seeds}.npz",
    pathvars:
        job="emergence_course/{algo}-{env}/{seeds}",
    resources:
        mem_mb=memory,
        runtime=120,


use rule emergence_step as emergence_course_measures with:
    input:
        runs=expand("<results>/emergence/runs/{{algo}}-{{env}}/{seeds}.npz", seeds=EMERGENCE_COURSE_SEEDS),
        options=step("studies.emergence.course_measures", EMERGENCE, MAIN),
    output:
        "<results>/emergence/course/{algo}-{env}.csv",
    pathvars:
        job="emergence_course_measures/{algo}-{env}",


use rule emergence_step as emergence_phase with:
    input:
        options=step(
            "studies.emergence.phase",
            EMERGENCE["phase"],
            EMERGENCE,
            MAIN,
            test_tasks=EMERGENCE["tasks"],
        ),
    output:
        "<results>/emergence/phase/{seeds}.csv",
    pathvars:
        job="emergence_phase/{seeds}",
    # The longest jobs first: a long job that starts last leaves the other cores idle.
    priority: 1000
    resources:
        mem_mb=memory,
        runtime=240,


use rule emergence_step as emergence_readings with:
    input:
        tasks=expand("<results>/tasks/{env}-{states}/{seeds}.npz", **MAIN, seeds=GROUPS),
        returns=expand("<results>/returns/{env}-{states}/{seeds}.npz", **MAIN, seeds=GROUPS),
        options=step(
            "studies.emergence.readings",
            MAIN,
            reading=lambda wildcards: EMERGENCE_READINGS[wildcards.reading],
            **EMERGENCE_EVALUATION,
        ),
    output:
        "<results>/emergence/readings/{reading}.npz",
    pathvars:
        job="emergence_readings/{reading}",
    resources:
        mem_mb=memory,
        runtime=240,


use rule emergence_step as emergence_reading_tables with:
    input:
        runs=expand("<results>/emergence/readings/{reading}.npz", reading=EMERGENCE_READINGS),
        baselines="<results>/metrics/baselines.csv",
        options=step("studies.emergence.reading_tables", MAIN, statements=ROOT / "report/claims.toml"),
    output:
        expand("<results>/emergence/{table}.csv", table=["readings", "reading_runs"]),
    pathvars:
        job="emergence_reading_tables",


use rule step as emergence_join_tables with:
    input:
        parts=lambda wildcards: expand(
            "<results>/emergence/{name}.csv", name=EMERGENCE_JOINED[wildcards.table]
        ),
        options=step("ictd.steps.concatenate"),
    output:
        tables="<results>/emergence/{table,measures|exchanged|trained|best_numbers|slow_mode|best_directions|dynamics|course|phase}.csv",
    pathvars:
        job="emergence_join_tables/{table}",
    localrule: True


use rule step as emergence_claims with:
    input:
        tables=EMERGENCE_TABLES,
        options=step("studies.emergence.claims", MAIN, statements=EMERGENCE_FOLDER / "claims.toml"),
    output:
        "<results>/emergence/claims.json",
    pathvars:
        job="emergence_claims",
    localrule: True


use rule step as emergence_figures with:
    input:
        tables=EMERGENCE_TABLES,
        options=step("studies.emergence.figures", MAIN),
    output:
        expand("<results>/emergence/figures/{name}.{ending}", name=EMERGENCE_FIGURES, ending=["png", "svg"]),
    pathvars:
        job="emergence_figures",
    localrule: True


use rule step as emergence_pages with:
    input:
        claims="<results>/emergence/claims.json",
        tables=expand(
            "<results>/emergence/{name}.csv",
            name=[*EMERGENCE_JOINED, "readings", "reading_runs"],
        ),
        runs=expand(
            "<results>/emergence/runs/{course}/{seeds}.npz",
            course=EMERGENCE_COURSES,
            seeds=EMERGENCE_COURSE_SEEDS,
        ),
        options=step("studies.emergence.pages", MAIN),
    output:
        expand("<results>/emergence/tables/{name}.html", name=[*EMERGENCE_PAGES, "slider"]),
    pathvars:
        job="emergence_pages",
    localrule: True


use rule notebook as emergence_notebook with:
    input:
        shown=[rules.emergence_pages.output, rules.emergence_figures.output],
        claims="<results>/emergence/claims.json",
        tables="<results>/emergence/measures.csv",
        options=step("ictd.report.notebook", **EMERGENCE_NOTEBOOK),
    output:
        executed="<results>/emergence/emergence.ipynb",
        page="<results>/emergence/emergence.html",
    pathvars:
        job="emergence_notebook",
    localrule: True


rule emergence:
    input:
        "<results>/emergence/emergence.html",
